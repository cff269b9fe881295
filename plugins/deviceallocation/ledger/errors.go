package ledger

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// ConflictError says that a device cannot be reserved for a claim because
// another claim holds it, or holds too much of what the device needs.
type ConflictError struct {
	Device device.ID
	// Claim is the name of the claim that the device was to be reserved for.
	Claim types.NamespacedName
	// Capacity is set if the device is shared and has too little left of this
	// capacity.
	Capacity string
	// CounterSet is set if the pool has too little left of a Counter in this
	// set or, without a Counter, if devices that draw from the set have no
	// compatibility group in common with this one.
	CounterSet, Counter string
	// Holder is the first claim in the order of Ledger.Holders that holds the
	// device or, in the case of counters, another one that draws from them. It is
	// empty if there is none: the driver offers too little by now.
	Holder Holder
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("reserve device %s for claim %s: %s", e.Device, e.Claim, e.why())
}

func (e *ConflictError) why() string {
	state := "allocated to"
	if e.Holder.Reserved {
		state = "reserved for"
	}
	holder := fmt.Sprintf("%s claim %s (UID %s)", state, e.Holder.Name, e.Holder.Claim)
	var what string
	switch {
	case e.Capacity != "":
		what = fmt.Sprintf("too little is left of its capacity %s", e.Capacity)
		holder = "another share is " + holder
	case e.Counter != "":
		what = fmt.Sprintf("too little is left of counter %s in counter set %s", e.Counter, e.CounterSet)
		holder = "a device that draws from it is " + holder
	case e.CounterSet != "":
		what = fmt.Sprintf("its compatibility groups on counter set %s do not suit", e.CounterSet)
		holder = "a device that draws from it is " + holder
	default:
		return "it is " + holder
	}
	if e.Holder.Claim == "" {
		return what
	}
	return what + ": " + holder
}

// BusyError says that nothing can be reserved for a claim because the claim has
// devices already, and other ones: another attempt reserved them or an
// allocation was seen.
type BusyError struct {
	Claim    types.UID
	Name     types.NamespacedName
	Reserved bool
}

func (e *BusyError) Error() string {
	if e.Reserved {
		return fmt.Sprintf("reserve devices for claim %s: other devices are reserved for it already", e.Name)
	}
	return fmt.Sprintf("reserve devices for claim %s: it is allocated with other devices already", e.Name)
}
