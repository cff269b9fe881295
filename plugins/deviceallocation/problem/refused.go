package problem

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Cause says why a claim is refused.
type Cause int

// The causes. All but ClassUnavailable are properties of the claim or class as
// written: waiting for devices does not help, changing the object does.
const (
	ClassUnavailable Cause = iota
	// FeatureDisabled: the feature gate is off in this scheduler. The API server
	// has it on, or had it on when the claim was written.
	FeatureDisabled
	UnknownRequestType
	UnknownAllocationMode
	UnknownSelector
	UnknownConstraint
	BadExpression
	BadDerivation
	BadCount
	TooManyDevices
)

// RefusedError says that a claim cannot be handled, whatever the nodes offer.
type RefusedError struct {
	Cause Cause
	// Claim is the claim's name; Request is "main" or "main/sub", or empty
	// when the claim as a whole is meant.
	Claim, Request string
	Feature        device.Feature                 // FeatureDisabled
	Attribute      resourceapi.FullyQualifiedName // BadDerivation
	Class          string                         // ClassUnavailable; the selector's class, if any
	Mode           string                         // UnknownAllocationMode
	Number         int                            // selector or constraint, from 1
	Count          int                            // BadCount, TooManyDevices
	Err            error                          // ClassUnavailable, BadExpression, BadDerivation
}

// Unwrap returns the underlying error, if any.
func (e *RefusedError) Unwrap() error { return e.Err }

// Error names the object and the problem; the room "reason" words it for
// users.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("refuse claim %s, request %q: cause %d (feature %q, class %q, mode %q, number %d, count %d): %v",
		e.Claim, e.Request, e.Cause, e.Feature, e.Class, e.Mode, e.Number, e.Count, e.Err)
}
