package objective

import (
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// The cost of a device is one number in which three things are written, the most
// important one in front: whether it is to be avoided, its value in thousandths,
// and whether its driver has to get it ready before the pod can run. The
// allocator adds up costs, and with fewer than 1,024 devices in a pod no part
// runs over into the next one:
//
//	avoided   above bit 44   1 for each device
//	value     bits 10 to 43  at most 2^17 for each device (maxValue)
//	unready   bits 0 to 9    1 for each device
//
// With more devices the order of importance is only approximate; nothing wraps
// around before half a million devices are avoided at once.
const (
	unreadyCost = 1
	valueCost   = 1 << 10
	avoidedCost = 1 << 44
)

// cost is the sum of the costs of a solution, taken apart.
type cost struct{ avoided, value, unready int64 }

func costOf(s *allocator.Solution) cost {
	return cost{
		avoided: s.Cost / avoidedCost,
		value:   s.Cost % avoidedCost / valueCost,
		unready: s.Cost % valueCost,
	}
}

// unready prices what is ready at once before what has binding conditions
// (KEP-5007): the pod starts sooner, and with nothing that can fail.
func unready(d *device.Device) int64 {
	if len(d.Spec.BindingConditions) > 0 {
		return unreadyCost
	}
	return 0
}

// Avoid prices devices like another objective, but takes some devices only if
// there is no solution without them. It implements allocator.Objective and is
// safe for concurrent use.
type Avoid struct {
	allocator.Objective
	// Devices must not be changed any more.
	Devices map[device.ID]bool
}

// DeviceCost is that of the other objective, and more than all of its costs
// together for a device to be avoided.
func (a Avoid) DeviceCost(alternative *problem.Alternative, d *device.Device) int64 {
	price := a.Objective.DeviceCost(alternative, d)
	if a.Devices[d.ID] {
		price += avoidedCost
	}
	return price
}
