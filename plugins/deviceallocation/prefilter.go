package deviceallocation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/reason"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// PreFilter finds out what the pod needs and which nodes may have it.
func (pl *Plugin) PreFilter(ctx context.Context, cycle fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if pl.gates.EnableInPlacePodVerticalScalingSchedulerPreemption && resource.IsPodResizeDeferred(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	pl.waiting.forget(pod)
	if err := joinGroup(cycle, pod, nil); err != nil {
		return nil, fwk.AsStatus(err)
	}
	claims, err := pl.podClaims(pod)
	if err != nil {
		return nil, statusOf(err, nil)
	}
	s := &state{extended: pl.extendedState(pod)}
	if len(claims) == 0 && s.extended == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	group, err := pl.podGroup(pod)
	if err != nil {
		return nil, statusOf(err, nil)
	}
	if s.consumers, err = pl.consumersOf(pod, group); err != nil {
		return nil, statusOf(err, nil)
	}
	if err := pl.feed.load(ctx); err != nil {
		return nil, fwk.AsStatus(err)
	}
	// PostFilter needs the state when PreFilter itself rejects the pod.
	cycle.Write(stateKey, s)
	if err := joinGroup(cycle, pod, s); err != nil {
		return nil, fwk.AsStatus(err)
	}
	s.attempt = verdict.Attempt(pl.attempts.Add(1))
	s.options, s.avoided = pl.searchOptions()
	s.devices = pl.inventory.Snapshot()
	s.holders = pl.ledger.Snapshot(s.devices)
	if err := pl.sortClaims(s, pod, claims); err != nil {
		return nil, statusOf(err, nil)
	}
	pl.newVariants(s)
	for _, c := range s.allocated {
		if c.blocked != "" {
			return nil, unresolvable(c.blocked)
		}
	}
	if s.extended != nil {
		if s.extended.leftover != nil {
			return nil, unresolvable(fmt.Sprintf("resourceclaim %s of an earlier attempt must be deleted first", klog.KObj(s.extended.leftover)))
		}
		return nil, nil // each node decides for itself which resources are devices
	}
	if len(s.pending) == 0 {
		return nil, nil
	}
	plain := s.variants.plain()
	if plain.err != nil {
		return nil, statusOf(plain.err, nil)
	}
	reachable, err := pl.nodes.find(ctx, plain.problem, s.devices)
	if err != nil {
		return nil, statusOf(err, plain.problem)
	}
	return pl.limit(s, reachable, nodes)
}

// limit tells the framework which nodes are worth looking at. The reasons of
// the others must not get lost: without any node left they are the answer, else
// PostFilter adds them.
func (pl *Plugin) limit(s *state, reachable *reachable, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if reachable.all || reachable.cover(nodes) {
		return nil, nil // naming them all would cost for nothing
	}
	if reachable.names.Len() == 0 {
		text, failure := pl.nodes.reasons(s.variants.plain().problem, reachable, s.devices, nodes)
		s.note(failure)
		return nil, unresolvable(text)
	}
	// Words are found only when the pod fails: most pods do not, and looking at
	// all nodes would cost what leaving them out has saved.
	s.leftOut = reachable
	return &fwk.PreFilterResult{NodeNames: reachable.names}, nil
}

// sortClaims tells the claims that need devices from those that have some, and
// checks that the pod may use the latter.
func (pl *Plugin) sortClaims(s *state, pod *corev1.Pod, claims []*resourceapi.ResourceClaim) error {
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			joined, err := pl.joinClaim(s, pod, claim)
			if err != nil {
				return err
			}
			if joined != nil {
				s.joined = append(s.joined, joined)
			} else {
				s.pending = append(s.pending, claim)
			}
			continue
		}
		c, err := pl.checkAllocated(s, claim)
		if err != nil {
			return err
		}
		s.allocated = append(s.allocated, c)
	}
	return nil
}

func (pl *Plugin) checkAllocated(s *state, claim *resourceapi.ResourceClaim) (*allocatedClaim, error) {
	c := &allocatedClaim{claim: claim}
	reserved := s.consumers.have(claim)
	if !reserved && len(claim.Status.ReservedFor) >= resourceapi.ResourceClaimReservedForMaxSize {
		return nil, claimErrorf("resourceclaim %s has %d consumers, which is the limit", klog.KObj(claim), len(claim.Status.ReservedFor))
	}
	if selector := claim.Status.Allocation.NodeSelector; selector != nil {
		nodes, err := nodeaffinity.NewNodeSelector(selector)
		if err != nil {
			return nil, claimErrorf("resourceclaim %s: node selector of its allocation: %v", klog.KObj(claim), err)
		}
		c.nodes = nodes
	}
	c.needsSkippedOperations = needsSkippedOperations(claim.Status.Allocation)
	if err := pl.checkBinding(c); err != nil {
		return nil, err
	}
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		// A pod that has its reservation keeps it under a new taint: whether it
		// must go is up to the eviction controller.
		if c.blocked == "" && !reserved {
			c.blocked = tainted(s, claim, result)
		}
	}
	return c, nil
}

// tainted says which taint of a device keeps further pods from using the claim
// that holds it (resource.k8s.io/v1 ExactDeviceRequest.tolerations).
func tainted(s *state, claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) string {
	d := s.devices.Device(device.NewID(result.Driver, result.Pool, result.Device))
	if d == nil {
		return ""
	}
	taint := device.UntoleratedTaint(d.Taints, result.Tolerations)
	if taint == nil {
		return ""
	}
	return fmt.Sprintf("resourceclaim %s: its device %s has the untolerated taint %s", klog.KObj(claim), d.ID, reason.Taint(taint))
}

// PreFilterExtensions returns nil: devices of other pods are not offered yet.
func (pl *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }
