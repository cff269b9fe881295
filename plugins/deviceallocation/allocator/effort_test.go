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

// TestEffortOfHardCases pins the number of steps in cases that cost an
// exhaustive search up to millions of them.
func TestEffortOfHardCases(t *testing.T) {
	numa := func(perNode int) func(int, *builders.DeviceBuilder) {
		return func(i int, d *builders.DeviceBuilder) { d.Attribute(numaAttribute, i/perNode) }
	}
	cases := map[string]struct {
		cluster  *cluster
		feasible bool
		want     int // without an objective
		wantBest int // with best fit
	}{
		"24 GPUs, 8 wanted, and a NIC where there is none": {
			cluster: newCluster(slicesOf(gpus(24, nil)), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(8), builders.Request("nic", "nic"))),
		},
		"20 GPUs, 21 wanted": {
			cluster: newCluster(slicesOf(gpus(20, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").Count(21))),
		},
		"10 GPUs, 7 requests for one each, and a NIC where there is none": {
			cluster: newCluster(slicesOf(gpus(10, nil)),
				builders.Claim("claim", append(requests(7, "gpu"), builders.Request("nic", "nic"))...)),
		},
		"16 GPUs on 4 NUMA nodes, 4 aligned, and 2 NICs where there is one": {
			cluster: newCluster(slicesOf(gpus(16, numa(4)), nics(1, nil)), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(4), builders.Request("nic", "nic").Count(2)).MatchAttribute(numaAttribute, "gpu")),
		},
		"40 CPUs on 2 NUMA nodes, 21 aligned": {
			cluster: newCluster(slicesOf(gpus(40, numa(20))),
				builders.Claim("claim", builders.Request("cpu", "gpu").Count(21)).MatchAttribute(numaAttribute)),
		},
		"40 CPUs on 2 NUMA nodes, 20 aligned": {
			cluster: newCluster(slicesOf(gpus(40, numa(20))),
				builders.Claim("claim", builders.Request("cpu", "gpu").Count(20)).MatchAttribute(numaAttribute)),
			feasible: true,
			want:     20, wantBest: 21,
		},
		"8 GPUs and 8 NICs in pairs, aligned by 8 roots": {
			cluster: newCluster(slicesOf(gpus(8, numa(1)), nics(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, 7-i)
			})), pairs(8)),
			feasible: true,
			want:     16, wantBest: 44,
		},
		"9 GPUs and 9 NICs in pairs, aligned by roots, one NIC apart": {
			cluster: newCluster(slicesOf(gpus(9, numa(1)), nics(9, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i+1)
			})), pairs(9)),
		},
		"16 requests on 8 small and 8 large GPUs": {
			cluster:  newCluster(slicesOf(twoModels(8)), builders.Claim("claim", requests(16, "gpu")...)),
			feasible: true,
			want:     16, wantBest: 24,
		},
		"17 requests on 8 small and 8 large GPUs": {
			cluster: newCluster(slicesOf(twoModels(8)), builders.Claim("claim", requests(17, "gpu")...)),
		},
		"16 claims on 8 small and 8 large GPUs": {
			cluster:  newCluster(slicesOf(twoModels(8)), claimsOfOne(16)...),
			feasible: true,
			want:     16, wantBest: 24,
		},
		"12 requests, every other for large ones, on 8 small and 8 large GPUs": {
			cluster: newCluster(slicesOf(twoModels(8)), builders.Claim("claim", func() []builders.AnyRequest {
				result := requests(12, "gpu")
				for i := 1; i < len(result); i += 2 {
					result[i].(*builders.RequestBuilder).Select(conditions[3].expression)
				}
				return result
			}()...)),
			feasible: true,
			want:     12, wantBest: 18,
		},
		"16 lists, large before small, on 8 small and 8 large GPUs": {
			cluster: newCluster(slicesOf(twoModels(8)), builders.Claim("claim", func() []builders.AnyRequest {
				var result []builders.AnyRequest
				for i := range 16 {
					result = append(result, builders.FirstAvailable(fmt.Sprintf("gpu-%d", i),
						builders.Request("large", "gpu").Select(conditions[3].expression), builders.Request("any", "gpu")))
				}
				return result
			}()...)),
			feasible: true,
			want:     16, wantBest: 16,
		},
		"8 pairs where the roots have 6": {
			cluster: newCluster(slicesOf(gpus(8, numa(2)), unevenNICs()), pairs(8)),
			want:    34, wantBest: 34,
		},
		"6 pairs where the roots have 6": {
			cluster:  newCluster(slicesOf(gpus(8, numa(2)), unevenNICs()), pairs(6)),
			feasible: true,
			want:     15, wantBest: 25,
		},
		"8 pairs, each a claim of its own, where the roots have 6": {
			cluster: newCluster(slicesOf(gpus(8, numa(2)), unevenNICs()), pairClaims(8)...),
			want:    34, wantBest: 34,
		},
		"4 claims of an aligned pair on 2 NUMA nodes and 2 models": {
			cluster: newCluster(slicesOf(gpus(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i/4).Capacity("memory", []string{"16Gi", "80Gi"}[i%2])
			}), nics(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i/4).Capacity("bandwidth", []string{"100G", "400G"}[i/2%2])
			})), pairClaims(4)...),
			feasible: true,
			want:     8, wantBest: 22,
		},
		"8 claims of an aligned pair on 2 NUMA nodes and 2 models": {
			cluster: newCluster(slicesOf(gpus(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i/4).Capacity("memory", []string{"16Gi", "80Gi"}[i%2])
			}), nics(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i/4).Capacity("bandwidth", []string{"100G", "400G"}[i/2%2])
			})), pairClaims(8)...),
			feasible: true,
			want:     16, wantBest: 32,
		},
		"4 aligned of 16 GPUs, every one different": {
			cluster: newCluster(slicesOf(gpus(16, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i%4).Capacity("memory", fmt.Sprintf("%dGi", 10+(i*7)%16))
			})), builders.Claim("claim", builders.Request("gpu", "gpu").Count(4)).MatchAttribute(numaAttribute)),
			feasible: true,
			want:     4, wantBest: 22,
		},
		"8 of 16 GPUs with different serial numbers": {
			cluster: newCluster(slicesOf(gpus(16, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(serialNumber, fmt.Sprint(i/2)).Capacity("memory", fmt.Sprintf("%dGi", 10+(i*7)%16))
			})), builders.Claim("claim", builders.Request("gpu", "gpu").Count(8)).DistinctAttribute(serialNumber)),
			feasible: true,
			want:     8, wantBest: 504,
		},
		"9 of 16 GPUs with 8 different serial numbers": {
			cluster: newCluster(slicesOf(gpus(16, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(serialNumber, fmt.Sprint(i/2))
			})), builders.Claim("claim", builders.Request("gpu", "gpu").Count(9)).DistinctAttribute(serialNumber)),
		},
	}
	for name, tc := range cases {
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
