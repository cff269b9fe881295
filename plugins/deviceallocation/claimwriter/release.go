package claimwriter

import (
	"context"
	"errors"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// Release takes a pod, or a PodGroup, out of a claim's consumers. With withAllocation it also takes out the allocation in claim, provided
// that the API server still has that one and no other consumer needs it; the caller says so if the allocation was
// written by its own attempt for this consumer, or was in use already when the consumer joined.
//
// It is idempotent: a claim that is gone, was replaced under its name, or is not reserved for the consumer needs nothing. It
// does not end with ctx, because what is given up must not stay reserved, but after the writer's clean-up time-out.
// The error, an *Error, then means that the claim may still be reserved. claim is not changed.
func (w *Writer) Release(ctx context.Context, claim *resourceapi.ResourceClaim, consumer types.UID, withAllocation bool) error {
	ctx, cancel := w.cleanupContext(ctx)
	defer cancel()
	var allocation *resourceapi.AllocationResult
	if withAllocation {
		allocation = claim.Status.Allocation
	}
	_, err := w.remove(ctx, OperationRelease, claim, consumer, allocation)
	return err
}

// remove takes the consumer out of the claim and, if nobody else needs it, the given allocation; nil leaves the
// allocation alone. It reports whether it changed the claim.
//
// The consumer's reservation is the proof that what is to be taken out is still there: allocation and reservation are
// written together, so without the one the other is no longer that attempt's.
func (w *Writer) remove(ctx context.Context, op Operation, claim *resourceapi.ResourceClaim, consumer types.UID, allocation *resourceapi.AllocationResult) (bool, error) {
	removed := false
	err := untilSettled(ctx, cleanupBackoff, func() error {
		current, err := w.read(ctx, claim)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced) {
			return nil
		}
		if err != nil {
			return err
		}
		if !isReservedFor(current, consumer) {
			return nil
		}
		current.Status.ReservedFor = slices.DeleteFunc(current.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
			return c.UID == consumer
		})
		if allocation != nil && len(current.Status.ReservedFor) == 0 {
			same, err := sameAllocation(allocation, current.Status.Allocation)
			if err != nil {
				return err
			}
			if same {
				clearAllocation(current)
			}
		}
		// A lost answer counts: if it went through, the next round finds nothing to do.
		_, err = w.updateStatus(ctx, op, current)
		removed = removed || err == nil || isLost(err)
		return err
	})
	var named *Error
	if errors.As(err, &named) && named.Operation != op {
		// A read that failed is named as such, but what matters is what could not be taken back because of it.
		err = &Error{Operation: op, Kind: named.Kind, Name: named.Name, Err: err}
	}
	return removed && err == nil, claimError(op, claim, err)
}

// clearAllocation empties the status of a claim without consumers. The device statuses go with the devices.
func clearAllocation(claim *resourceapi.ResourceClaim) {
	claim.Status.Allocation = nil
	claim.Status.ReservedFor = nil
	claim.Status.Devices = nil
}

// Deallocate takes the allocation that a claim has in claim out of it, with consumers and device statuses, and returns
// the claim as the API server has it now. consumer is the only one that it may have; "": it may have none.
//
// The error, an *Error, is ErrInUse if the claim has another consumer, ErrAllocatedElsewhere if it has another
// allocation by now, ErrGone or ErrReplaced if it does not exist any more. A claim without an allocation needs no write
// and is no error. claim is not changed.
func (w *Writer) Deallocate(ctx context.Context, claim *resourceapi.ResourceClaim, consumer types.UID) (*resourceapi.ResourceClaim, error) {
	current := claim
	stale := false
	err := untilSettled(ctx, retry.DefaultRetry, func() (err error) {
		if stale {
			if current, err = w.read(ctx, claim); err != nil {
				return err
			}
		}
		stale = true
		current, err = w.deallocate(ctx, claim, current, consumer)
		return err
	})
	if err != nil {
		return nil, claimError(OperationDeallocate, claim, err)
	}
	return current, nil
}

// deallocate writes current without the allocation that it has in seen.
func (w *Writer) deallocate(ctx context.Context, seen, current *resourceapi.ResourceClaim, consumer types.UID) (*resourceapi.ResourceClaim, error) {
	next := current.DeepCopy()
	if current.Status.Allocation == nil {
		return next, nil
	}
	if isReservedForOthers(current, consumer) {
		return nil, ErrInUse
	}
	same, err := sameAllocation(seen.Status.Allocation, current.Status.Allocation)
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, ErrAllocatedElsewhere
	}
	clearAllocation(next)
	return w.updateStatus(ctx, OperationDeallocate, next)
}
