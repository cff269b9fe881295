package reason

import (
	"errors"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// Node says why a node cannot serve a problem.
func Node(p *problem.Problem, r *allocator.Rejection) string {
	text := cause(p, r)
	if r.Cause == allocator.PoolFault || len(r.Faults) == 0 || !devicesMissing(r.Cause) {
		return text
	}
	if r.Cause == allocator.NoDevice {
		return subject(p, r.Alternative) + faults(r)
	}
	return text + ", " + faults(r)
}

// devicesMissing tells whether more devices would have helped, so that pools
// that could not be used are part of the reason.
func devicesMissing(c allocator.Cause) bool {
	return c != allocator.TooMany && c != allocator.OutOfBudget
}

func faults(r *allocator.Rejection) string {
	texts := make([]string, len(r.Faults))
	for i, fault := range r.Faults {
		texts[i] = fault.String()
	}
	return strings.Join(texts, ", ")
}

func cause(p *problem.Problem, r *allocator.Rejection) string {
	switch r.Cause {
	case allocator.NoCommonValue:
		return fmt.Sprintf("no value of attribute %s is common to enough free devices (matchAttribute)", r.Attribute)
	case allocator.TooFewValues:
		return fmt.Sprintf("free devices have too few different values of attribute %s (distinctAttribute)", r.Attribute)
	case allocator.TooFewTogether:
		return "each request could be satisfied, but not all of them with the free devices"
	case allocator.NoCombination:
		return "no combination of free devices satisfies all requests and constraints"
	case allocator.OutOfBudget:
		return fmt.Sprintf("search for devices ended undecided after %d steps (see stepBudget)", r.Steps)
	case allocator.TooMany:
		return subject(p, r.Alternative) + fmt.Sprintf("more than the %d devices that a claim can hold", resourceapi.AllocationResultsMaxSize)
	}
	return subject(p, r.Alternative) + detail(p, r)
}

// detail words the causes that concern a single request.
func detail(p *problem.Problem, r *allocator.Rejection) string {
	switch r.Cause {
	case allocator.NoDevice:
		return "no devices on the node"
	case allocator.NoMatch:
		return noMatch(p, r)
	case allocator.Refused:
		if r.Tally.Feature == device.NodeAllocatableResources {
			return fmt.Sprintf("matching devices need %s, which this scheduler does not support", r.Tally.Feature)
		}
		return fmt.Sprintf("matching devices need %s, for which the feature gate of this scheduler is off", r.Tally.Feature)
	case allocator.NodeOperations:
		return "matching devices need a node that declares the feature DRAOptionalNodeOperations"
	case allocator.Misfit:
		return misfit(r)
	case allocator.Exhausted:
		return "all matching devices have too little capacity or counters left"
	case allocator.Incompatible:
		return "compatibility groups of devices in use exclude all matching devices"
	case allocator.InUse:
		return "all matching devices in use"
	case allocator.Tainted:
		return fmt.Sprintf("free devices have the untolerated taint %s", Taint(r.Tally.Taint))
	case allocator.AttributeMissing:
		return fmt.Sprintf("free devices lack the attribute %s of a constraint", r.Attribute)
	case allocator.TooFew:
		if p.Alternatives[r.Alternative].All {
			return "not all matching devices are free and usable"
		}
		return fmt.Sprintf("fewer than %d matching devices free", r.Tally.Wanted)
	case allocator.PoolFault:
		return "asks for all devices, but " + faults(r)
	case allocator.NoAlternative:
		texts := make([]string, len(r.Alternatives))
		for i, alternative := range r.Alternatives {
			texts[i] = p.Alternatives[alternative.Alternative].Name + ": " + detail(p, alternative)
		}
		return "no alternative possible (" + strings.Join(texts, "; ") + ")"
	default:
		return "cannot be satisfied"
	}
}

func misfit(r *allocator.Rejection) string {
	if r.Tally.MissingCapacity == "" {
		return fmt.Sprintf("the requested capacity makes no sense for matching devices (%s)", firstLine(r.Tally.Err))
	}
	return fmt.Sprintf("no matching device offers the requested capacity %s", r.Tally.MissingCapacity)
}

// noMatch names the selector that turned the last devices away. A selector
// that failed is worth more than one that said no: it may be a mistake. The
// device stays out, so that equal failures on many nodes add up; see Failure.
func noMatch(p *problem.Problem, r *allocator.Rejection) string {
	alternative := p.Alternatives[r.Alternative]
	if len(alternative.Selectors) == 0 {
		return "no device matches"
	}
	text := "no device matches " + selectorName(alternative.Selectors[r.Tally.Selector])
	if r.Tally.Failed != nil {
		text += fmt.Sprintf(" (%s)", firstLine(r.Tally.Err))
	}
	return text
}

// Failure names a device for which a selector failed, and the remedy. It is
// empty if there was none. It is said once for a pod, for one device of many.
func Failure(p *problem.Problem, r *allocator.Rejection) string {
	for _, alternative := range r.Alternatives {
		if text := Failure(p, alternative); text != "" {
			return text
		}
	}
	if r.Tally.Failed == nil || r.Alternative < 0 {
		return ""
	}
	text := fails(p, r.Alternative, r.Tally.FailedPart, r.Tally.Failed, r.Tally.Err)
	if strings.Contains(text, "no such key") {
		text += " (guard optional attributes with has() or .?)"
	}
	return text
}

// Failed words the error about a device that ends the attempt. It is empty for
// any other error.
func Failed(p *problem.Problem, err error) string {
	var (
		selector   *allocator.SelectorError
		derivation *allocator.DerivationError
		capacity   *allocator.CapacityError
	)
	switch {
	case errors.As(err, &selector):
		name := selectorName(p.Alternatives[selector.Alternative].Selectors[selector.Selector])
		return fails(p, selector.Alternative, name, selector.Device, selector.Err)
	case errors.As(err, &derivation):
		return fails(p, derivation.Alternative, fmt.Sprintf("derived attribute %s", derivation.Attribute), derivation.Device, derivation.Err)
	case errors.As(err, &capacity):
		return fails(p, capacity.Alternative, "the requested capacity", capacity.Device, capacity.Err)
	default:
		return ""
	}
}

func fails(p *problem.Problem, alternative int, what string, d *device.Device, err error) string {
	return fmt.Sprintf("%s%s fails for device %s: %s", subject(p, alternative), what, d.ID, firstLine(err))
}

// firstLine keeps compilers' drawings out of conditions.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func selectorName(s problem.Selector) string {
	if s.Class != "" {
		return fmt.Sprintf("selector %d of class %s", s.Number, s.Class)
	}
	return fmt.Sprintf("selector %d of the request", s.Number)
}

// subject names the request, and the claim when the pod has several.
func subject(p *problem.Problem, alternative int) string {
	if alternative < 0 {
		return ""
	}
	a := p.Alternatives[alternative]
	claim := &p.Claims[a.Claim]
	request := claim.Requests[a.Request].Name
	if len(p.Claims) > 1 {
		return fmt.Sprintf("claim %s, request %q: ", claim.Object.Name, request)
	}
	return fmt.Sprintf("request %q: ", request)
}

// Taint writes a taint as kubectl does: key=value:effect.
func Taint(t *resourceapi.DeviceTaint) string {
	if t == nil {
		return ""
	}
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}
