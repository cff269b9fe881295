package allocator

import "slices"

// sumScale is the resolution in which amounts of different stocks are added up:
// each counts as the part that it is of its stock's total.
const sumScale = 1 << 30

// kindDraw is an amount of a kind of stock, in parts of the stock's total.
type kindDraw struct {
	kind int
	part int64
}

// kindDraws returns what a device takes at least, for each alternative: the
// counters of a device that can be shared may have been paid for by another
// share. The last kind of all is for all counters together: where a driver has a
// counter for each slot of a GPU, no single one of them is needed.
func (f *field) kindDraws(d int) [][]kindDraw {
	o := f.offers[d]
	draws := make([][]kindDraw, len(f.problem.Alternatives))
	for a, alternative := range f.problem.Alternatives {
		if f.takesNothing(alternative) {
			draws[a] = []kindDraw{}
			continue
		}
		sums := make([]int64, len(f.stocks.kindNames)+1)
		if !o.shareable {
			for _, each := range o.counters {
				amount := f.partOf(each)
				sums[f.stocks.kinds[each.stock]] += amount
				sums[len(sums)-1] += amount
			}
		} else {
			for _, each := range o.shares[a] {
				sums[f.stocks.kinds[each.stock]] += f.partOf(each)
			}
		}
		for kind, sum := range sums {
			if sum > 0 {
				draws[a] = append(draws[a], kindDraw{kind: kind, part: sum})
			}
		}
	}
	return draws
}

func (f *field) partOf(d draw) int64 { return part(d.amount, f.stocks.total[d.stock], sumScale) }

// sums compares what open requests need of each kind of stock with what is left
// of it on the node. It is a bound that sees through overlapping partitions:
// seven of them may be free, and share the memory for one.
type sums struct {
	left, needed []int64
	// least is scratch space: what one device takes at least, and in how many
	// groups.
	least, lowest []int64
	in            []int
	// rooms has what is left of each kind in each cell.
	rooms []rooms
}

type rooms struct {
	left []int64 // by kind
	old  bool    // the cell has changed since
}

func (s *sums) init(f *field) {
	kinds := len(f.stocks.kindNames) + 1
	s.left, s.needed = make([]int64, kinds), make([]int64, kinds)
	s.least, s.lowest, s.in = make([]int64, kinds), make([]int64, kinds), make([]int, kinds)
	s.rooms = make([]rooms, len(f.cells))
	for c := range s.rooms {
		s.rooms[c] = rooms{left: make([]int64, kinds), old: true}
	}
}

// withinStocks tells whether the open requests can be served from what is left.
// filter limits the groups that may serve them; nil admits all.
func (b *bounds) withinStocks(requests []*openRequest, filter func(g int) bool) bool {
	if len(b.cells) == 0 {
		return true
	}
	clear(b.sums.needed)
	for _, open := range requests {
		b.addNeeds(open, filter)
	}
	if !slices.ContainsFunc(b.sums.needed, func(n int64) bool { return n > 0 }) {
		return true
	}
	b.addLeft(filter)
	for kind, needed := range b.sums.needed {
		if needed > b.sums.left[kind] {
			return false
		}
	}
	return true
}

// addNeeds adds what a request needs at least, whichever alternative and devices
// it gets.
func (b *bounds) addNeeds(open *openRequest, filter func(g int) bool) {
	for kind := range b.sums.needed {
		b.sums.least[kind] = -1
	}
	for _, option := range open.options {
		a := option.alternative
		clear(b.sums.in)
		groups := 0
		for _, g := range b.byCost[a.Index] {
			if filter != nil && !filter(g) || !b.allowed(a, g) || b.availableIn(open.index, a, g) == 0 {
				continue
			}
			groups++
			if !b.groups[g].drawing() {
				continue
			}
			for _, each := range b.groups[g].draws[a.Index] {
				if b.sums.in[each.kind] == 0 || each.part < b.sums.lowest[each.kind] {
					b.sums.lowest[each.kind] = each.part
				}
				b.sums.in[each.kind]++
			}
		}
		for kind := range b.sums.least {
			least := int64(0)
			if groups > 0 && b.sums.in[kind] == groups {
				least = b.sums.lowest[kind] * int64(option.needs)
			}
			if b.sums.least[kind] < 0 || least < b.sums.least[kind] {
				b.sums.least[kind] = least
			}
		}
	}
	for kind, least := range b.sums.least {
		b.sums.needed[kind] += max(least, 0)
	}
}

// addLeft adds up what is left, in cells with a group that passes the filter.
func (b *bounds) addLeft(filter func(g int) bool) {
	clear(b.sums.left)
	for c := range b.cells {
		if filter != nil && !slices.ContainsFunc(b.cells[c].members, func(d int) bool { return filter(b.groupOf[d]) }) {
			continue
		}
		for kind := range b.sums.left {
			b.sums.left[kind] += b.room(c, kind)
		}
	}
}

// room is what is left of a kind in a cell. It is worked out once for all kinds
// when the cell has changed.
func (b *bounds) room(c, kind int) int64 {
	rooms := &b.sums.rooms[c]
	if rooms.old {
		rooms.old = false
		clear(rooms.left)
		for _, stock := range b.cells[c].common {
			left := partUp(b.left[stock], b.stocks.total[stock])
			rooms.left[b.stocks.kinds[stock]] += left
			rooms.left[len(rooms.left)-1] += left
		}
		for _, stock := range b.cells[c].own {
			rooms.left[b.stocks.kinds[stock]] += partUp(b.left[stock], b.stocks.total[stock])
		}
	}
	return rooms.left[kind]
}

// partUp is part, rounded up. Of an empty stock nothing is left.
func partUp(left, total int64) int64 {
	if left <= 0 || total <= 0 {
		return 0
	}
	return part(left, total, sumScale) + 1
}
