package inventory

import (
	"iter"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/persistent"
)

// Snapshot is the state of the Inventory at one moment. It is immutable and
// safe for concurrent use.
type Snapshot struct {
	epoch uint64
	pools *persistent.Map[device.PoolID, *Pool]
	// local has the part of the nodes' views that comes from pools which name
	// their nodes.
	local *persistent.Map[string, *NodeView]
	// shared are the other pools, sorted by ID.
	shared *sharedPools
	cells  *cells
	next   func() uint64

	sortOnce sync.Once
	sorted   []*Pool
}

// sharedPools has an identity: views are cached for it.
type sharedPools struct{ pools []*Pool }

// NodeView is what one node can reach. It is immutable.
type NodeView struct {
	Name string
	// Epoch is 0 if there are no pools.
	Epoch uint64
	// Pools has each pool with at least one slice or device that targets the
	// node, sorted by ID.
	Pools []*NodePool
}

func emptySnapshot(cells *cells, next func() uint64) *Snapshot {
	return &Snapshot{
		epoch:  next(),
		pools:  persistent.New[device.PoolID, *Pool](persistent.Pools()),
		local:  persistent.New[string, *NodeView](persistent.Strings()),
		shared: &sharedPools{},
		cells:  cells,
		next:   next,
	}
}

// Epoch is larger than that of all earlier snapshots.
func (s *Snapshot) Epoch() uint64 { return s.epoch }

// Device returns a device of the newest generation of its pool, whatever state
// the pool is in, or nil.
func (s *Snapshot) Device(id device.ID) *device.Device {
	pool := s.Pool(id.PoolID())
	if pool == nil {
		return nil
	}
	return pool.Device(id.Device)
}

// Pool returns a pool, or nil if no slice of it has been published.
func (s *Snapshot) Pool(id device.PoolID) *Pool {
	pool, _ := s.pools.Get(id)
	return pool
}

// Pools returns all pools, sorted by ID. The caller must not change the result.
func (s *Snapshot) Pools() []*Pool {
	s.sortOnce.Do(func() {
		s.sorted = make([]*Pool, 0, s.pools.Len())
		for _, pool := range s.pools.All() {
			s.sorted = append(s.sorted, pool)
		}
		slices.SortFunc(s.sorted, func(a, b *Pool) int { return a.ID.Compare(b.ID) })
	})
	return s.sorted
}

// Changed visits the pools whose content differs from that in an earlier
// snapshot of the same Inventory; nil stands for one without pools. It costs
// what has changed, not what exists.
func (s *Snapshot) Changed(since *Snapshot) iter.Seq[device.PoolID] {
	var before *persistent.Map[device.PoolID, *Pool]
	if since != nil {
		before = since.pools
	}
	return persistent.Diff(before, s.pools)
}

// LocalNodes visits each node that some pool names, with what the node can
// reach of the pools that select nodes by name only. The order has no meaning.
//
// Together with SharedPools it covers all devices: a node is a candidate for a
// device exactly if the device is in its local view, or in a shared pool that
// reaches the node.
func (s *Snapshot) LocalNodes() iter.Seq[*NodeView] {
	return func(yield func(*NodeView) bool) {
		for _, view := range s.local.All() {
			if !yield(view) {
				return
			}
		}
	}
}

// LocalNode is the view of one of the nodes that LocalNodes visits, or nil.
func (s *Snapshot) LocalNode(name string) *NodeView {
	view, _ := s.local.Get(name)
	return view
}

// ChangedLocalNodes visits the names for which LocalNode differs from that of
// another snapshot of the same Inventory. It costs what has changed, not what
// exists.
func (s *Snapshot) ChangedLocalNodes(since *Snapshot) iter.Seq[string] {
	return persistent.Diff(since.local, s.local)
}

// SameSharedPools tells whether the shared pools are those of another snapshot
// of the same Inventory.
func (s *Snapshot) SameSharedPools(other *Snapshot) bool { return s.shared == other.shared }

// SharedPools returns the pools for which it depends on more than a node's name
// whether it can reach them, sorted by ID; Device.Reach of their devices says
// how. The caller must not change the result.
//
// A pool whose node selector cannot be parsed is in here with its Fault, so
// that it can be named: it may be in no node's view.
func (s *Snapshot) SharedPools() []*Pool { return s.shared.pools }

