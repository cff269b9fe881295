package objective_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// How value and devices to be avoided are written in a cost.
const (
	thousandth = 1 << 10
	avoided    = 1 << 44
)

// solution has a value in thousandths of a doubling.
func solution(value int64, left int, ranks ...int) *allocator.Solution {
	return &allocator.Solution{Cost: value * thousandth, Left: left, Ranks: ranks}
}

// more is a solution whose cost is higher.
func more(s *allocator.Solution, cost int64) *allocator.Solution {
	s.Cost += cost
	return s
}

func TestScore(t *testing.T) {
	fit, pack, spread := objective.Weights{BestFit: 1}, objective.Weights{Packing: 1}, objective.Weights{Packing: -1}
	cases := map[string]struct {
		solutions []*allocator.Solution
		weights   objective.Weights
		want      []int64
	}{
		"no nodes":            {nil, fit, []int64{}},
		"one node":            {[]*allocator.Solution{solution(5, 5, 0)}, fit, []int64{100}},
		"nothing to allocate": {[]*allocator.Solution{nil, nil}, fit, []int64{0, 0}},
		"equal nodes":         {[]*allocator.Solution{solution(5, 1, 0), solution(5, 1, 0)}, fit, []int64{100, 100}},
		"best fit":            {[]*allocator.Solution{solution(30, 1, 0), solution(10, 1, 0), solution(20, 1, 0)}, fit, []int64{0, 100, 50}},
		"packing":             {[]*allocator.Solution{solution(1, 7, 0), solution(1, 0, 0)}, pack, []int64{0, 100}},
		"spreading":           {[]*allocator.Solution{solution(1, 8, 0), solution(1, 0, 0), solution(1, 4, 0)}, spread, []int64{100, 0, 50}},
		"twice the value weighs three times a full node": {
			[]*allocator.Solution{solution(0, 8, 0), solution(1000, 0, 0)}, objective.Weights{BestFit: 3, Packing: 1}, []int64{66, 0}},
		"half as much again is still too much for a full node": {
			[]*allocator.Solution{solution(0, 8, 0), solution(585, 0, 0), solution(2321, 9, 0)}, objective.Weights{BestFit: 3, Packing: 1}, []int64{88, 77, 0}},
		"hardly more than nothing gives way to packing": {
			[]*allocator.Solution{solution(0, 8, 0), solution(7, 0, 0)}, objective.Weights{BestFit: 3, Packing: 1}, []int64{0, 97}},
		"rank before best fit": {
			[]*allocator.Solution{solution(100, 9, 0), solution(0, 0, 1), solution(50, 9, 1)}, fit, []int64{100, 50, 0}},
		"rank before what is to be avoided": {
			[]*allocator.Solution{more(solution(0, 0, 0), avoided), solution(0, 0, 1)}, fit, []int64{100, 50}},
		"what is to be avoided before best fit": {
			[]*allocator.Solution{more(solution(0, 0, 0), avoided), solution(90000, 9, 0), solution(0, 9, 0)}, fit, []int64{50, 50, 100}},
		"what is to be avoided before packing, without best fit": {
			[]*allocator.Solution{more(solution(0, 0, 0), avoided), solution(90000, 9, 0)}, pack, []int64{50, 100}},
		"the fewer to be avoided the better": {
			[]*allocator.Solution{more(solution(0, 0, 0), 3*avoided), more(solution(0, 0, 0), avoided)}, fit, []int64{50, 100}},
		"what is ready before what is not": {
			[]*allocator.Solution{more(solution(5, 1, 0), 2), solution(5, 1, 0), more(solution(5, 1, 0), 1)}, fit, []int64{0, 100, 50}},
		"what is ready, without best fit": {
			[]*allocator.Solution{more(solution(0, 1, 0), 2), solution(0, 1, 0)}, pack, []int64{0, 100}},
		"best fit before what is ready": {
			[]*allocator.Solution{more(solution(10, 1, 0), 32), solution(20, 1, 0)}, fit, []int64{99, 0}},
		"packing before what is ready": {
			[]*allocator.Solution{more(solution(0, 1, 0), 32), solution(0, 2, 0)}, pack, []int64{99, 0}},
		"ranks alone, as in kube-scheduler": {
			[]*allocator.Solution{solution(0, 0, 0, 0), solution(0, 0, 4, 0), solution(0, 0, 7, 7)}, objective.Weights{}, []int64{100, 75, 12}},
		"the first and the second choice": {
			[]*allocator.Solution{solution(0, 0, 0), solution(0, 0, 1)}, objective.Weights{}, []int64{100, 87}},
		"two requests on three nodes": {
			[]*allocator.Solution{solution(0, 0, 0, 0), solution(0, 0, 0, 1), solution(0, 0, 1, 1)}, objective.Weights{}, []int64{100, 93, 87}},
		"the last of eight": {
			[]*allocator.Solution{solution(0, 0, 7, 7), solution(0, 0, 7, 0), solution(0, 0, 0, 0)}, objective.Weights{}, []int64{12, 56, 100}},
		"costs beyond all bounds": {
			[]*allocator.Solution{more(solution(0, 0, 0), math.MaxInt64), solution(0, 0, 0), more(solution(0, 0, 0), math.MaxInt64/2)}, objective.Weights{BestFit: math.MaxInt64}, []int64{33, 100, 66}},
		"exact requests alone without weights": {
			[]*allocator.Solution{solution(1, 2, 0), solution(2, 1, 0)}, objective.Weights{}, []int64{0, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, objective.Score(tc.solutions, tc.weights)); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScoreOrder checks what every combination must keep to.
func TestScoreOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		weights := objective.Weights{BestFit: random.Int64N(4), Packing: random.Int64N(9) - 4}
		solutions := make([]*allocator.Solution, 1+random.IntN(20))
		for i := range solutions {
			solutions[i] = solution(random.Int64N(1000), random.IntN(16), random.IntN(8), random.IntN(3))
		}
		scores := objective.Score(solutions, weights)
		for i, a := range solutions {
			if scores[i] < 0 || scores[i] > objective.MaxScore {
				t.Fatalf("score %d out of range", scores[i])
			}
			for j, b := range solutions {
				if a.Ranks[0]+a.Ranks[1] < b.Ranks[0]+b.Ranks[1] && scores[i] < scores[j] {
					t.Fatalf("weights %+v: ranks %v score %d, ranks %v score %d", weights, a.Ranks, scores[i], b.Ranks, scores[j])
				}
			}
		}
	}
}

func TestValue(t *testing.T) {
	value := func(b *builders.DeviceBuilder) int64 {
		return objective.Value(device.New(builders.Slice("gpu.example.com", "p").Devices(b).Obj(), 0, nil, device.AllFeatures()))
	}
	memory := func(quantity string) *builders.DeviceBuilder {
		return builders.Device("d").Capacity("memory", quantity)
	}
	cases := map[string]struct {
		less, more *builders.DeviceBuilder
	}{
		"more memory":                      {memory("16Gi"), memory("80Gi")},
		"no capacity":                      {builders.Device("d"), memory("1")},
		"more of one of two":               {memory("16Gi").Capacity("cores", "7"), memory("16Gi").Capacity("cores", "8")},
		"half of it, in more capacities":   {memory("40Gi").Capacity("cores", "40Gi").Capacity("copies", "40Gi"), memory("80Gi")},
		"beyond the range of a number":     {memory("80Gi"), memory("8000000000000E")},
		"negative capacities are no value": {memory("-80Gi"), memory("1")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if less, more := value(tc.less), value(tc.more); less >= more {
				t.Errorf("values %d and %d", less, more)
			}
		})
	}
	if a, b := value(memory("2Gi")), value(memory("1Gi")); a-b != 1000 {
		t.Errorf("doubling is worth %d, want 1000", a-b)
	}
	many := builders.Device("d")
	for i := range 6 {
		many.Capacity(fmt.Sprintf("c%d", i), fmt.Sprintf("12345%d", i))
	}
	for range 50 {
		if a, b := value(many), value(many); a != b {
			t.Fatalf("the same device is worth %d and %d", a, b)
		}
	}
}
