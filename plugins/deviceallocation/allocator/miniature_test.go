package allocator_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A miniature is a small node of GPUs that are cut into partitions or shared,
// in plain numbers: the exhaustive oracle reads these, Solve the API objects
// that are made of them. GPUs and requests are mostly equal to each other,
// because leaving out what is equal is where a search can lose a solution.
type miniature struct {
	pieces      []piece
	sets        []counterSet
	wants       []want
	constraints []restriction
	claims      int
}

const (
	linksAttribute = "example.com/links"
	counters       = 2 // of each set
)

var counterNames = [counters]string{"memory", "slots"}

type counterSet struct {
	pool  int
	total [counters]int64
}

// piece is a device.
type piece struct {
	pool  int
	name  string
	kind  string
	links []int64
	draws []setShare
	// capacity is 0 if there is none.
	capacity int64
	shared   bool
	// whole says that a claim has the device for itself, portions what claims
	// have of it.
	whole    bool
	portions []int64
}

// setShare is what a device consumes of a counter set.
type setShare struct {
	set    int
	amount [counters]int64
	groups []string
}

// want is a request. It has one way if it is exact, else one for each
// subrequest.
type want struct {
	claim int
	name  string
	list  bool
	ways  []way
}

type way struct {
	name   string // main, or main/sub
	kinds  []string
	all    bool
	count  int
	amount int64 // of capacity, 0 if none is requested
	admin  bool
	// derivation is an index into linkDerivations, or -1.
	derivation int
}

// restriction is a constraint on the links of devices.
type restriction struct {
	claim   int
	match   bool
	covered []string
}

// linkDerivations compute links, in CEL and in Go.
var linkDerivations = []struct {
	expression string
	links      func(p *piece) []int64
}{
	{`device.attributes["gpu.example.com"].kind == "a" ? [1, 2] : [2, 3]`, func(p *piece) []int64 {
		if p.kind == "a" {
			return []int64{1, 2}
		}
		return []int64{2, 3}
	}},
	{`device.attributes["gpu.example.com"].kind == "b" ? 1 : 2`, func(p *piece) []int64 {
		if p.kind == "b" {
			return []int64{1}
		}
		return []int64{2}
	}},
}

type miniaturist struct {
	*rand.Rand
	*miniature
}

func (g *miniaturist) chance(percent int) bool { return g.IntN(100) < percent }

func pickOne[T any](g *miniaturist, values ...T) T { return values[g.IntN(len(values))] }

// newMiniature makes up a node. The same seed gives the same node.
func newMiniature(seed uint64) *miniature {
	g := &miniaturist{rand.New(rand.NewPCG(seed, 11)), &miniature{}}
	for pool := range pickOne(g, 1, 1, 1, 2) {
		g.addPool(pool)
	}
	g.hold()
	g.claims = pickOne(g, 1, 1, 2, 3)
	g.addWants()
	return g.miniature
}

// addPool adds GPUs that are copies of one or two patterns. Their pieces are
// shuffled, so that names tell nothing about GPUs.
func (g *miniaturist) addPool(pool int) {
	linked, grouped, shared := g.chance(50), g.chance(35), pickOne(g, 0, 0, 50, 100, 100)
	pattern := g.pattern(linked, grouped, shared)
	var pieces []piece
	for range pickOne(g, 1, 2, 2, 2, 3) {
		if g.chance(15) {
			pattern = g.pattern(linked, grouped, shared)
		}
		first := len(g.sets)
		if g.chance(80 - shared/2) {
			g.sets = append(g.sets, counterSet{pool, [counters]int64{pickOne[int64](g, 4, 4, 4, 6), 3}})
		}
		for _, p := range pattern {
			p.draws = nil
			if len(g.sets) > first && g.chance(90) {
				p.draws = []setShare{g.draw(&p, first, grouped)}
			}
			pieces = append(pieces, p)
		}
	}
	if n := len(g.sets); n > 1 && g.sets[n-2].pool == pool && g.chance(15) {
		// One device needs both GPUs.
		d := piece{kind: "b"}
		d.draws = []setShare{g.draw(&d, n-2, grouped), g.draw(&d, n-1, grouped)}
		pieces = append(pieces, d)
	}
	g.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	for i, p := range pieces[:min(len(pieces), 8)] {
		p.pool, p.name = pool, fmt.Sprintf("dev-%d", i)
		g.pieces = append(g.pieces, p)
	}
}

