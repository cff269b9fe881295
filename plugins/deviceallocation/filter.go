package deviceallocation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/reason"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// errFilterTimeout ends the search on one node.
var errFilterTimeout = errors.New("filterTimeout")

// Filter looks for devices on one node. The framework calls it in parallel.
func (pl *Plugin) Filter(ctx context.Context, cycle fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if pl.gates.EnableInPlacePodVerticalScalingSchedulerPreemption && resource.IsPodResizeDeferred(pod) {
		return nil
	}
	s, err := readState(cycle)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s == nil {
		return nil
	}
	if status := s.reachesAllocated(node.Node()); status != nil {
		return status
	}
	if status := s.reachesJoined(node.Node()); status != nil {
		return status
	}
	v := pl.required(s, node)
	switch {
	case v == nil:
		return nil
	case v.err != nil:
		return statusOf(v.err, nil)
	}
	found, err := pl.solve(ctx, s, v, node.Node())
	if err != nil {
		return pl.noVerdict(ctx, v, err)
	}
	if found.Rejection == nil {
		return nil
	}
	s.note(reason.Failure(v.problem, found.Rejection))
	return unresolvable(found.Reason(v.problem))
}

// required returns what has to be allocated on a node; nil if nothing has.
func (pl *Plugin) required(s *state, node fwk.NodeInfo) *variant {
	var extended []corev1.ResourceName
	if s.extended != nil {
		extended = s.extended.throughDevices(node)
	}
	if len(s.pending) == 0 && len(extended) == 0 {
		return nil
	}
	return pl.variant(s, extended)
}

// reachesAllocated checks that the node can use the devices of all claims that
// have some.
func (s *state) reachesAllocated(node *corev1.Node) *fwk.Status {
	var status *fwk.Status
	for _, c := range s.allocated {
		obstacle := ""
		switch {
		case c.nodes != nil && !c.nodes.Match(node):
			obstacle = "cannot be reached"
		case c.needsSkippedOperations && !skipsNodeOperations(node):
			obstacle = "need a node that declares the feature DRAOptionalNodeOperations"
		default:
			continue
		}
		c.unreachable.Add(1)
		if status == nil {
			status = unresolvable(fmt.Sprintf("devices of resourceclaim %s %s", klog.KObj(c.claim), obstacle))
		}
	}
	return status
}

// solve returns what is known about a node, or has the allocator find it out.
// The error is not about the node: the search was cut off, or has shown something
// that ends the attempt.
func (pl *Plugin) solve(ctx context.Context, s *state, v *variant, node *corev1.Node) (*verdict.Verdict, error) {
	offer := allocator.Node{View: s.devices.Node(node), Usage: s.holders, SkipsNodeOperations: skipsNodeOperations(node)}
	if found := v.verdicts.Known(s.attempt, offer); found != nil {
		pl.counters.knownVerdicts.Inc()
		return found, nil
	}
	search := ctx
	if pl.filterTimeout > 0 {
		var cancel context.CancelFunc
		search, cancel = context.WithTimeoutCause(ctx, pl.filterTimeout, errFilterTimeout)
		defer cancel()
	}
	found, err := v.verdicts.Solve(search, s.attempt, v.problem, offer, s.options)
	if ctx.Err() == nil {
		pl.counters.search(found, err)
	}
	return found, err
}

// noVerdict words why a search has no answer.
func (pl *Plugin) noVerdict(ctx context.Context, v *variant, err error) *fwk.Status {
	switch {
	case errors.Is(err, errFilterTimeout):
		// Only this node is undecided; others may have been quicker.
		return unresolvable(fmt.Sprintf("search for devices ended undecided after %s (see filterTimeout)", pl.filterTimeout))
	case ctx.Err() != nil:
		return unresolvable("search for devices ended because enough nodes were found")
	default:
		return statusOf(err, v.problem)
	}
}
