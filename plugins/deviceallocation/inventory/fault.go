package inventory

import (
	"fmt"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// FaultKind says what is wrong with a pool.
type FaultKind string

// The faults of a pool. Nothing can be allocated from a pool that has one.
const (
	// Incomplete: not all slices of the newest generation have been published.
	Incomplete FaultKind = "Incomplete"
	// Surplus: there are more slices of the newest generation than it should have.
	Surplus FaultKind = "Surplus"
	// Contradictory: slices of the newest generation disagree about its resourceSliceCount.
	Contradictory FaultKind = "Contradictory"
	// DuplicateDevice: two devices that one node can reach have the same name.
	DuplicateDevice FaultKind = "DuplicateDevice"
	// DuplicateCounterSet: two counter sets have the same name.
	DuplicateCounterSet FaultKind = "DuplicateCounterSet"
	// DanglingCounter: a device consumes a counter that the pool does not have.
	DanglingCounter FaultKind = "DanglingCounter"
	// BadNodeSelector: the node selector of a slice or device cannot be parsed.
	BadNodeSelector FaultKind = "BadNodeSelector"
)

// Fault says why nothing can be allocated from a pool. It is immutable and
// comparable.
type Fault struct {
	Kind FaultKind
	Pool device.PoolID
	// Generation is the one that has the fault, the newest of the pool.
	Generation int64
	// Have is the number of slices of this generation, Want the number that
	// they should be; if they contradict each other, it is the largest.
	Have, Want int
	// Detail names the objects at fault. It is empty when the numbers say it all.
	Detail string
}

// String returns the fault in the few words that fit into the condition of a
// pod, without the objects at fault.
func (f *Fault) String() string {
	switch f.Kind {
	case Incomplete:
		return fmt.Sprintf("pool %s incomplete (%d of %d slices)", f.Pool, f.Have, f.Want)
	case Surplus:
		return fmt.Sprintf("pool %s has too many slices (%d instead of %d)", f.Pool, f.Have, f.Want)
	case Contradictory:
		return fmt.Sprintf("pool %s invalid (slices disagree about resourceSliceCount)", f.Pool)
	case DuplicateDevice:
		return fmt.Sprintf("pool %s invalid (duplicate device name)", f.Pool)
	case DuplicateCounterSet:
		return fmt.Sprintf("pool %s invalid (duplicate counter set)", f.Pool)
	case DanglingCounter:
		return fmt.Sprintf("pool %s invalid (unknown counter consumed)", f.Pool)
	case BadNodeSelector:
		return fmt.Sprintf("pool %s invalid (bad node selector)", f.Pool)
	default:
		return fmt.Sprintf("pool %s invalid (%s)", f.Pool, f.Kind)
	}
}

// Error returns the fault with the objects at fault and the remedy.
func (f *Fault) Error() string {
	if f.Detail == "" {
		return f.String()
	}
	return f.String() + ": " + f.Detail
}
