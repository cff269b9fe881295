package capacity

import (
	"math"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// steps are the amounts min, min+step, min+2*step and so on, counted in units
// of 10^scale.
type steps struct {
	min, step int64
	scale     int
	format    resource.Format
}

// stepsOf returns the steps of a range. They are counted in thousandths if that
// is allowed and all bounds can be written so, the step being at least one; in
// whole numbers else, for which bounds are rounded up. It fails without a
// minimum, and for a step that is not above zero or more than an int64.
//
// Bounds may well be whole numbers and still be counted in thousandths. Then
// the largest amount that can be requested is smaller, as it is in Kubernetes.
func stepsOf(bounds *resourceapi.CapacityRequestPolicyRange, fractional bool) (steps, bool) {
	if bounds.Min == nil || bounds.Step.Sign() <= 0 {
		return steps{}, false
	}
	scale := 0
	if fractional && exactly(milli, bounds.Min, bounds.Max, bounds.Step) {
		scale = milli
	}
	least, step := inUnits(*bounds.Min, scale), inUnits(*bounds.Step, scale)
	return steps{min: least.up(), step: step.up(), scale: scale, format: bounds.Step.Format}, step.inRange
}

// exactly says whether all of the quantities that are set are multiples of
// 10^scale within int64.
func exactly(scale int, quantities ...*resource.Quantity) bool {
	for _, q := range quantities {
		if q == nil {
			continue
		}
		if n := inUnits(*q, scale); !n.exact || !n.inRange {
			return false
		}
	}
	return true
}

// count returns the amount in units, rounded up to a whole number. There is no
// rounding to thousandths.
func (s steps) count(amount resource.Quantity) (n int64, ok bool) {
	units := inUnits(amount, s.scale)
	return units.up(), units.inRange && (units.exact || s.scale == 0)
}

// roundUp returns the next step for an amount that is at least min, in the
// format of the step. It fails if that is outside of int64.
func (s steps) roundUp(amount resource.Quantity) (resource.Quantity, bool) {
	n, ok := s.count(amount)
	if !ok {
		return resource.Quantity{}, false
	}
	if over := distance(n, s.min) % uint64(s.step); over > 0 {
		missing := s.step - int64(over)
		if n > math.MaxInt64-missing {
			return resource.Quantity{}, false
		}
		n += missing
	}
	switch {
	case s.scale == 0:
		return *resource.NewQuantity(n, s.format), true
	case n%1000 == 0: // as it would be written
		return *resource.NewQuantity(n/1000, s.format), true
	default:
		return *resource.NewMilliQuantity(n, s.format), true
	}
}

// include says whether the amount is on a step.
func (s steps) include(amount resource.Quantity) bool {
	n, ok := s.count(amount)
	return ok && distance(n, s.min)%uint64(s.step) == 0
}

// distance returns the difference of two numbers, which need not be an int64.
func distance(a, b int64) uint64 {
	if a < b {
		a, b = b, a
	}
	return uint64(a) - uint64(b)
}
