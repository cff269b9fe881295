package allocator

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// bounds shows, before anything is tried, that the requests that are still
// open cannot all be satisfied, or what they will cost at least. Whatever it
// rules out is impossible; what it lets pass may still be.
type bounds struct {
	*search
	open []openRequest
	// all lists the open requests.
	all []*openRequest
	// supplies has, for each group, how many devices can still be taken from it;
	// it is -1 until somebody asks.
	supplies []int
	// values has, for each Match constraint, the values that can still be the
	// one that all covered devices have; nil means no limit.
	values []map[int]bool
	flow   flow
	sums   sums
	// joint is scratch space of leastCost, by kind of alternative.
	joint []jointNeed
	// rooms and costs are scratch space of openingFor.
	rooms, costs []int64
}

// openRequest is a request that still needs devices.
type openRequest struct {
	index int
	// options are the alternatives that remain: one if it has been decided.
	options []option
}

type option struct {
	alternative *problem.Alternative
	needs       int
}

func (b *bounds) init(s *search) {
	b.search = s
	b.values = make([]map[int]bool, len(s.constraints))
	b.joint = make([]jointNeed, len(s.problem.Alternatives))
	b.supplies = make([]int, len(s.groups))
	b.sums.init(s.field)
}

// check looks at the requests from r on, r being possibly satisfied in part.
// ok is false when they cannot be satisfied; least is a lower bound of what
// they add to the cost.
func (b *bounds) check(r int) (least int64, ok bool) {
	b.collect(r)
	if !b.withinClaims() {
		return 0, false
	}
	b.limitValues()
	if !b.commonValues() {
		return 0, false
	}
	for i := range b.open {
		if !b.satisfiable(&b.open[i]) {
			return 0, false
		}
	}
	if !b.withinStocks(b.all, nil) || !b.enoughValues() || !b.matching() {
		return 0, false
	}
	return b.leastCost(), true
}

// collect lists the open requests with what each alternative needs.
func (b *bounds) collect(r int) {
	for g := range b.supplies {
		b.supplies[g] = -1
	}
	clear(b.values)
	b.open = b.open[:0]
	for ; r < len(b.requests); r++ {
		// Entries are reused with their options, since check runs at every step.
		if len(b.open) < cap(b.open) {
			b.open = b.open[:len(b.open)+1]
		} else {
			b.open = append(b.open, openRequest{})
		}
		open := &b.open[len(b.open)-1]
		open.index, open.options = r, open.options[:0]
		if b.chosen[r] != nil {
			open.options = append(open.options, option{b.chosen[r], b.needs(b.chosen[r]) - len(b.picks[r])})
			continue
		}
		for _, alternative := range b.requests[r].Alternatives {
			open.options = append(open.options, option{alternative, b.needs(alternative)})
		}
	}
	b.all = b.all[:0]
	for i := range b.open {
		b.all = append(b.all, &b.open[i])
	}
}

// needs is the number of devices that an alternative takes.
func (b *bounds) needs(alternative *problem.Alternative) int {
	if alternative.All {
		return b.tallies[alternative.Index].Matching
	}
	return alternative.Count
}

// withinClaims checks the number of devices that each claim can hold.
func (b *bounds) withinClaims() bool {
	for claim, total := range b.perClaim {
		for i := range b.open {
			if b.requests[b.open[i].index].claim == claim {
				total += b.open[i].least()
			}
		}
		if exceeds(total) {
			return false
		}
	}
	return true
}

func (o *openRequest) least() int {
	least := o.options[0].needs
	for _, option := range o.options[1:] {
		least = min(least, option.needs)
	}
	return least
}

// satisfiable drops the alternatives that cannot be had even alone and tells
// whether one remains.
func (b *bounds) satisfiable(open *openRequest) bool {
	kept := open.options[:0]
	for _, option := range open.options {
		if b.alone(open.index, option) {
			kept = append(kept, option)
		}
	}
	open.options = kept
	return len(kept) > 0
}

func (b *bounds) alone(r int, o option) bool {
	if o.alternative.All {
		return b.allAvailable(r, o)
	}
	return b.supply(r, o.alternative, nil) >= o.needs
}

