package ledger

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Holder is a claim that holds a device.
type Holder struct {
	Claim types.UID
	Name  types.NamespacedName
	// Reserved is set while the claim has the device only because of a
	// scheduling attempt in flight, and not because of an allocation seen.
	Reserved bool
}

func compareHolders(a, b Holder) int {
	return cmp.Or(
		cmp.Compare(a.Name.Namespace, b.Name.Namespace),
		cmp.Compare(a.Name.Name, b.Name.Name),
		cmp.Compare(a.Claim, b.Claim),
	)
}

// Share is a part of a device that allows multiple allocations. One claim may
// have several of them.
type Share struct {
	Claim types.UID
	ID    types.UID
	// ConsumedCapacity belongs to the claim's status. Nobody may change it.
	ConsumedCapacity map[resourceapi.QualifiedName]resource.Quantity
}

// holding is what one claim has. It is immutable.
type holding struct {
	holder Holder
	// devices has each device once, in the order of the allocation's results.
	devices []device.ID
	shares  map[device.ID][]Share
}

// allocationOf returns what the allocation of a claim takes away from others,
// or nil. Admin access takes nothing.
func allocationOf(claim *resourceapi.ResourceClaim) *holding {
	if claim.Status.Allocation == nil {
		return nil
	}
	h := &holding{holder: Holder{Claim: claim.UID, Name: nameOf(claim)}}
	seen := make(map[device.ID]struct{})
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		id := device.NewID(result.Driver, result.Pool, result.Device)
		if _, found := seen[id]; !found {
			seen[id] = struct{}{}
			h.devices = append(h.devices, id)
		}
		if result.ShareID == nil {
			continue
		}
		if h.shares == nil {
			h.shares = make(map[device.ID][]Share)
		}
		h.shares[id] = append(h.shares[id], Share{Claim: claim.UID, ID: *result.ShareID, ConsumedCapacity: result.ConsumedCapacity})
	}
	return h
}

// hasExactly reports whether the devices are those of the holding, in any order.
func (h *holding) hasExactly(devices []device.ID) bool {
	if len(h.devices) != len(devices) {
		return false
	}
	for _, id := range devices {
		if !slices.Contains(h.devices, id) {
			return false
		}
	}
	return true
}

func nameOf(claim *resourceapi.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}
