package allocator

import (
	"context"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// interruptInterval is the number of steps between two looks at the context.
const interruptInterval = 256

// search is one depth-first search. It is used by a single goroutine.
type search struct {
	*field
	ctx     context.Context
	options Options

	// taken has, for each device, the claims that have taken it so far.
	taken []claimSet
	// free has, for each group, the members that no claim has taken.
	free []int
	// chosen has, for each request, the alternative decided upon, or nil.
	chosen []*problem.Alternative
	// picks has, for each request, the devices taken, in order of preference.
	picks [][]int
	// perClaim counts the devices taken for each claim.
	perClaim []int
	states   []constraintState
	cost     int64

	best  *Solution
	steps int
	over  bool // budget or context ended
	// levels is scratch space, one entry per depth.
	levels []level
	bounds bounds
}

// level is the scratch space of one depth of the search.
type level struct {
	candidates []int
	excluded   int // length of search.excluded before
}

func newSearch(ctx context.Context, f *field, options Options) *search {
	s := &search{
		field: f, ctx: ctx, options: options,
		taken:    make([]claimSet, len(f.devices)),
		free:     make([]int, len(f.groups)),
		chosen:   make([]*problem.Alternative, len(f.requests)),
		picks:    make([][]int, len(f.requests)),
		perClaim: make([]int, len(f.problem.Claims)),
		states:   make([]constraintState, len(f.constraints)),
	}
	for g := range f.groups {
		s.free[g] = len(f.groups[g].members)
	}
	for i := range s.states {
		s.states[i].init(f.constraints[i].Kind)
	}
	s.bounds.init(s)
	return s
}

// run searches until the best solution is known or the budget ends.
func (s *search) run() {
	if _, ok := s.bounds.check(0); !ok {
		return
	}
	if s.options.Objective == nil {
		s.request(0)
		return
	}
	s.ranks(0)
}

// ranks decides on alternatives first: a prioritized list states what the user
// prefers, which outweighs any objective. Earlier requests go first, as in
// kube-scheduler (KEP-4816). The first ranks that have a solution win.
func (s *search) ranks(r int) bool {
	if r == len(s.requests) {
		s.request(0)
		return s.over || s.best != nil
	}
	for _, alternative := range s.requests[r].Alternatives {
		s.chosen[r] = alternative
		if _, ok := s.bounds.check(0); ok && s.ranks(r+1) {
			return true
		}
	}
	s.chosen[r] = nil
	return s.over
}

// request continues with a request, all earlier ones being satisfied. It tells
// whether the search has ended.
func (s *search) request(r int) bool {
	if r == len(s.requests) {
		s.record()
		return s.options.Objective == nil
	}
	if s.chosen[r] != nil {
		return s.start(r)
	}
	defer func() { s.chosen[r] = nil }()
	for _, alternative := range s.requests[r].Alternatives {
		s.chosen[r] = alternative
		if s.promising(r) && s.start(r) {
			return true
		}
	}
	return s.over
}

func (s *search) start(r int) bool {
	if s.chosen[r].All {
		return s.all(r)
	}
	return s.count(r, nil)
}

// all takes every matching device. Which ones they are is known, so there is
// nothing to choose.
func (s *search) all(r int) bool {
	alternative := s.chosen[r]
	done := 0
	defer func() {
		for range done {
			s.release(r)
		}
	}()
	for d, g := range s.groupOf {
		if !s.groups[g].matches[alternative.Index] {
			continue
		}
		if !s.step() {
			return true
		}
		if !s.groups[g].usable[alternative.Index] || !s.available(r, d) || !s.satisfies(alternative, g) {
			return false
		}
		s.take(r, d)
		done++
	}
	if done == 0 || !s.promising(r) {
		return false
	}
	return s.request(r + 1)
}

// count takes the next device for a request that wants a number of them.
// tried lists the groups that have failed for it already: whatever solution
// takes one of their devices, an equal one takes the device that has failed.
func (s *search) count(r int, tried []groupMark) bool {
	alternative := s.chosen[r]
	if len(s.picks[r]) == alternative.Count {
		return s.request(r + 1)
	}
	depth := s.depth()
	for _, d := range s.candidates(r, depth, tried) {
		if !s.step() {
			return true
		}
		mark := groupMark{group: s.groupOf[d], taken: s.taken[d].clone()}
		s.take(r, d)
		over := s.promising(r) && s.count(r, tried)
		s.release(r)
		if over {
			return true
		}
		tried = append(slices.Clip(tried), mark)
	}
	return s.over
}

// groupMark names the devices of a group that the same claims have taken.
type groupMark struct {
	group int
	taken claimSet
}

// candidates lists the devices to try next, one of each group, in the order in
// which they should be tried.
func (s *search) candidates(r, depth int, tried []groupMark) []int {
	for len(s.levels) <= depth {
		s.levels = append(s.levels, level{})
	}
	result := s.levels[depth].candidates[:0]
	alternative := s.chosen[r]
	after := s.floor(r)
	for _, g := range s.byCost[alternative.Index] {
		if !s.satisfies(alternative, g) {
			continue
		}
		first := len(result)
		for _, d := range s.groups[g].members {
			if !s.available(r, d) || !s.later(alternative, d, after) ||
				s.wasTried(tried, g, d) || s.alike(result[first:], d) {
				continue
			}
			result = append(result, d)
			if !alternative.Admin {
				break // all others are equal to this one
			}
		}
	}
	slices.SortFunc(result, func(x, y int) int { return s.compare(alternative, x, y) })
	s.levels[depth].candidates = result
	return result
}

// floor is the device that the next pick must come after, so that each set of
// devices is tried in one order only: the last pick of the request or, for the
// first pick, that of a twin. It is -1 if there is none.
func (s *search) floor(r int) int {
	if n := len(s.picks[r]); n > 0 {
		return s.picks[r][n-1]
	}
	if s.requests[r].twin {
		return s.picks[r-1][0]
	}
	return -1
}

// compare orders devices by cost, then in the canonical order.
func (s *search) compare(alternative *problem.Alternative, x, y int) int {
	costX := s.groups[s.groupOf[x]].cost[alternative.Index]
	costY := s.groups[s.groupOf[y]].cost[alternative.Index]
	if costX != costY {
		return int(min(max(costX-costY, -1), 1))
	}
	return x - y
}

func (s *search) later(alternative *problem.Alternative, d, after int) bool {
	return after < 0 || s.compare(alternative, d, after) > 0
}

func (s *search) wasTried(tried []groupMark, g, d int) bool {
	for _, mark := range tried {
		if mark.group == g && mark.taken.equal(s.taken[d]) {
			return true
		}
	}
	return false
}

// alike tells whether an equal device is a candidate already. Devices of one
// group differ for administrators when other claims of the pod have taken them.
func (s *search) alike(candidates []int, d int) bool {
	for _, other := range candidates {
		if s.taken[other].equal(s.taken[d]) {
			return true
		}
	}
	return false
}

// available tells whether the request may take the device, considering what
// the pod's own claims have taken. Administrators share devices with everybody
// but not twice in one claim; nobody shares with them what they took first.
// This is the behaviour of kube-scheduler.
func (s *search) available(r, d int) bool {
	if s.chosen[r].Admin {
		return !s.taken[d].has(s.requests[r].claim)
	}
	return s.taken[d].empty()
}

func (s *search) take(r, d int) {
	g := s.groupOf[d]
	if s.taken[d].empty() {
		s.free[g]--
	}
	s.taken[d].add(s.requests[r].claim)
	s.picks[r] = append(s.picks[r], d)
	s.perClaim[s.requests[r].claim]++
	s.cost += s.groups[g].cost[s.chosen[r].Index]
	for i := range s.constraints {
		if s.constraints[i].Covers(s.chosen[r]) {
			s.states[i].add(s.groups[g].values[i])
		}
	}
}

// release undoes the last take of the request.
func (s *search) release(r int) {
	last := len(s.picks[r]) - 1
	d := s.picks[r][last]
	g := s.groupOf[d]
	for i := range s.constraints {
		if s.constraints[i].Covers(s.chosen[r]) {
			s.states[i].remove(s.groups[g].values[i])
		}
	}
	s.cost -= s.groups[g].cost[s.chosen[r].Index]
	s.perClaim[s.requests[r].claim]--
	s.picks[r] = s.picks[r][:last]
	s.taken[d].remove(s.requests[r].claim)
	if s.taken[d].empty() {
		s.free[g]++
	}
}

// satisfies tells whether the constraints allow a device of the group next.
func (s *search) satisfies(alternative *problem.Alternative, g int) bool {
	for i := range s.constraints {
		if s.constraints[i].Covers(alternative) && !s.states[i].allows(s.groups[g].values[i]) {
			return false
		}
	}
	return true
}

// promising tells whether the requests from r on can still be satisfied, at a
// lower cost than the best solution so far.
func (s *search) promising(r int) bool {
	least, ok := s.bounds.check(r)
	return ok && (s.best == nil || s.cost+least < s.best.Cost)
}

// step counts one step and tells whether the search may go on.
func (s *search) step() bool {
	if s.over || s.options.StepBudget > 0 && s.steps == s.options.StepBudget {
		s.over = true
		return false
	}
	s.steps++
	if s.steps%interruptInterval == 0 && s.ctx.Err() != nil {
		s.over = true
	}
	return !s.over
}

func (s *search) depth() int {
	depth := 0
	for r := range s.picks {
		depth += len(s.picks[r])
	}
	return depth
}

// record keeps the present state as the best solution.
func (s *search) record() {
	solution := &Solution{Cost: s.cost, Claims: make([][]Pick, len(s.problem.Claims)), Ranks: make([]int, len(s.requests))}
	for r := range s.requests {
		solution.Ranks[r] = s.chosen[r].Rank
		ordered := slices.Sorted(slices.Values(s.picks[r]))
		claim := s.requests[r].claim
		for _, d := range ordered {
			solution.Claims[claim] = append(solution.Claims[claim], Pick{Alternative: s.chosen[r].Index, Device: s.devices[d]})
		}
	}
	solution.Left = s.left()
	s.best = solution
}

// left counts the free devices that would serve the alternatives taken.
func (s *search) left() int {
	left := 0
	for g := range s.groups {
		for _, alternative := range s.chosen {
			if !alternative.Admin && s.groups[g].usable[alternative.Index] {
				left += s.free[g]
				break
			}
		}
	}
	return left
}

// exceeds tells whether a claim would hold more devices than its status can.
func exceeds(devices int) bool { return devices > resourceapi.AllocationResultsMaxSize }
