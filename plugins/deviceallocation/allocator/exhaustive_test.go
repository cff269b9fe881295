package allocator_test

import (
	"slices"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// exhaustive tries all assignments of a miniature's pieces to its wants, one
// after the other and each from scratch.
type exhaustive struct {
	*miniature
	view     allocator.Node
	problem  *problem.Problem
	devices  []*device.Device // by piece
	prices   []prices         // by objective
	assigned []assignment
	visited  int
	visit    func() bool // returns false to stop
}

// assignment says that a want gets pieces in one of its ways.
type assignment struct {
	want, rank int
	pieces     []int
}

// prices are what an objective says about cells.
type prices struct {
	allocator.Objective
	cellOf  []int   // by piece, -1 outside of cells
	opening []int64 // by cell
}

// maxVisited keeps the test short; larger miniatures are left out.
const maxVisited = 3000

// from tries all ways and pieces for a want: ranks in turn, then sets of pieces
// in lexicographic order. Taking more never helps, so a part of an assignment
// that is wrong need not be completed.
func (e *exhaustive) from(number int) bool {
	if e.visited++; e.visited > maxVisited {
		return false
	}
	if number == len(e.wants) {
		return e.visit()
	}
	for rank := range e.wants[number].ways {
		for _, pieces := range e.choices(&e.wants[number], &e.wants[number].ways[rank]) {
			e.assigned = append(e.assigned, assignment{number, rank, pieces})
			goOn := !e.sound() || e.from(number+1)
			e.assigned = e.assigned[:len(e.assigned)-1]
			if !goOn {
				return false
			}
		}
	}
	return true
}

func (e *exhaustive) wayOf(a assignment) *way { return &e.wants[a.want].ways[a.rank] }

// choices lists the sets of pieces that suit a way taken alone.
func (e *exhaustive) choices(w *want, y *way) [][]int {
	var matching, usable []int
	for i := range e.pieces {
		p := &e.pieces[i]
		small := y.amount > p.capacity
		if !slices.Contains(y.kinds, p.kind) || y.all && small {
			continue // "all" means all that are large enough
		}
		matching = append(matching, i)
		if !small && (!p.whole || y.admin) && (!e.restricted(w, y) || len(linksOf(y, p)) > 0) {
			usable = append(usable, i)
		}
	}
	if !y.all {
		return subsets(usable, y.count)
	}
	if len(matching) == 0 || len(usable) < len(matching) {
		return nil
	}
	return [][]int{matching}
}

func linksOf(y *way, p *piece) []int64 {
	if y.derivation >= 0 {
		return linkDerivations[y.derivation].links(p)
	}
	return p.links
}

func (e *exhaustive) restricted(w *want, y *way) bool {
	return slices.ContainsFunc(e.constraints, func(r restriction) bool { return r.covers(w, y) })
}

func (r *restriction) covers(w *want, y *way) bool {
	return r.claim == w.claim && (len(r.covered) == 0 || slices.Contains(r.covered, w.name) || slices.Contains(r.covered, y.name))
}

// sound checks everything that is assigned so far.
func (e *exhaustive) sound() bool {
	return e.exclusive() && e.withinCapacities() && e.withinCounters() && e.compatible() && e.linked()
}

// exclusive: what cannot be shared goes to one want, and then to administrators
// of other claims.
func (e *exhaustive) exclusive() bool {
	for j, later := range e.assigned {
		for _, earlier := range e.assigned[:j] {
			if e.wayOf(later).admin && e.wants[later.want].claim != e.wants[earlier.want].claim {
				continue
			}
			for _, i := range later.pieces {
				if !e.pieces[i].shared && slices.Contains(earlier.pieces, i) {
					return false
				}
			}
		}
	}
	return true
}

// withinCapacities: without a request a share has all of the capacity.
func (e *exhaustive) withinCapacities() bool {
	for i := range e.pieces {
		p := &e.pieces[i]
		if !p.shared || p.capacity == 0 {
			continue
		}
		used, more := int64(0), false
		for _, portion := range p.portions {
			used += portion
		}
		for _, a := range e.assigned {
			if slices.Contains(a.pieces, i) && !e.wayOf(a).admin {
				more = true
				if used += e.wayOf(a).amount; e.wayOf(a).amount == 0 {
					used += p.capacity
				}
			}
		}
		if more && used > p.capacity {
			return false
		}
	}
	return true
}

// taken lists the pieces that are given away and that nobody held before: they
// consume counters.
func (e *exhaustive) taken() []int {
	var taken []int
	for _, a := range e.assigned {
		for _, i := range a.pieces {
			if !e.wayOf(a).admin && !e.pieces[i].held() && !slices.Contains(taken, i) {
				taken = append(taken, i)
			}
		}
	}
	return taken
}

func (e *exhaustive) withinCounters() bool {
	for set := range e.sets {
		left := e.left(set)
		for _, i := range e.taken() {
			for _, d := range e.pieces[i].draws {
				if d.set != set {
					continue
				}
				for c := range left {
					if left[c] -= d.amount[c]; d.amount[c] > 0 && left[c] < 0 {
						return false
					}
				}
			}
		}
	}
	return true
}

// compatible: all users of a counter set have a group in common, or all have
// none. Those that were there before may have been wrong.
func (e *exhaustive) compatible() bool {
	for set := range e.sets {
		var users [][]string
		more := false
		taken := e.taken()
		for i := range e.pieces {
			for _, d := range e.pieces[i].draws {
				if d.set == set && (e.pieces[i].held() || slices.Contains(taken, i)) {
					users = append(users, d.groups)
					more = more || !e.pieces[i].held()
				}
			}
		}
		if more && !goTogether(users) {
			return false
		}
	}
	return true
}

func goTogether(users [][]string) bool {
	none := true
	for _, groups := range users {
		none = none && len(groups) == 0
	}
	return none || slices.ContainsFunc([]string{"x", "y"}, func(group string) bool {
		return !slices.ContainsFunc(users, func(groups []string) bool { return !slices.Contains(groups, group) })
	})
}

func (e *exhaustive) linked() bool {
	for _, r := range e.constraints {
		counts, n := make(map[int64]int), 0
		for _, a := range e.assigned {
			if y := e.wayOf(a); r.covers(&e.wants[a.want], y) {
				for _, i := range a.pieces {
					n++
					for _, link := range linksOf(y, &e.pieces[i]) {
						counts[link]++
					}
				}
			}
		}
		common, twice := n == 0, false
		for _, count := range counts {
			common, twice = common || count == n, twice || count > 1
		}
		if r.match && !common || !r.match && twice {
			return false
		}
	}
	return true
}

// cost adds up the prices of the pieces, and of each cell that is opened.
func (e *exhaustive) cost(o prices) int64 {
	var cost int64
	opened := make(map[int]bool)
	for _, a := range e.assigned {
		for _, i := range a.pieces {
			cost += o.DeviceCost(e.alternative(e.wayOf(a).name, a.want), e.devices[i])
			if c := o.cellOf[i]; c >= 0 && !e.wayOf(a).admin && !opened[c] {
				opened[c] = true
				cost += o.opening[c]
			}
		}
	}
	return cost
}

func (e *exhaustive) alternative(name string, number int) *problem.Alternative {
	for _, a := range e.problem.Claims[e.wants[number].claim].Requests {
		for _, alternative := range a.Alternatives {
			if alternative.Name == name {
				return alternative
			}
		}
	}
	return nil
}

// cells joins pieces that draw on the same counter set, as far as any want is
// interested in them. A shared piece with a capacity has a stock of its own.
func (e *exhaustive) cells(o allocator.Objective) prices {
	cellOf, opening := make([]int, len(e.pieces)), make([]int64, len(e.pieces))
	for i := range e.pieces {
		p := &e.pieces[i]
		if cellOf[i] = -1; e.interesting(p) && (len(p.draws) > 0 || p.shared && p.capacity > 0) {
			cellOf[i] = i
		}
	}
	for range e.pieces { // until nothing changes any more
		for i, p := range e.pieces {
			for j, q := range e.pieces {
				if cellOf[i] >= 0 && cellOf[j] > cellOf[i] && drawTogether(&p, &q) {
					cellOf[j] = cellOf[i]
				}
			}
		}
	}
	for c := range opening {
		opening[c] = o.CellCost(e.freePart(c, cellOf))
	}
	return prices{o, cellOf, opening}
}

func (e *exhaustive) interesting(p *piece) bool {
	return slices.ContainsFunc(e.wants, func(w want) bool {
		return slices.ContainsFunc(w.ways, func(y way) bool { return slices.Contains(y.kinds, p.kind) })
	})
}

func drawTogether(p, q *piece) bool {
	return slices.ContainsFunc(p.draws, func(x setShare) bool {
		return slices.ContainsFunc(q.draws, func(y setShare) bool { return x.set == y.set })
	})
}

// freePart is the mean of what is left of all stocks of a cell, in thousandths.
func (e *exhaustive) freePart(c int, cellOf []int) int64 {
	var sum, n int64
	add := func(left, total int64) {
		sum += max(left, 0) * 1000 / total
		n++
	}
	for set := range e.sets {
		if slices.ContainsFunc(e.pieces, func(p piece) bool {
			i := slices.IndexFunc(e.pieces, func(q piece) bool { return p.pool == q.pool && p.name == q.name })
			return cellOf[i] == c && slices.ContainsFunc(p.draws, func(d setShare) bool { return d.set == set })
		}) {
			left := e.left(set)
			for i := range left {
				add(left[i], e.sets[set].total[i])
			}
		}
	}
	for i, p := range e.pieces {
		if cellOf[i] != c || !p.shared || p.capacity == 0 {
			continue
		}
		left := p.capacity
		for _, portion := range p.portions {
			left -= portion
		}
		add(left, p.capacity)
	}
	if n == 0 {
		return 0
	}
	return sum / n
}
