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
	return &candidates{known: lru.New(maxReachable), lenient: !failOnSelectorError, nobody: ledger.New().Snapshot()}
}

// reachable are the nodes worth looking at for one problem.
type reachable struct {
	epoch uint64
	// all says that the nodes cannot be told by name.
	all   bool
	names sets.Set[string]

	problem *problem.Problem
	devices *inventory.Snapshot
	nobody  *ledger.Snapshot // holds no device
	// texts has the reasons of the nodes that are left out, worded once when
	// they are needed; it is guarded by the mutex.
	mutex sync.Mutex
	texts map[string]string
	// failed is the first failure of a selector, in the order of texts.
	failed string
}

// find returns the nodes for a problem. The error is that of the context.
func (c *candidates) find(ctx context.Context, p *problem.Problem, devices *inventory.Snapshot) (*reachable, error) {
	if known, ok := c.known.Get(p.Signature); ok && known.(*reachable).epoch == devices.Epoch() {
		return known.(*reachable), nil
	}
	r := &reachable{epoch: devices.Epoch(), problem: p, devices: devices, nobody: c.nobody, texts: make(map[string]string)}
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
// the problem.
func (r *reachable) reasons(nodes []fwk.NodeInfo) string {
	counts := make(map[string]int)
	for _, node := range nodes {
		if !r.names.Has(node.Node().Name) {
			counts[r.reason(node)]++
		}
	}
	texts := make([]string, 0, len(counts))
	for text, n := range counts {
		texts = append(texts, fmt.Sprintf("%d %s", n, text))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// failure names a device of the nodes that are not reachable for which a
// selector failed, or is empty. It is known once reasons has been called.
func (r *reachable) failure() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.failed
}

// reason asks the allocator: it knows best why it would fail. Nothing is held
// from this point of view, since no matching device is missing because of that.
func (r *reachable) reason(node fwk.NodeInfo) string {
	view := r.devices.Node(node.Node())
	if len(view.Pools) == 0 {
		view = &inventory.NodeView{} // all nodes without devices have one reason
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if text, ok := r.texts[view.Name]; ok {
		return text
	}
	text := "no matching devices"
	_, err := allocator.Solve(context.Background(), r.problem, allocator.Node{View: view, Usage: r.nobody}, allocator.Options{StepBudget: 1})
	if rejection, ok := err.(*allocator.Rejection); ok {
		text = reason.Node(r.problem, rejection)
		if failed := reason.Failure(r.problem, rejection); failed != "" && (r.failed == "" || failed < r.failed) {
			r.failed = failed
		}
	}
	r.texts[view.Name] = text
	return text
}
