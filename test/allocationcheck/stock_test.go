package allocationcheck_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
	"github.com/device-scheduler/device-scheduler/test/randomcluster"
)

// stockPatience is how long kube-scheduler's allocator may search.
const stockPatience = 100 * time.Millisecond

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

// askStock returns an answer and what kind of answer it is.
func askStock(s *allocationcheck.Situation) ([]resourceapi.AllocationResult, string) {
	ctx, cancel := context.WithTimeout(context.Background(), stockPatience)
	defer cancel()
	allocations, err := randomcluster.Stock(ctx, s)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, "timed out"
	case errors.Is(err, structured.ErrFailedAllocationOnNode), err == nil && allocations == nil:
		return nil, "rejected"
	case err == nil:
		return allocations, "allocated"
	}
	for _, known := range []string{
		"currently being updated", "currently invalid", "exceeds the claim limit", "constraint would not be satisfied",
		"could not retrieve device class", "CEL runtime error", "CEL compile error", "evaluate derived attribute", "feature is disabled", "unsupported constraint type",
	} {
		if strings.Contains(err.Error(), known) {
			return nil, "fatal: " + known
		}
	}
	return nil, "fatal: " + err.Error()
}

// TestCheckAcceptsStock lets kube-scheduler's allocator work on random clusters.
// What it allocates is sound by definition, with few exceptions.
// PROPERTY_SEED and PROPERTY_CASES choose the clusters.
func TestCheckAcceptsStock(t *testing.T) {
	seed := fromEnvironment(t, "PROPERTY_SEED", 1)
	cases := fromEnvironment(t, "PROPERTY_CASES", 1000)
	outcomes, needed := make(map[string]int), make(map[string]int)
	for i := range cases {
		s := randomcluster.New(seed + i)
		before := s.DeepCopy()
		allocations, outcome := askStock(s)
		outcomes[outcome]++
		if outcome != "allocated" {
			continue
		}
		for _, problem := range allocationcheck.Check(before, allocations) {
			t.Errorf("%s", problem)
		}
		if t.Failed() {
			t.Fatalf("replay with PROPERTY_SEED=%d PROPERTY_CASES=1", seed+i)
		}
		for name, happens := range exercised(before, allocations) {
			needed[name] += 0
			if happens {
				needed[name]++
			}
		}
	}
	t.Logf("%d clusters: %v\nthe allocated ones have %v", cases, outcomes, needed)
	for name, n := range needed {
		if cases >= 5000 && n == 0 {
			t.Errorf("no allocation has %s", name)
		}
	}
	if cases >= 500 && (outcomes["allocated"] < int(cases)/4 || outcomes["rejected"] < int(cases)/4) {
		t.Errorf("the generator no longer makes enough feasible and infeasible clusters: %v", outcomes)
	}
}
