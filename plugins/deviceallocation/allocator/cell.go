package allocator

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// cell is a part of the node whose devices draw on the same stocks and on no
// others: the partitions of one GPU, or one device with its shares. What is
// taken in one cell does not concern another. Cells that look alike are
// interchangeable, so that eight equal GPUs are tried once and not eight times.
type cell struct {
	// members are the devices, ordered by type; blocks are their stocks.
	members []int
	blocks  []int
	// own are the stocks that belong to a single device, common the others.
	own, common []int
	// class is equal for cells that look alike before the search.
	class int
	// opening is the cost of being the first to take something here.
	opening int64
}

// cellScale is the resolution of a cell's free part.
const cellScale = 1000

// divide finds the cells and splits the groups by them: devices in cells of
// different classes, or with different places in them, are different.
func (f *field) divide() {
	if len(f.stocks.blocks) == 0 {
		return
	}
	f.findCells()
	types := make([][]byte, len(f.devices)) // by device, nil outside of cells
	for c := range f.cells {
		at := f.positions(&f.cells[c])
		for _, d := range f.cells[c].members {
			types[d] = f.typeOf(d, at)
		}
		slices.SortFunc(f.cells[c].members, func(x, y int) int {
			return cmp.Or(bytes.Compare(types[x], types[y]), x-y)
		})
	}
	classes := make(map[string]int)
	for c := range f.cells {
		key := f.classKey(&f.cells[c], types)
		if _, known := classes[key]; !known {
			classes[key] = len(classes)
		}
		f.cells[c].class = classes[key]
		if f.options.Objective != nil {
			f.cells[c].opening = f.options.Objective.CellCost(f.freePart(&f.cells[c]))
		}
	}
	f.split(types)
}

// findCells joins blocks that one device draws on.
func (f *field) findCells() {
	parent := make([]int, len(f.stocks.blocks))
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for d := range f.offers {
		for _, b := range f.offers[d].blocks {
			parent[find(b)] = find(f.offers[d].blocks[0])
		}
	}
	numbers := make(map[int]int)
	for d := range f.offers {
		if !f.offers[d].draws() {
			continue
		}
		root := find(f.offers[d].blocks[0])
		number, known := numbers[root]
		if !known {
			number = len(f.cells)
			numbers[root] = number
			f.cells = append(f.cells, cell{})
		}
		f.offers[d].cell = number
		f.cells[number].members = append(f.cells[number].members, d)
	}
	for b := range f.stocks.blocks {
		if number, known := numbers[find(b)]; known {
			f.cells[number].blocks = append(f.cells[number].blocks, b)
		}
	}
}

// positions numbers the stocks and the counter sets of one cell.
type positions struct{ stocks, sets map[int]int }

// positions leaves out the stocks that belong to a single device: they go with
// the device.
func (f *field) positions(c *cell) positions {
	own := make(map[int]bool)
	for _, d := range c.members {
		if o := f.offers[d]; o.own >= 0 {
			own[o.own] = true
		}
	}
	at := positions{stocks: make(map[int]int), sets: f.setPositions(c)}
	for _, b := range c.blocks {
		for i := range f.stocks.blocks[b].n {
			stock := f.stocks.blocks[b].first + i
			if own[b] {
				c.own = append(c.own, stock)
				continue
			}
			at.stocks[stock] = len(c.common)
			c.common = append(c.common, stock)
		}
	}
	return at
}

// setPositions numbers sets in their order in the pool, which is that of stocks.
func (f *field) setPositions(c *cell) map[int]int {
	var sets []int
	for _, d := range c.members {
		for _, each := range f.offers[d].sets {
			sets = append(sets, each.set)
		}
	}
	slices.Sort(sets)
	numbers := make(map[int]int)
	for i, set := range slices.Compact(sets) {
		numbers[set] = i
	}
	return numbers
}

