package persistent

import (
	"iter"
	"slices"
)

// width is the fan-out of the two inner levels: 1,024 leaves, which hold 5
// entries each in a cluster of 5,000 nodes. A change copies one leaf and two
// arrays of this length.
const width = 32

// Order tells a Map how to find its keys. Hash should spread them evenly over
// all bits, Compare is a total order. Both must depend on nothing but the keys,
// so that the same entries are always visited in the same order.
type Order[K any] struct {
	Hash    func(K) uint32
	Compare func(a, b K) int
}

// Map is an immutable map. With and Without return a changed one and leave the
// receiver as it is; the two share all but a small part. The nil Map has no
// order and cannot be used; start with New. It is safe for concurrent use.
type Map[K, V any] struct {
	order    *Order[K]
	size     int
	branches [width]*branch[K, V]
}

type branch[K, V any] [width][]entry[K, V]

type entry[K, V any] struct {
	key   K
	value V
}

// New returns an empty Map.
func New[K, V any](order Order[K]) *Map[K, V] {
	return &Map[K, V]{order: &order}
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return m.size }

// Get returns the value of a key, and whether there is one.
func (m *Map[K, V]) Get(key K) (value V, found bool) {
	upper, lower := m.path(key)
	if m.branches[upper] == nil {
		return value, false
	}
	leaf := m.branches[upper][lower]
	at, found := m.search(leaf, key)
	if !found {
		return value, false
	}
	return leaf[at].value, true
}

// With returns a Map in which key has the given value.
func (m *Map[K, V]) With(key K, value V) *Map[K, V] {
	upper, lower := m.path(key)
	var leaf []entry[K, V]
	if m.branches[upper] != nil {
		leaf = m.branches[upper][lower]
	}
	at, found := m.search(leaf, key)
	if found {
		leaf = slices.Clone(leaf)
		leaf[at].value = value
		return m.withLeaf(upper, lower, leaf, m.size)
	}
	grown := make([]entry[K, V], 0, len(leaf)+1)
	grown = append(grown, leaf[:at]...)
	grown = append(grown, entry[K, V]{key: key, value: value})
	grown = append(grown, leaf[at:]...)
	return m.withLeaf(upper, lower, grown, m.size+1)
}

// Without returns a Map that does not have the key. It is the receiver when
// that did not have it either.
func (m *Map[K, V]) Without(key K) *Map[K, V] {
	upper, lower := m.path(key)
	if m.branches[upper] == nil {
		return m
	}
	leaf := m.branches[upper][lower]
	at, found := m.search(leaf, key)
	if !found {
		return m
	}
	shrunk := make([]entry[K, V], 0, len(leaf)-1)
	shrunk = append(shrunk, leaf[:at]...)
	shrunk = append(shrunk, leaf[at+1:]...)
	return m.withLeaf(upper, lower, shrunk, m.size-1)
}

// All visits all entries. The order depends on the keys alone, not on how the
// Map came about, but it is no order that a person would recognize.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, branch := range m.branches {
			if branch == nil {
				continue
			}
			for _, leaf := range branch {
				for i := range leaf {
					if !yield(leaf[i].key, leaf[i].value) {
						return
					}
				}
			}
		}
	}
}

// Diff visits the keys that two versions of a map do not have with one and the
// same value. What the versions share is not looked at: versions that are a few
// changes apart are compared at the cost of these changes. from may be nil,
// which is the empty map. The order depends on the keys alone.
func Diff[K any, V comparable](from, to *Map[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for upper, after := range to.branches {
			var before *branch[K, V]
			if from != nil {
				before = from.branches[upper]
			}
			if before != after && !diffBranches(to.order, before, after, yield) {
				return
			}
		}
	}
}

func (m *Map[K, V]) withLeaf(upper, lower uint32, leaf []entry[K, V], size int) *Map[K, V] {
	changed := *m
	changed.size = size
	var copied branch[K, V]
	if m.branches[upper] != nil {
		copied = *m.branches[upper]
	}
	copied[lower] = leaf
	changed.branches[upper] = &copied
	return &changed
}

func (m *Map[K, V]) path(key K) (upper, lower uint32) {
	hash := m.order.Hash(key)
	return hash / width % width, hash % width
}

func (m *Map[K, V]) search(leaf []entry[K, V], key K) (at int, found bool) {
	low, high := 0, len(leaf)
	for low < high {
		middle := (low + high) / 2
		if m.order.Compare(leaf[middle].key, key) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(leaf) && m.order.Compare(leaf[low].key, key) == 0
}

func diffBranches[K any, V comparable](order *Order[K], from, to *branch[K, V], yield func(K) bool) bool {
	var none branch[K, V]
	if from == nil {
		from = &none
	}
	if to == nil {
		to = &none
	}
	for lower := range to {
		before, after := from[lower], to[lower]
		same := len(before) == len(after) && (len(before) == 0 || &before[0] == &after[0])
		if !same && !diffLeaves(order, before, after, yield) {
			return false
		}
	}
	return true
}

// diffLeaves merges two sorted lists. It returns false if yield did.
func diffLeaves[K any, V comparable](order *Order[K], from, to []entry[K, V], yield func(K) bool) bool {
	for len(from) > 0 || len(to) > 0 {
		var key K
		switch compared := compareFirst(order, from, to); {
		case compared < 0:
			key, from = from[0].key, from[1:]
		case compared > 0:
			key, to = to[0].key, to[1:]
		default:
			same := from[0].value == to[0].value
			key, from, to = to[0].key, from[1:], to[1:]
			if same {
				continue
			}
		}
		if !yield(key) {
			return false
		}
	}
	return true
}

// compareFirst compares the first keys of two lists, at least one of which is
// not empty. The end of a list comes after all keys.
func compareFirst[K, V any](order *Order[K], from, to []entry[K, V]) int {
	switch {
	case len(to) == 0:
		return -1
	case len(from) == 0:
		return 1
	}
	return order.Compare(from[0].key, to[0].key)
}
