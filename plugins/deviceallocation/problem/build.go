package problem

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
)

// ClassGetter looks up a device class. It returns an error when the class does
// not exist or cannot be had. The objects that it returns are not changed.
type ClassGetter func(name string) (*resourceapi.DeviceClass, error)

// Source is where a Problem takes from what the claims do not say themselves.
type Source struct {
	Classes  ClassGetter
	Compiler *selector.Compiler
	// Features decide what the claims mean.
	Features device.Features
}

// Build turns claims that must be allocated into a Problem. The claims must
// not be changed afterwards.
//
// Every error is a *RefusedError: it names claim and request and says what
// cannot be handled.
func Build(claims []*resourceapi.ResourceClaim, source Source) (*Problem, error) {
	b := builder{Source: source, problem: &Problem{Features: source.Features}}
	for _, claim := range claims {
		if err := b.addClaim(claim); err != nil {
			return nil, err
		}
	}
	b.problem.Signature = sign(b.problem)
	return b.problem, nil
}

type builder struct {
	Source
	problem *Problem
}

func (b *builder) addClaim(object *resourceapi.ResourceClaim) error {
	claimIndex := len(b.problem.Claims)
	claim := Claim{Object: object}
	refuse := func(request string, r RefusedError) error {
		r.Claim, r.Request = object.Name, request
		return &r
	}
	for i := range object.Spec.Devices.Requests {
		spec := &object.Spec.Devices.Requests[i]
		request := Request{Name: spec.Name, Prioritized: len(spec.FirstAvailable) > 0}
		asks, refused := b.asks(spec)
		if refused != nil {
			return refuse(spec.Name, *refused)
		}
		for rank, a := range asks {
			alternative, refused := b.alternative(a)
			if refused != nil {
				return refuse(a.name, *refused)
			}
			alternative.Index = len(b.problem.Alternatives)
			alternative.Claim, alternative.Request, alternative.Rank = claimIndex, i, rank
			b.problem.Alternatives = append(b.problem.Alternatives, alternative)
			request.Alternatives = append(request.Alternatives, alternative)
		}
		claim.Requests = append(claim.Requests, request)
	}
	if least := leastDevices(claim.Requests); least > resourceapi.AllocationResultsMaxSize {
		return refuse("", RefusedError{Cause: TooManyDevices, Count: least})
	}
	for i := range object.Spec.Devices.Constraints {
		constraint, refused := b.constraint(&object.Spec.Devices.Constraints[i], i)
		if refused != nil {
			return refuse("", *refused)
		}
		claim.Constraints = append(claim.Constraints, constraint)
	}
	b.problem.Claims = append(b.problem.Claims, claim)
	b.cover(claimIndex)
	return nil
}

// leastDevices is the smallest number of devices that exact counts alone make
// necessary. All counts as nothing here; how much it is differs by node.
func leastDevices(requests []Request) int {
	total := 0
	for i := range requests {
		least := -1
		for _, alternative := range requests[i].Alternatives {
			count := alternative.Count
			if alternative.All {
				count = 0
			}
			if least < 0 || count < least {
				least = count
			}
		}
		total += min(least, resourceapi.AllocationResultsMaxSize+1)
	}
	return total
}

func (b *builder) constraint(spec *resourceapi.DeviceConstraint, index int) (Constraint, *RefusedError) {
	switch {
	case spec.MatchAttribute != nil:
		return Constraint{Kind: Match, Attribute: *spec.MatchAttribute}, nil
	case spec.DistinctAttribute != nil && b.Features.DistinctAttribute():
		return Constraint{Kind: Distinct, Attribute: *spec.DistinctAttribute}, nil
	default:
		return Constraint{}, &RefusedError{Cause: UnknownConstraint, Number: index + 1}
	}
}

