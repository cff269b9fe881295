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
	var extended []corev1.ResourceName
	if s.extended != nil {
		extended = s.extended.throughDevices(node)
	}
	if len(s.pending) == 0 && len(extended) == 0 {
		return nil
	}
	v := pl.variant(s, extended)
	if v.err != nil {
		return statusOf(v.err, nil)
	}
	return pl.solve(ctx, s, v, node.Node())
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

// solve runs the allocator and keeps the solution.
func (pl *Plugin) solve(ctx context.Context, s *state, v *variant, node *corev1.Node) *fwk.Status {
	search := ctx
	if pl.filterTimeout > 0 {
		var cancel context.CancelFunc
		search, cancel = context.WithTimeoutCause(ctx, pl.filterTimeout, errFilterTimeout)
		defer cancel()
	}
	offer := allocator.Node{View: s.devices.Node(node), Usage: s.holders, SkipsNodeOperations: skipsNodeOperations(node)}
	solution, err := allocator.Solve(search, v.problem, offer, s.options)
	switch {
	case err == nil:
		searches.WithLabelValues(resultFound).Inc()
		searchSteps.Observe(float64(solution.Steps))
		s.found.Store(node.Name, &found{variant: v, solution: solution})
		return nil
	case errors.Is(err, errFilterTimeout):
		searches.WithLabelValues(resultUndecided).Inc()
		// Only this node is undecided; others may have been quicker.
		return unresolvable(fmt.Sprintf("search for devices ended undecided after %s (see filterTimeout)", pl.filterTimeout))
	case ctx.Err() != nil:
		return unresolvable("search for devices ended because enough nodes were found")
	default:
		searches.WithLabelValues(resultOf(err)).Inc()
		if rejection := (*allocator.Rejection)(nil); errors.As(err, &rejection) {
			s.note(reason.Failure(v.problem, rejection))
		}
		return statusOf(err, v.problem)
	}
}

func resultOf(err error) string {
	var rejection *allocator.Rejection
	switch {
	case !errors.As(err, &rejection):
		return resultError
	case rejection.Cause == allocator.OutOfBudget:
		return resultUndecided
	default:
		return resultRejected
	}
}
