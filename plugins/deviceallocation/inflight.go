package deviceallocation

import (
	"fmt"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
)

// inFlight are the allocations that attempts have decided on, by claim, from
// Reserve until they are written or given up. The pods of a group share them:
// the first one chooses the devices and all of them hold the claim, so that one
// which fails takes nothing away from the others.
//
// Ledger and tracker are told once for each claim, however many attempts hold
// it: by the first one that comes and by the last one that leaves. All profiles
// of a scheduler use the same table. Safe for concurrent use.
type inFlight struct {
	inventory *inventory.Inventory
	ledger    *ledger.Ledger

	mutex   sync.Mutex
	byClaim map[types.UID]*allocationInFlight
	// holds counts the attempts for which the ledger holds the devices of a
	// claim. An attempt whose roll-back failed still has a hold when it is over.
	holds map[types.UID]int
}

// allocationInFlight is one allocation in flight.
type allocationInFlight struct {
	allocation *resourceapi.AllocationResult
	// group is that of the pods which share the allocation; the name is empty if
	// a single pod has it for itself.
	group types.NamespacedName
	// attempts counts the pods.
	attempts int
	// announced is set while the tracker shows the allocation as pending.
	announced bool
	// written is set when one of the pods has brought it to the API server.
	written bool
}

func newInFlight(devices *inventory.Inventory, holders *ledger.Ledger) *inFlight {
	return &inFlight{inventory: devices, ledger: holders, byClaim: make(map[types.UID]*allocationInFlight), holds: make(map[types.UID]int)}
}

// observe feeds a claim that was seen into the ledger. An allocation that is seen
// ends the reservation; if it goes away again while pods of the group still need
// it, its devices are reserved once more:
//
//	pod 1  writes the claim, which ends the reservation
//	pod 1  cannot be bound, and takes back what it wrote
//	pod 2  is about to write the same devices: nobody else may have them
//
// All of this happens under the lock that join takes.
func (f *inFlight) observe(claim *resourceapi.ResourceClaim) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.ledger.Observe(claim)
	found := f.byClaim[claim.UID]
	if found == nil || claim.Status.Allocation != nil {
		return
	}
	again := reservedClaim{claim: claim, allocation: found.allocation}
	// It fails if another scheduler has been faster. Then it does for whoever
	// writes the claim what a conflict does.
	_ = f.ledger.Reserve(f.inventory.Snapshot(), []ledger.Reservation{again.reservation(nil)})
}

// find returns the allocation in flight for a claim, the group that shares it,
// and how many pods hold it; nil and nothing if there is none.
func (f *inFlight) find(claim types.UID) (allocation *resourceapi.AllocationResult, group types.NamespacedName, attempts int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := f.byClaim[claim]
	if found == nil {
		return nil, types.NamespacedName{}, 0
	}
	return found.allocation, found.group, found.attempts
}

// written tells whether another pod has written the allocation in flight.
func (f *inFlight) written(claim types.UID) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := f.byClaim[claim]
	return found != nil && found.written
}

// join takes the devices of a reservation for all of its claims, or for none.
// chosen is the snapshot that they were chosen from.
// The error names the claim.
func (f *inFlight) join(tracker fwk.ResourceClaimTracker, r *reservation, chosen *inventory.Snapshot) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, c := range r.claims {
		if found := f.byClaim[c.claim.UID]; found != nil && !found.has(c.allocation) {
			return fmt.Errorf("claim %s is being allocated with other devices", klog.KObj(c.claim))
		}
	}
	if err := f.ledger.Reserve(f.inventory.Snapshot(), r.devices(chosen)); err != nil {
		return err
	}
	for i := range r.claims {
		if err := f.announce(tracker, &r.claims[i], r.group); err != nil {
			for _, c := range r.claims[:i] {
				f.remove(tracker, c.claim.UID)
			}
			for _, c := range r.claims {
				if f.holds[c.claim.UID] == 0 {
					f.ledger.Unreserve(c.claim.UID)
				}
			}
			return err
		}
	}
	for _, c := range r.claims {
		f.holds[c.claim.UID]++
	}
	return nil
}

// has compares by content: each pod of a group brings the allocation that it
// has seen.
func (f *allocationInFlight) has(allocation *resourceapi.AllocationResult) bool {
	return f.allocation == allocation || equality.Semantic.DeepEqual(f.allocation, allocation)
}

// announce counts one more attempt for a claim. The tracker is told what the
// claim will be when it is the first one.
func (f *inFlight) announce(tracker fwk.ResourceClaimTracker, c *reservedClaim, group types.NamespacedName) error {
	if found := f.byClaim[c.claim.UID]; found != nil {
		found.attempts++
		return nil
	}
	future := c.claim.DeepCopy()
	if !slices.Contains(future.Finalizers, resourceapi.Finalizer) {
		future.Finalizers = append(future.Finalizers, resourceapi.Finalizer)
	}
	future.Status.Allocation = c.allocation
	if err := tracker.SignalClaimPendingAllocation(c.claim.UID, future); err != nil {
		return fmt.Errorf("announce allocation of claim %s: %w", klog.KObj(c.claim), err)
	}
	f.byClaim[c.claim.UID] = &allocationInFlight{allocation: c.allocation, group: group, attempts: 1, announced: true}
	return nil
}

// remove counts one attempt less. It reports whether the tracker has forgotten
// the pending allocation because of that.
func (f *inFlight) remove(tracker fwk.ResourceClaimTracker, claim types.UID) bool {
	found := f.byClaim[claim]
	found.attempts--
	if found.attempts > 0 {
		return false
	}
	delete(f.byClaim, claim)
	return found.announced && tracker.MaybeRemoveClaimPendingAllocation(claim, false)
}

// land says that the claims of a reservation are written and known to ledger
// and tracker as such: they are not pending any more.
func (f *inFlight) land(tracker fwk.ResourceClaimTracker, r *reservation) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, c := range r.claims {
		found := f.byClaim[c.claim.UID]
		if found.written = true; found.announced {
			found.announced = false
			tracker.MaybeRemoveClaimPendingAllocation(c.claim.UID, true)
		}
	}
}

// leave ends what join began. With doubt the ledger keeps the devices until
// settle. The tracker's claims that were only pending are as they were before.
// Leaving twice is harmless.
func (f *inFlight) leave(tracker fwk.ResourceClaimTracker, r *reservation, doubt bool) {
	var restored []*resourceapi.ResourceClaim
	f.mutex.Lock()
	if !r.left {
		r.left = true
		for _, c := range r.claims {
			if f.remove(tracker, c.claim.UID) {
				restored = append(restored, c.claim)
			}
			if !doubt {
				f.drop(c.claim.UID)
			}
		}
	}
	f.mutex.Unlock()
	// Without the lock: the tracker tells everybody who listens.
	for _, claim := range restored {
		tracker.AssumedClaimRestore(claim.Namespace, claim.Name)
	}
}

// settle ends the holds of an attempt that left in doubt.
func (f *inFlight) settle(r *reservation) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, c := range r.claims {
		f.drop(c.claim.UID)
	}
}

func (f *inFlight) drop(claim types.UID) {
	if f.holds[claim]--; f.holds[claim] == 0 {
		delete(f.holds, claim)
		f.ledger.Unreserve(claim)
	}
}
