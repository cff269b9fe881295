package capacity

import (
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
	names []string
}

// NewTable makes a table for what there is, by name.
func NewTable(values map[string]resource.Quantity) *Table { return nil }

// TableOf makes the table for the capacities of a device.
func TableOf(d *resourceapi.Device) *Table { return nil }

// Names returns the names in the order of the vectors, which is sorted. The
// caller must not change the slice.
func (t *Table) Names() []string { return t.names }

// Values returns what there is, as a new vector.
func (t *Table) Values() Vector { return nil }

// Vector converts amounts, which are looked up by name; a name that is not
// found counts as zero. Names that the table does not have are ignored.
func (t *Table) Vector(amount func(name string) (resource.Quantity, bool)) Vector { return nil }

// VectorOf converts the amounts of a device's capacities.
func (t *Table) VectorOf(amounts Amounts) Vector { return nil }
