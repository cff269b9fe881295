package allocator

import (
	"context"
	"slices"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// interruptInterval is the number of steps between two looks at the context.
const interruptInterval = 256

// search is one depth-first search. It is used by a single goroutine.
type search struct {
	*field
	ctx context.Context

	// taken has, for each device, the claims that have it to themselves so far;
	// shares counts, for each device, how often it was taken as a shared one.
	taken  []claimSet
	shares []int
	// free has, for each group, the members that no claim has taken.
	free []int
	// left and sets are what is left of the stocks; opened counts, for each
	// cell, the devices taken there.
	left   []int64
	sets   []inventory.Compatibility
	opened []int
	// exactTaken has, for each device with exactShares, the alternatives that have
	// taken one.
	exactTaken map[int][]int
	residues   residues
	// chosen has, for each request, the alternative decided upon, or nil.
	chosen []*problem.Alternative
	// picks has, for each request, the devices taken, in order of preference.
	picks [][]pick
	// serving is the request that is taking devices.
	serving int
	// barred has, for each request, the devices that had failed for it before
	// its first one was taken; a twin need not try them either.
	barred []deviceSet
	// perClaim counts the devices taken for each claim.
	perClaim []int
	states   []constraintState
	cost     int64

	best     *Solution
	steps    int
	over     bool // budget or context ended
	failures failures
	remember bool
	// levels is scratch space, one entry per depth.
	levels []level
	bounds bounds
}

// level is the scratch space of one depth of the search.
type level struct {
	candidates []candidate
}

// pick is a device that was taken.
type pick struct {
	device int
	// cost is what it has added.
	cost int64
	// sets are the states of the counter sets before, parallel to offer.sets.
	sets []inventory.Compatibility
}

func newSearch(ctx context.Context, f *field) *search {
	s := &search{
		field: f, ctx: ctx,
		taken:    make([]claimSet, len(f.devices)),
		shares:   make([]int, len(f.devices)),
		free:     make([]int, len(f.groups)),
		left:     slices.Clone(f.stocks.left),
		sets:     slices.Clone(f.stocks.sets),
		opened:   make([]int, len(f.cells)),
		residues: residues{keys: make([][]byte, len(f.cells)), old: make([]bool, len(f.cells))},
		chosen:   make([]*problem.Alternative, len(f.requests)),
		picks:    make([][]pick, len(f.requests)),
		barred:   make([]deviceSet, len(f.requests)),
		perClaim: make([]int, len(f.problem.Claims)),
		states:   make([]constraintState, len(f.constraints)),
		remember: f.remembering(),
	}
	for g := range f.groups {
		s.free[g] = len(f.groups[g].members)
	}
	for c := range f.cells {
		s.residues.old[c] = true
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
	if !s.remember {
		return s.decide(r)
	}
	state := s.state(r)
	if s.failures.failed(state, s.cost) {
		return s.over
	}
	key, cost := string(state), s.cost
	if s.decide(r) {
		return true
	}
	s.failures.add(key, cost)
	return false
}

// decide chooses the alternative, if that has not been done.
func (s *search) decide(r int) bool {
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
	excluded := s.newDeviceSet()
	if s.requests[r].twin {
		copy(excluded, s.barred[r-1])
	}
	return s.count(r, excluded)
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
		if !s.groups[g].usable[alternative.Index] || !s.available(r, d) || !s.fits(alternative, d) || !s.satisfies(alternative, g) {
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
//
// excluded are the devices of which it is known that no solution, or no better
// one, gives them to the request. What has been tried is among them, together
// with all that is interchangeable with it. So each set of devices is tried in
// one order only, and equal sets once.
func (s *search) count(r int, excluded deviceSet) bool {
	alternative := s.chosen[r]
	if len(s.picks[r]) == alternative.Count {
		return s.request(r + 1)
	}
	s.serving = r
	for _, c := range s.candidates(r, s.depth(), excluded) {
		if excluded.has(c.device) {
			continue // equal to one that was tried meanwhile
		}
		if !s.step() {
			return true
		}
		if len(s.picks[r]) == 0 {
			s.barred[r] = append(s.barred[r][:0], excluded...)
		}
		s.take(r, c.device)
		over := s.promising(r) && s.count(r, slices.Clone(excluded))
		s.release(r)
		if over {
			return true
		}
		s.serving = r
		s.exclude(excluded, c.device)
	}
	return s.over
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
		ordered := slices.SortedFunc(slices.Values(s.picks[r]), func(x, y pick) int { return x.device - y.device })
		claim := s.requests[r].claim
		for _, p := range ordered {
			solution.Claims[claim] = append(solution.Claims[claim], Pick{Alternative: s.chosen[r].Index, Device: s.devices[p.device]})
		}
	}
	solution.Left = s.spare()
	s.best = solution
}

// spare counts the devices that would still serve the alternatives taken.
func (s *search) spare() int {
	spare := 0
	for g := range s.groups {
		for r, alternative := range s.chosen {
			if !alternative.Admin && s.groups[g].usable[alternative.Index] {
				spare += s.bounds.availableIn(r, alternative, g)
				break
			}
		}
	}
	return spare
}
