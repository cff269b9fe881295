package allocator

import "slices"

// claimSet is a set of positions in Problem.Claims. The zero value is empty.
// Pods with more than 64 claims are possible, and rare.
type claimSet struct {
	low  uint64
	high []int // positions from 64 on, in the order of being added
}

func (s *claimSet) add(claim int) {
	if claim < 64 {
		s.low |= 1 << claim
		return
	}
	s.high = append(s.high, claim)
}

func (s *claimSet) remove(claim int) {
	if claim < 64 {
		s.low &^= 1 << claim
		return
	}
	if i := slices.Index(s.high, claim); i >= 0 {
		s.high = slices.Delete(s.high, i, i+1)
	}
}

func (s claimSet) has(claim int) bool {
	if claim < 64 {
		return s.low&(1<<claim) != 0
	}
	return slices.Contains(s.high, claim)
}

func (s claimSet) empty() bool { return s.low == 0 && len(s.high) == 0 }

func (s claimSet) equal(other claimSet) bool {
	return s.low == other.low && slices.Equal(s.high, other.high)
}

func (s claimSet) clone() claimSet {
	return claimSet{low: s.low, high: slices.Clone(s.high)}
}
