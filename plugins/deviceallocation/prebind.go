package deviceallocation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

// PreBindPreFlight says that PreBind has something to do for pods with claims,
// beside other plugins.
func (pl *Plugin) PreBindPreFlight(_ context.Context, cycle fwk.CycleState, _ *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	result := &fwk.PreBindPreFlightResult{AllowParallel: true}
	s, err := readState(cycle)
	if err != nil {
		return result, fwk.AsStatus(err)
	}
	if s == nil {
		return result, fwk.NewStatus(fwk.Skip)
	}
	return result, nil
}

// PreBind writes the claims of the pod: devices where they were chosen now, and
// the reservation for the pod everywhere. Then it waits for devices that have to
// be got ready. After a failure nothing of it stays; the framework calls
// Unreserve.
func (pl *Plugin) PreBind(ctx context.Context, cycle fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	s, err := readState(cycle)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s == nil {
		return nil
	}
	if s.reservation == nil {
		return fwk.AsStatus(fmt.Errorf("bind devices on node %s: %w", nodeName, errNotReserved))
	}
	if err := pl.bind(ctx, s, pod); err != nil {
		return fwk.AsStatus(fmt.Errorf("bind devices on node %s: %w", nodeName, err))
	}
	return nil
}

func (pl *Plugin) bind(ctx context.Context, s *state, pod *corev1.Pod) error {
	r := s.reservation
	if err := pl.createExtended(ctx, r); err != nil {
		return err
	}
	writes := make([]claimwriter.Write, 0, len(r.claims)+len(s.allocated))
	for _, c := range r.claims {
		claim := c.claim
		if c.extended {
			claim = r.created
		}
		writes = append(writes, claimwriter.Write{Claim: claim, Allocation: pl.timed(c.allocation)})
	}
	for _, c := range s.allocated {
		claim, err := pl.confirm(ctx, pod, c.claim)
		if err != nil {
			return err
		}
		writes = append(writes, claimwriter.Write{Claim: claim})
	}
	watcher := pl.watchBinding(writes)
	defer watcher.stop()
	written, err := pl.writer.Bind(ctx, pod, writes)
	if err != nil {
		r.doubtful = claimwriter.RollBackFailed(err)
		return err
	}
	for i, claim := range written {
		r.written = append(r.written, writtenClaim{claim: claim, tied: tied(writes[i])})
	}
	pl.assume(ctx, r)
	if r.created != nil {
		err := pl.writer.PatchExtendedResourceStatus(ctx, pod, &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: r.created.Name,
			RequestMappings:   r.mappings,
		})
		if err != nil {
			return err
		}
	}
	return pl.awaitBinding(ctx, pod, r, watcher)
}

// tied tells whether the allocation of a claim must not outlive the reservation
// for the pod if that turns out to be the last one. An allocation that was found
// idle is left as it was found. One that was in use has to go with its last
// consumer, because the controller-manager takes back only those of which it
// removed that consumer itself:
//
//	scheduler 1  writes the claim for the pod and crashes
//	scheduler 2  finds the claim reserved for the pod
//	             the pod is deleted, and cannot be bound
//	scheduler 2  takes the reservation out: nobody would look at the rest
func tied(write claimwriter.Write) bool {
	return write.Allocation != nil || len(write.Claim.Status.ReservedFor) > 0
}

// confirm reads a claim that seems to be reserved for the pod already, so that
// nothing would be written for it. It may be out of date just then:
//
//	attempt 1   writes the claim          informer shows it
//	attempt 1   fails and takes it back   informer is late
//	attempt 2   PreFilter: allocated and reserved, nothing left to write
//
// The pod would run without its claim. A claim that is to be written needs no
// look: the API server refuses to write an old version.
func (pl *Plugin) confirm(ctx context.Context, pod *corev1.Pod, claim *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	if !resourceclaim.IsReservedForPod(pod, claim, false) {
		return claim, nil
	}
	current, err := pl.handle.ClientSet().ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read claim %s: %w", klog.KObj(claim), err)
	}
	if current.UID != claim.UID || !equality.Semantic.DeepEqual(current.Status.Allocation, claim.Status.Allocation) {
		return nil, fmt.Errorf("claim %s has changed since devices were looked for", klog.KObj(claim))
	}
	return current, nil
}

// createExtended creates the claim for extended resources, if there is one.
func (pl *Plugin) createExtended(ctx context.Context, r *reservation) error {
	for _, c := range r.claims {
		if !c.extended {
			continue
		}
		template := c.claim.DeepCopy()
		template.Name = ""
		created, err := pl.writer.CreateExtendedResourceClaim(ctx, template)
		if err != nil {
			return err
		}
		r.created = created
	}
	return nil
}

// assume makes the written claims known to ledger and tracker before the
// informers deliver them, and only then ends the reservations: there is no
// moment at which a device looks free.
func (pl *Plugin) assume(ctx context.Context, r *reservation) {
	for _, w := range r.written {
		pl.ledger.Observe(w.claim)
		// A claim that was created a moment ago may be unknown to the tracker. It
		// serves other plugins' scores, which do not depend on this moment.
		if err := pl.claims.AssumeClaimAfterAPICall(w.claim); err != nil {
			klog.FromContext(ctx).V(5).Info("Claim not assumed", "resourceclaim", klog.KObj(w.claim), "err", err)
		}
	}
	for _, c := range r.claims {
		pl.claims.MaybeRemoveClaimPendingAllocation(c.claim.UID, true)
	}
	pl.ledger.Unreserve(r.uids()...)
}
