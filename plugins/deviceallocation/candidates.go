package deviceallocation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/lru"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/reason"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// maxReachable bounds how many problems are remembered.
const maxReachable = 256

// candidates finds the nodes that have enough matching devices for every request
// of a problem, whoever holds them. The answer is the same for all pods that ask
// for the same, and when the inventory changes only the nodes that have changed
// are looked at again.
type candidates struct {
	known *lru.Cache // *reachable by problem.Signature
	// verdicts has why nodes are left out, for problems of the profile.
	verdicts *verdict.Cache
	profile  string
	// lenient says that a selector that fails means no match.
	lenient bool
	nobody  *ledger.Snapshot // holds no device

	// seen has the latest snapshots, to tell what has changed since. Whatever they
	// have is kept in memory, so that there are not many.
	mutex sync.Mutex
	seen  []*inventory.Snapshot
}

// maxSeen bounds how many snapshots are kept. A problem that was not asked for
// since then is worked out anew.
const maxSeen = 64

func newCandidates(verdicts *verdict.Cache, profile string, failOnSelectorError bool) *candidates {
	return &candidates{
		known:    lru.New(maxReachable),
		verdicts: verdicts,
		profile:  profile,
		lenient:  !failOnSelectorError,
		nobody:   ledger.New().Snapshot(nil),
	}
}

// reachable are the nodes worth looking at for one problem. What it says is
// immutable.
type reachable struct {
	// epoch is that of the inventory.
	epoch uint64
	// shared tells for each request whether pools that are not bound to named
	// nodes may serve it.
	shared []bool
	// all says that the nodes cannot be told by name.
	all   bool
	names sets.Set[string]
	// covered has the list of nodes that was last compared with the names.
	covered atomic.Pointer[covered]
	// worded has the reasons of those that are not reachable, see reasons.
	worded atomic.Pointer[worded]
}

// worded are the reasons why nodes of a list are left out.
type worded struct {
	nodes         []fwk.NodeInfo
	text, failure string
}

type covered struct {
	nodes []fwk.NodeInfo
	all   bool
}

// cover tells whether all nodes of the cluster are reachable. The framework gives
// the same list until a node comes or goes.
func (r *reachable) cover(nodes []fwk.NodeInfo) bool {
	if len(nodes) == 0 || r.names.Len() < len(nodes) {
		return false
	}
	last := r.covered.Load()
	if last == nil || !sameList(last.nodes, nodes) {
		leftOut := func(node fwk.NodeInfo) bool { return !r.names.Has(node.Node().Name) }
		last = &covered{nodes: nodes, all: !slices.ContainsFunc(nodes, leftOut)}
		r.covered.Store(last)
	}
	return last.all
}

// sameList tells whether both are the very same list.
func sameList(a, b []fwk.NodeInfo) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// find returns the nodes for a problem. The error is that of the context.
func (c *candidates) find(ctx context.Context, p *problem.Problem, devices *inventory.Snapshot) (*reachable, error) {
	var known *reachable
	if value, ok := c.known.Get(p.Signature); ok {
		known = value.(*reachable)
	}
	if known != nil && known.epoch == devices.Epoch() {
		return known, nil
	}
	var found *reachable
	var err error
	if since := c.since(known, devices); since != nil && devices.SameSharedPools(since) {
		found, err = c.update(ctx, p, known, change{since: since, now: devices})
	} else {
		found, err = c.all(ctx, p, devices)
	}
	if err != nil {
		return nil, err
	}
	c.known.Add(p.Signature, found)
	return found, nil
}

// since returns the snapshot from which something was worked out, if that is not
// too long ago, else nil; now is remembered as the next one.
func (c *candidates) since(known *reachable, now *inventory.Snapshot) *inventory.Snapshot {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if n := len(c.seen); n == 0 || c.seen[n-1] != now {
		if n == maxSeen {
			c.seen = slices.Delete(c.seen, 0, 1)
		}
		c.seen = append(c.seen, now)
	}
	if known == nil {
		return nil
	}
	for _, snapshot := range c.seen {
		if snapshot.Epoch() == known.epoch {
			return snapshot
		}
	}
	return nil
}

// all looks at all nodes.
func (c *candidates) all(ctx context.Context, p *problem.Problem, devices *inventory.Snapshot) (*reachable, error) {
	shared, err := c.sharedRequests(ctx, p, devices)
	if err != nil {
		return nil, err
	}
	r := &reachable{epoch: devices.Epoch(), shared: shared, all: !slices.Contains(shared, false)}
	if r.all {
		return r, nil
	}
	r.names = sets.New[string]()
	for view := range devices.LocalNodes() {
		matches, err := c.serves(ctx, p, view, shared)
		if err != nil {
			return nil, err
		}
		if matches {
			r.names.Insert(view.Name)
		}
	}
	return r, nil
}

// change is what happened to the inventory between two snapshots.
type change struct{ since, now *inventory.Snapshot }

// update looks at the nodes that have changed. The set is copied only if one of
// them comes in or falls out.
func (c *candidates) update(ctx context.Context, p *problem.Problem, known *reachable, moved change) (*reachable, error) {
	r := &reachable{epoch: moved.now.Epoch(), shared: known.shared, all: known.all, names: known.names}
	if r.all {
		return r, nil
	}
	copied := false
	for name := range moved.now.ChangedLocalNodes(moved.since) {
		matches := false
		if view := moved.now.LocalNode(name); view != nil {
			var err error
			if matches, err = c.serves(ctx, p, view, r.shared); err != nil {
				return nil, err
			}
		}
		if matches == r.names.Has(name) {
			continue
		}
		if !copied {
			r.names, copied = r.names.Clone(), true
		}
		if matches {
			r.names.Insert(name)
		} else {
			r.names.Delete(name)
		}
	}
	return r, nil
}

