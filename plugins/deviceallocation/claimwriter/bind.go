package claimwriter

import (
	"context"
	"errors"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// Write is what a pod needs in one of its claims.
type Write struct {
	// Claim is the claim as last seen. It is not changed.
	Claim *resourceapi.ResourceClaim
	// Allocation goes into the claim. nil: the claim must still have the allocation that it has in Claim, and is only
	// reserved. It is not changed.
	Allocation *resourceapi.AllocationResult
	// Consumer is what the claim gets reserved for, if not for the pod: the PodGroup that the claim is bound to
	// (KEP-5729). nil means the pod.
	Consumer *resourceapi.ResourceClaimConsumerReference
}

// consumer returns what the claim gets reserved for.
func (w *Write) consumer(pod *v1.Pod) resourceapi.ResourceClaimConsumerReference {
	if w.Consumer != nil {
		return *w.Consumer
	}
	return resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID}
}

// Bind allocates and reserves claims for a pod: all of them, or none. Claims are written in parallel; nothing is
// written that does not change anything, so calling it again is harmless.
//
// On success it returns the claims as the API server has them now, in the order of writes; they belong to the caller.
//
// On failure it returns no claims and an error with at least one *Error, and what this call wrote has been taken out
// of all claims again; a roll-back that failed is in the error as well, with OperationRollBack, and the claim that it
// names may still be allocated. Only the finalizer stays: another scheduler may rely on it by now, and the
// controller-manager removes it with the claim. Errors that are found in the claims as last seen (such as
// ErrTooManyConsumers) cause no write at all.
//
// A reservation for a PodGroup stays as well, with the allocation under it. Another pod of the group may have found it
// and rely on it without having written anything itself:
//
//	pod 1  writes claim 1 for the group
//	pod 2  finds claim 1 reserved for the group, gets bound
//	pod 1  fails to write claim 2
func (w *Writer) Bind(ctx context.Context, pod *v1.Pod, writes []Write) (written []*resourceapi.ResourceClaim, err error) {
	attempts := make([]*attempt, 0, len(writes))
	seen := make(map[types.UID]bool, len(writes))
	for _, write := range writes {
		a := &attempt{w: w, consumer: write.consumer(pod), write: write, claim: write.Claim}
		if seen[write.Claim.UID] {
			return nil, claimError(OperationBind, write.Claim, ErrListedTwice)
		}
		seen[write.Claim.UID] = true
		if _, err := a.missing(); err != nil {
			return nil, claimError(OperationBind, write.Claim, err)
		}
		attempts = append(attempts, a)
	}

	if err := forEach(attempts, func(a *attempt) error { return a.run(ctx) }); err != nil {
		return nil, errors.Join(err, w.rollBack(ctx, attempts))
	}
	for _, a := range attempts {
		if a.claim == a.write.Claim {
			a.claim = a.claim.DeepCopy()
		}
		written = append(written, a.claim)
	}
	return written, nil
}

// rollBack takes out what the attempts wrote, or may have written.
func (w *Writer) rollBack(ctx context.Context, attempts []*attempt) error {
	ctx, cancel := w.cleanupContext(ctx)
	defer cancel()
	return forEach(attempts, func(a *attempt) error {
		if !a.reserved || a.write.Consumer != nil {
			return nil
		}
		removed, err := w.remove(ctx, OperationRollBack, a.claim, a.consumer.UID, a.allocation())
		if removed {
			w.observer.RolledBack()
		}
		return err
	})
}

// attempt is one claim's part of one Bind. It is used by one goroutine at a time.
type attempt struct {
	w        *Writer
	consumer resourceapi.ResourceClaimConsumerReference
	write    Write
	// claim is the newest version that is known.
	claim *resourceapi.ResourceClaim
	// reserved says that this attempt wrote the reservation or, after a lost answer, may have written it. Without
	// that nothing must be taken back.
	reserved bool
}

