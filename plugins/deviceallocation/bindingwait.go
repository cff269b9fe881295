package deviceallocation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	schedmetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

// bindingPending is the reason of the event that kube-scheduler emits as well.
const bindingPending = "BindingConditionsPending"

// timed returns the allocation as it is written: with the time, in the precision
// of the API, from which bindingTimeout counts.
func (pl *Plugin) timed(allocation *resourceapi.AllocationResult) *resourceapi.AllocationResult {
	if !pl.waitsForDevices() {
		return allocation
	}
	// Others see the allocation through the tracker: it must not change.
	written := *allocation
	written.AllocationTimestamp = ptr.To(metav1.Now().Rfc3339Copy())
	return &written
}

// watchBinding watches the claims of a pod that may have to wait for its
// devices, and returns nil for others. It is called before anything is written:
// what a driver reports afterwards cannot be missed.
func (pl *Plugin) watchBinding(writes []claimwriter.Write) *claimWatcher {
	conditional := slices.ContainsFunc(writes, func(w claimwriter.Write) bool {
		return hasBindingConditions(w.Allocation) || hasBindingConditions(w.Claim.Status.Allocation)
	})
	if !conditional || !pl.waitsForDevices() {
		return nil
	}
	claims := make([]*resourceapi.ResourceClaim, len(writes))
	for i := range writes {
		claims[i] = writes[i].Claim
	}
	return pl.feed.watch.add(claims)
}

// awaitBinding waits until all devices of the pod are ready. The claims have been
// written: they hold the devices for the pod, whatever happens to the scheduler.
// It ends with an error when a device fails, at the time limit, when the pod
// loses a claim, and with the context.
//
// After an error the attempt is rolled back like any other (see takeBack), at
// once: the pod takes itself out of its claims, and a claim that nobody else has
// reserved gives its devices back. kube-scheduler keeps the allocation, which the
// next attempt's PostFilter then takes back. Until then it holds devices for
// nobody, and it stays if there is no next attempt because the pod is deleted.
// What speaks for keeping it is that the next attempt sees what has failed; here
// it is in failedDevices. Pods that share a claim all see the failure; each takes
// out only itself, and the last one the allocation. One that gives up for a
// reason of its own, such as another claim, leaves the others their devices.
//
// An allocation that was found idle stays even so. The next attempt finds in
// PreFilter that it has failed, and PostFilter takes it back.
func (pl *Plugin) awaitBinding(ctx context.Context, pod *corev1.Pod, r *reservation, watcher *claimWatcher) error {
	if watcher == nil {
		return nil
	}
	written := make([]*resourceapi.ResourceClaim, len(r.written))
	for i := range r.written {
		written[i] = r.written[i].claim
		pl.feed.watch.seen(written[i])
	}
	w := &bindingWait{Plugin: pl, pod: pod, node: r.node, written: written, watcher: watcher, started: time.Now()}
	err := w.untilReady(ctx)
	w.count(err)
	if trouble := (*bindingError)(nil); errors.As(err, &trouble) {
		pl.failed.add(trouble, time.Now().Add(pl.bindingTimeout))
	}
	if err != nil && pl.lifetime.Err() != nil {
		// The scheduler ends, which is no reason to stop what the drivers are
		// doing: the next one finds the claims reserved for the pod and goes on
		// waiting. There is nothing left to take back.
		r.written, r.created = nil, nil
	}
	if err == nil {
		for _, claim := range written {
			pl.failed.forgive(claim.Status.Allocation)
		}
	}
	return err
}

// bindingWait is one pod that waits for its devices.
type bindingWait struct {
	*Plugin
	pod     *corev1.Pod
	node    string
	written []*resourceapi.ResourceClaim
	watcher *claimWatcher
	started time.Time
}

func (w *bindingWait) untilReady(ctx context.Context) error {
	for announced := false; ; announced = true {
		limit, err := w.check(time.Now())
		if err != nil || limit.IsZero() {
			return err
		}
		if !announced {
			w.handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(w.pod, nil, corev1.EventTypeNormal, bindingPending,
				"Scheduling", "waiting for binding conditions for device on node %s", w.node)
		}
		timer := time.NewTimer(time.Until(limit))
		select {
		case <-w.watcher.changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for devices to get ready: %w", context.Cause(ctx))
		}
		timer.Stop()
	}
}

// check looks at all claims. The time is until when to wait at most, zero if all
// devices are ready.
func (w *bindingWait) check(now time.Time) (time.Time, error) {
	var limit time.Time
	var late *bindingError
	for i, claim := range w.watcher.claims() {
		if err := w.lost(w.written[i], claim); err != nil {
			return limit, err
		}
		own := w.limit(claim)
		trouble := w.bindingTrouble(claim, own, now)
		switch {
		case trouble != nil && trouble.timeout == 0:
			return limit, trouble
		case trouble != nil && late == nil:
			late = trouble // a failure of another claim says more
		case trouble == nil && len(unreadyDevices(claim)) > 0 && (limit.IsZero() || own.Before(limit)):
			limit = own
		}
	}
	if late != nil {
		return limit, late
	}
	return limit, nil
}

// limit is that of the claim, but nobody waits for longer than bindingTimeout:
// the clock of whoever has allocated the claim may be wrong.
func (w *bindingWait) limit(claim *resourceapi.ResourceClaim) time.Time {
	own, limit := w.started.Add(w.bindingTimeout), w.bindingLimit(claim)
	if limit.IsZero() || own.Before(limit) {
		return own
	}
	return limit
}

// lost returns an error if the pod has lost a claim. Nobody takes it from a pod
// that waits, so mostly the pod itself is gone. A claim that is to be deleted
// stays until its pods have ended.
func (w *bindingWait) lost(written, current *resourceapi.ResourceClaim) error {
	switch {
	case current == nil:
		return fmt.Errorf("claim %s was deleted while the pod waited for its devices", klog.KObj(written))
	case !equality.Semantic.DeepEqual(written.Status.Allocation, current.Status.Allocation):
		return fmt.Errorf("claim %s lost its devices while the pod waited for them", klog.KObj(written))
	case !resourceclaim.IsReservedForPod(w.pod, current, w.gates.EnableDRAWorkloadResourceClaims):
		return fmt.Errorf("claim %s is no longer reserved for the pod, which waited for its devices", klog.KObj(written))
	}
	return nil
}

// count reports how the wait ended, in kube-scheduler's own metrics.
func (w *bindingWait) count(err error) {
	status := schedmetrics.BindingConditionsStatusSuccess
	trouble := (*bindingError)(nil)
	switch {
	case err == nil:
	case errors.As(err, &trouble) && trouble.timeout == 0:
		status = schedmetrics.BindingConditionsStatusFailed
	case errors.As(err, &trouble):
		status = schedmetrics.BindingConditionsStatusTimeout
	default:
		status = schedmetrics.BindingConditionsStatusError
	}
	profile, waited := w.handle.ProfileName(), time.Since(w.started).Seconds()
	for _, claim := range w.written {
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			schedmetrics.DRABindingConditionsPreBindDuration.WithLabelValues(profile, result.Driver, status).Observe(waited)
			if len(result.BindingConditions) > 0 {
				schedmetrics.DRABindingConditionsAllocationsTotal.WithLabelValues(profile, result.Driver, status).Inc()
			}
		}
	}
}
