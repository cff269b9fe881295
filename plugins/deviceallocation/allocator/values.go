package allocator

import (
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// valuesOf returns the values that a constraint sees in a group when the
// alternative takes its devices.
func (f *field) valuesOf(constraint int, alternative *problem.Alternative, g int) []int {
	return f.groups[g].values[f.constraints[constraint].slots[alternative.Index]]
}

// allowed tells whether constraints still admit the group for the alternative.
func (b *bounds) allowed(alternative *problem.Alternative, g int) bool {
	if !b.satisfies(alternative, g) {
		return false
	}
	for i := range b.constraints {
		if b.values[i] == nil || b.constraints[i].slots[alternative.Index] < 0 {
			continue
		}
		viable := false
		for _, value := range b.valuesOf(i, alternative, g) {
			viable = viable || b.values[i][value]
		}
		if !viable {
			return false
		}
	}
	return true
}

// limitValues finds, for each Match constraint, the values with enough devices
// for each request that it certainly covers: in the end all devices must have
// one value in common. Once a scalar has been chosen there is nothing to find.
func (b *bounds) limitValues() {
	for i := range b.constraints {
		if b.constraints[i].Kind != problem.Match {
			continue
		}
		common, chosen := b.states[i].shared()
		if chosen && len(common) == 1 {
			continue
		}
		covered := b.covered(i)
		if len(covered) == 0 {
			continue
		}
		viable := make(map[int]bool)
		for _, value := range b.candidateValues(i, covered, common) {
			if _, seen := viable[value]; !seen {
				viable[value] = b.enoughWith(i, value, covered)
			}
		}
		b.values[i] = viable
	}
}

// candidateValues lists the values that devices may have in common.
func (b *bounds) candidateValues(constraint int, covered []*openRequest, common []int) []int {
	if common != nil {
		return common
	}
	var values []int
	for _, option := range covered[0].options {
		for _, g := range b.byCost[option.alternative.Index] {
			values = append(values, b.valuesOf(constraint, option.alternative, g)...)
		}
	}
	return values
}

// covered lists the open requests that need devices and whose every remaining
// alternative falls under the constraint.
func (b *bounds) covered(constraint int) []*openRequest {
	var covered []*openRequest
	for i := range b.open {
		open := &b.open[i]
		all := open.least() > 0
		for _, option := range open.options {
			all = all && b.constraints[constraint].slots[option.alternative.Index] >= 0
		}
		if all {
			covered = append(covered, open)
		}
	}
	return covered
}

// enoughWith tells whether devices with one value of an attribute are enough,
// for each request alone and for all of them together.
func (b *bounds) enoughWith(constraint, value int, covered []*openRequest) bool {
	needs := 0
	for _, open := range covered {
		enough := false
		for _, option := range open.options {
			withValue := func(g int) bool { return b.hasValue(constraint, option.alternative, g, value) }
			enough = enough || b.supply(open.index, option.alternative, withValue) >= option.needs
		}
		if !enough {
			return false
		}
		if !open.admin() {
			needs += open.least()
		}
	}
	return b.union(covered, constraint, value) >= needs &&
		b.withinStocks(covered, func(g int) bool { return b.anyHasValue(constraint, covered, g, value) })
}

func (f *field) hasValue(constraint int, alternative *problem.Alternative, g, value int) bool {
	for _, v := range f.valuesOf(constraint, alternative, g) {
		if v == value {
			return true
		}
	}
	return false
}

func (b *bounds) anyHasValue(constraint int, requests []*openRequest, g, value int) bool {
	for _, open := range requests {
		for _, option := range open.options {
			if b.groups[g].usable[option.alternative.Index] && b.hasValue(constraint, option.alternative, g, value) {
				return true
			}
		}
	}
	return false
}

// union counts the free devices that have the value and serve any of the
// requests.
func (b *bounds) union(requests []*openRequest, constraint, value int) int {
	union := 0
	for g := range b.groups {
		for _, open := range requests {
			if open.admin() || !b.anyHasValue(constraint, []*openRequest{open}, g, value) || !b.serves(open, g) {
				continue
			}
			union += b.supplyOf(g)
			break
		}
	}
	return union
}

// commonValues checks that each Match constraint has a value left.
func (b *bounds) commonValues() bool {
	for _, values := range b.values {
		if values != nil && !anyTrue(values) {
			return false
		}
	}
	return true
}

func anyTrue(values map[int]bool) bool {
	for _, v := range values {
		if v {
			return true
		}
	}
	return false
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

// distinctValues matches devices with values. A device with a list needs all of
// its values for itself; here it is given one.
func (b *bounds) distinctValues(constraint int) bool {
	covered := b.covered(constraint)
	if len(covered) == 0 {
		return true
	}
	position := make(map[int]int)
	b.flow.reset()
	for _, open := range covered {
		b.flow.addDemand(open.least())
	}
	for i, open := range covered {
		for _, option := range open.options {
			for _, g := range b.byCost[option.alternative.Index] {
				if !b.allowed(option.alternative, g) || b.availableIn(open.index, option.alternative, g) == 0 {
					continue
				}
				for _, value := range b.valuesOf(constraint, option.alternative, g) {
					if _, known := position[value]; !known {
						position[value] = len(position)
						b.flow.addSupply(1)
					}
					b.flow.connect(i, position[value])
				}
			}
		}
	}
	return b.flow.saturates()
}
