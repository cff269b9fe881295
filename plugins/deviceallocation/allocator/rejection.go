package allocator

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// Cause says why a node cannot serve a Problem.
type Cause int

// The causes, from the simplest to the most involved. The first ones are about
// a single alternative, the last ones about several requests together.
const (
	// NoDevice: the node offers no device at all.
	NoDevice Cause = iota
	// NoMatch: no device matches the alternative's selectors.
	NoMatch
	// Refused: the matching devices use a feature that this scheduler refuses.
	Refused
	// InUse: matching devices exist and are held by other claims.
	InUse
	// Misfit: no matching device has the requested capacity, whoever uses it.
	Misfit
	// NodeOperations: what is free has no kubelet plugin, and the node cannot do
	// without.
	NodeOperations
	// Exhausted: capacity of shared devices, or the counters that partitions
	// draw on, are used up.
	Exhausted
	// Incompatible: compatibility groups keep what is free apart from what is in
	// use.
	Incompatible
	// Tainted: what is free has taints that the request does not tolerate.
	Tainted
	// AttributeMissing: what is free lacks the attribute of a constraint.
	AttributeMissing
	// TooFew: fewer devices are left than asked for, for several causes.
	TooFew
	// TooMany: "all devices" is more than one claim can hold.
	TooMany
	// PoolFault: "all devices" cannot be told while a pool is faulty.
	PoolFault
	// NoAlternative: none of the subrequests is possible; see Alternatives.
	NoAlternative
	// NoCommonValue: no value of the attribute has enough devices for all
	// requests that a matchAttribute constraint covers.
	NoCommonValue
	// TooFewValues: a distinctAttribute constraint needs more different values.
	TooFewValues
	// TooFewTogether: each request could be satisfied, not all of them at once.
	TooFewTogether
	// NoCombination: the search has tried everything that the bounds allow.
	NoCombination
	// OutOfBudget: the search ended undecided, so this says nothing about the
	// devices.
	OutOfBudget
)

// Rejection is the reason why a node cannot serve a Problem. It is an error
// so that Solve can return it; the room "reason" words it for users.
type Rejection struct {
	Cause Cause
	// Alternative is the index of the alternative that cannot be satisfied, or
	// -1 when the cause is not about a single one.
	Alternative int
	// Alternatives has the reason for each subrequest (NoAlternative).
	Alternatives []*Rejection
	// Tally counts the node's devices from the alternative's point of view.
	Tally Tally
	// Attribute is the constraint's (AttributeMissing, NoCommonValue,
	// TooFewValues).
	Attribute resourceapi.FullyQualifiedName
	// Faults are the node's pools whose devices could not be considered.
	Faults []*inventory.Fault
	// Steps is the search effort.
	Steps int
}

// Tally counts devices of a node.
type Tally struct {
	// Wanted is the number of devices asked for, Seen that of all devices in
	// usable pools, Matching of those that match all selectors.
	Wanted, Seen, Matching int
	// The following count matching devices, each device once, at the first
	// obstacle in this order. Misfit also has those that "all devices" leaves
	// out for that reason; they do not count as matching.
	InUse, Refused, NodeOperations, Misfit, Exhausted, Incompatible, Tainted, WithoutAttribute int
	// MissingCapacity is a capacity of which a device has not enough (Misfit).
	MissingCapacity resourceapi.QualifiedName
	// Feature is a feature for which a device was refused, Taint a taint that
	// is not tolerated: the first found in the order of devices.
	Feature device.Feature
	Taint   *resourceapi.DeviceTaint
	// Selector is the index of the alternative's selector that rejected the
	// last devices (NoMatch).
	Selector int
	// Errors counts devices for which an expression or a request policy failed;
	// Failed is the first of them and Err says why.
	Errors int
	Failed *device.Device
	Err    error
	// FailedPart says in a few words what failed: "a selector", for instance.
	FailedPart string
}

// Error names the cause by number; it is for tests and logs.
func (r *Rejection) Error() string {
	return fmt.Sprintf("node rejected: cause %d, alternative %d, tally %+v", r.Cause, r.Alternative, r.Tally)
}

// SelectorError stops the search because a selector failed for a device. Solve
// returns it only when Options.FailOnSelectorError is set.
type SelectorError struct {
	// Alternative and Selector say which expression failed.
	Alternative, Selector int
	Device                *device.Device
	Err                   error
}

// Error says which device the selector failed for.
func (e *SelectorError) Error() string {
	return fmt.Sprintf("evaluate selector %d of alternative %d for device %s: %v", e.Selector, e.Alternative, e.Device.ID, e.Err)
}

// Unwrap returns the error of the evaluation.
func (e *SelectorError) Unwrap() error { return e.Err }

// DerivationError stops the search because a derived attribute could not be
// computed for a device. Solve returns it like a SelectorError.
type DerivationError struct {
	Alternative int
	Attribute   resourceapi.FullyQualifiedName
	Device      *device.Device
	Err         error
}

// Error says which device the expression failed for.
func (e *DerivationError) Error() string {
	return fmt.Sprintf("derive attribute %s of alternative %d for device %s: %v", e.Attribute, e.Alternative, e.Device.ID, e.Err)
}

// Unwrap returns the error of the evaluation.
func (e *DerivationError) Unwrap() error { return e.Err }

// CapacityError stops the search because the capacity that is requested makes
// no sense on a device. Solve returns it like a SelectorError.
type CapacityError struct {
	Alternative int
	Device      *device.Device
	Err         error
}

// Error says which device it is.
func (e *CapacityError) Error() string {
	return fmt.Sprintf("compute capacity for alternative %d of device %s: %v", e.Alternative, e.Device.ID, e.Err)
}

// Unwrap returns what is wrong with the capacity.
func (e *CapacityError) Unwrap() error { return e.Err }
