package allocator

import (
	"context"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// field is everything that a search needs to know about a node, arranged for
// one Problem. It does not change during the search.
type field struct {
	problem *problem.Problem
	// requests and constraints of all claims, one after the other.
	requests    []flatRequest
	constraints []flatConstraint
	// devices that match at least one alternative, in the canonical order.
	devices []*device.Device
	// groupOf has the group of each device.
	groupOf []int
	groups  []group
	// byCost lists, for each alternative, the groups that it can use, the
	// cheapest first and then in the canonical order.
	byCost [][]int
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

type flatConstraint struct {
	*problem.Constraint
	claim int
}

type failedEvaluation struct {
	alternative, selector int
	device                *device.Device
	// before counts the devices of the field that come earlier.
	before int
	inUse  bool
	err    error
}

// group is a set of devices that the Problem cannot tell apart.
type group struct {
	members []int // positions in field.devices, ascending
	inUse   bool
	// matches says for which alternatives the selectors match; usable for which
	// of these nothing else stands in the way either.
	matches, usable []bool
	// values has the value for each constraint; has says whether there is one.
	values []device.Value
	has    []bool
	cost   []int64 // for each alternative
	// obstacle to the use of the group, for explanations
	feature device.Feature
	taints  *device.Device // a device that shows the taints
}

// survey looks at all devices of the node once.
func survey(ctx context.Context, p *problem.Problem, node Node, options Options) (*field, error) {
	f := &field{problem: p, tallies: make([]Tally, len(p.Alternatives))}
	f.flatten()
	surveyor := surveyor{field: f, ctx: ctx, options: options, known: make(map[string]int)}
	for _, pool := range node.View.Pools {
		if pool.Fault != nil {
			f.faults = append(f.faults, pool.Fault)
			continue
		}
		usage := node.Usage.Pool(pool.ID)
		for _, d := range pool.Devices {
			if err := surveyor.add(d, usage.Held(d.ID.Device)); err != nil {
				return nil, err
			}
		}
	}
	f.sortByCost()
	f.separateTwins()
	return f, nil
}

func (f *field) flatten() {
	for c := range f.problem.Claims {
		claim := &f.problem.Claims[c]
		for i := range claim.Constraints {
			f.constraints = append(f.constraints, flatConstraint{Constraint: &claim.Constraints[i], claim: c})
		}
		for r := range claim.Requests {
			request := flatRequest{Request: &claim.Requests[r], claim: c}
			request.twin = r > 0 && f.twins(&claim.Requests[r-1], request.Request)
			f.requests = append(f.requests, request)
		}
	}
}

// separateTwins takes back what flatten has said about requests for which the
// objective sets different prices: exchanging those does change something.
func (f *field) separateTwins() {
	for r := range f.requests {
		if !f.requests[r].twin {
			continue
		}
		x, y := f.requests[r-1].Alternatives[0].Index, f.requests[r].Alternatives[0].Index
		for g := range f.groups {
			if f.groups[g].cost[x] != f.groups[g].cost[y] {
				f.requests[r].twin = false
				break
			}
		}
	}
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
