package allocator

// flow decides whether every demand can be met from the supplies that it is
// connected with, each supply being used up to its size: a maximum flow in a
// bipartite graph, found by augmenting paths. Its memory is reused.
type flow struct {
	demands  []int
	supplies []int
	edges    [][]int // for each demand, the supplies connected with it
	sent     [][]int // parallel to edges: what each edge carries
	visited  []bool  // supplies seen by the present augmentation
}

func (f *flow) reset() {
	f.demands, f.supplies = f.demands[:0], f.supplies[:0]
}

func (f *flow) addDemand(size int) int {
	index := len(f.demands)
	f.demands = append(f.demands, size)
	if len(f.edges) <= index {
		f.edges = append(f.edges, nil)
		f.sent = append(f.sent, nil)
	}
	f.edges[index], f.sent[index] = f.edges[index][:0], f.sent[index][:0]
	return index
}

func (f *flow) addSupply(size int) { f.supplies = append(f.supplies, size) }

// connect may be called repeatedly for the same pair.
func (f *flow) connect(demand, supply int) {
	for _, known := range f.edges[demand] {
		if known == supply {
			return
		}
	}
	f.edges[demand] = append(f.edges[demand], supply)
	f.sent[demand] = append(f.sent[demand], 0)
}

// saturates uses up the supplies and tells whether all demands are met.
func (f *flow) saturates() bool {
	for len(f.visited) < len(f.supplies) {
		f.visited = append(f.visited, false)
	}
	for demand, size := range f.demands {
		for size > 0 {
			clear(f.visited)
			amount := f.augment(demand, size)
			if amount == 0 {
				return false
			}
			size -= amount
		}
	}
	return true
}

// augment sends up to limit more units from a demand, rerouting what others
// have been sent where necessary, and returns how much it could send.
func (f *flow) augment(demand, limit int) int {
	for i, supply := range f.edges[demand] {
		if f.visited[supply] {
			continue
		}
		f.visited[supply] = true
		amount := min(limit, f.supplies[supply])
		if amount > 0 {
			f.supplies[supply] -= amount
		} else {
			amount = f.reroute(demand, supply, limit)
		}
		if amount > 0 {
			f.sent[demand][i] += amount
			return amount
		}
	}
	return 0
}

// reroute frees part of a used-up supply by sending another demand elsewhere.
func (f *flow) reroute(demand, supply, limit int) int {
	for other := range f.demands {
		if other == demand {
			continue
		}
		for i, s := range f.edges[other] {
			if s != supply || f.sent[other][i] == 0 {
				continue
			}
			amount := f.augment(other, min(limit, f.sent[other][i]))
			if amount > 0 {
				f.sent[other][i] -= amount
				return amount
			}
		}
	}
	return 0
}
