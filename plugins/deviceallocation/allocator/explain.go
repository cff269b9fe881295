package allocator

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// hopeless returns an error when "all devices" cannot be told: it would be
// wrong to hand out most of them while a pool is being replaced.
func (f *field) hopeless() error {
	for _, alternative := range f.problem.Alternatives {
		if !alternative.All {
			continue
		}
		if len(f.faults) > 0 {
			return &Rejection{Cause: PoolFault, Alternative: alternative.Index, Tally: f.tallies[alternative.Index], Faults: f.faults}
		}
		for _, failed := range f.errors {
			if failed.alternative == alternative.Index {
				return failed.err
			}
		}
	}
	return nil
}

// failedEvaluation is something about a device that could not be evaluated.
type failedEvaluation struct {
	alternative int
	// before counts the devices of the field that come earlier.
	before int
	inUse  bool
	err    error
}

// failure ends the search: it completes the solution or says why there is none.
func (s *search) failure() error {
	if s.best != nil {
		s.best.Steps, s.best.Exhausted = s.steps, s.over
		return s.encountered()
	}
	if s.over {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		return &Rejection{Cause: OutOfBudget, Alternative: -1, Steps: s.steps, Faults: s.faults}
	}
	for i := range s.errors {
		if !s.errors[i].inUse {
			return s.errors[i].err
		}
	}
	rejection := s.explain()
	rejection.Steps, rejection.Faults = s.steps, s.faults
	return rejection
}

// encountered returns the first failed evaluation that the stock allocator
// would have run into on its way to the solution: it asks the selectors of
// free devices one after the other until a request is satisfied.
func (s *search) encountered() error {
	if len(s.errors) == 0 {
		return nil
	}
	position := make(map[*device.Device]int, len(s.devices))
	for i, d := range s.devices {
		position[d] = i
	}
	for r := range s.requests {
		last := -1
		for _, pick := range s.best.Claims[s.requests[r].claim] {
			a := s.problem.Alternatives[pick.Alternative]
			if a.Claim == s.requests[r].claim && a.Request == s.problem.Alternatives[s.requests[r].Alternatives[0].Index].Request {
				last = max(last, position[pick.Device])
			}
		}
		for _, alternative := range s.requests[r].Alternatives[:s.best.Ranks[r]+1] {
			tookThis := alternative.Rank == s.best.Ranks[r]
			for i := range s.errors {
				e := &s.errors[i]
				if e.alternative == alternative.Index && !e.inUse && (!tookThis || e.before <= last) {
					return e.err
				}
			}
		}
	}
	return nil
}

// explain finds the simplest reason that is true: a request that cannot be
// satisfied even alone, else a constraint, else that requests compete.
func (s *search) explain() *Rejection {
	for r := range s.requests {
		if rejection := s.explainRequest(&s.requests[r]); rejection != nil {
			return rejection
		}
	}
	together := &Rejection{Alternative: -1}
	b := &s.bounds
	b.collect(0)
	if !b.withinClaims() {
		together.Cause = TooMany
		return together
	}
	b.limitValues()
	for i, viable := range b.values {
		if viable != nil && !anyTrue(viable) {
			together.Cause, together.Attribute = NoCommonValue, s.constraints[i].Attribute
			return together
		}
	}
	for i := range s.constraints {
		if s.constraints[i].Kind == problem.Distinct && !b.distinctValues(i) {
			together.Cause, together.Attribute = TooFewValues, s.constraints[i].Attribute
			return together
		}
	}
	together.Cause = NoCombination
	if !b.matching() || !b.withinStocks(b.all, nil) {
		together.Cause = TooFewTogether
	}
	return together
}

// explainRequest returns nil if one of the alternatives is possible alone.
func (s *search) explainRequest(request *flatRequest) *Rejection {
	var rejections []*Rejection
	for _, alternative := range request.Alternatives {
		rejection := s.explainAlternative(alternative)
		if rejection == nil {
			return nil
		}
		rejections = append(rejections, rejection)
	}
	if len(rejections) == 1 {
		return rejections[0]
	}
	return &Rejection{Cause: NoAlternative, Alternative: request.Alternatives[0].Index, Alternatives: rejections}
}

func (s *search) explainAlternative(alternative *problem.Alternative) *Rejection {
	tally := s.tallies[alternative.Index]
	tally.Wanted = alternative.Count
	if alternative.All {
		tally.Wanted = max(tally.Matching, 1)
	}
	usable := s.obstaclesOf(alternative, &tally)
	rejection := &Rejection{Alternative: alternative.Index, Tally: tally}
	free := tally.Matching - tally.InUse
	switch {
	case tally.Seen == 0:
		rejection.Cause = NoDevice
	case tally.Matching == 0 && tally.Misfit > 0:
		rejection.Cause = Misfit
	case tally.Matching == 0:
		rejection.Cause = NoMatch
	case exceeds(tally.Wanted):
		rejection.Cause = TooMany
	case usable >= tally.Wanted:
		return nil
	case free == 0:
		rejection.Cause = InUse
	case tally.Refused == tally.Matching:
		rejection.Cause = Refused
	case tally.Misfit == tally.Matching:
		rejection.Cause = Misfit
	case tally.NodeOperations == free:
		rejection.Cause = NodeOperations
	case tally.Exhausted+tally.Misfit == free:
		rejection.Cause = Exhausted
	case tally.Incompatible == free:
		rejection.Cause = Incompatible
	case tally.Tainted == free:
		rejection.Cause = Tainted
	case tally.WithoutAttribute == free:
		rejection.Cause, rejection.Attribute = AttributeMissing, s.missing(alternative)
	default:
		rejection.Cause = TooFew
	}
	return rejection
}

// obstaclesOf counts what stands in the way of the matching devices, each at its
// first obstacle, and returns the number of those that nothing does.
func (f *field) obstaclesOf(alternative *problem.Alternative, tally *Tally) (usable int) {
	for g := range f.groups {
		group := &f.groups[g]
		if !group.matches[alternative.Index] {
			continue
		}
		n := len(group.members)
		switch group.obstacles.of(alternative.Index) {
		case noObstacle:
			if !group.usable[alternative.Index] {
				tally.InUse += n
				continue
			}
			usable += n
		case featureObstacle:
			tally.Refused += n
			if tally.Feature == "" {
				tally.Feature = group.obstacles.shown.Unsupported
			}
		case nodeObstacle:
			tally.NodeOperations += n
		case misfitObstacle:
			tally.Misfit += n
		case exhaustedObstacle:
			tally.Exhausted += n
		case groupsObstacle:
			tally.Incompatible += n
		case taintObstacle:
			tally.Tainted += n
			if tally.Taint == nil {
				tally.Taint = device.UntoleratedTaint(group.obstacles.shown.Taints, alternative.Tolerations)
			}
		case attributeObstacle:
			tally.WithoutAttribute += n
		}
	}
	return usable
}

// missing names the first attribute that a constraint needs and a device lacks.
func (f *field) missing(alternative *problem.Alternative) resourceapi.FullyQualifiedName {
	for g := range f.groups {
		if f.groups[g].obstacles.of(alternative.Index) != attributeObstacle {
			continue
		}
		for i := range f.constraints {
			if slot := f.constraints[i].slots[alternative.Index]; slot >= 0 && f.groups[g].values[slot] == nil {
				return f.constraints[i].Attribute
			}
		}
	}
	return ""
}
