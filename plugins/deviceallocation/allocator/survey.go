package allocator

import (
	"context"
	"slices"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// field is everything that a search needs to know about a node, arranged for
// one Problem. It does not change during the search.
type field struct {
	problem *problem.Problem
	options Options
	// requests and constraints of all claims, one after the other.
	requests    []flatRequest
	constraints []flatConstraint
	slots       []slot
	// devices that match at least one alternative, in the canonical order.
	devices []*device.Device
	// groupOf has the group of each device, offers what it draws on.
	groupOf []int
	offers  []*offer
	groups  []group
	stocks  stocks
	cells   []cell
	// byCost lists, for each alternative, the groups that it can use, the
	// cheapest first and then in the canonical order.
	byCost [][]int
	// kinds has, for each alternative, the first one that can use the same
	// groups at the same costs.
	kinds []int
	// tallies has what was counted for each alternative while looking.
	tallies []Tally
	// errors are the failed evaluations, in the order of devices.
	errors []failedEvaluation
	faults []*inventory.Fault
}

type flatRequest struct {
	*problem.Request
	claim int
	// twin says that the previous request asks for exactly the same, under the
	// same constraints, so that exchanging the two changes nothing.
	twin bool
}

// group is a set of devices that the Problem cannot tell apart.
type group struct {
	members []int // positions in field.devices, ascending
	inUse   bool
	// matches says for which alternatives the selectors match; usable for which
	// of these nothing else stands in the way either.
	matches, usable []bool
	// values has, for each slot, the numbers of the attribute's values, nil if
	// there is none.
	values [][]int
	cost   []int64 // for each alternative
	// draws has, for each alternative, what one device takes at least of each
	// kind of stock; nil unless the devices draw on any.
	draws [][]kindDraw
	// obstacles to the use of the group, for explanations
	obstacles obstacles
}

// drawing tells whether the devices of the group draw on stocks, so that being
// free is not all that it takes to have one.
func (g *group) drawing() bool { return g.draws != nil }

// survey looks at all devices of the node once.
func survey(ctx context.Context, p *problem.Problem, node Node, options Options) (*field, error) {
	f := &field{problem: p, options: options, tallies: make([]Tally, len(p.Alternatives))}
	f.flatten()
	surveyor := newSurveyor(ctx, f, node)
	for _, pool := range inOrder(node.View.Pools) {
		if pool.Fault != nil {
			f.faults = append(f.faults, pool.Fault)
			continue
		}
		surveyor.enter(pool)
		for _, d := range pool.Devices {
			if err := surveyor.add(d); err != nil {
				return nil, err
			}
		}
	}
	f.divide()
	f.sortByCost()
	f.findKinds()
	return f, nil
}

// inOrder returns the pools as kube-scheduler goes through them: those that
// have a device with binding conditions come last (KEP-5007).
func inOrder(pools []*inventory.NodePool) []*inventory.NodePool {
	conditional := func(pool *inventory.NodePool) bool { return pool.BindingConditions }
	if !slices.ContainsFunc(pools, conditional) {
		return pools
	}
	ordered := make([]*inventory.NodePool, 0, len(pools))
	for _, last := range []bool{false, true} {
		for _, pool := range pools {
			if pool.BindingConditions == last {
				ordered = append(ordered, pool)
			}
		}
	}
	return ordered
}

func (f *field) flatten() {
	administrators := slices.ContainsFunc(f.problem.Alternatives, func(a *problem.Alternative) bool { return a.Admin })
	for c := range f.problem.Claims {
		claim := &f.problem.Claims[c]
		for i := range claim.Constraints {
			f.addConstraint(&claim.Constraints[i])
		}
		for r := range claim.Requests {
			request := flatRequest{Request: &claim.Requests[r], claim: c}
			if n := len(f.requests); n > 0 {
				// Administrators care about who in the pod has a device already, so
				// that claims which look alike may differ for them.
				within := f.requests[n-1].claim == c
				request.twin = (within || !administrators) && f.twins(f.requests[n-1].Request, request.Request)
			}
			f.requests = append(f.requests, request)
		}
	}
}

// findKinds compares alternatives by what they can use. Requests with different
// prices are no twins after all: exchanging them changes the cost.
func (f *field) findKinds() {
	f.kinds = make([]int, len(f.problem.Alternatives))
	for a := range f.kinds {
		for f.kinds[a] < a && !f.sameKind(f.kinds[a], a) {
			f.kinds[a]++
		}
	}
	for r := range f.requests {
		if f.requests[r].twin {
			x, y := f.requests[r-1].Alternatives[0].Index, f.requests[r].Alternatives[0].Index
			f.requests[r].twin = f.kinds[x] == f.kinds[y]
		}
	}
}

func (f *field) sameKind(x, y int) bool {
	for g := range f.groups {
		group := &f.groups[g]
		if group.usable[x] != group.usable[y] || group.cost[x] != group.cost[y] {
			return false
		}
	}
	return true
}

// twins compares exact requests only: subrequests with equal content are rare,
// and exchanging them would have to respect their ranks.
func (f *field) twins(a, b *problem.Request) bool {
	if len(a.Alternatives) != 1 || len(b.Alternatives) != 1 {
		return false
	}
	x, y := a.Alternatives[0], b.Alternatives[0]
	if x.All || y.All || x.Count != y.Count || x.Admin != y.Admin || !x.SameDevices(y) {
		return false
	}
	for _, constraint := range f.constraints {
		if constraint.Covers(x) != constraint.Covers(y) {
			return false
		}
	}
	return true
}

// takesNothing tells whether devices given to the alternative stay available to
// others: what administrators see of a device is not taken from anybody
// (KEP-5018). kube-scheduler counts it all the same.
func (f *field) takesNothing(alternative *problem.Alternative) bool {
	return alternative.Admin && !f.options.Compatible
}