// cover works out which alternatives the constraints of a claim cover: an
// empty list of requests covers all, "main" all its subrequests as well.
func (b *builder) cover(claimIndex int) {
	claim := &b.problem.Claims[claimIndex]
	for i := range claim.Constraints {
		requests := claim.Object.Spec.Devices.Constraints[i].Requests
		covers := make([]bool, len(b.problem.Alternatives))
		for _, request := range claim.Requests {
			for _, alternative := range request.Alternatives {
				covers[alternative.Index] = len(requests) == 0 ||
					slices.Contains(requests, request.Name) || slices.Contains(requests, alternative.Name)
			}
		}
		claim.Constraints[i].covers = covers
	}
}

// asks lists what a request asks for, if the feature gates allow it.
func (b *builder) asks(request *resourceapi.DeviceRequest) ([]ask, *RefusedError) {
	if len(request.FirstAvailable) > 0 && !b.Features.PrioritizedList {
		return nil, disabled(device.PrioritizedList)
	}
	// kube-scheduler refuses also an explicit false.
	if request.Exactly != nil && request.Exactly.AdminAccess != nil && !b.Features.AdminAccess {
		return nil, disabled(device.AdminAccess)
	}
	return asksOf(request)
}

func disabled(feature device.Feature) *RefusedError {
	return &RefusedError{Cause: FeatureDisabled, Feature: feature}
}

func (b *builder) alternative(a ask) (*Alternative, *RefusedError) {
	switch {
	case len(a.derived) > 0 && !b.Features.DerivedAttributes:
		return nil, disabled(device.DerivedAttributes)
	case a.capacity != nil && !b.Features.ConsumableCapacity:
		return nil, disabled(device.ConsumableCapacity)
	case a.class == "":
		return nil, &RefusedError{Cause: UnknownRequestType}
	}
	class, err := b.Classes(a.class)
	if err != nil {
		return nil, &RefusedError{Cause: ClassUnavailable, Class: a.class, Err: err}
	}
	result := &Alternative{Name: a.name, Class: class, Admin: a.admin, Tolerations: a.tolerations, Capacity: a.capacity}
	if refused := setCount(result, a); refused != nil {
		return nil, refused
	}
	if refused := b.addSelectors(result, class.Name, class.Spec.Selectors); refused != nil {
		return nil, refused
	}
	if refused := b.addSelectors(result, "", a.selectors); refused != nil {
		return nil, refused
	}
	for _, spec := range a.derived {
		derivation := b.Compiler.CompileDerivation(spec.Expression)
		if err := derivation.Err(); err != nil {
			return nil, &RefusedError{Cause: BadDerivation, Attribute: spec.Name, Err: err}
		}
		result.Derived = append(result.Derived, Derived{Name: spec.Name, Derivation: derivation})
	}
	return result, nil
}

func setCount(alternative *Alternative, a ask) *RefusedError {
	switch a.mode {
	case resourceapi.DeviceAllocationModeAll:
		alternative.All = true
	case resourceapi.DeviceAllocationModeExactCount:
		if a.count < 1 {
			return &RefusedError{Cause: BadCount, Count: int(a.count)}
		}
		// More than a claim can hold is refused as a whole later on; the cap
		// keeps sums from overflowing.
		alternative.Count = int(min(a.count, resourceapi.AllocationResultsMaxSize+1))
	default:
		return &RefusedError{Cause: UnknownAllocationMode, Mode: string(a.mode)}
	}
	return nil
}

func (b *builder) addSelectors(alternative *Alternative, class string, specs []resourceapi.DeviceSelector) *RefusedError {
	for i, spec := range specs {
		if spec.CEL == nil {
			return &RefusedError{Cause: UnknownSelector, Class: class, Number: i + 1}
		}
		expression := b.Compiler.Compile(spec.CEL.Expression)
		if err := expression.Err(); err != nil {
			return &RefusedError{Cause: BadExpression, Class: class, Number: i + 1, Err: err}
		}
		alternative.Selectors = append(alternative.Selectors, Selector{Expression: expression, Class: class, Number: i + 1})
	}
	return nil
}
