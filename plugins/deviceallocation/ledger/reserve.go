package ledger

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

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

// Reserve holds what all reservations ask for, or nothing. Reserving once more
// what is reserved already, or what the claim was seen to be allocated with
// meanwhile, changes nothing. devices is what is published at present.
//
// All reservations of a call are checked together, against what is held now:
// an exclusive device must have no holder, a share needs enough capacity and
// no exclusive holder, and a device that nobody holds yet needs enough counters
// and compatible groups.
//
// The error is a *ConflictError if something is not left, also because of an
// earlier reservation of the same call, and a *BusyError if the claim has other
// devices already.
func (l *Ledger) Reserve(devices *inventory.Snapshot, reservations []Reservation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	attempt := newAttempt(l, l.refresh(devices))
	claims := make(map[types.UID]struct{}, len(reservations))
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
		held, err := l.has(h)
		if err != nil {
			return err
		}
		if held {
			continue
		}
		if err := attempt.add(h, r.Chosen); err != nil {
			return err
		}
	}
	for _, h := range attempt.holdings {
		l.take(l.reserved, h)
	}
	return nil
}

// has reports whether the claim has just what is asked for already, and an
// error if it has something else.
func (l *Ledger) has(h *holding) (held bool, err error) {
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
