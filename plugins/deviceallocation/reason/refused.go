package reason

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// Refused says why a claim cannot be handled, and what would have to change.
func Refused(e *problem.RefusedError) string {
	where := "claim " + e.Claim
	if e.Request != "" {
		where += fmt.Sprintf(", request %q", e.Request)
	}
	return where + ": " + refusal(e)
}

func refusal(e *problem.RefusedError) string {
	switch e.Cause {
	case problem.ClassUnavailable:
		return fmt.Sprintf("device class %s does not exist", e.Class)
	case problem.FeatureDisabled:
		return fmt.Sprintf("needs %s, for which the feature gate of this scheduler is off", e.Feature)
	case problem.UnknownRequestType:
		return "has a type that this scheduler does not know"
	case problem.UnknownAllocationMode:
		return fmt.Sprintf("unknown allocation mode %q", e.Mode)
	case problem.UnknownSelector:
		return place(e) + " has a type that this scheduler does not know"
	case problem.UnknownConstraint:
		return fmt.Sprintf("constraint %d has a type that this scheduler does not know", e.Number)
	case problem.BadExpression:
		return fmt.Sprintf("%s does not compile: %s", place(e), firstLine(e.Err))
	case problem.BadDerivation:
		return fmt.Sprintf("the expression of derived attribute %s does not compile: %s", e.Attribute, firstLine(e.Err))
	case problem.BadCount:
		return fmt.Sprintf("count %d is not positive", e.Count)
	case problem.TooManyDevices:
		return fmt.Sprintf("asks for more than the %d devices that a claim can hold", resourceapi.AllocationResultsMaxSize)
	default:
		return e.Error()
	}
}

func place(e *problem.RefusedError) string {
	if e.Class != "" {
		return fmt.Sprintf("selector %d of class %s", e.Number, e.Class)
	}
	return fmt.Sprintf("selector %d of the request", e.Number)
}
