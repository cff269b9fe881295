package allocator

import (
	"cmp"
	"slices"
)

// jointNeed is what requests with one kind of alternative need together.
type jointNeed struct {
	devices int
	// apart is the cost if each request took the cheapest devices for itself.
	apart int64
}

// leastCost is a lower bound of what the open requests will cost.
//
// Taken one by one, each could have the cheapest devices; requests that can use
// the same devices at the same prices cannot all have them. Without the joint
// look a pod that wants more than there is of the cheapest model would have to
// try all ways to distribute it.
func (b *bounds) leastCost() int64 {
	if b.options.Objective == nil {
		return 0
	}
	clear(b.joint)
	var least int64
	for i := range b.open {
		open := &b.open[i]
		cost := b.cheapest(open)
		if len(open.options) > 1 || open.admin() {
			least += cost
			continue
		}
		joint := &b.joint[b.kinds[open.options[0].alternative.Index]]
		joint.devices += open.options[0].needs
		joint.apart += cost
	}
	for kind := range b.joint {
		if b.joint[kind].devices > 0 {
			least += max(b.joint[kind].apart, b.cheapestJointly(kind, b.joint[kind].devices))
		}
	}
	return least + b.leastOpening()
}

// leastOpening is what it costs at least to open further cells, if what is left
// in the open ones is not enough.
func (b *bounds) leastOpening() int64 {
	if len(b.cells) == 0 {
		return 0
	}
	all := len(b.sums.needed) - 1
	missing := b.sums.needed[all]
	if missing == 0 {
		return 0
	}
	var rooms, costs []int64
	for c := range b.cells {
		var room int64
		for _, stock := range b.cells[c].common {
			room += partUp(b.left[stock], b.stocks.total[stock])
		}
		if b.opened[c] > 0 {
			missing -= room
		} else if room > 0 {
			rooms, costs = append(rooms, room), append(costs, b.cells[c].opening)
		}
	}
	slices.SortFunc(rooms, func(x, y int64) int { return cmp.Compare(y, x) })
	slices.Sort(costs)
	var least int64
	for i := 0; i < len(rooms) && missing > 0; i++ {
		missing -= rooms[i]
		least += costs[i]
	}
	return least
}

// cheapest is the cost of a request that had all devices to itself.
func (b *bounds) cheapest(open *openRequest) int64 {
	best := int64(-1)
	for _, option := range open.options {
		if cost := b.cheapestDevices(open.index, option); best < 0 || cost < best {
			best = cost
		}
	}
	return best
}

func (b *bounds) cheapestDevices(r int, o option) int64 {
	var cost int64
	needs := o.needs
	for _, g := range b.byCost[o.alternative.Index] {
		if needs <= 0 {
			break
		}
		if b.allowed(o.alternative, g) {
			n := min(needs, b.availableIn(r, o.alternative, g))
			cost += int64(n) * b.groups[g].cost[o.alternative.Index]
			needs -= n
		}
	}
	return cost
}

// cheapestJointly leaves constraints aside, which may differ between the
// requests.
func (b *bounds) cheapestJointly(kind, needs int) int64 {
	var cost int64
	for _, g := range b.byCost[kind] {
		if needs <= 0 {
			break
		}
		n := min(needs, b.supplyOf(g))
		cost += int64(n) * b.groups[g].cost[kind]
		needs -= n
	}
	return cost
}
