package allocator

import (
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// bounds shows, before anything is tried, that the requests that are still
// open cannot all be satisfied, or what they will cost at least. Whatever it
// rules out is impossible; what it lets pass may still be.
type bounds struct {
	*search
	open []openRequest
	// values has, for each Match constraint without a device, the values that
	// can still serve the requests that it must cover; nil means no limit.
	values []map[device.Value]bool
	flow   flow
	// joint is scratch space of leastCost, by kind of alternative.
	joint []jointNeed
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
	b.values = make([]map[device.Value]bool, len(s.constraints))
	b.joint = make([]jointNeed, len(s.problem.Alternatives))
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
	for i := range b.open {
		if !b.satisfiable(&b.open[i]) {
			return 0, false
		}
	}
	if !b.commonValues() || !b.enoughValues() || !b.matching() {
		return 0, false
	}
	return b.leastCost(), true
}

// collect lists the open requests with what each alternative needs.
func (b *bounds) collect(r int) {
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
	if !alternative.Admin {
		return b.free[g]
	}
	available := 0
	for _, d := range b.groups[g].members {
		if !b.taken[d].has(b.requests[r].claim) {
			available++
		}
	}
	return available
}

// supply counts the devices that an alternative could take; with a filter only
// those of the groups that pass it.
func (b *bounds) supply(r int, alternative *problem.Alternative, filter func(g int) bool) int {
	supply := 0
	for _, g := range b.byCost[alternative.Index] {
		if b.allowed(alternative, g) && (filter == nil || filter(g)) {
			supply += b.availableIn(r, alternative, g)
		}
	}
	return supply
}

// allowed tells whether constraints still admit the group for the alternative.
func (b *bounds) allowed(alternative *problem.Alternative, g int) bool {
	if !b.satisfies(alternative, g) {
		return false
	}
	for i := range b.constraints {
		if b.values[i] != nil && b.constraints[i].Covers(alternative) && !b.values[i][b.groups[g].values[i]] {
			return false
		}
	}
	return true
}

// limitValues finds, for each Match constraint that has no device yet, the
// values with enough devices for each request that it certainly covers.
func (b *bounds) limitValues() {
	clear(b.values)
	for i := range b.constraints {
		if b.constraints[i].Kind != problem.Match || b.states[i].n > 0 {
			continue
		}
		covered := b.covered(i)
		if len(covered) == 0 {
			continue
		}
		viable := make(map[device.Value]bool)
		for g := range b.groups {
			value := b.groups[g].values[i]
			if _, seen := viable[value]; !seen && b.groups[g].has[i] {
				viable[value] = b.enoughWith(i, value, covered)
			}
		}
		b.values[i] = viable
	}
}

// covered lists the open requests that need devices and whose every remaining
// alternative falls under the constraint.
func (b *bounds) covered(constraint int) []*openRequest {
	var covered []*openRequest
	for i := range b.open {
		open := &b.open[i]
		all := open.least() > 0
		for _, option := range open.options {
			all = all && b.constraints[constraint].Covers(option.alternative)
		}
		if all {
			covered = append(covered, open)
		}
	}
	return covered
}

// enoughWith tells whether devices with one value of an attribute are enough,
// for each request alone and for all of them together.
func (b *bounds) enoughWith(constraint int, value device.Value, covered []*openRequest) bool {
	withValue := func(g int) bool { return b.groups[g].has[constraint] && b.groups[g].values[constraint] == value }
	needs := 0
	for _, open := range covered {
		enough := false
		for _, option := range open.options {
			enough = enough || b.supply(open.index, option.alternative, withValue) >= option.needs
		}
		if !enough {
			return false
		}
		if !open.admin() {
			needs += open.least()
		}
	}
	return b.union(covered, withValue) >= needs
}

// union counts the free devices that serve any of the requests.
func (b *bounds) union(requests []*openRequest, filter func(g int) bool) int {
	union := 0
	for g := range b.groups {
		if b.free[g] == 0 || !filter(g) {
			continue
		}
		for _, open := range requests {
			if !open.admin() && b.serves(open, g) {
				union += b.free[g]
				break
			}
		}
	}
	return union
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

// commonValues checks that each Match constraint has a value left.
func (b *bounds) commonValues() bool {
	for _, values := range b.values {
		if values != nil && !anyTrue(values) {
			return false
		}
	}
	return true
}

// enoughValues checks that each Distinct constraint has a value of its own for
// every device that it certainly covers.
func (b *bounds) enoughValues() bool {
	for i := range b.constraints {
		if b.constraints[i].Kind == problem.Distinct && !b.distinctValues(i) {
			return false
		}
	}
	return true
}

func (b *bounds) distinctValues(constraint int) bool {
	covered := b.covered(constraint)
	if len(covered) == 0 {
		return true
	}
	var values []device.Value
	position := make(map[device.Value]int)
	b.flow.reset()
	for _, open := range covered {
		b.flow.addDemand(open.least())
	}
	for g := range b.groups {
		value := b.groups[g].values[constraint]
		if _, known := position[value]; !known && b.groups[g].has[constraint] {
			position[value] = len(values)
			values = append(values, value)
			b.flow.addSupply(1)
		}
	}
	for i, open := range covered {
		for g := range b.groups {
			if b.groups[g].has[constraint] && b.contributes(open, g) {
				b.flow.connect(i, position[b.groups[g].values[constraint]])
			}
		}
	}
	return b.flow.saturates()
}

// contributes is serves for a group that has devices left.
func (b *bounds) contributes(open *openRequest, g int) bool {
	if !b.serves(open, g) {
		return false
	}
	return b.availableIn(open.index, open.options[0].alternative, g) > 0
}

// matching checks that the requests do not need the same devices: each can be
// given its number, every device once. Administrators take nothing away.
func (b *bounds) matching() bool {
	b.flow.reset()
	for g := range b.groups {
		b.flow.addSupply(b.free[g])
	}
	for i := range b.open {
		open := &b.open[i]
		if open.admin() || open.least() == 0 {
			continue
		}
		request := b.flow.addDemand(open.least())
		for g := range b.groups {
			if b.free[g] > 0 && b.serves(open, g) {
				b.flow.connect(request, g)
			}
		}
	}
	return b.flow.saturates()
}
