package deviceallocation

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// maxWaiting bounds how many pods are remembered, maxSelectors how many selectors
// they may have. Others are woken by any event that might help.
const (
	maxWaiting   = 1 << 14
	maxSelectors = 64
)

// waitingPods remembers what the pods need that fitted nowhere, so that hints
// need not find it out for each event. A pod that is not in here may need
// anything. It is safe for concurrent use.
type waitingPods struct {
	known *lru.Cache // []*problem.Problem by UID of the pod
}

func newWaitingPods() waitingPods { return waitingPods{known: lru.New(maxWaiting)} }

// remember keeps what a pod needs after an attempt that has failed for want of
// devices. If there may be another reason, such as claims that have devices
// already, nothing is kept.
func (w waitingPods) remember(pod *corev1.Pod, s *state) {
	if len(s.allocated) > 0 || len(s.joined) > 0 || s.extended != nil && s.extended.leftover != nil {
		return
	}
	var problems []*problem.Problem
	selectors := 0
	for _, v := range s.made() {
		if v.err != nil {
			return
		}
		problems = append(problems, v.problem)
		for _, alternative := range v.problem.Alternatives {
			selectors += 1 + len(alternative.Selectors)
		}
	}
	if selectors > maxSelectors {
		return
	}
	w.known.Add(pod.UID, problems)
}

// forget says that a pod is being tried again.
func (w waitingPods) forget(pod *corev1.Pod) { w.known.Remove(pod.UID) }

func (w waitingPods) needs(pod types.UID) ([]*problem.Problem, bool) {
	problems, known := w.known.Get(pod)
	if !known {
		return nil, false
	}
	return problems.([]*problem.Problem), true
}

// offers is what some pools have to offer after an event. It answers once for
// all pods that look alike. It is safe for concurrent use.
type offers struct {
	pl    *Plugin
	pools []*inventory.Pool

	mutex sync.Mutex
	known map[problem.Signature]bool
}

func (pl *Plugin) offersOf(pools []*inventory.Pool) *offers {
	return &offers{pl: pl, pools: pools, known: make(map[problem.Signature]bool)}
}

// poolsNow returns some pools as they are now. Those that do not exist any more
// offer nothing, but for one thing: whoever asks for all devices may have waited
// for just that.
func (pl *Plugin) poolsNow(ids ...device.PoolID) []*inventory.Pool {
	devices := pl.inventory.Snapshot()
	var pools []*inventory.Pool
	for _, id := range ids {
		if pool := devices.Pool(id); pool != nil {
			pools = append(pools, pool)
		}
	}
	return pools
}

// help tells whether a pod may get what it needs now.
func (o *offers) help(pod *corev1.Pod) bool {
	problems, known := o.pl.waiting.needs(pod.UID)
	if !known {
		// A pod that still lacks claims waits for those.
		_, err := o.pl.podClaims(pod)
		return err == nil
	}
	for _, p := range problems {
		if o.helpProblem(p) {
			return true
		}
	}
	return false
}

func (o *offers) helpProblem(p *problem.Problem) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	helps, known := o.known[p.Signature]
	if !known {
		helps = o.any(p)
		o.known[p.Signature] = helps
	}
	return helps
}

func (o *offers) any(p *problem.Problem) bool {
	for _, alternative := range p.Alternatives {
		if alternative.All {
			return true
		}
		for _, pool := range o.pools {
			for _, d := range pool.Devices {
				if o.pl.available(alternative, d) && o.pl.nodes.mayMatch(alternative, d) {
					return true
				}
			}
		}
	}
	return false
}

// available tells whether nobody keeps a request from having the device. A device
// that is only reserved counts: the attempt may fail, and then no event tells that
// the device is free again. So does one with a taint, for the sake of the pod's
// condition, which says that all devices are in use as long as they are.
func (pl *Plugin) available(alternative *problem.Alternative, d *device.Device) bool {
	return d.AllowMultiple || alternative.Admin || !pl.ledger.Settled(d.ID)
}

// mayMatch tells whether the selectors of a request match a device, as far as
// that can be found out.
func (c *candidates) mayMatch(alternative *problem.Alternative, d *device.Device) bool {
	matches, err := c.matches(context.Background(), alternative, d)
	return err != nil || matches
}
