package ledger

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Reservation asks for devices for one claim, before the allocation is written.
type Reservation struct {
	Claim types.UID
	Name  types.NamespacedName
	// Devices are those that the claim takes away from others: not the ones
	// that it gets for admin access.
	Devices []device.ID
}

// Reserve holds the devices of all reservations, or of none. Reserving once
// more what is reserved already, or what the claim was seen to be allocated
// with meanwhile, changes nothing.
//
// The error is a *ConflictError if another claim holds a device, also by a
// reservation of the same call, and a *BusyError if the claim has other devices
// already.
func (l *Ledger) Reserve(reservations []Reservation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := make([]*holding, 0, len(reservations))
	claims := make(map[types.UID]struct{}, len(reservations))
	devices := make(map[device.ID]Holder)
	for i := range reservations {
		r := &reservations[i]
		if r.Claim == "" {
			return fmt.Errorf("reserve devices for claim %s: the reservation has no claim UID; choose one for a claim that does not exist yet", r.Name)
		}
		if _, found := claims[r.Claim]; found {
			return fmt.Errorf("reserve devices for claim %s: it has two reservations in one call; merge them", r.Name)
		}
		claims[r.Claim] = struct{}{}
		h := &holding{holder: Holder{Claim: r.Claim, Name: r.Name, Reserved: true}}
		for _, id := range r.Devices {
			if other, found := devices[id]; found {
				if other.Claim == r.Claim {
					continue
				}
				return &ConflictError{Device: id, Claim: r.Name, Holder: other}
			}
			devices[id] = h.holder
			h.devices = append(h.devices, id)
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
		case has.hasExactly(h.devices):
			return true, nil
		default:
			return false, &BusyError{Claim: claim, Name: h.holder.Name, Reserved: has.holder.Reserved}
		}
	}
	for _, id := range h.devices {
		if holders := l.holders(id); len(holders) > 0 {
			return false, &ConflictError{Device: id, Claim: h.holder.Name, Holder: holders[0]}
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
