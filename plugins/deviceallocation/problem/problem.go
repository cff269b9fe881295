package problem

import (
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
)

// Problem is what a pod needs from a node.
type Problem struct {
	// Claims are those that must be allocated, in the pod's order.
	Claims []Claim
	// Alternatives lists the alternatives of all requests of all claims, each
	// at its own Index.
	Alternatives []*Alternative
	// Features are those of the Source.
	Features device.Features
	// Signature is equal for problems that have the same solutions on every
	// node and that explain themselves with the same words.
	Signature Signature
}

// Claim is one claim that must be allocated.
type Claim struct {
	// Object is the claim as the builder got it. Nobody may change it.
	Object      *resourceapi.ResourceClaim
	Requests    []Request
	Constraints []Constraint
}

// Request needs one of its alternatives: the only one of an exact request, or
// the first that is possible of a prioritized list.
type Request struct {
	// Name is the name of the (main) request.
	Name string
	// Prioritized says that the alternatives are subrequests of firstAvailable.
	Prioritized bool
	// Alternatives are in the order of preference; there is at least one.
	Alternatives []*Alternative
}

// Alternative is a set of devices that would satisfy a request.
type Alternative struct {
	// Index is the position in Problem.Alternatives.
	Index int
	// Claim and Request are positions in Problem.Claims and Claim.Requests.
	Claim, Request int
	// Rank is the position in Request.Alternatives, 0 being preferred.
	Rank int
	// Name is the request's name as an allocation result spells it: "main" or
	// "main/sub".
	Name string
	// Class is the device class that the alternative names.
	Class *resourceapi.DeviceClass
	// Selectors must all match: those of the class come first, then those of
	// the request, each in its order.
	Selectors []Selector
	// All asks for every matching device instead of Count devices.
	All   bool
	Count int
	// Admin is access for administrators: devices in use are fine, and nothing
	// is taken.
	Admin bool
	// Tolerations are for device taints.
	Tolerations []resourceapi.DeviceToleration
	// Capacity is what one device must offer or, if it can be shared, what is
	// consumed of it; nil asks for nothing in particular. Nobody may change it.
	Capacity *resourceapi.CapacityRequirements
	// Derived are attributes that constraints see instead of, or beside, those
	// that the driver publishes.
	Derived []Derived
}

// Derived is an attribute that a request computes for each device (KEP-6080).
type Derived struct {
	Name       resourceapi.FullyQualifiedName
	Derivation *selector.Derivation
}

// Derivation returns the expression for an attribute, or nil if the request
// does not define it. Of several with one name the last counts, as in
// kube-scheduler.
func (a *Alternative) Derivation(name resourceapi.FullyQualifiedName) *selector.Derivation {
	for i := len(a.Derived) - 1; i >= 0; i-- {
		if a.Derived[i].Name == name {
			return a.Derived[i].Derivation
		}
	}
	return nil
}

// Selector is one CEL expression and where it stands.
type Selector struct {
	Expression *selector.Expression
	// Class is the name of the class that contains the expression, or empty
	// when the request does.
	Class string
	// Number counts the selectors of that class or request from 1.
	Number int
}

// ConstraintKind tells constraints apart.
type ConstraintKind int

// The kinds of constraints (resource.k8s.io/v1 DeviceConstraint).
const (
	// Match wants all covered devices to have the same value.
	Match ConstraintKind = iota
	// Distinct wants all covered devices to have different values.
	Distinct
)

// Constraint limits which devices go together. Both kinds require that each
// covered device has the attribute.
type Constraint struct {
	Kind      ConstraintKind
	Attribute resourceapi.FullyQualifiedName
	// covers has one entry per alternative up to the last of the own claim.
	covers []bool
}

// Covers tells whether devices of the alternative fall under the constraint.
// A constraint never reaches beyond its own claim.
func (c *Constraint) Covers(alternative *Alternative) bool {
	return alternative.Index < len(c.covers) && c.covers[alternative.Index]
}

// SameDevices tells whether the same devices match both alternatives, whether
// both tolerate the same taints, consume the same and derive the same attributes.
func (a *Alternative) SameDevices(other *Alternative) bool {
	return slices.EqualFunc(a.Selectors, other.Selectors, func(x, y Selector) bool { return x.Expression == y.Expression }) &&
		slices.EqualFunc(a.Tolerations, other.Tolerations, sameToleration) &&
		slices.Equal(a.Derived, other.Derived) &&
		maps.EqualFunc(requested(a.Capacity), requested(other.Capacity), func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func requested(capacity *resourceapi.CapacityRequirements) map[resourceapi.QualifiedName]resource.Quantity {
	if capacity == nil {
		return nil
	}
	return capacity.Requests
}

// sameToleration ignores tolerationSeconds, which matters to eviction only.
func sameToleration(x, y resourceapi.DeviceToleration) bool {
	return x.Key == y.Key && x.Operator == y.Operator && x.Value == y.Value && x.Effect == y.Effect
}
