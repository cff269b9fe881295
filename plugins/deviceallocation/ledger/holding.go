package ledger

import (
	"cmp"
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
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
	ConsumedCapacity capacity.Amounts
}

// holding is what one claim has.
type holding struct {
	holder Holder
	// devices has each device once, in the order of the allocation's results.
	devices []*part
}

// part is what a claim has of one device.
type part struct {
	id device.ID
	// exclusive is set if a result without share ID gave the device to the claim.
	exclusive bool
	shares    []Share
	// drawn is what the device consumed when it was first found published with
	// counters. It is not set a second time: what the device drew when it was
	// allocated stays charged, whatever its driver publishes later. It is
	// guarded by Ledger.mu; all else is immutable.
	drawn []resourceapi.DeviceCounterConsumption
}

// holdingOf returns what an allocation takes away from others. Admin access
// takes nothing.
func holdingOf(holder Holder, allocation *resourceapi.AllocationResult) *holding {
	h := &holding{holder: holder}
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		if result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		p := h.add(device.NewID(result.Driver, result.Pool, result.Device))
		if result.ShareID == nil {
			p.exclusive = true
			continue
		}
		p.shares = append(p.shares, Share{Claim: holder.Claim, ID: *result.ShareID, ConsumedCapacity: result.ConsumedCapacity})
	}
	return h
}

func (h *holding) part(id device.ID) *part {
	for _, p := range h.devices {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (h *holding) add(id device.ID) *part {
	if p := h.part(id); p != nil {
		return p
	}
	p := &part{id: id}
	h.devices = append(h.devices, p)
	return p
}

// consumed returns what all shares of the part take of the device's capacities.
func (p *part) consumed() capacity.Amounts {
	var sum capacity.Amounts
	for i := range p.shares {
		sum = sum.Add(p.shares[i].ConsumedCapacity)
	}
	return sum
}

// takes reports whether the two take the same away from others. Share IDs do
// not matter: they are made up anew each time an allocation is.
func (h *holding) takes(other *holding) bool {
	if len(h.devices) != len(other.devices) {
		return false
	}
	for _, p := range h.devices {
		q := other.part(p.id)
		if q == nil || p.exclusive != q.exclusive || len(p.shares) != len(q.shares) ||
			!equalAmounts(p.consumed(), q.consumed()) {
			return false
		}
	}
	return true
}

// inherit keeps what the claim's devices drew when it got them.
func (h *holding) inherit(before *holding) {
	if before == nil {
		return
	}
	for _, p := range h.devices {
		if old := before.part(p.id); old != nil && len(p.drawn) == 0 {
			p.drawn = old.drawn
		}
	}
}

func equalAmounts(a, b capacity.Amounts) bool {
	return maps.EqualFunc(a, b, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
}

func nameOf(claim *resourceapi.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}