// typeOf encodes the place that a device has in its cell.
func (f *field) typeOf(d int, at positions) []byte {
	o := f.offers[d]
	key := binary.AppendUvarint(nil, uint64(f.groupOf[d]))
	key = append(key, flag(o.shareable), flag(o.charged))
	if o.exact != nil {
		key = binary.AppendUvarint(key, uint64(d)) // like no other
	}
	key = binary.AppendUvarint(key, uint64(len(o.counters)))
	for _, each := range o.counters {
		key = binary.AppendUvarint(key, uint64(at.stocks[each.stock]))
		key = binary.AppendVarint(key, each.amount)
	}
	for _, each := range o.sets {
		// A device that draws nothing of a set still has to suit the others there.
		key = binary.AppendUvarint(key, uint64(at.sets[each.set]))
		key = binary.AppendUvarint(key, uint64(len(each.groups)))
		for _, group := range each.groups {
			key = binary.AppendUvarint(key, uint64(len(group)))
			key = append(key, group...)
		}
	}
	if o.own < 0 {
		return key
	}
	b := f.stocks.blocks[o.own]
	for i := range b.n {
		// With equal amounts left, the totals still decide what part that is.
		key = binary.AppendVarint(key, f.stocks.left[b.first+i])
		key = binary.AppendVarint(key, f.stocks.total[b.first+i])
		key = binary.AppendUvarint(key, uint64(f.stocks.kinds[b.first+i]))
	}
	for _, share := range o.shares {
		key = binary.AppendUvarint(key, uint64(len(share)))
		for _, each := range share {
			key = binary.AppendVarint(key, each.amount)
		}
	}
	return key
}

// classKey encodes all that is known about a cell, but not which one it is.
func (f *field) classKey(c *cell, types [][]byte) string {
	var key []byte
	for _, stock := range c.common {
		key = binary.AppendVarint(key, f.stocks.left[stock])
		key = binary.AppendVarint(key, f.stocks.total[stock])
		key = binary.AppendUvarint(key, uint64(f.stocks.kinds[stock]))
	}
	for _, d := range c.members {
		key = binary.AppendUvarint(key, uint64(len(types[d])))
		key = append(key, types[d]...)
		for _, each := range f.offers[d].sets {
			key = f.stocks.sets[each.set].Append(key)
		}
	}
	return string(key)
}

// split makes groups of devices that have the same place in cells of the same
// class.
func (f *field) split(types [][]byte) {
	type place struct {
		group, class int
		kind         string
	}
	known := make(map[place]int)
	var groups []group
	for d, g := range f.groupOf {
		at := place{group: g, class: -1}
		if c := f.offers[d].cell; c >= 0 {
			at.class, at.kind = f.cells[c].class, string(types[d])
		}
		index, ok := known[at]
		if !ok {
			index = len(groups)
			known[at] = index
			copied := f.groups[g]
			copied.members = nil
			if at.class >= 0 {
				copied.draws = f.kindDraws(d)
			}
			groups = append(groups, copied)
		}
		groups[index].members = append(groups[index].members, d)
		f.groupOf[d] = index
	}
	f.groups = groups
}

// freePart is the mean part, in thousandths, of the cell's stocks that is left.
func (f *field) freePart(c *cell) int64 {
	var sum, n int64
	for _, b := range c.blocks {
		for i := range f.stocks.blocks[b].n {
			stock := f.stocks.blocks[b].first + i
			if f.stocks.total[stock] > 0 {
				sum += part(f.stocks.left[stock], f.stocks.total[stock], cellScale)
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// part returns amount/total in units of 1/scale, rounded down; total is positive.
func part(amount, total, scale int64) int64 {
	if amount <= 0 {
		return 0
	}
	if amount >= total {
		return scale * min(amount/total, 1<<20)
	}
	high, low := bits.Mul64(uint64(amount), uint64(scale))
	quotient, _ := bits.Div64(high, low, uint64(total))
	return int64(quotient)
}
