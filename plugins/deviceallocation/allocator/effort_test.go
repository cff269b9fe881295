package allocator_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// effort is the number of steps of a search that must end with a verdict.
func effort(t *testing.T, c *cluster, options allocator.Options, feasible bool) int {
	t.Helper()
	p, s, err := c.solve(t, options)
	var rejection *allocator.Rejection
	switch {
	case feasible && err != nil:
		t.Fatalf("rejected: %v", err)
	case feasible:
		return s.Steps
	case err == nil:
		t.Fatalf("found %v, want a rejection", placement(p, s))
	case !errors.As(err, &rejection):
		t.Fatalf("unexpected error: %v", err)
	}
	return rejection.Steps
}

func slicesOf(slices ...*builders.SliceBuilder) []*builders.SliceBuilder { return slices }

// requests returns n requests for one device of a class each.
func requests(n int, class string) []builders.AnyRequest {
	result := make([]builders.AnyRequest, n)
	for i := range result {
		result[i] = builders.Request(fmt.Sprintf("%s-%d", class, i), class)
	}
	return result
}

// TestEffortOfHardCases pins the number of steps.
func TestEffortOfHardCases(t *testing.T) {
	for name, tc := range hardCases() {
		t.Run(name, func(t *testing.T) {
			if got := effort(t, tc.cluster, allocator.Options{StepBudget: 20000}, tc.feasible); got != tc.want {
				t.Errorf("%d steps without an objective, want %d", got, tc.want)
			}
			if got := effort(t, tc.cluster, allocator.Options{Objective: objective.BestFit{}, StepBudget: 20000}, tc.feasible); got != tc.wantBest {
				t.Errorf("%d steps with best fit, want %d", got, tc.wantBest)
			}
		})
	}
}

// pairs asks for n GPUs, each with a NIC on the same root.
func pairs(n int) *builders.ClaimBuilder {
	claim := builders.Claim("claim")
	for i := range n {
		gpu, nic := fmt.Sprintf("gpu-%d", i), fmt.Sprintf("nic-%d", i)
		claim.Requests(builders.Request(gpu, "gpu"), builders.Request(nic, "nic")).MatchAttribute(numaAttribute, gpu, nic)
	}
	return claim
}

// pairClaims is pairs with a claim for each.
func pairClaims(n int) []*builders.ClaimBuilder {
	claims := make([]*builders.ClaimBuilder, n)
	for i := range claims {
		claims[i] = builders.Claim(fmt.Sprintf("claim-%d", i), builders.Request("gpu", "gpu"), builders.Request("nic", "nic")).
			MatchAttribute(numaAttribute)
	}
	return claims
}

// unevenNICs has 3 NICs on the first and third of four roots, 1 on the others.
func unevenNICs() *builders.SliceBuilder {
	return nics(8, func(i int, d *builders.DeviceBuilder) {
		d.Attribute(numaAttribute, []int{0, 0, 0, 1, 2, 2, 2, 3}[i])
	})
}

// twoModels offers n large and n small GPUs by turns.
func twoModels(n int) *builders.SliceBuilder {
	return gpus(2*n, func(i int, d *builders.DeviceBuilder) {
		if i%2 == 0 {
			d.Attribute("model", "large").Capacity("memory", "80Gi")
		} else {
			d.Attribute("model", "small").Capacity("memory", "16Gi")
		}
	})
}

func claimsOfOne(n int) []*builders.ClaimBuilder {
	claims := make([]*builders.ClaimBuilder, n)
	for i := range claims {
		claims[i] = builders.Claim(fmt.Sprintf("claim-%d", i), builders.Request("gpu", "gpu"))
	}
	return claims
}

// TestEffortOfOneTooMany asks for one device more than there is, in three ways.
func TestEffortOfOneTooMany(t *testing.T) {
	for _, n := range []int{8, 16, 22, 64, 128} {
		shapes := map[string]*cluster{
			"claims of one request": newCluster(slicesOf(gpus(n, nil)), claimsOfOne(n+1)...),
			"one request": newCluster(slicesOf(gpus(n, nil)), inClaims(n+1, func(name string, count int) *builders.ClaimBuilder {
				return builders.Claim(name, builders.Request("gpu", "gpu").Count(int64(count)))
			})...),
			"requests for one each": newCluster(slicesOf(gpus(n, nil)), inClaims(n+1, func(name string, count int) *builders.ClaimBuilder {
				return builders.Claim(name, requests(count, "gpu")...)
			})...),
		}
		for name, c := range shapes {
			t.Run(fmt.Sprintf("%d devices, %s", n, name), func(t *testing.T) {
				if got := effort(t, c, allocator.Options{}, false); got != 0 {
					t.Errorf("%d steps, want the bounds to tell", got)
				}
				if got := effort(t, c, allocator.Options{Objective: objective.BestFit{}}, false); got != 0 {
					t.Errorf("%d steps with best fit, want the bounds to tell", got)
				}
			})
		}
	}
	t.Run("8 claims, 7 of 8 free", func(t *testing.T) {
		c := newCluster(slicesOf(gpus(8, nil)), claimsOfOne(8)...).inUse(gpuDriver, "gpus", "gpu-3")
		if got := effort(t, c, allocator.Options{}, false); got != 0 {
			t.Errorf("%d steps, want the bounds to tell", got)
		}
	})
}

// inClaims divides n devices among claims, as many as each can hold.
func inClaims(n int, claim func(name string, count int) *builders.ClaimBuilder) []*builders.ClaimBuilder {
	var claims []*builders.ClaimBuilder
	for ; n > 0; n -= 32 {
		claims = append(claims, claim(fmt.Sprintf("claim-%d", len(claims)), min(n, 32)))
	}
	return claims
}
