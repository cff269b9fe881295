package objective

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
)

// MaxScore is the highest score of a node (fwk.MaxNodeScore).
const MaxScore = 100

// Weights say how much best fit and packing count against each other. A
// negative Packing prefers nodes with many free devices. With both 0, only
// prioritized lists decide.
type Weights struct {
	BestFit, Packing int64
}

// Score gives each solution, one per node, a score between 0 and MaxScore. A
// nil solution stands for a node on which nothing had to be allocated. It is a
// pure function of its arguments.
//
// A node on which a prioritized list gets a better rank always scores at least
// as high as one on which it does not: each level of ranks has a range of
// scores of its own, in which best fit and packing decide.
func Score(solutions []*allocator.Solution, weights Weights) []int64 {
	ranks := make([]int64, len(solutions))
	var cost, left valueRange
	for i, s := range solutions {
		ranks[i] = rank(s)
		if s != nil {
			cost.include(s.Cost)
			left.include(int64(s.Left))
		}
	}
	levels := slices.Compact(slices.Sorted(slices.Values(ranks)))
	scores := make([]int64, len(solutions))
	for i, s := range solutions {
		level, _ := slices.BinarySearch(levels, ranks[i])
		band := float64(MaxScore) / float64(len(levels))
		scores[i] = int64(band * (float64(level) + soft(s, cost, left, weights)))
	}
	if weights == (Weights{}) && len(levels) > 1 {
		spreadLevels(scores, ranks, levels)
	}
	return scores
}

// rank adds up how well the prioritized lists of a solution were served: 8 for
// the first subrequest, less for each later one (KEP-4816).
func rank(s *allocator.Solution) int64 {
	if s == nil {
		return 0
	}
	var total int64
	for _, r := range s.Ranks {
		total += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - r)
	}
	return total
}

// soft is the weighted preference among nodes of one level, between 0 and 1.
func soft(s *allocator.Solution, cost, left valueRange, weights Weights) float64 {
	packing := weights.Packing
	total := weights.BestFit + max(packing, -packing)
	if s == nil || total == 0 {
		return 0
	}
	result := float64(weights.BestFit) * (1 - cost.position(s.Cost))
	if packing >= 0 {
		result += float64(packing) * (1 - left.position(int64(s.Left)))
	} else {
		result += float64(-packing) * left.position(int64(s.Left))
	}
	return result / float64(total)
}

// spreadLevels uses the whole range of scores when ranks alone decide, as
// kube-scheduler does.
func spreadLevels(scores, ranks, levels []int64) {
	highest := levels[len(levels)-1]
	for i := range scores {
		scores[i] = ranks[i] * MaxScore / highest
	}
}

type valueRange struct {
	least, most int64
	any         bool
}

func (r *valueRange) include(v int64) {
	if !r.any {
		r.least, r.most, r.any = v, v, true
		return
	}
	r.least, r.most = min(r.least, v), max(r.most, v)
}

// position is 0 at the lower end of the range and 1 at the upper one; in a
// range of one value there is nothing to prefer.
func (r valueRange) position(v int64) float64 {
	if r.most == r.least {
		return 0
	}
	return float64(v-r.least) / float64(r.most-r.least)
}