// pattern is how a GPU is cut into pieces.
func (g *miniaturist) pattern(linked, grouped bool, shared int) []piece {
	var pattern []piece
	links := func() []int64 { return pickOne(g, []int64{1}, []int64{1, 2}, []int64{2}, []int64{2, 3}, nil) }
	common := links()
	for range 1 + g.IntN(4) {
		p := piece{kind: pickOne(g, "a", "a", "b"), shared: g.chance(shared)}
		if p.capacity = pickOne[int64](g, 0, 2, 4); p.shared {
			p.capacity = pickOne[int64](g, 0, 2, 3, 4, 4, 8)
		}
		if linked {
			p.links = common
			if g.chance(25) {
				p.links = links()
			}
		}
		pattern = append(pattern, p)
		if g.chance(50) {
			pattern = append(pattern, p)
		}
	}
	return pattern
}

// draw decides what a piece takes of its GPU: the same for all of a kind, but
// for a few.
func (g *miniaturist) draw(p *piece, set int, grouped bool) setShare {
	d := setShare{set: set, amount: [counters]int64{2, 1}}
	if p.kind == "b" {
		d.amount = [counters]int64{1, 1}
	}
	switch {
	case g.chance(5):
		d.amount[g.IntN(counters)] = 0
	case g.chance(5):
		d.amount = [counters]int64{}
	case g.chance(8):
		d.amount = [counters]int64{4, 3}
	}
	if grouped {
		d.groups = pickOne(g, []string{"x"}, []string{"x"}, []string{"x", "y"}, []string{"y"}, nil)
	}
	return d
}

// hold lets claims have some of the pieces, mostly within what there is.
func (g *miniaturist) hold() {
	evenly := g.chance(25) // as much is left of all that is shared
	for i := range g.pieces {
		p := &g.pieces[i]
		if evenly && p.shared && p.capacity > 2 {
			p.portions = []int64{p.capacity - 2}
			continue
		}
		if !g.chance(12) {
			continue
		}
		if !p.shared || g.chance(10) {
			p.whole = true
		} else {
			for range 1 + g.IntN(2) {
				p.portions = append(p.portions, min(p.capacity, pickOne[int64](g, 1, 1, 2)))
			}
		}
		if !g.chance(95) {
			continue
		}
		for _, d := range p.draws {
			for c, left := range g.left(d.set) {
				if left < 0 && d.amount[c] > 0 {
					p.whole, p.portions = false, nil // would not have got it
				}
			}
		}
	}
}

func (p *piece) held() bool { return p.whole || len(p.portions) > 0 }

// left is what nobody holds of a counter set.
func (m *miniature) left(set int) [counters]int64 {
	left := m.sets[set].total
	for i := range m.pieces {
		for _, d := range m.pieces[i].draws {
			if d.set == set && m.pieces[i].held() {
				for c := range left {
					left[c] -= d.amount[c]
				}
			}
		}
	}
	return left
}

func (g *miniaturist) addWants() {
	alike, deriving := g.chance(50), g.chance(25)
	for i := range pickOne(g, 1, 2, 2, 3, 3, 4) {
		w := want{claim: min(i, g.claims-1), name: fmt.Sprintf("req-%d", i)}
		if i > 0 && (alike || g.chance(20)) {
			w.ways, w.list = slices.Clone(g.wants[i-1].ways), g.wants[i-1].list
		} else if g.chance(25) {
			w.list = true
			for range 2 + g.IntN(2) {
				w.ways = append(w.ways, g.way(deriving))
			}
		} else {
			w.ways = []way{g.way(deriving)}
			w.ways[0].admin = g.chance(10)
		}
		for rank := range w.ways {
			w.ways[rank].name = w.name
			if w.list {
				w.ways[rank].name = fmt.Sprintf("%s/sub-%d", w.name, rank)
			}
		}
		g.wants = append(g.wants, w)
	}
	g.claims = min(g.claims, len(g.wants))
	for g.chance(35) {
		r := restriction{claim: g.IntN(g.claims), match: g.chance(60)}
		for _, w := range g.wants {
			if w.claim == r.claim && g.chance(50) {
				r.covered = append(r.covered, w.name)
			}
		}
		g.constraints = append(g.constraints, r)
	}
}

func (g *miniaturist) way(deriving bool) way {
	w := way{kinds: pickOne(g, []string{"a", "b"}, []string{"a"}, []string{"a"}, []string{"b"}), derivation: -1}
	w.all, w.count = g.chance(7), pickOne(g, 1, 1, 1, 2, 2, 3)
	if w.all {
		w.count = 0
	}
	if g.chance(50) {
		w.amount = pickOne[int64](g, 1, 1, 2, 3)
	}
	if deriving && g.chance(75) {
		w.derivation = g.IntN(len(linkDerivations))
	}
	return w
}
