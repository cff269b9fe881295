package deviceallocation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	watcher, err := pl.write(ctx, s, pod)
	if err != nil {
		return err
	}
	defer watcher.stop()
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

// write writes the claims, each when no other pod of this scheduler does.
// It returns who watches the claims for the devices to get ready, which must be
// stopped unless there is an error.
func (pl *Plugin) write(ctx context.Context, s *state, pod *corev1.Pod) (*claimWatcher, error) {
	r := s.reservation
	giveBack, err := pl.turns.take(ctx, s.uids())
	if err != nil {
		return nil, fmt.Errorf("wait for other pods to write the claims: %w", err)
	}
	defer giveBack()
	writes, err := pl.writes(ctx, s)
	if err != nil {
		return nil, err
	}
	watcher := pl.watchBinding(writes)
	written, err := pl.writer.Bind(ctx, pod, writes)
	if err != nil {
		watcher.stop()
		r.doubtful = claimwriter.RollBackFailed(err)
		return nil, err
	}
	for i, claim := range written {
		r.written = append(r.written, writtenClaim{claim: claim, tied: tied(writes[i]), shared: writes[i].Consumer != nil})
	}
	pl.assume(ctx, r)
	return watcher, nil
}

// uids identify all claims that PreBind looks at.
func (s *state) uids() []types.UID {
	uids := make([]types.UID, 0, len(s.reservation.claims)+len(s.allocated))
	for _, c := range s.reservation.claims {
		uids = append(uids, c.claim.UID)
	}
	for _, c := range s.allocated {
		uids = append(uids, c.claim.UID)
	}
	return uids
}

// writes says what each claim needs.
func (pl *Plugin) writes(ctx context.Context, s *state) ([]claimwriter.Write, error) {
	writes := make([]claimwriter.Write, 0, len(s.reservation.claims)+len(s.allocated))
	for _, c := range s.reservation.claims {
		if c.extended {
			writes = append(writes, claimwriter.Write{Claim: s.reservation.created, Allocation: pl.timed(c.allocation)})
			continue
		}
		claim, err := pl.confirm(ctx, s, pl.newest(c.claim))
		if err != nil {
			return nil, err
		}
		writes = append(writes, claimwriter.Write{Claim: claim, Allocation: pl.timed(c.allocation), Consumer: s.consumers.choose(claim)})
	}
	for _, c := range s.allocated {
		newest := pl.newest(c.claim)
		if !equality.Semantic.DeepEqual(newest.Status.Allocation, c.claim.Status.Allocation) {
			return nil, hasChanged(c.claim)
		}
		claim, err := pl.confirm(ctx, s, newest)
		if err != nil {
			return nil, err
		}
		writes = append(writes, claimwriter.Write{Claim: claim, Consumer: s.consumers.choose(claim)})
	}
	return writes, nil
}

// newest returns a claim as the tracker has it now. Another pod may have written
// it since devices were looked for.
func (pl *Plugin) newest(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	known, err := pl.claims.Get(claim.Namespace, claim.Name)
	if err != nil || known.UID != claim.UID {
		return claim // the API server will refuse it
	}
	return known
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
// look: the API server refuses to write an old version. Nor does one that another
// pod of the group has just written for the group, which stays.
func (pl *Plugin) confirm(ctx context.Context, s *state, claim *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	if !s.consumers.have(claim) || s.consumers.choose(claim) != nil && pl.inFlight.written(claim.UID) {
		return claim, nil
	}
	current, err := pl.handle.ClientSet().ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read claim %s: %w", klog.KObj(claim), err)
	}
	if current.UID != claim.UID || !equality.Semantic.DeepEqual(current.Status.Allocation, claim.Status.Allocation) {
		return nil, hasChanged(claim)
	}
	return current, nil
}

func hasChanged(claim *resourceapi.ResourceClaim) error {
	return fmt.Errorf("claim %s has changed since devices were looked for", klog.KObj(claim))
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
		pl.inFlight.observe(w.claim)
		// A claim that was created a moment ago may be unknown to the tracker. It
		// serves other plugins' scores, which do not depend on this moment.
		if err := pl.claims.AssumeClaimAfterAPICall(w.claim); err != nil {
			klog.FromContext(ctx).V(5).Info("Claim not assumed", "resourceclaim", klog.KObj(w.claim), "err", err)
		}
	}
	pl.inFlight.land(pl.claims, r)
	pl.inFlight.leave(pl.claims, r, false)
}
