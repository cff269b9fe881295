package inventory

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/persistent"
)

// cells has the cached view of each node, by name. Readers take no lock.
type cells struct {
	byName atomic.Pointer[persistent.Map[string, *cell]]
}

func (c *cells) reset() {
	c.byName.Store(persistent.New[string, *cell](persistent.Strings()))
}

func (c *cells) get(name string) *cell {
	var added *cell
	for {
		now := c.byName.Load()
		if found, ok := now.Get(name); ok {
			return found
		}
		if added == nil {
			added = &cell{}
		}
		if c.byName.CompareAndSwap(now, now.With(name, added)) {
			return added
		}
	}
}

func (c *cells) drop(name string) {
	for {
		now := c.byName.Load()
		if c.byName.CompareAndSwap(now, now.Without(name)) {
			return
		}
	}
}

// cell caches the view of one node while there are shared pools.
type cell struct {
	// mu keeps two goroutines from building two views with the same content.
	mu     sync.Mutex
	latest atomic.Pointer[placement]
}

// placement is a view with all that it was made from. It is immutable.
type placement struct {
	local  *NodeView
	shared *sharedPools
	// reached has, for each of the shared pools, what the node can reach of it,
	// or nil.
	reached []*NodePool
	view    *NodeView

	uid             types.UID
	resourceVersion string
	labels          map[string]string
}

func (c *cell) view(s *Snapshot, node *corev1.Node, local *NodeView) *NodeView {
	if p := c.latest.Load(); p != nil && p.shared == s.shared && p.local == local && p.sameNode(node) {
		return p.view
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.latest.Load()
	if old == nil {
		old = &placement{shared: &sharedPools{}}
	} else if old.shared == s.shared && old.local == local && old.sameNode(node) {
		return old.view
	}
	p := &placement{
		local:           local,
		shared:          s.shared,
		reached:         old.reach(s, node),
		uid:             node.UID,
		resourceVersion: node.ResourceVersion,
		labels:          node.Labels,
	}
	p.view = p.merge(node.Name, old.view, s.next)
	c.latest.Store(p)
	return p.view
}

// sameNode reports whether nothing about the node has changed that a node
// selector can see.
func (p *placement) sameNode(node *corev1.Node) bool {
	if p.uid == node.UID && p.resourceVersion == node.ResourceVersion && node.UID != "" && node.ResourceVersion != "" {
		return true
	}
	return maps.Equal(p.labels, node.Labels)
}

// reach works out what the node can reach of the shared pools. Where the answer
// is as before, it is the same pointer as before.
func (p *placement) reach(s *Snapshot, node *corev1.Node) []*NodePool {
	sameNode := p.sameNode(node)
	reached := make([]*NodePool, len(s.shared.pools))
	at := 0
	for i, pool := range s.shared.pools {
		for at < len(p.reached) && p.shared.pools[at].ID.Compare(pool.ID) < 0 {
			at++
		}
		samePool := at < len(p.reached) && p.shared.pools[at] == pool
		if samePool && sameNode {
			reached[i] = p.reached[at]
			continue
		}
		reached[i] = pool.at(node, s.next)
		if samePool && equalNodePools(reached[i], p.reached[at]) {
			reached[i] = p.reached[at]
		}
	}
	return reached
}

// equalNodePools compares what two nodes can reach of one and the same pool.
func equalNodePools(a, b *NodePool) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return (a.Fault == nil) == (b.Fault == nil) &&
		(a.Fault == nil || *a.Fault == *b.Fault) &&
		slices.Equal(a.Devices, b.Devices)
}

// merge returns the view of the node: the local one if the node can reach no
// shared pool, the old one if that has the same pools.
func (p *placement) merge(name string, old *NodeView, next func() uint64) *NodeView {
	var pools []*NodePool
	if p.local != nil {
		pools = p.local.Pools
	}
	local := len(pools)
	pools = slices.Clip(pools)
	for _, pool := range p.reached {
		if pool != nil {
			pools = append(pools, pool)
		}
	}
	if p.local != nil && len(pools) == local {
		return p.local
	}
	slices.SortFunc(pools, func(a, b *NodePool) int { return a.ID.Compare(b.ID) })
	if old != nil && slices.Equal(old.Pools, pools) {
		return old
	}
	if len(pools) == 0 {
		return &NodeView{Name: name}
	}
	return &NodeView{Name: name, Epoch: next(), Pools: pools}
}