// changes collects what differs from a snapshot.
type changes struct {
	from  *Snapshot
	next  func() uint64
	pools *persistent.Map[device.PoolID, *Pool]
	local *persistent.Map[string, *NodeView]
	// shared is nil while the shared pools are those of from.
	shared []*Pool
}

func newChanges(from *Snapshot, next func() uint64) *changes {
	return &changes{from: from, next: next, pools: from.pools, local: from.local}
}

func (c *changes) pool(id device.PoolID) *Pool {
	pool, _ := c.pools.Get(id)
	return pool
}

// replace puts a pool in the place of what is there; nil removes it.
func (c *changes) replace(id device.PoolID, pool *Pool) {
	old := c.pool(id)
	if old == pool {
		return
	}
	if pool == nil {
		c.pools = c.pools.Without(id)
	} else {
		c.pools = c.pools.With(id, pool)
	}
	c.replaceShared(id, old, pool)
	c.replaceLocal(id, old, pool)
}

func (c *changes) replaceShared(id device.PoolID, old, pool *Pool) {
	if (old == nil || !old.shared) && (pool == nil || !pool.shared) {
		return
	}
	if c.shared == nil {
		c.shared = append(make([]*Pool, 0, len(c.from.shared.pools)+1), c.from.shared.pools...)
	}
	at, found := slices.BinarySearchFunc(c.shared, id, func(p *Pool, id device.PoolID) int { return p.ID.Compare(id) })
	if found {
		c.shared = slices.Delete(c.shared, at, at+1)
	}
	if pool != nil && pool.shared {
		c.shared = slices.Insert(c.shared, at, pool)
	}
}

func (c *changes) replaceLocal(id device.PoolID, old, pool *Pool) {
	var reached map[string]*NodePool
	if pool != nil && !pool.shared {
		reached = pool.byNodeName(c.next)
	}
	if old != nil && !old.shared {
		for name := range old.nodeNames() {
			if reached[name] == nil {
				c.replaceView(name, id, nil)
			}
		}
	}
	if reached == nil {
		return
	}
	for name := range pool.nodeNames() {
		c.replaceView(name, id, reached[name])
	}
}

func (c *changes) replaceView(name string, id device.PoolID, pool *NodePool) {
	var pools []*NodePool
	if view, found := c.local.Get(name); found {
		pools = view.Pools
	}
	at, found := slices.BinarySearchFunc(pools, id, func(p *NodePool, id device.PoolID) int { return p.ID.Compare(id) })
	rest := pools[at:]
	if found {
		rest = rest[1:]
	}
	changed := append(make([]*NodePool, 0, len(pools)+1), pools[:at]...)
	if pool != nil {
		changed = append(changed, pool)
	}
	changed = append(changed, rest...)
	if len(changed) == 0 {
		c.local = c.local.Without(name)
		return
	}
	c.local = c.local.With(name, &NodeView{Name: name, Epoch: c.next(), Pools: changed})
}

// snapshot returns the new snapshot, or the old one if nothing has changed.
func (c *changes) snapshot() *Snapshot {
	if c.pools == c.from.pools {
		return c.from
	}
	shared := c.from.shared
	if c.shared != nil {
		shared = &sharedPools{pools: c.shared}
	}
	if len(shared.pools) == 0 {
		// Nothing but shared pools needs the cells.
		c.from.cells.reset()
	}
	return &Snapshot{
		epoch:  c.next(),
		pools:  c.pools,
		local:  c.local,
		shared: shared,
		cells:  c.from.cells,
		next:   c.next,
	}
}

// Node returns what a node can reach. It may be called in parallel. Until
// something changes that the node can reach, the result is the same pointer,
// across snapshots; snapshots should be used one after the other, however,
// because only the latest views are kept.
func (s *Snapshot) Node(node *corev1.Node) *NodeView {
	local, found := s.local.Get(node.Name)
	if len(s.shared.pools) == 0 {
		if found {
			return local
		}
		return &NodeView{Name: node.Name}
	}
	return s.cells.get(node.Name).view(s, node, local)
}
