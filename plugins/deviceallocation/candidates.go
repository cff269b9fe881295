package deviceallocation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/lru"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/reason"
)

// maxReachable bounds how many problems are remembered.
const maxReachable = 256

// candidates finds the nodes that have a matching device for every request of
// a problem, whoever holds it. The answer holds until the inventory changes,
// for all pods that ask for the same.
type candidates struct {
	known *lru.Cache // *reachable by problem.Signature
	// lenient says that a selector that fails means no match.
	lenient bool
	nobody  *ledger.Snapshot
}

func newCandidates(failOnSelectorError bool) *candidates {
	return &candidates{known: lru.New(maxReachable), lenient: !failOnSelectorError, nobody: ledger.New().Snapshot(nil)}
}

// reachable are the nodes worth looking at for one problem.
type reachable struct {
	epoch uint64
	// all says that the nodes cannot be told by name.
	all   bool
	names sets.Set[string]

	devices *inventory.Snapshot
	nobody  *ledger.Snapshot // holds no device
	// rejections has what is wrong with the nodes that are left out, found out
	// once when it is needed; it is guarded by the mutex. It is worded for each
	// pod anew: claims of equal problems have different names.
	mutex      sync.Mutex
	rejections map[viewKey]*allocator.Rejection
}

// viewKey identifies what a node can reach. The name alone does not: which
// shared pools it reaches changes with its labels.
type viewKey struct {
	name  string
	epoch uint64
}

// find returns the nodes for a problem. The error is that of the context.
func (c *candidates) find(ctx context.Context, p *problem.Problem, devices *inventory.Snapshot) (*reachable, error) {
	if known, ok := c.known.Get(p.Signature); ok && known.(*reachable).epoch == devices.Epoch() {
		return known.(*reachable), nil
	}
	r := &reachable{epoch: devices.Epoch(), devices: devices, nobody: c.nobody, rejections: make(map[viewKey]*allocator.Rejection)}
	shared, err := c.sharedRequests(ctx, p, devices)
	if err != nil {
		return nil, err
	}
	if r.all = !slices.Contains(shared, false); !r.all {
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
	}
	c.known.Add(p.Signature, r)
	return r, nil
}

// sharedRequests tells for each request whether a pool that is not bound to
// named nodes may serve it.
func (c *candidates) sharedRequests(ctx context.Context, p *problem.Problem, devices *inventory.Snapshot) ([]bool, error) {
	var shared []bool
	pools := devices.SharedPools()
	for i := range p.Claims {
		for j := range p.Claims[i].Requests {
			served := false
			for _, pool := range pools {
				if served = served || pool.Fault != nil; served {
					break
				}
				var err error
				if served, err = c.any(ctx, &p.Claims[i].Requests[j], slices.Values(pool.Devices)); err != nil {
					return nil, err
				}
			}
			shared = append(shared, served)
		}
	}
	return shared, nil
}

// serves tells whether the node is a candidate: each request has a matching
// device there or in a shared pool. A node with a faulty pool is one, so that
// the fault is named.
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
			for _, pool := range view.Pools {
				if served {
					break
				}
				var err error
				if served, err = c.any(ctx, &p.Claims[i].Requests[j], slices.Values(pool.Devices)); err != nil {
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

// any tells whether one of the devices matches an alternative of the request.
func (c *candidates) any(ctx context.Context, request *problem.Request, devices func(func(*device.Device) bool)) (bool, error) {
	for _, alternative := range request.Alternatives {
		for d := range devices {
			matches, err := c.matches(ctx, alternative, d)
			if err != nil || matches {
				return matches, err
			}
		}
	}
	return false, nil
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
func (r *reachable) reasons(p *problem.Problem, nodes []fwk.NodeInfo) (text, failure string) {
	counts := make(map[string]int)
	for _, node := range nodes {
		if r.names.Has(node.Node().Name) {
			continue
		}
		rejection := r.rejection(p, node)
		if rejection == nil {
			counts["no matching devices"]++
			continue
		}
		counts[reason.Node(p, rejection)]++
		if failed := reason.Failure(p, rejection); failed != "" && (failure == "" || failed < failure) {
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

// rejection asks the allocator: it knows best why it would fail. Nothing is held
// from this point of view, and the node has all features, since no matching
// device is missing because of that.
func (r *reachable) rejection(p *problem.Problem, node fwk.NodeInfo) *allocator.Rejection {
	view := r.devices.Node(node.Node())
	if len(view.Pools) == 0 {
		view = &inventory.NodeView{} // all nodes without devices have one reason
	}
	key := viewKey{name: view.Name, epoch: view.Epoch}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if rejection, ok := r.rejections[key]; ok {
		return rejection
	}
	_, err := allocator.Solve(context.Background(), p, allocator.Node{View: view, Usage: r.nobody, SkipsNodeOperations: true}, allocator.Options{StepBudget: 1})
	rejection, _ := err.(*allocator.Rejection)
	r.rejections[key] = rejection
	return rejection
}
