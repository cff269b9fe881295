package allocator_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// profile is a way to cut a partition out of a GPU: how many of its eight
// memory slices and seven compute slices it takes, and at which memory slices
// it may begin.
type profile struct {
	name            string
	memory, compute int
	starts          []int
}

// layouts of GPUs that can be partitioned, from few overlapping devices to many.
var (
	whole     = profile{"whole", 8, 7, []int{0}}
	half      = profile{"half", 4, 3, []int{0, 4}}
	largeHalf = profile{"large-half", 4, 4, []int{0}}
	quarter   = profile{"quarter", 2, 2, []int{0, 2, 4}}
	eighth    = profile{"eighth", 1, 1, []int{0, 1, 2, 3, 4, 5, 6}}
	wideSlice = profile{"wide-slice", 2, 1, []int{0, 2, 4, 6}}

	fewPartitions  = []profile{whole, half, largeHalf, quarter}
	manyPartitions = []profile{whole, largeHalf, half, quarter, wideSlice, eighth}
)

// partitioned returns the slices of n GPUs: counters of each, and then all
// partitions. Each partition takes its own memory slices, so that two that
// overlap exclude each other.
func partitioned(n int, profiles []profile) []*builders.SliceBuilder {
	devices := builders.Slice(gpuDriver, "gpus").Named("devices").OnNode(nodeName).SliceCount(2)
	counters := builders.Slice(gpuDriver, "gpus").Named("counters").OnNode(nodeName).SliceCount(2)
	for gpu := range n {
		set := fmt.Sprintf("gpu-%d", gpu)
		counters.CounterSet(set, slots(0, 8, map[string]string{"compute": "7", "memory": "80Gi"}))
		for _, p := range profiles {
			for _, start := range p.starts {
				devices.Devices(builders.Device(fmt.Sprintf("gpu-%d-%s-%d", gpu, p.name, start)).
					Attribute("profile", p.name).Attribute("gpu", gpu).
					Consumes(set, slots(start, p.memory, map[string]string{
						"compute": fmt.Sprint(p.compute), "memory": fmt.Sprintf("%dGi", 10*p.memory)})))
			}
		}
	}
	return slicesOf(devices, counters)
}

func slots(first, n int, counters map[string]string) map[string]string {
	for i := range n {
		counters[fmt.Sprintf("slot-%d", first+i)] = "1"
	}
	return counters
}

// partitions returns n requests for one partition of a profile each.
func partitions(n int, p profile) []builders.AnyRequest {
	result := make([]builders.AnyRequest, n)
	for i := range result {
		result[i] = builders.Request(fmt.Sprintf("%s-%d", p.name, i), "gpu").
			Select(fmt.Sprintf("device.attributes[%q].profile == %q", gpuDriver, p.name))
	}
	return result
}

