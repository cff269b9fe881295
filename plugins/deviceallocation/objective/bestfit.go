package objective

import (
	"math"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// costScale is the resolution of costs: thousandths of a doubling of capacity.
const costScale = 1000

// maxValue is far beyond the largest quantity that the API can express, so that
// no device can upset the sum of costs.
const maxValue = 1<<17 - 1

// BestFit prices a device by its capacity, so that a request gets the device
// that leaves the least capacity unused. It implements allocator.Objective and
// is safe for concurrent use.
//
// What the request needs is the same for all devices that satisfy it; the
// capacity left over grows with the capacity of the device and orders devices
// in the same way.
type BestFit struct{}

// DeviceCost is the value of the device. Among devices of one value, those
// without binding conditions go first. It does not depend on the alternative.
func (BestFit) DeviceCost(_ *problem.Alternative, d *device.Device) int64 {
	return Value(d)*valueCost + unready(d)
}

// Value says how valuable a device is: the mean of the binary logarithms of its
// capacities, in thousandths. Logarithms let bytes of memory and a number of
// cores count alike: twice as much of one of them is worth the same. The mean,
// not the sum, because drivers describe partitions with more capacities than
// whole devices. A device without capacity has no value.
func Value(d *device.Device) int64 {
	if len(d.Spec.Capacity) == 0 {
		return 0
	}
	var thousandths int64
	for _, capacity := range d.Spec.Capacity {
		amount := max(capacity.Value.AsApproximateFloat64(), 0)
		// Rounded one by one: a sum of floats would depend on the map's order.
		thousandths += int64(math.Round(min(costScale*math.Log2(1+amount), maxValue)))
	}
	return thousandths / int64(len(d.Spec.Capacity))
}

// Order prices all devices alike but for their binding conditions, so that
// prioritized lists decide, then whether the devices are ready, and then the
// order of the pools. It implements allocator.Objective.
type Order struct{}

// DeviceCost is 0 for a device without binding conditions, and hardly more for
// one with some.
func (Order) DeviceCost(_ *problem.Alternative, d *device.Device) int64 { return unready(d) }

// cellShare is how much a whole GPU counts against the value of devices: half a
// doubling.
const cellShare = 2

// CellCost makes a GPU of which little is left cheaper to take partitions from
// than an untouched one, so that whole GPUs stay whole. It stays below the
// difference that twice the capacity makes.
func (BestFit) CellCost(freePart int64) int64 { return cellCost(freePart) }

// CellCost is that of BestFit.
func (Order) CellCost(freePart int64) int64 { return cellCost(freePart) }

func cellCost(freePart int64) int64 { return freePart / cellShare * valueCost }

// Spread prices devices like another objective, but does not mind beginning
// with a further GPU. It implements allocator.Objective.
type Spread struct{ allocator.Objective }

// CellCost is always 0.
func (Spread) CellCost(int64) int64 { return 0 }
