package capacity

import (
	"maps"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Table gives each name a place in a vector and a unit: a power of ten, as
// small as it can be with the value still an int64, but not below 10^-9, the
// finest that the API can express. So amounts up to the value are exact unless
// value and amount are more than 18 digits apart. Those are rounded such that
// vectors never promise more than there is: the value down, amounts up. An
// amount equal to the value always fits it.
//
// A Table is immutable and may be shared between goroutines. It serves the
// capacities of a device as well as the counters of a counter set.
type Table struct {
	names  []string
	places []place
}

// place is what a table knows about one name.
type place struct {
	exact resource.Quantity
	scale int   // a unit is 10^scale
	units int64 // exact in units, rounded down; below math.MaxInt64
}

// NewTable makes a table for what there is, by name.
func NewTable(values map[string]resource.Quantity) *Table {
	t := &Table{names: slices.Sorted(maps.Keys(values)), places: make([]place, len(values))}
	for i, name := range t.names {
		t.places[i] = placeFor(values[name])
	}
	return t
}

// TableOf makes the table for the capacities of a device.
func TableOf(d *resourceapi.Device) *Table {
	values := make(map[string]resource.Quantity, len(d.Capacity))
	for name, published := range d.Capacity {
		values[string(name)] = published.Value
	}
	return NewTable(values)
}

func placeFor(value resource.Quantity) place {
	p := place{exact: tame(value).DeepCopy(), scale: nano}
	n := inUnits(p.exact, p.scale)
	for !n.inRange {
		p.scale++
		n = inUnits(p.exact, p.scale)
	}
	// One less than there could be, so that MaxInt64 is always too much.
	p.units = min(n.floor, math.MaxInt64-1)
	return p
}

// Names returns the names in the order of the vectors, which is sorted. The
// caller must not change the slice.
func (t *Table) Names() []string { return t.names }

// Values returns what there is, as a new vector.
func (t *Table) Values() Vector {
	v := make(Vector, len(t.places))
	for i := range t.places {
		v[i] = t.places[i].units
	}
	return v
}

// Vector converts amounts, which are looked up by name; a name that is not
// found counts as zero. Names that the table does not have are ignored.
func (t *Table) Vector(amount func(name string) (resource.Quantity, bool)) Vector {
	v := make(Vector, len(t.places))
	for i := range t.places {
		if q, ok := amount(t.names[i]); ok {
			v[i] = t.places[i].convert(tame(q))
		}
	}
	return v
}

// VectorOf converts the amounts of a device's capacities.
func (t *Table) VectorOf(amounts Amounts) Vector {
	return t.Vector(func(name string) (resource.Quantity, bool) {
		q, ok := amounts[resourceapi.QualifiedName(name)]
		return q, ok
	})
}

// Exact says whether vectors say about the values and these amounts all that
// there is to say: nothing had to be rounded. Amounts above the value need not be
// exact, they are too large either way.
func (t *Table) Exact(amounts Amounts) bool {
	for i := range t.places {
		p := &t.places[i]
		value, amount := inUnits(p.exact, p.scale), tame(amounts[resourceapi.QualifiedName(t.names[i])])
		if !value.exact || value.floor == math.MaxInt64 {
			return false
		}
		if n := inUnits(amount, p.scale); !n.exact && amount.Cmp(p.exact) <= 0 {
			return false
		}
	}
	return true
}

// convert rounds an amount up, unless that would make one that fits too large.
// The rounding is safe, because the part of the value that was rounded away
// with it can no longer be given to anybody else: any other amount above zero
// is at least one unit.
func (p *place) convert(amount resource.Quantity) int64 {
	n := inUnits(amount, p.scale).up()
	if n > p.units && amount.Cmp(p.exact) <= 0 {
		return p.units
	}
	return n
}