func concat(lists ...[]builders.AnyRequest) []builders.AnyRequest {
	var all []builders.AnyRequest
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// TestEffortOfPartitions pins the effort on eight GPUs with overlapping
// partitions, of which sixteen are wanted: more than one way to begin with, and
// no solution in the end.
func TestEffortOfPartitions(t *testing.T) {
	cases := map[string]struct {
		profiles []profile
		requests []builders.AnyRequest
		feasible bool
		want     int // without an objective
		wantBest int // with best fit
	}{
		"16 halves":                            {fewPartitions, partitions(16, half), true, 16, 38},
		"17 halves":                            {fewPartitions, partitions(17, half), false, 0, 0},
		"9 whole GPUs":                         {fewPartitions, partitions(9, whole), false, 0, 0},
		"8 whole GPUs and an eighth":           {manyPartitions, concat(partitions(8, whole), partitions(1, eighth)), false, 0, 0},
		"8 large halves and 8 halves":          {fewPartitions, concat(partitions(8, largeHalf), partitions(8, half)), true, 16, 16},
		"8 halves and 8 large halves":          {fewPartitions, concat(partitions(8, half), partitions(8, largeHalf)), true, 17, 17},
		"7 halves and 9 large halves":          {fewPartitions, concat(partitions(7, half), partitions(9, largeHalf)), false, 0, 0},
		"9 halves and 7 large halves":          {fewPartitions, concat(partitions(9, half), partitions(7, largeHalf)), true, 17, 20},
		"16 quarters":                          {manyPartitions, partitions(16, quarter), true, 16, 1745},
		"16 eighths":                           {manyPartitions, partitions(16, eighth), true, 16, 160},
		"16 of all sizes":                      {manyPartitions, concat(partitions(4, eighth), partitions(4, quarter), partitions(4, half), partitions(4, largeHalf)), true, 16, 91},
		"16 of all sizes, too large in sum":    {manyPartitions, concat(partitions(2, eighth), partitions(2, quarter), partitions(6, half), partitions(6, largeHalf), partitions(2, whole)), false, 0, 0},
		"6 large halves, 6 halves, 4 quarters": {manyPartitions, concat(partitions(6, largeHalf), partitions(6, half), partitions(4, quarter)), true, 16, 39},
		"quarters that leave no halves":        {fewPartitions, concat(partitions(9, quarter), partitions(7, largeHalf)), true, 18, 40},
		"24 quarters and a half":               {fewPartitions, concat(partitions(24, quarter), partitions(1, largeHalf)), false, 6850, 6850},
		"wide slices between large halves":     {manyPartitions, concat(partitions(10, wideSlice), partitions(6, largeHalf)), true, 18, 114},
	}
	const limit = 10_000
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(partitioned(8, tc.profiles), builders.Claim("claim", tc.requests...))
			if got := effort(t, c, allocator.Options{StepBudget: limit}, tc.feasible); got != tc.want {
				t.Errorf("%d steps without an objective, want %d", got, tc.want)
			}
			if got := effort(t, c, allocator.Options{StepBudget: limit, Objective: objective.BestFit{}}, tc.feasible); got != tc.wantBest {
				t.Errorf("%d steps with best fit, want %d", got, tc.wantBest)
			}
			if tc.want >= limit || tc.wantBest >= limit {
				t.Errorf("pinned at %d and %d steps, want fewer than %d", tc.want, tc.wantBest, limit)
			}
		})
	}
}

// TestPartitionsThatDrawNothing: of two partitions that draw nothing of two GPUs
// one must not be taken for the other, because others have to be compatible with
// one of them. A device that needs both GPUs puts them into one cell.
func TestPartitionsThatDrawNothing(t *testing.T) {
	draw := func(kind, set, amount, group string) *builders.DeviceBuilder {
		return builders.Device(kind+"-"+set).Attribute("kind", kind).Consumes(set, map[string]string{"memory": amount}, group)
	}
	both := builders.Device("both").Attribute("kind", "none").
		Consumes("gpu-0", map[string]string{"memory": "8"}, "x").Consumes("gpu-1", map[string]string{"memory": "8"}, "x")
	devices := builders.Slice(gpuDriver, "gpus").Named("devices").OnNode(nodeName).SliceCount(2).
		Devices(draw("none", "gpu-0", "0", "x"), draw("none", "gpu-1", "0", "x"), draw("some", "gpu-0", "1", "y"), both)
	counters := builders.Slice(gpuDriver, "gpus").Named("counters").OnNode(nodeName).SliceCount(2).
		CounterSet("gpu-0", map[string]string{"memory": "8"}).CounterSet("gpu-1", map[string]string{"memory": "8"})
	kind := func(name string) *builders.RequestBuilder {
		return builders.Request(name, "gpu").Select(fmt.Sprintf("device.attributes[%q].kind == %q", gpuDriver, name))
	}
	c := newCluster(slicesOf(devices, counters), builders.Claim("claim", kind("none"), kind("some")))
	p, solution, err := c.solve(t, allocator.Options{})
	if diff := cmp.Diff([]string{"claim none: none-gpu-1", "claim some: some-gpu-0"}, placement(p, solution)); diff != "" {
		t.Errorf("%v; placement (-want +got):\n%s", err, diff)
	}
}
