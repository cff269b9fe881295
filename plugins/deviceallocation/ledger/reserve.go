package ledger

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// Reservation asks for devices for one claim, before the allocation is written.
type Reservation struct {
	Claim types.UID
	Name  types.NamespacedName
	// Allocation is what is going to be written. Results for admin access are
	// not reserved.
	Allocation *resourceapi.AllocationResult
	// Chosen is the snapshot of the inventory that the devices were chosen
	// from, or nil for the present one: a device that its driver has taken away
	// since then is charged with what it consumed there.
	Chosen *inventory.Snapshot
}

// Reserve holds the devices of all reservations, or of none. Reserving once
// more what is reserved already, or what the claim was seen to be allocated
// with meanwhile, changes nothing.
//
// The error is a *ConflictError if another claim holds a device, also by a
// reservation of the same call, and a *BusyError if the claim has other devices
// already.
func (l *Ledger) Reserve(devices *inventory.Snapshot, reservations []Reservation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := make([]*holding, 0, len(reservations))
	claims := make(map[types.UID]struct{}, len(reservations))
	l.refresh(devices)
	taken := make(map[device.ID]Holder)
	for i := range reservations {
		r := &reservations[i]
		if r.Claim == "" {
			return fmt.Errorf("reserve devices for claim %s: the reservation has no claim UID; choose one for a claim that does not exist yet", r.Name)
		}
		if _, found := claims[r.Claim]; found {
			return fmt.Errorf("reserve devices for claim %s: it has two reservations in one call; merge them", r.Name)
		}
		claims[r.Claim] = struct{}{}
		h := holdingOf(Holder{Claim: r.Claim, Name: r.Name, Reserved: true}, r.Allocation)
		for _, p := range h.devices {
			if other, found := taken[p.id]; found {
				return &ConflictError{Device: p.id, Claim: r.Name, Holder: other}
			}
			taken[p.id] = h.holder
			p.join(r.Chosen)
		}
		held, err := l.check(h)
		if err != nil {
			return err
		}
		if !held {
			asked = append(asked, h)
		}
	}
	for _, h := range asked {
		l.take(l.reserved, h)
	}
	return nil
}

// check reports whether the claim has just what is asked for already, and an
// error if it cannot have it.
func (l *Ledger) check(h *holding) (held bool, err error) {
	claim := h.holder.Claim
	for _, has := range []*holding{l.reserved[claim], l.observed[claim]} {
		switch {
		case has == nil:
		case has.takes(h):
			return true, nil
		default:
			return false, &BusyError{Claim: claim, Name: h.holder.Name, Reserved: has.holder.Reserved}
		}
	}
	for _, p := range h.devices {
		if holders := l.holders(p.id); len(holders) > 0 {
			return false, &ConflictError{Device: p.id, Claim: h.holder.Name, Holder: holders[0]}
		}
	}
	return false, nil
}

// Unreserve takes reservations back. It leaves allocations that were seen alone
// and does nothing for claims without a reservation.
func (l *Ledger) Unreserve(claims ...types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, claim := range claims {
		l.release(l.reserved, claim)
	}
}
