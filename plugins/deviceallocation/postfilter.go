package deviceallocation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

// PostFilter helps a pod for which there is no node. An allocation from an
// earlier attempt that ties it to unsuitable nodes, to a tainted device, or to
// one that will not get ready, is taken back if no other pod has reserved the
// claim: one claim in each attempt, the one that rules out most nodes. The pod
// is tried again when the claim has been written.
func (pl *Plugin) PostFilter(ctx context.Context, cycle fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	nothing := fwk.NewStatus(fwk.Unschedulable)
	if pl.gates.EnableInPlacePodVerticalScalingSchedulerPreemption && resource.IsPodResizeDeferred(pod) {
		return nil, nothing
	}
	s, err := readState(cycle)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if s == nil {
		return nil, nothing
	}
	if s.extended != nil && s.extended.leftover != nil {
		if err := pl.writer.DeleteClaim(ctx, s.extended.leftover); err != nil {
			return nil, pl.again(ctx, pod, fmt.Errorf("delete claim of an earlier attempt: %w", err))
		}
		return nil, fwk.NewStatus(fwk.Unschedulable, "deletion of ResourceClaim completed")
	}
	if c := s.unavailable(pod); c != nil {
		return nil, pl.deallocate(ctx, pod, c)
	}
	pl.waiting.remember(pod, s)
	remarks, err := pl.remarks(s)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, remarks...)
}

// again asks for another attempt, because the API server did not carry out what
// would have helped the pod. The scheduler only logs an error of PostFilter: no
// event would follow, and the pod would sleep for minutes.
func (pl *Plugin) again(ctx context.Context, pod *corev1.Pod, err error) *fwk.Status {
	pl.handle.Activate(klog.FromContext(ctx), map[string]*corev1.Pod{klog.KObj(pod).String(): pod})
	return fwk.AsStatus(err)
}

// remarks are what the reasons of the single nodes do not say.
func (pl *Plugin) remarks(s *state) ([]string, error) {
	var remarks []string
	if s.leftOut != nil {
		nodes, err := pl.handle.SnapshotSharedLister().NodeInfos().List()
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		text, failure := pl.nodes.reasons(s.variants.plain().problem, s.leftOut, s.devices, nodes)
		s.note(failure)
		if text != "" {
			remarks = append(remarks, "nodes without enough matching devices: "+text)
		}
	}
	if s.failure != "" {
		remarks = append(remarks, s.failure)
	}
	return remarks, nil
}

func (pl *Plugin) deallocate(ctx context.Context, pod *corev1.Pod, c *allocatedClaim) *fwk.Status {
	if len(c.claim.Status.ReservedFor) > 0 {
		// The reservation is of an earlier attempt. If the answer to its binding
		// was lost, the pod may run although the queue still has it.
		bound, err := pl.isBound(ctx, pod)
		if err != nil {
			return pl.again(ctx, pod, err)
		}
		if bound {
			return fwk.NewStatus(fwk.Unschedulable)
		}
	}
	written, err := pl.writer.Deallocate(ctx, c.claim, pod.UID)
	if errors.Is(err, claimwriter.ErrInUse) || errors.Is(err, claimwriter.ErrGone) || errors.Is(err, claimwriter.ErrReplaced) {
		return fwk.NewStatus(fwk.Unschedulable) // somebody was faster; an event will tell
	}
	if err != nil {
		return pl.again(ctx, pod, fmt.Errorf("take back the allocation of claim %s: %w", klog.KObj(c.claim), err))
	}
	pl.inFlight.observe(written)
	klog.FromContext(ctx).V(5).Info("Deallocated claim", "pod", klog.KObj(pod), "resourceclaim", klog.KObj(c.claim))
	return fwk.NewStatus(fwk.Unschedulable, "deallocation of ResourceClaim completed")
}
