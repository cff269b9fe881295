package allocator_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// BenchmarkSolve measures one Filter call for a node with 8 GPUs and 8 NICs on
// 2 NUMA nodes.
func BenchmarkSolve(b *testing.B) {
	numa := func(i int, d *builders.DeviceBuilder) {
		d.Attribute("model", "large").Attribute(numaAttribute, i/4).Capacity("memory", "80Gi")
	}
	gpu := builders.Request("gpu", "gpu").Select(conditions[3].expression)
	cases := []struct {
		name  string
		claim *builders.ClaimBuilder
	}{
		{"one GPU", builders.Claim("claim", gpu)},
		{"4 aligned GPUs", builders.Claim("claim", builders.Request("gpu", "gpu").Count(4)).MatchAttribute(numaAttribute)},
		{"GPU with an aligned NIC", builders.Claim("claim", gpu, builders.Request("nic", "nic")).MatchAttribute(numaAttribute)},
		{"infeasible", builders.Claim("claim", builders.Request("gpu", "gpu").Count(5)).MatchAttribute(numaAttribute)},
	}
	for _, tc := range cases {
		b.Run(tc.name, func(b *testing.B) {
			c := newCluster(slicesOf(gpus(8, numa), nics(8, numa)), tc.claim).inUse(gpuDriver, "gpus", "gpu-7")
			p, node := c.problem(b), c.view()
			b.ReportAllocs()
			for b.Loop() {
				_, err := allocator.Solve(context.Background(), p, node, allocator.Options{Objective: objective.BestFit{}, StepBudget: 10000})
				var rejection *allocator.Rejection
				if err != nil && (tc.name != "infeasible" || !errors.As(err, &rejection)) {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHardCases measures one Filter call for each of the hard cases; steps
// are those of the search.
func BenchmarkHardCases(b *testing.B) {
	cases := hardCases()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		b.Run(name, func(b *testing.B) {
			p, node := tc.cluster.problem(b), tc.cluster.view()
			steps := 0
			b.ReportAllocs()
			for b.Loop() {
				solution, err := allocator.Solve(context.Background(), p, node, allocator.Options{Objective: objective.BestFit{}, StepBudget: 10000})
				var rejection *allocator.Rejection
				switch {
				case err == nil:
					steps = solution.Steps
				case errors.As(err, &rejection) && !tc.feasible:
					steps = rejection.Steps
				default:
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(steps), "steps")
		})
	}
}
