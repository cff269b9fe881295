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
	rated := make([]rating, len(solutions))
	var levels []level
	for i, s := range solutions {
		rated[i] = rate(s)
		own := rated[i].level
		if i > 0 && own == rated[i-1].level {
			continue // nearly always: there are few levels
		}
		if at, known := slices.BinarySearchFunc(levels, own, level.compare); !known {
			levels = slices.Insert(levels, at, own)
		}
	}
	scores := make([]int64, len(solutions))
	if weights == (Weights{}) {
		if len(levels) > 1 {
			spreadRanks(scores, rated, levels[len(levels)-1].rank)
		}
		return scores
	}
	band := float64(MaxScore) / float64(len(levels))
	for height, l := range levels {
		penalize(rated, l, weights)
		for i := range rated {
			if rated[i].level == l && solutions[i] != nil {
				scores[i] = int64(band * (float64(height) + 1 - rated[i].penalty))
			}
		}
	}
	return scores
}

// rating is what counts of a solution.
type rating struct {
	level level
	// none says that there is no solution.
	none bool
	cost
	left, devices int64
	// penalty is how much worse it is than the best one of its level: 0 for the
	// best, 1 for the worst.
	penalty float64
}

func rate(s *allocator.Solution) rating {
	if s == nil {
		return rating{none: true}
	}
	c := costOf(s)
	return rating{level: level{rank: rank(s), avoided: c.avoided}, cost: c, left: int64(s.Left), devices: devices(s)}
}

// level is what outweighs any other difference between two solutions.
type level struct {
	rank    int64 // the more, the better
	avoided int64 // the fewer, the better
}

// compare puts the better level last.
func (l level) compare(other level) int {
	return cmp.Or(cmp.Compare(l.rank, other.rank), cmp.Compare(other.avoided, l.avoided))
}

// unreadyWeight is what a device with binding conditions counts beside a
// doubling of its value or the difference between the fullest and the emptiest
// node: it decides between nodes that are alike otherwise.
const unreadyWeight = 1e-6

// penalize works out the penalties of one level.
//
// Best fit counts in doublings of a device's value and not by the range that
// the nodes happen to span: a third kind of device elsewhere in the cluster
// must not change what the choice between two nodes is about.
func penalize(rated []rating, l level, weights Weights) {
	var value, left, unready valueRange
	for i := range rated {
		if r := &rated[i]; !r.none && r.level == l {
			value.include(r.value)
			unready.include(r.unready)
			left.include(r.left)
		}
	}
	worst := 0.0
	for i := range rated {
		r := &rated[i]
		if r.none || r.level != l {
			continue
		}
		doublings := float64(r.value-value.least) / costScale / float64(max(r.devices, 1))
		packing := left.position(r.left) * float64(weights.Packing)
		if weights.Packing < 0 {
			packing -= float64(weights.Packing) // the emptiest node is the best
		}
		waiting := unreadyWeight * float64(r.unready-unready.least)
		r.penalty = float64(weights.BestFit)*doublings + packing + waiting
		worst = max(worst, r.penalty)
	}
	if worst == 0 {
		return
	}
	for i := range rated {
		if rated[i].level == l {
			rated[i].penalty /= worst
		}
	}
}

func devices(s *allocator.Solution) int64 {
	n := 0
	for _, picks := range s.Claims {
		n += len(picks)
	}
	return int64(n)
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
func spreadRanks(scores []int64, rated []rating, highest int64) {
	for i := range scores {
		scores[i] = rated[i].level.rank * MaxScore / highest
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
