package capacity

// Vector holds one number for each name of a Table, in the table's units. Only
// vectors of one table may be combined. Arithmetic stops at the ends of int64
// instead of overflowing. Add and Sub undo each other unless they hit an end,
// which amounts between zero and the table's values never do.
//
// A search starts with what is left, Values less the vector of the used
// amounts, and subtracts a demand when left.Covers(demand). What is left may be
// negative in some place, if more is in use than there is: then nothing fits,
// not even a demand of zero.
type Vector []int64

// Add adds w in place.
func (v Vector) Add(w Vector) {}

// Sub subtracts w in place.
func (v Vector) Sub(w Vector) {}

// Covers says whether w is at most v in every place.
func (v Vector) Covers(w Vector) bool { return v.Short(w) < 0 }

// Short returns the first place in which w is more than v, or -1.
func (v Vector) Short(w Vector) int { return -1 }
