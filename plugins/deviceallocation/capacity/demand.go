package capacity

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	var requested map[resourceapi.QualifiedName]resource.Quantity
	if requests != nil {
		requested = requests.Requests
	}
	if err := unoffered(d, requested); err != nil {
		return nil, err
	}
	amounts, first := make(Amounts, len(d.Capacity)), refusal{}
	for name, published := range d.Capacity {
		asked, isAsked := requested[name]
		rule := rule{capacity: &published, fractional: fractional}
		amount, why := rule.consume(asked, isAsked)
		if why == "" {
			why = rule.permit(amount)
		}
		if why == "" {
			amounts[name] = amount
		} else if found := (refusal{name, amount, published.Value, why}); found.before(first) {
			first = found
		}
	}
	switch {
	case first.why != "":
		return nil, first.err()
	case !Shareable(d):
		return nil, nil
	}
	return amounts, nil
}

// Shareable says whether the device can have several allocations at once.
func Shareable(d *resourceapi.Device) bool {
	return d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}

// unoffered finds the first requested capacity that the device does not have.
func unoffered(d *resourceapi.Device, requested map[resourceapi.QualifiedName]resource.Quantity) error {
	var first *Misfit
	for name, amount := range requested {
		if _, offered := d.Capacity[name]; !offered && (first == nil || name < first.Capacity) {
			first = &Misfit{Capacity: name, Needed: amount.DeepCopy(), Why: NotOffered}
		}
	}
	if first == nil {
		return nil // and not a nil *Misfit, which would be an error
	}
	return first
}

// refusal is what is wrong with one capacity; without why, nothing.
type refusal struct {
	name            resourceapi.QualifiedName
	needed, offered resource.Quantity
	why             Why
}

// before says which of two refusals is reported: one that ends the search for
// devices, else the first by name, so that the order of maps does not matter.
func (r refusal) before(other refusal) bool {
	switch {
	case other.why == "":
		return true
	case r.why.fatal() != other.why.fatal():
		return r.why.fatal()
	default:
		return r.name < other.name
	}
}

func (r refusal) err() error {
	if r.why.fatal() {
		return &InvalidError{Capacity: r.name, Amount: r.needed.DeepCopy(), Why: r.why}
	}
	return &Misfit{Capacity: r.name, Needed: r.needed.DeepCopy(), Offered: r.offered.DeepCopy(), Why: r.why}
}
