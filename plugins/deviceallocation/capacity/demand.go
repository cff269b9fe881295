package capacity

import (
	resourceapi "k8s.io/api/resource/v1"
)

// Demand returns what one allocation of the device consumes.
//
// For a device that allows multiple allocations that is one entry for every
// capacity of the device, requested or not, as it belongs into the claim's
// status: rounded up by the request policy, in the format that the stock
// allocator records. A shareable device without capacities gives an empty map.
// An exclusive device is consumed whole: the requests only have to be within
// its capacities, and the result is nil.
//
// requests may be nil. fractional is the feature DRAFractionalCapacityRange:
// ranges are counted in thousandths instead of whole numbers if all of their
// bounds can be. Call Demand only with the feature DRAConsumableCapacity on:
// without, requests for capacity mean nothing.
//
// The error is a *Misfit or an *InvalidError. A capacity that the device does
// not have comes first, then amounts that make no sense, then those that do not
// suit; among equals the first name counts. Results share no memory with the
// arguments.
func Demand(d *resourceapi.Device, requests *resourceapi.CapacityRequirements, fractional bool) (Amounts, error) {
	return nil, nil
}

// Shareable says whether the device can have several allocations at once.
func Shareable(d *resourceapi.Device) bool {
	return d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}
