package allocator_test

import (
	"cmp"
	"errors"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// fromEnvironment reads a number that replays or extends a random test.
func fromEnvironment(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("environment variable %s: %v", variable, err)
	}
	return number
}

var small = shape{pools: 3, devicesPerSlice: 3, slicesPerPool: 2, claims: 2, requests: 2, count: 2, local: true}

// TestSolveAgainstOracle compares Solve with an enumeration of all assignments
// on small random clusters. PROPERTY_SEED and PROPERTY_CASES choose which.
func TestSolveAgainstOracle(t *testing.T) {
	seed := fromEnvironment(t, "PROPERTY_SEED", 1)
	feasible := 0
	tried := 0
	for i := range fromEnvironment(t, "PROPERTY_CASES", 2000) {
		c := randomCluster(seed+i, small)
		o := newOracle(c)
		if len(o.offers) > 6 || len(o.wishes) > 3 {
			continue // the enumeration would take too long
		}
		tried++
		if compareWithOracle(t, seed+i, c, o) {
			feasible++
		}
		if t.Failed() {
			t.Fatalf("replay with PROPERTY_SEED=%d PROPERTY_CASES=1", seed+i)
		}
	}
	t.Logf("%d clusters, %d with a solution", tried, feasible)
	if tried > 100 && (feasible < tried/10 || feasible > tried*9/10) {
		t.Errorf("%d of %d clusters have a solution: the generator no longer makes both kinds", feasible, tried)
	}
}

func compareWithOracle(t *testing.T, seed uint64, c *cluster, o *oracle) bool {
	t.Helper()
	for _, perAlternative := range []bool{false, true} {
		objective := randomCosts(seed, perAlternative)
		var first, best []grant
		var ranks []int
		var cost int64
		o.each(func(grants []grant) bool {
			if first == nil {
				first = slices.Clone(grants)
			}
			r, k := ranksOf(grants), o.cost(objective, grants)
			if best == nil || cmp.Or(slices.Compare(r, ranks), cmp.Compare(k, cost)) < 0 {
				best, ranks, cost = slices.Clone(grants), r, k
			}
			return true
		})
		p, s, err := c.solve(t, allocator.Options{})
		if o.sound(t, err, p, s, first != nil) {
			if diff := gocmp.Diff(o.describe(first), placement(p, s)); diff != "" {
				t.Errorf("not the first solution (-want +got):\n%s", diff)
			}
		}
		p, s, err = c.solve(t, allocator.Options{Objective: objective})
		if o.sound(t, err, p, s, best != nil) {
			if diff := gocmp.Diff(ranks, s.Ranks); diff != "" {
				t.Errorf("ranks are not the best (-want +got):\n%s\nbest: %v", diff, o.describe(best))
			} else if s.Cost != cost {
				t.Errorf("cost %d of %v, want %d as for %v", s.Cost, placement(p, s), cost, o.describe(best))
			}
		}
		if first == nil {
			return false
		}
	}
	return true
}

// sound tells whether there is a solution to look at closer.
func (o *oracle) sound(t *testing.T, err error, p *problem.Problem, s *allocator.Solution, feasible bool) bool {
	t.Helper()
	var rejection *allocator.Rejection
	switch {
	case err != nil && !errors.As(err, &rejection):
		t.Errorf("unexpected error: %v", err)
	case err != nil && rejection.Cause == allocator.OutOfBudget:
		t.Errorf("out of budget without a budget")
	case err != nil && feasible:
		t.Errorf("rejected (%v), but there is a solution", err)
	case err == nil && !feasible:
		t.Errorf("found %v, but there is no solution", placement(p, s))
	case err == nil:
		if problem := o.problemWith(o.grantsOf(p, s)); problem != "" {
			t.Errorf("%s: %v", problem, placement(p, s))
		}
		return true
	}
	return false
}

// grantsOf translates a solution into the oracle's terms.
func (o *oracle) grantsOf(p *problem.Problem, s *allocator.Solution) []grant {
	var grants []grant
	for i, wishes := range o.wishes {
		g := grant{wish: wishes[s.Ranks[i]]}
		for _, pick := range s.Claims[g.wish.claim] {
			if p.Alternatives[pick.Alternative].Name == g.wish.name {
				g.devices = append(g.devices, slices.IndexFunc(o.offers, func(d offer) bool {
					return device.NewID(d.driver, d.pool, d.device.Name) == pick.Device.ID
				}))
			}
		}
		grants = append(grants, g)
	}
	return grants
}

func (o *oracle) describe(grants []grant) []string {
	var lines []string
	for _, g := range grants {
		line := o.c.claims[g.wish.claim].Name + " " + g.wish.name + ":"
		for _, d := range g.devices {
			line += " " + o.offers[d].device.Name
		}
		lines = append(lines, line)
	}
	return lines
}

func ranksOf(grants []grant) []int {
	var ranks []int
	for _, g := range grants {
		ranks = append(ranks, g.wish.rank)
	}
	return ranks
}

type randomPrices struct {
	seed           uint64
	perAlternative bool
}

// randomCosts returns an objective that depends on the device and, if wanted,
// on the alternative as well.
func randomCosts(seed uint64, perAlternative bool) randomPrices {
	return randomPrices{seed, perAlternative}
}

func (r randomPrices) price(alternative string, pool, name string) int64 {
	if !r.perAlternative {
		alternative = ""
	}
	h := fnv.New64a()
	h.Write([]byte(strconv.FormatUint(r.seed, 10) + alternative + "/" + pool + "/" + name))
	return int64(h.Sum64() % 4)
}

func (r randomPrices) DeviceCost(alternative *problem.Alternative, d *device.Device) int64 {
	return r.price(alternative.Name, d.ID.Pool.Value(), d.ID.Device.Value())
}

// CellCost is 0: the oracle knows nothing of cells.
func (r randomPrices) CellCost(int64) int64 { return 0 }

func (o *oracle) cost(r randomPrices, grants []grant) int64 {
	var cost int64
	for _, g := range grants {
		for _, d := range g.devices {
			cost += r.price(g.wish.name, o.offers[d].pool, o.offers[d].device.Name)
		}
	}
	return cost
}
