package ledger

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// ConflictError says that a device cannot be reserved for a claim because
// another claim holds it.
type ConflictError struct {
	Device device.ID
	// Claim is the name of the claim that the device was to be reserved for.
	Claim types.NamespacedName
	// Holder is the first holder in the order of Ledger.Holders.
	Holder Holder
}

func (e *ConflictError) Error() string {
	state := "allocated to"
	if e.Holder.Reserved {
		state = "reserved for"
	}
	return fmt.Sprintf("reserve device %s for claim %s: it is %s claim %s (UID %s)", e.Device, e.Claim, state, e.Holder.Name, e.Holder.Claim)
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
