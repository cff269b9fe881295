package allocator

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
)

// flatConstraint is a constraint of one of the claims.
type flatConstraint struct {
	*problem.Constraint
	// slots has, for each alternative that the constraint covers, where a device
	// has its values for it, and -1 for the others. They may differ: a request
	// may derive the attribute instead of taking the driver's.
	slots []int
}

// slot is a way in which devices get the values of an attribute.
type slot struct {
	attribute resourceapi.FullyQualifiedName
	// derivation is nil for what the driver publishes.
	derivation *selector.Derivation
}

func (f *field) addConstraint(constraint *problem.Constraint) {
	flat := flatConstraint{Constraint: constraint, slots: make([]int, len(f.problem.Alternatives))}
	for i, alternative := range f.problem.Alternatives {
		flat.slots[i] = -1
		if constraint.Covers(alternative) {
			flat.slots[i] = f.slot(slot{attribute: constraint.Attribute, derivation: alternative.Derivation(constraint.Attribute)})
		}
	}
	f.constraints = append(f.constraints, flat)
}

func (f *field) slot(wanted slot) int {
	if i := slices.Index(f.slots, wanted); i >= 0 {
		return i
	}
	f.slots = append(f.slots, wanted)
	return len(f.slots) - 1
}

// constraintState is what the devices taken so far mean for a constraint.
// Values are numbers, sorted; a scalar attribute has one, a list several
// (KEP-5491).
type constraintState struct {
	kind problem.ConstraintKind
	// common has, for Match, the values that the first device, the first two,
	// and so on have in common. None is empty.
	common [][]int
	// used counts, for Distinct, the devices that have each value.
	used map[int]int
}

func (c *constraintState) init(kind problem.ConstraintKind) {
	c.kind = kind
	if kind == problem.Distinct {
		c.used = make(map[int]int)
	}
}

// shared returns the values that all devices so far have in common. ok is false
// while there is no device, or if the constraint asks for no common value.
func (c *constraintState) shared() (values []int, ok bool) {
	if len(c.common) == 0 {
		return nil, false
	}
	return c.common[len(c.common)-1], true
}

func (c *constraintState) allows(values []int) bool {
	if c.kind == problem.Distinct {
		return !slices.ContainsFunc(values, func(v int) bool { return c.used[v] > 0 })
	}
	common, ok := c.shared()
	return !ok || intersects(common, values)
}

func (c *constraintState) add(values []int) {
	if c.kind == problem.Distinct {
		for _, v := range values {
			c.used[v]++
		}
		return
	}
	if common, ok := c.shared(); ok {
		values = intersection(common, values)
	}
	c.common = append(c.common, values)
}

func (c *constraintState) remove(values []int) {
	if c.kind == problem.Distinct {
		for _, v := range values {
			c.used[v]--
		}
		return
	}
	c.common = c.common[:len(c.common)-1]
}

func intersects(a, b []int) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}

// intersection returns one of its arguments where it can.
func intersection(a, b []int) []int {
	if slices.Equal(a, b) {
		return a
	}
	var both []int
	for _, v := range a {
		if _, found := slices.BinarySearch(b, v); found {
			both = append(both, v)
		}
	}
	return both
}
