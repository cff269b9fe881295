package allocator

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// candidate is a device to try next, with what it adds to the cost.
type candidate struct {
	device int
	cost   int64
}

// candidates lists the devices to try next, of interchangeable ones the first,
// in the order in which they should be tried.
func (s *search) candidates(r, depth int, excluded deviceSet) []candidate {
	for len(s.levels) <= depth {
		s.levels = append(s.levels, level{})
	}
	result := s.levels[depth].candidates[:0]
	alternative := s.chosen[r]
	for _, g := range s.byCost[alternative.Index] {
		if !s.satisfies(alternative, g) {
			continue
		}
		first := len(result)
		plain := !alternative.Admin && !s.groups[g].drawing()
		for _, d := range s.groups[g].members {
			if excluded.has(d) || !s.available(r, d) || !s.fits(alternative, d) || s.listed(result[first:], d) {
				continue
			}
			result = append(result, candidate{device: d, cost: s.price(alternative, d)})
			if plain {
				break // all others are equal to this one
			}
		}
	}
	slices.SortFunc(result, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.cost, y.cost), x.device-y.device)
	})
	s.levels[depth].candidates = result
	return result
}

// listed tells whether an equal device is a candidate already.
func (s *search) listed(candidates []candidate, d int) bool {
	return slices.ContainsFunc(candidates, func(c candidate) bool { return s.equal(c.device, d) })
}

// price is what taking the device adds to the cost.
func (s *search) price(alternative *problem.Alternative, d int) int64 {
	cost := s.groups[s.groupOf[d]].cost[alternative.Index]
	if c := s.offers[d].cell; c >= 0 && s.opened[c] == 0 && !s.takesNothing(alternative) {
		cost += s.cells[c].opening
	}
	return cost
}

// available tells whether the request may take the device, considering what
// the pod's own claims have taken. Administrators share devices with everybody
// but not twice in one claim; nobody shares with them what they took first.
// A device that can be shared may be taken several times, but not twice by one
// request. This is the behaviour of kube-scheduler.
func (s *search) available(r, d int) bool {
	if s.offers[d].shareable {
		return !s.picked(r, d)
	}
	if s.chosen[r] != nil && s.chosen[r].Admin {
		return !s.taken[d].has(s.requests[r].claim)
	}
	return s.taken[d].empty()
}

// picked tells whether the request has taken the device.
func (s *search) picked(r, d int) bool {
	return slices.ContainsFunc(s.picks[r], func(p pick) bool { return p.device == d })
}

// fits tells whether enough is left of all that the device draws on.
func (s *search) fits(alternative *problem.Alternative, d int) bool {
	o := s.offers[d]
	if o.cell < 0 || s.takesNothing(alternative) {
		return true
	}
	if s.chargesCounters(d) {
		for _, each := range o.counters {
			if s.left[each.stock] < each.amount {
				return false
			}
		}
		for _, each := range o.sets {
			if !s.sets[each.set].Admits(each.groups) {
				return false
			}
		}
	}
	if o.exact != nil && !o.exact.fit(alternative.Index, s.exactTaken[d]) {
		return false
	}
	if o.shareable {
		for _, each := range o.shares[alternative.Index] {
			if s.left[each.stock] < each.amount {
				return false
			}
		}
	}
	return true
}

// chargesCounters tells whether the next one to take the device pays for its
// counters: the first of those that share it does.
func (s *search) chargesCounters(d int) bool {
	return !s.offers[d].charged && s.shares[d] == 0
}

func (s *search) take(r, d int) {
	g, alternative, claim := s.groupOf[d], s.chosen[r], s.requests[r].claim
	p := pick{device: d, cost: s.price(alternative, d)}
	if !s.takesNothing(alternative) {
		p.sets = s.draw(alternative, d)
	}
	if !s.offers[d].shareable {
		if s.taken[d].empty() {
			s.free[g]--
		}
		s.taken[d].add(claim)
	} else if !s.takesNothing(alternative) {
		s.shares[d]++
	}
	s.picks[r] = append(s.picks[r], p)
	s.perClaim[claim]++
	s.cost += p.cost
	for i := range s.constraints {
		if slot := s.constraints[i].slots[alternative.Index]; slot >= 0 {
			s.states[i].add(s.groups[g].values[slot])
		}
	}
	s.changed(d)
}

// release undoes the last take of the request.
func (s *search) release(r int) {
	last := len(s.picks[r]) - 1
	p := s.picks[r][last]
	d := p.device
	g, alternative, claim := s.groupOf[d], s.chosen[r], s.requests[r].claim
	for i := range s.constraints {
		if slot := s.constraints[i].slots[alternative.Index]; slot >= 0 {
			s.states[i].remove(s.groups[g].values[slot])
		}
	}
	s.cost -= p.cost
	s.perClaim[claim]--
	s.picks[r] = s.picks[r][:last]
	if !s.offers[d].shareable {
		s.taken[d].remove(claim)
		if s.taken[d].empty() {
			s.free[g]++
		}
	} else if !s.takesNothing(alternative) {
		s.shares[d]--
	}
	if !s.takesNothing(alternative) {
		s.undraw(alternative, p)
	}
	s.changed(d)
}

// draw takes from the stocks what the device needs, and returns what undraw
// needs to know.
func (s *search) draw(alternative *problem.Alternative, d int) []inventory.Compatibility {
	o := s.offers[d]
	if o.cell < 0 {
		return nil
	}
	s.opened[o.cell]++
	var before []inventory.Compatibility
	if s.chargesCounters(d) {
		for _, each := range o.counters {
			s.left[each.stock] -= each.amount
		}
		for _, each := range o.sets {
			before = append(before, s.sets[each.set])
			s.sets[each.set] = s.sets[each.set].Add(each.groups)
		}
	}
	if o.exact != nil {
		if s.exactTaken == nil {
			s.exactTaken = make(map[int][]int)
		}
		s.exactTaken[d] = append(s.exactTaken[d], alternative.Index)
	}
	if o.shareable {
		for _, each := range o.shares[alternative.Index] {
			s.left[each.stock] -= each.amount
		}
	}
	return before
}

// undraw runs after the share has been given back, so that the counters are
// those of a device that nobody shares.
func (s *search) undraw(alternative *problem.Alternative, p pick) {
	o := s.offers[p.device]
	if o.cell < 0 {
		return
	}
	s.opened[o.cell]--
	if s.chargesCounters(p.device) {
		for _, each := range o.counters {
			s.left[each.stock] += each.amount
		}
		for i, each := range o.sets {
			s.sets[each.set] = p.sets[i]
		}
	}
	if taken := s.exactTaken[p.device]; o.exact != nil {
		s.exactTaken[p.device] = taken[:len(taken)-1]
	}
	if o.shareable {
		for _, each := range o.shares[alternative.Index] {
			s.left[each.stock] += each.amount
		}
	}
}

// changed marks what has been worked out about the device's cell.
func (s *search) changed(d int) {
	if c := s.offers[d].cell; c >= 0 {
		s.residues.old[c], s.bounds.sums.rooms[c].old = true, true
	}
}

// satisfies tells whether the constraints allow a device of the group next.
func (s *search) satisfies(alternative *problem.Alternative, g int) bool {
	for i := range s.constraints {
		if slot := s.constraints[i].slots[alternative.Index]; slot >= 0 && !s.states[i].allows(s.groups[g].values[slot]) {
			return false
		}
	}
	return true
}

// exceeds tells whether a claim would hold more devices than its status can.
func exceeds(devices int) bool { return devices > resourceapi.AllocationResultsMaxSize }
