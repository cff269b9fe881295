package objective

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
)

// MaxScore is the highest score of a node (fwk.MaxNodeScore).
const MaxScore = 100

// Weights say how much best fit and packing count against each other: with
// {3, 1}, devices of twice the value weigh three times as much as the difference
// between the fullest node and the emptiest one. A negative Packing prefers
// nodes with many free devices. With both 0, only prioritized lists decide.
type Weights struct {
	BestFit, Packing int64
}

// Score gives each solution, one per node, a score between 0 and MaxScore. A
// nil solution stands for a node on which nothing had to be allocated. It is a
// pure function of its arguments.
//
// A node on which a prioritized list gets a better rank always scores at least
// as high as one on which it does not, and next to that one without devices to
// be avoided: each level of these has a range of scores of its own, in which
// best fit and packing decide, and last how many devices are not ready yet.
func Score(solutions []*allocator.Solution, weights Weights) []int64 {
	own := make([]level, len(solutions))
	for i, s := range solutions {
		own[i] = levelOf(s)
	}
	levels := slices.Compact(slices.SortedFunc(slices.Values(own), level.compare))
	scores := make([]int64, len(solutions))
	if weights == (Weights{}) {
		if len(levels) > 1 {
			spreadRanks(scores, own, levels[len(levels)-1].rank)
		}
		return scores
	}
	band := float64(MaxScore) / float64(len(levels))
	for height, l := range levels {
		penalties := penaltiesOf(solutions, func(i int) bool { return own[i] == l }, weights)
		for i := range solutions {
			if own[i] == l && solutions[i] != nil {
				scores[i] = int64(band * (float64(height) + 1 - penalties[i]))
			}
		}
	}
	return scores
}

// level is what outweighs any other difference between two solutions.
type level struct {
	rank    int64 // the more, the better
	avoided int64 // the fewer, the better
}

func levelOf(s *allocator.Solution) level {
	if s == nil {
		return level{}
	}
	return level{rank: rank(s), avoided: costOf(s).avoided}
}

// compare puts the better level last.
func (l level) compare(other level) int {
	return cmp.Or(cmp.Compare(l.rank, other.rank), cmp.Compare(other.avoided, l.avoided))
}

// unreadyWeight is what a device with binding conditions counts beside a
// doubling of its value or the difference between the fullest and the emptiest
// node: it decides between nodes that are alike otherwise.
const unreadyWeight = 1e-6

// penaltiesOf says how much worse each solution of a level is than the best
// one: 0 for the best, 1 for the worst.
//
// Best fit counts in doublings of a device's value and not by the range that
// the nodes happen to span: a third kind of device elsewhere in the cluster
// must not change what the choice between two nodes is about.
func penaltiesOf(solutions []*allocator.Solution, of func(i int) bool, weights Weights) []float64 {
	var value, left, unready valueRange
	for i, s := range solutions {
		if s != nil && of(i) {
			value.include(costOf(s).value)
			unready.include(costOf(s).unready)
			left.include(int64(s.Left))
		}
	}
	penalties := make([]float64, len(solutions))
	worst := 0.0
	for i, s := range solutions {
		if s == nil || !of(i) {
			continue
		}
		doublings := float64(costOf(s).value-value.least) / costScale / float64(max(devices(s), 1))
		packing := left.position(int64(s.Left)) * float64(weights.Packing)
		if weights.Packing < 0 {
			packing -= float64(weights.Packing) // the emptiest node is the best
		}
		waiting := unreadyWeight * float64(costOf(s).unready-unready.least)
		penalties[i] = float64(weights.BestFit)*doublings + packing + waiting
		worst = max(worst, penalties[i])
	}
	if worst > 0 {
		for i := range penalties {
			penalties[i] /= worst
		}
	}
	return penalties
}

func devices(s *allocator.Solution) int {
	n := 0
	for _, picks := range s.Claims {
		n += len(picks)
	}
	return n
}

// rank adds up how well the prioritized lists of a solution were served: 8 for
// the first subrequest, less for each later one (KEP-4816).
func rank(s *allocator.Solution) int64 {
	var total int64
	for _, r := range s.Ranks {
		total += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - r)
	}
	return total
}

// spreadRanks uses the whole range of scores when ranks alone decide, as
// kube-scheduler does.
func spreadRanks(scores []int64, own []level, highest int64) {
	for i := range scores {
		scores[i] = own[i].rank * MaxScore / highest
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
