package allocator_test

import (
	"cmp"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
)

// TestSolveAgainstExhaustiveSearch compares Solve with all assignments on small
// nodes with partitions, shares, lists, derived attributes and compatibility
// groups: whether there is a solution, the first one without an objective, and
// the best cost with one. EXHAUSTIVE_SEED and EXHAUSTIVE_CASES choose which.
func TestSolveAgainstExhaustiveSearch(t *testing.T) {
	seed := fromEnvironment(t, "EXHAUSTIVE_SEED", 1)
	outcomes := make(map[string]int)
	for i := range fromEnvironment(t, "EXHAUSTIVE_CASES", 1500) {
		m := newMiniature(seed + i)
		d := &duel{situation: m.situation()}
		outcomes[m.compare(t, d, seed+i)]++
		if t.Failed() {
			t.Fatalf("replay with EXHAUSTIVE_SEED=%d EXHAUSTIVE_CASES=1:\n%s", seed+i, d.describe())
		}
	}
	t.Logf("%v", outcomes)
	if tried := outcomes["feasible"] + outcomes["infeasible"]; tried > 1000 && (outcomes["feasible"] < tried/5 || outcomes["infeasible"] < tried/5) {
		t.Errorf("the generator no longer makes both kinds: %v", outcomes)
	}
}

func (m *miniature) compare(t *testing.T, d *duel, seed uint64) string {
	t.Helper()
	p, err := problem.Build(d.situation.Claims, problem.Source{Classes: d.class, Compiler: d.compiler(), Features: d.features()})
	if err != nil {
		t.Fatalf("build the problem: %v", err)
	}
	e := &exhaustive{miniature: m, view: d.view(), problem: p}
	for _, pool := range e.view.View.Pools {
		e.devices = append(e.devices, pool.Devices...)
	}
	if len(e.devices) != len(e.pieces) {
		t.Fatalf("%d devices for %d pieces", len(e.devices), len(e.pieces))
	}
	objectives := []allocator.Objective{objective.BestFit{}, cellPrices{seed, 0}, cellPrices{seed, 50}}
	for _, o := range objectives {
		e.prices = append(e.prices, e.cells(o))
	}
	best := make([]found, len(objectives))
	var first []string
	e.visit = func() bool {
		if first == nil {
			first = e.describe()
		}
		for i, o := range e.prices {
			if f := (found{e.ranks(), e.cost(o), e.describe()}); best[i].placement == nil || f.better(best[i]) {
				best[i] = f
			}
		}
		return true
	}
	if e.from(0); e.visited > maxVisited {
		return "left out"
	}
	if s := e.solve(t, d, nil, first != nil); s != nil {
		if diff := gocmp.Diff(first, placement(p, s)); diff != "" {
			t.Errorf("not the first solution (-want +got):\n%s", diff)
		}
	}
	for i, o := range objectives {
		s := e.solve(t, d, o, first != nil)
		if s != nil && (!slices.Equal(s.Ranks, best[i].ranks) || s.Cost != best[i].cost) {
			t.Errorf("objective %T %v: ranks %v, cost %d of %v, want ranks %v, cost %d of %v", o, o,
				s.Ranks, s.Cost, placement(p, s), best[i].ranks, best[i].cost, best[i].placement)
		}
	}
	if first == nil {
		return "infeasible"
	}
	return "feasible"
}

// found is a solution.
type found struct {
	ranks     []int
	cost      int64
	placement []string
}

func (f found) better(than found) bool {
	return cmp.Or(slices.Compare(f.ranks, than.ranks), cmp.Compare(f.cost, than.cost)) < 0
}

// solve returns what Solve finds, once it has been checked.
func (e *exhaustive) solve(t *testing.T, d *duel, o allocator.Objective, feasible bool) *allocator.Solution {
	t.Helper()
	s, err := remembered(e.problem, e.view, allocator.Options{Objective: o})
	var rejection *allocator.Rejection
	switch {
	case err != nil && !errors.As(err, &rejection):
		t.Errorf("objective %T: unexpected error: %v", o, err)
	case err != nil && feasible:
		t.Errorf("objective %T: rejected (%v), but there is a solution", o, err)
	case err == nil && !feasible:
		t.Errorf("objective %T: found %v, but there is no solution", o, placement(e.problem, s))
	case err == nil:
		allocations, err := result.Build(e.problem, s, d.situation.Node.Name, newShareIDs())
		if err != nil {
			t.Errorf("build the result: %v", err)
		}
		for _, problem := range allocationcheck.Check(d.situation, allocations) {
			t.Errorf("objective %T: %s", o, problem)
		}
		return s
	}
	return nil
}

func (e *exhaustive) ranks() []int {
	var ranks []int
	for _, a := range e.assigned {
		ranks = append(ranks, a.rank)
	}
	return ranks
}

// describe writes the assignment as placement does.
func (e *exhaustive) describe() []string {
	var lines []string
	for _, a := range e.assigned {
		line := e.problem.Claims[e.wants[a.want].claim].Object.Name + " " + e.wayOf(a).name + ":"
		for _, i := range a.pieces {
			line += " " + e.pieces[i].name
		}
		lines = append(lines, line)
	}
	return lines
}

// cellPrices is an objective by the kind of the device, and by the alternative
// in some percent of cases.
type cellPrices struct {
	seed           uint64
	perAlternative uint64
}

func (c cellPrices) DeviceCost(alternative *problem.Alternative, d *device.Device) int64 {
	h := fnv.New64a()
	h.Write([]byte(strconv.FormatUint(c.seed, 10) + *d.Spec.Attributes["kind"].StringValue))
	if c.seed%100 < c.perAlternative {
		h.Write([]byte(alternative.Name))
	}
	return int64(h.Sum64() % 3)
}

func (c cellPrices) CellCost(freePart int64) int64 { return freePart / int64(1+c.seed%3*100) }
