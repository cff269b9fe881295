package allocator

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// maxFailures bounds the memory of a search, about 100 bytes each.
const maxFailures = 1 << 16

// failures remembers the states from which no solution was found, or none that
// was better, so that another way into the same state is not followed. On nodes
// with partitions many ways lead to equal states: which GPU has which partitions
// does not matter, only how many of them have the same.
type failures struct {
	// cost is what had been spent when the state failed, by state.
	cost map[string]int64
	key  []byte // scratch space
}

// remembering tells whether the search has states that can be compared: with
// administrators, who is where matters beyond what a residue says.
func (f *field) remembering() bool {
	if len(f.cells) == 0 {
		return false
	}
	for _, alternative := range f.problem.Alternatives {
		if alternative.Admin {
			return false
		}
	}
	return true
}

// state encodes the present state, in which request r is the next one.
func (s *search) state(r int) []byte {
	key := binary.AppendUvarint(s.failures.key[:0], uint64(r))
	for _, chosen := range s.chosen[r:] {
		if chosen != nil {
			key = binary.AppendUvarint(key, uint64(chosen.Index)+1)
		} else {
			key = append(key, 0)
		}
	}
	for _, n := range s.perClaim {
		key = binary.AppendUvarint(key, uint64(n))
	}
	for i := range s.states {
		key = s.states[i].append(key)
	}
	for g := range s.groups {
		if !s.groups[g].drawing() {
			key = binary.AppendUvarint(key, uint64(s.free[g]))
		}
	}
	residues := make([][]byte, len(s.cells))
	for c := range s.cells {
		residues[c] = s.residue(c)
	}
	slices.SortFunc(residues, bytes.Compare)
	for _, residue := range residues {
		key = binary.AppendUvarint(key, uint64(len(residue)))
		key = append(key, residue...)
	}
	s.failures.key = key
	return key
}

// append encodes the state of a constraint.
func (c *constraintState) append(key []byte) []byte {
	common, _ := c.shared()
	values := common
	for _, value := range sortedKeys(c.used) {
		if c.used[value] > 0 {
			values = append(values[:len(values):len(values)], value)
		}
	}
	key = binary.AppendUvarint(key, uint64(len(values)))
	for _, value := range values {
		key = binary.AppendUvarint(key, uint64(value))
	}
	return append(key, flag(len(c.common) > 0))
}

func sortedKeys(m map[int]int) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// failed tells whether the state is known to lead nowhere.
func (f *failures) failed(key []byte, cost int64) bool {
	spent, known := f.cost[string(key)]
	return known && cost >= spent
}

func (f *failures) add(key string, cost int64) {
	if spent, known := f.cost[key]; known && spent <= cost || len(f.cost) >= maxFailures {
		return
	}
	if f.cost == nil {
		f.cost = make(map[string]int64)
	}
	f.cost[key] = cost
}
