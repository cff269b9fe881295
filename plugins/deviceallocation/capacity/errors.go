package capacity

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Why says why a device does not suit a request. The values read well after
// "capacity X".
type Why string

const (
	// NotOffered: the request names a capacity that the device does not have.
	NotOffered Why = "is not offered"
	// AgainstPolicy: the request policy of the device allows no such amount,
	// because it is above the maximum, the largest valid value or off the steps.
	AgainstPolicy Why = "is not given in this amount by the request policy"
	// AboveValue: one allocation would take more than all that there is.
	AboveValue Why = "is smaller than what is requested"
	// Malformed: the driver published a request policy with steps but without
	// a minimum to count them from, with steps that lead nowhere, or quantities
	// far beyond what the API means to allow.
	Malformed Why = "is published with quantities or a request policy that make no sense"
	// NotRepresentable: the amount, or what it is rounded up to, is outside of
	// the numbers with which steps are counted.
	NotRepresentable Why = "is requested in an amount that cannot be represented"
	// Negative: the amount to be consumed would be below zero.
	Negative Why = "would be consumed in a negative amount"
)

// fatal says whether the stock allocator gives up on the claim.
func (w Why) fatal() bool { return w == NotRepresentable || w == Negative }

// Misfit means that this device does not suit the request, however little of
// it is in use. Other devices may.
type Misfit struct {
	Capacity resourceapi.QualifiedName
	// Needed is what an allocation would consume; where no policy was applied,
	// it is the requested amount.
	Needed resource.Quantity
	// Offered is the capacity's value, zero if the device does not have it.
	Offered resource.Quantity
	Why     Why
}

func (m *Misfit) Error() string {
	return fmt.Sprintf("capacity %s %s: %s of %s", m.Capacity, m.Why, text(m.Needed), text(m.Offered))
}

// InvalidError means that the request makes no sense on this device: an amount
// that cannot be represented, or a negative one. The stock allocator then gives
// up on the claim instead of looking at other devices.
type InvalidError struct {
	Capacity resourceapi.QualifiedName
	// Amount is the requested amount or, where nothing or too little is
	// requested, the published one that takes its place.
	Amount resource.Quantity
	Why    Why
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("capacity %s %s: %s", e.Capacity, e.Why, text(e.Amount))
}

// text prints a quantity without changing the caller's, as String would, and
// without writing out a billion digits.
func text(q resource.Quantity) string {
	if absurd(q) {
		return fmt.Sprintf("a number of more than %d digits", largest)
	}
	return q.String()
}