// sharedRequests tells for each request whether a pool that is not bound to
// named nodes may serve it, at least in part.
func (c *candidates) sharedRequests(ctx context.Context, p *problem.Problem, devices *inventory.Snapshot) ([]bool, error) {
	var shared []bool
	pools := devices.SharedPools()
	for i := range p.Claims {
		for j := range p.Claims[i].Requests {
			served := false
			for _, alternative := range p.Claims[i].Requests[j].Alternatives {
				tally := tally{wanted: 1}
				for _, pool := range pools {
					if served = served || pool.Fault != nil; served {
						break
					}
					if err := c.count(ctx, &tally, alternative, slices.Values(pool.Devices)); err != nil {
						return nil, err
					}
					served = tally.enough()
				}
			}
			shared = append(shared, served)
		}
	}
	return shared, nil
}

// serves tells whether the node is a candidate: each request has enough matching
// devices there, or may have some of a shared pool. A node with a faulty pool is
// one, so that the fault is named.
func (c *candidates) serves(ctx context.Context, p *problem.Problem, view *inventory.NodeView, shared []bool) (bool, error) {
	for _, pool := range view.Pools {
		if pool.Fault != nil {
			return true, nil
		}
	}
	next := 0
	for i := range p.Claims {
		for j := range p.Claims[i].Requests {
			served := shared[next]
			next++
			for _, alternative := range p.Claims[i].Requests[j].Alternatives {
				if served {
					break
				}
				var err error
				if served, err = c.local(ctx, alternative, view); err != nil {
					return false, err
				}
			}
			if !served {
				return false, nil
			}
		}
	}
	return true, nil
}

// local tells whether a node has enough matching devices of its own.
func (c *candidates) local(ctx context.Context, alternative *problem.Alternative, view *inventory.NodeView) (bool, error) {
	tally := tally{wanted: max(alternative.Count, 1)}
	for _, pool := range view.Pools {
		if err := c.count(ctx, &tally, alternative, slices.Values(pool.Devices)); err != nil {
			return false, err
		}
		if tally.enough() {
			return true, nil
		}
	}
	return false, nil
}

// tally counts matching devices until there are enough.
type tally struct {
	wanted, matching int
	// shareable says that one of them serves any number of requests.
	shareable bool
}

func (t *tally) enough() bool { return t.shareable || t.matching >= t.wanted }

// count adds the matching ones of some devices, until there are enough.
func (c *candidates) count(ctx context.Context, t *tally, alternative *problem.Alternative, devices func(func(*device.Device) bool)) error {
	for d := range devices {
		matches, err := c.matches(ctx, alternative, d)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		t.matching++
		t.shareable = t.shareable || d.AllowMultiple
		if t.enough() {
			break
		}
	}
	return nil
}

func (c *candidates) matches(ctx context.Context, alternative *problem.Alternative, d *device.Device) (bool, error) {
	for i := range alternative.Selectors {
		matches, err := alternative.Selectors[i].Expression.Matches(ctx, d)
		if err != nil && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err != nil {
			return !c.lenient, nil
		}
		if !matches {
			return false, nil
		}
	}
	return true, nil
}

// reasons words, counted, why the nodes that are not reachable cannot serve
// the problem, which must have the signature of the one that was looked up.
// failure names a device of theirs for which a selector failed, if there is one:
// the first in the order of texts.
//
// Pods that can never run are many at times. For them the words are found once,
// unless these contain names of the pod's own, or depend on the labels of nodes.
func (c *candidates) reasons(p *problem.Problem, r *reachable, devices *inventory.Snapshot, nodes []fwk.NodeInfo) (text, failure string) {
	if len(p.Claims) > 1 || len(devices.SharedPools()) > 0 {
		return c.word(p, r, devices, nodes)
	}
	last := r.worded.Load()
	if last == nil || !sameList(last.nodes, nodes) {
		last = &worded{nodes: nodes}
		last.text, last.failure = c.word(p, r, devices, nodes)
		r.worded.Store(last)
	}
	return last.text, last.failure
}

// word is reasons without any memory but that of single verdicts.
func (c *candidates) word(p *problem.Problem, r *reachable, devices *inventory.Snapshot, nodes []fwk.NodeInfo) (text, failure string) {
	counts := make(map[string]int)
	table := c.verdicts.Table(verdict.Key{Signature: p.Signature, Profile: c.profile, Nobody: true})
	for _, node := range nodes {
		if r.names.Has(node.Node().Name) {
			continue
		}
		found := c.verdict(table, p, devices.Node(node.Node()))
		if found == nil || found.Rejection == nil {
			counts["no matching devices"]++
			continue
		}
		counts[found.Reason(p)]++
		if failed := reason.Failure(p, found.Rejection); failed != "" && (failure == "" || failed < failure) {
			failure = failed
		}
	}
	texts := make([]string, 0, len(counts))
	for text, n := range counts {
		texts = append(texts, fmt.Sprintf("%d %s", n, text))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", "), failure
}

// verdict asks the allocator: it knows best why it would fail. Nothing is held
// from this point of view, and the node has all features, since no matching
// device is missing because of that.
func (c *candidates) verdict(table *verdict.Table, p *problem.Problem, view *inventory.NodeView) *verdict.Verdict {
	if len(view.Pools) == 0 {
		view = &inventory.NodeView{} // all nodes without devices have one verdict
	}
	offer := allocator.Node{View: view, Usage: c.nobody, SkipsNodeOperations: true}
	if found := table.Known(0, offer); found != nil {
		return found
	}
	found, err := table.Solve(context.Background(), 0, p, offer, allocator.Options{StepBudget: 1})
	if err != nil {
		return nil
	}
	return found
}
