package allocator

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// residues remembers, for each cell, what is left of it: everything that what
// can still be taken there depends on, and nothing else. Cells with equal
// residues are interchangeable. They are worked out when they are needed.
type residues struct {
	keys [][]byte // by cell
	old  []bool   // the cell has changed since
}

func (s *search) residue(c int) []byte {
	if !s.residues.old[c] {
		return s.residues.keys[c]
	}
	cell := &s.cells[c]
	key := binary.AppendUvarint(s.residues.keys[c][:0], uint64(cell.class))
	key = append(key, flag(s.opened[c] > 0))
	for _, stock := range cell.common {
		key = binary.AppendVarint(key, s.left[stock])
	}
	for i := 0; i < len(cell.members); {
		run := i + 1
		for run < len(cell.members) && s.groupOf[cell.members[run]] == s.groupOf[cell.members[i]] {
			run++
		}
		key = s.appendStates(key, cell.members[i:run])
		i = run
	}
	s.residues.keys[c], s.residues.old[c] = key, false
	return key
}

// appendStates adds the states of devices of one type in an order that does not
// depend on which device has which.
func (s *search) appendStates(key []byte, devices []int) []byte {
	if len(devices) == 1 {
		return s.appendState(key, devices[0])
	}
	states := make([][]byte, len(devices))
	for i, d := range devices {
		states[i] = s.appendState(nil, d)
	}
	slices.SortFunc(states, bytes.Compare)
	for _, state := range states {
		key = append(key, state...)
	}
	return key
}

// appendState adds what has happened to a device during the search.
func (s *search) appendState(key []byte, d int) []byte {
	o := s.offers[d]
	key = append(key, flag(s.shares[d] > 0))
	key = binary.AppendUvarint(key, s.taken[d].low)
	for _, claim := range s.taken[d].high {
		key = binary.AppendUvarint(key, uint64(claim))
	}
	key = append(key, 0xff)
	for _, each := range o.sets {
		key = s.sets[each.set].Append(key)
	}
	for _, alternative := range s.exactTaken[d] {
		key = binary.AppendUvarint(key, uint64(alternative))
	}
	if o.own >= 0 {
		b := s.stocks.blocks[o.own]
		for i := range b.n {
			key = binary.AppendVarint(key, s.left[b.first+i])
		}
	}
	return key
}

// equal tells whether two devices of one group are interchangeable: whatever
// solution takes one of them, an equally good one takes the other.
func (s *search) equal(x, y int) bool {
	if !s.taken[x].equal(s.taken[y]) {
		return false
	}
	cx, cy := s.offers[x].cell, s.offers[y].cell
	if cx < 0 {
		return true
	}
	if cx != cy && (s.sharesWithin(cx) || s.sharesWithin(cy) || !bytes.Equal(s.residue(cx), s.residue(cy))) {
		return false
	}
	return bytes.Equal(s.appendState(nil, x), s.appendState(nil, y))
}

// sharesWithin tells whether the request that is being served has a share in the
// cell: it cannot have a second one of that device, which no residue tells.
func (s *search) sharesWithin(c int) bool {
	for _, p := range s.picks[s.serving] {
		if o := s.offers[p.device]; o.shareable && o.cell == c {
			return true
		}
	}
	return false
}

// exclude adds a device, and all that are interchangeable with it, to a set.
func (s *search) exclude(set deviceSet, d int) {
	for _, other := range s.groups[s.groupOf[d]].members {
		if other == d || !set.has(other) && s.equal(d, other) {
			set.add(other)
		}
	}
}

// deviceSet is a set of positions in field.devices.
type deviceSet []uint64

func (f *field) newDeviceSet() deviceSet { return make(deviceSet, (len(f.devices)+63)/64) }

func (s deviceSet) has(d int) bool { return len(s) > 0 && s[d/64]&(1<<(d%64)) != 0 }

func (s deviceSet) add(d int) { s[d/64] |= 1 << (d % 64) }
