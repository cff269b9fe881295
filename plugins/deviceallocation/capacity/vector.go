package capacity

import "math"

// Vector holds one number for each name of a Table, in the table's units. Only
// vectors of one table may be combined. Arithmetic stops at the ends of int64
// instead of overflowing. Add and Sub undo each other unless they hit an end,
// which sums of amounts between zero and the table's values do only when they
// are far above the value.
//
// A search starts with what is left, Values less the vector of the used
// amounts, and subtracts a demand when left.Covers(demand). What is left may be
// negative in some place, if more is in use than there is: then nothing fits,
// not even a demand of zero.
type Vector []int64

// Add adds w in place.
func (v Vector) Add(w Vector) {
	for i, n := range w {
		v[i] = plus(v[i], n)
	}
}

// Sub subtracts w in place.
func (v Vector) Sub(w Vector) {
	for i, n := range w {
		v[i] = minus(v[i], n)
	}
}

// Covers says whether w is at most v in every place.
func (v Vector) Covers(w Vector) bool { return v.Short(w) < 0 }

// Short returns the first place in which w is more than v, or -1.
func (v Vector) Short(w Vector) int {
	for i, n := range w {
		if n > v[i] {
			return i
		}
	}
	return -1
}

func plus(a, b int64) int64 {
	switch sum := a + b; {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}

func minus(a, b int64) int64 {
	switch difference := a - b; {
	case b < 0 && difference < a:
		return math.MaxInt64
	case b > 0 && difference > a:
		return math.MinInt64
	default:
		return difference
	}
}
