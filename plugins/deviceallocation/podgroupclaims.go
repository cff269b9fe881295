package deviceallocation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// consumers says for whom the claims of a pod get reserved.
type consumers struct {
	pod types.UID
	// group is the pod's PodGroup, or nil. Its reservation covers all pods of the
	// group, also those that were not the reason for it.
	group *resourceapi.ResourceClaimConsumerReference
	// bound are the claims that the pod shares with its group: the group lists
	// the same claim, or template, under the same name (KEP-5729). They are
	// reserved for the group and not for each pod.
	bound map[types.UID]bool
}

// consumersOf finds out which of the pod's claims are bound to its group, which
// is nil for a pod without one. The error is a *claimError.
func (pl *Plugin) consumersOf(pod *corev1.Pod, group *schedulingapi.PodGroup) (consumers, error) {
	c := consumers{pod: pod.UID}
	if group == nil {
		return c, nil
	}
	c.bound = make(map[types.UID]bool)
	for i := range pod.Spec.ResourceClaims {
		reference := &pod.Spec.ResourceClaims[i]
		target, err := resourceclaim.BindTo(pod, group, reference)
		if err != nil {
			return c, claimErrorf("%v", err)
		}
		if target.UID != group.UID {
			continue
		}
		claim, err := pl.podClaim(pod, reference)
		if err != nil {
			return c, err
		}
		if claim != nil {
			c.bound[claim.UID] = true
		}
	}
	c.group = groupReference(group)
	return c, nil
}

func groupReference(group *schedulingapi.PodGroup) *resourceapi.ResourceClaimConsumerReference {
	return &resourceapi.ResourceClaimConsumerReference{
		APIGroup: schedulingapi.GroupName,
		Resource: "podgroups",
		Name:     group.Name,
		UID:      group.UID,
	}
}

// of returns the PodGroup if the claim is to be reserved for that, and nil if
// for the pod.
func (c *consumers) of(claim types.UID) *resourceapi.ResourceClaimConsumerReference {
	if c.bound[claim] {
		return c.group
	}
	return nil
}

// choose returns what the claim is or will be reserved for: nil for the pod. A
// reservation that is there already is enough, whichever.
func (c *consumers) choose(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaimConsumerReference {
	switch {
	case reservedFor(claim, c.pod):
		return nil
	case c.group != nil && reservedFor(claim, c.group.UID):
		return c.group
	default:
		return c.of(claim.UID)
	}
}

// have tells whether the claim is reserved for the pod already, or for its
// group. That the name of the group is the same is not enough: a group that was
// replaced takes its reservations along when the controller-manager notices.
func (c *consumers) have(claim *resourceapi.ResourceClaim) bool {
	return reservedFor(claim, c.pod) || c.group != nil && reservedFor(claim, c.group.UID)
}

// joinedClaim is a claim for which another pod of the group has chosen devices
// that are not written yet. The pod shares them.
type joinedClaim struct {
	claim      *resourceapi.ResourceClaim
	allocation *resourceapi.AllocationResult
	// nodes is nil if the devices can be used from everywhere.
	nodes *nodeaffinity.NodeSelector
	// needsSkippedOperations says that only nodes that can do without node
	// operations will do.
	needsSkippedOperations bool
}

// joinClaim looks for the allocation in flight of a claim that has none yet. It
// returns nil if there is none. The error is a *claimError: a pod that is not of
// the group waits until the claim is written, or given up.
//
// A pod may join as long as the allocation is in flight, also in a later cycle
// of the group. Otherwise a gang would wait for itself:
//
//	pod 1  waits at Permit for the rest of the gang, its claim is in flight
//	pod 2  failed before, comes back, and would wait for the claim to be written
func (pl *Plugin) joinClaim(s *state, pod *corev1.Pod, claim *resourceapi.ResourceClaim) (*joinedClaim, error) {
	allocation, group, attempts := pl.inFlight.find(claim.UID)
	if allocation == nil && pl.claims.GetPendingAllocation(claim.UID) == nil {
		return nil, nil
	}
	if allocation == nil || group.Name == "" || group != pl.groupName(pod) {
		return nil, claimErrorf("resourceclaim %s is being allocated for another pod", klog.KObj(claim))
	}
	if s.consumers.of(claim.UID) == nil && attempts >= resourceapi.ResourceClaimReservedForMaxSize {
		return nil, claimErrorf("resourceclaim %s has %d consumers, which is the limit", klog.KObj(claim), attempts)
	}
	c := &joinedClaim{claim: claim, allocation: allocation, needsSkippedOperations: needsSkippedOperations(allocation)}
	if allocation.NodeSelector != nil {
		nodes, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
		if err != nil {
			return nil, claimErrorf("resourceclaim %s: node selector of its allocation: %v", klog.KObj(claim), err)
		}
		c.nodes = nodes
	}
	return c, nil
}

// reachesJoined checks that the node can use the devices that other pods of the
// group have chosen.
func (s *state) reachesJoined(node *corev1.Node) *fwk.Status {
	for _, c := range s.joined {
		switch {
		case c.nodes != nil && !c.nodes.Match(node):
			return unresolvable(fmt.Sprintf("devices of resourceclaim %s cannot be reached", klog.KObj(c.claim)))
		case c.needsSkippedOperations && !skipsNodeOperations(node):
			return unresolvable(fmt.Sprintf("devices of resourceclaim %s need a node that declares the feature DRAOptionalNodeOperations", klog.KObj(c.claim)))
		}
	}
	return nil
}