// allocation returns the allocation that must not outlive this attempt's reservation if that turns out to be the last
// one; nil if there is none.
func (a *attempt) allocation() *resourceapi.AllocationResult {
	switch {
	case a.write.Allocation != nil:
		// Written by this attempt, or by another pod that shares the allocation and may be gone by now.
		return a.wanted()
	case len(a.write.Claim.Status.ReservedFor) > 0:
		// The claim was in use when this attempt joined. Whoever had it may have left since, and kept the allocation
		// only because of this reservation: pod 1 allocates, pod 2 reserves, 1 rolls back, 2 rolls back. The last one
		// to leave takes the allocation along, as the controller-manager does it.
		return a.write.Claim.Status.Allocation
	default:
		// The claim was allocated but idle: it is left as it was found.
		return nil
	}
}

// wanted returns the allocation that the claim is to have, or nil if it is to keep its own. Pods that share one write it
// at different times: the time of whoever was first counts.
func (a *attempt) wanted() *resourceapi.AllocationResult {
	stored := a.claim.Status.Allocation
	if a.write.Allocation == nil || stored == nil {
		return a.write.Allocation
	}
	want := *a.write.Allocation
	want.AllocationTimestamp = stored.AllocationTimestamp
	return &want
}

// run writes until nothing is missing or something is in the way.
func (a *attempt) run(ctx context.Context) error {
	stale := false
	err := untilSettled(ctx, retry.DefaultRetry, func() error {
		if stale {
			if err := a.refresh(ctx); err != nil {
				return err
			}
		}
		stale = true
		return a.try(ctx)
	})
	return claimError(OperationBind, a.write.Claim, err)
}

func (a *attempt) refresh(ctx context.Context) error {
	claim, err := a.w.read(ctx, a.write.Claim)
	if err != nil {
		return err
	}
	a.claim = claim
	return nil
}

// try makes the writes that the newest known version needs.
func (a *attempt) try(ctx context.Context) error {
	missing, err := a.missing()
	if err != nil || !missing.any() {
		return err
	}
	if missing.finalizer {
		updated, err := a.w.addFinalizer(ctx, a.claim)
		if err != nil {
			return err
		}
		a.claim = updated
		// The answer shows the claim's status as well: it is as good as a read.
		if missing, err = a.missing(); err != nil || !missing.any() {
			return err
		}
	}
	next := a.claim.DeepCopy()
	if missing.allocation {
		next.Status.Allocation = a.write.Allocation.DeepCopy()
	}
	if missing.reservation {
		next.Status.ReservedFor = append(next.Status.ReservedFor, a.consumer)
	}
	updated, err := a.w.updateStatus(ctx, OperationWriteStatus, next)
	if err == nil || isLost(err) {
		a.reserved = a.reserved || missing.reservation
	}
	if err != nil {
		return err
	}
	a.claim = updated
	return nil
}

// parts are the things that can be missing in a claim.
type parts struct{ finalizer, allocation, reservation bool }

func (p parts) any() bool { return p.finalizer || p.allocation || p.reservation }

// missing compares the newest known version of the claim with what the pod needs. The error says why the pod cannot
// have it any more. It writes nothing.
func (a *attempt) missing() (parts, error) {
	var missing parts
	status := &a.claim.Status
	if a.claim.DeletionTimestamp != nil {
		return missing, ErrBeingDeleted
	}
	want := a.wanted()
	if want == nil {
		want = a.write.Claim.Status.Allocation
	}
	switch {
	case status.Allocation == nil && a.write.Allocation == nil:
		return missing, ErrDeallocated
	case status.Allocation == nil:
		missing.allocation = true
		missing.finalizer = !slices.Contains(a.claim.Finalizers, resourceapi.Finalizer)
	default:
		same, err := sameAllocation(want, status.Allocation)
		if err != nil {
			return missing, err
		}
		if !same {
			return missing, ErrAllocatedElsewhere
		}
	}
	if !isReservedFor(a.claim, a.consumer.UID) {
		missing.reservation = true
		if len(status.ReservedFor) >= resourceapi.ResourceClaimReservedForMaxSize {
			return missing, ErrTooManyConsumers
		}
	}
	return missing, nil
}

// forEach calls f for all attempts at once and joins the errors in the order of the attempts. A single attempt needs no
// goroutine. None is stopped because another one failed: a write that is cut off leaves more doubt than it saves time.
func forEach(attempts []*attempt, f func(*attempt) error) error {
	if len(attempts) == 1 {
		return f(attempts[0])
	}
	errs := make([]error, len(attempts))
	var wg sync.WaitGroup
	for i, a := range attempts {
		wg.Go(func() { errs[i] = f(a) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