// allAvailable checks that nothing stands in the way of any device that "all"
// means. Devices that the request has taken already do not count any more.
func (b *bounds) allAvailable(r int, o option) bool {
	if b.needs(o.alternative) == 0 {
		return false
	}
	for g := range b.groups {
		group := &b.groups[g]
		if !group.matches[o.alternative.Index] {
			continue
		}
		if !group.usable[o.alternative.Index] {
			return false
		}
		if len(b.picks[r]) == 0 && b.availableIn(r, o.alternative, g) < len(group.members) {
			return false
		}
	}
	return true
}

// availableIn counts the devices of a group that a request could take, as far
// as other requests of the pod are concerned.
func (b *bounds) availableIn(r int, alternative *problem.Alternative, g int) int {
	shareable := b.offers[b.groups[g].members[0]].shareable
	if !alternative.Admin && !shareable {
		return b.supplyOf(g)
	}
	available := 0
	for _, d := range b.groups[g].members {
		if shareable && !b.picked(r, d) && b.fits(alternative, d) ||
			!shareable && !b.taken[d].has(b.requests[r].claim) && b.fits(alternative, d) {
			available++
		}
	}
	return available
}

// supplyOf counts the devices that all requests together could take from a
// group, administrators aside. A shared device counts as often as claims can
// hold devices.
func (b *bounds) supplyOf(g int) int {
	group := &b.groups[g]
	first := group.members[0]
	switch {
	case b.offers[first].shareable:
		return len(group.members) * len(b.problem.Claims) * resourceapi.AllocationResultsMaxSize
	case !group.drawing():
		return b.free[g]
	case b.supplies[g] >= 0:
		return b.supplies[g]
	}
	supply := 0
	for _, d := range group.members {
		if b.taken[d].empty() && b.fits(b.firstUser(group), d) {
			supply++
		}
	}
	b.supplies[g] = supply
	return supply
}

// firstUser returns an alternative that takes devices of the group from others.
// Which one does not matter for what an exclusive device draws on.
func (b *bounds) firstUser(group *group) *problem.Alternative {
	for _, alternative := range b.problem.Alternatives {
		if group.usable[alternative.Index] && !b.takesNothing(alternative) {
			return alternative
		}
	}
	return b.problem.Alternatives[0]
}

// supply counts the devices that an alternative could take; with a filter only
// those of the groups that pass it.
func (b *bounds) supply(r int, alternative *problem.Alternative, filter func(g int) bool) int {
	supply := 0
	for _, g := range b.byCost[alternative.Index] {
		if (filter == nil || filter(g)) && b.allowed(alternative, g) { // the filter is quicker
			supply += b.availableIn(r, alternative, g)
		}
	}
	return supply
}

// serves tells whether a group can contribute to a request.
func (b *bounds) serves(open *openRequest, g int) bool {
	for _, option := range open.options {
		if b.groups[g].usable[option.alternative.Index] && b.allowed(option.alternative, g) {
			return true
		}
	}
	return false
}

// admin tells whether a request takes nothing from others. Prioritized lists
// have no administrators' access.
func (o *openRequest) admin() bool { return o.options[0].alternative.Admin }

// contributes is serves for a group that has devices left.
func (b *bounds) contributes(open *openRequest, g int) bool {
	if !b.serves(open, g) {
		return false
	}
	for _, option := range open.options {
		if b.groups[g].usable[option.alternative.Index] && b.availableIn(open.index, option.alternative, g) > 0 {
			return true
		}
	}
	return false
}

// matching checks that the requests do not need the same devices: each can be
// given its number, every device once. Administrators take nothing away.
func (b *bounds) matching() bool {
	b.flow.reset()
	for g := range b.groups {
		b.flow.addSupply(b.supplyOf(g))
	}
	for i := range b.open {
		open := &b.open[i]
		if open.admin() || open.least() == 0 {
			continue
		}
		request := b.flow.addDemand(open.least())
		for g := range b.groups {
			if b.contributes(open, g) {
				b.flow.connect(request, g)
			}
		}
	}
	return b.flow.saturates()
}
