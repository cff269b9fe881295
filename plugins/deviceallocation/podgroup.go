package deviceallocation

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// groupName is the name of a pod's PodGroup; it is empty for a pod without one,
// and while the scheduler handles such pods one by one
// (pod.spec.schedulingGroup, KEP-4671).
func (pl *Plugin) groupName(pod *corev1.Pod) types.NamespacedName {
	group := pod.Spec.SchedulingGroup
	if !pl.gates.EnableGenericWorkload || group == nil || group.PodGroupName == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: *group.PodGroupName}
}

// podGroup returns the PodGroup of a pod that may have claims, as it was at the
// start of the scheduling cycle. It is nil for a pod without one, and while
// groups have no claims (gate DRAWorkloadResourceClaims). The error is a
// *claimError.
func (pl *Plugin) podGroup(pod *corev1.Pod) (*schedulingapi.PodGroup, error) {
	name := pl.groupName(pod)
	if !pl.gates.EnableDRAWorkloadResourceClaims || name.Name == "" || len(pod.Spec.ResourceClaims) == 0 {
		return nil, nil
	}
	group, err := pl.handle.SnapshotSharedLister().PodGroups().Get(name.Namespace, name.Name)
	if err != nil {
		return nil, claimErrorf("podgroup %q of the pod: %v", name.Name, err)
	}
	return group, nil
}

// groupState is what a group cycle knows about its pods. PreFilter fills it in,
// PodGroupPostFilter uses it; both run in the scheduling goroutine.
type groupState struct {
	// pods has an entry for each pod that was tried, nil if the plugin has
	// nothing to do for it. A pod that was tried several times has the last one.
	pods map[types.UID]*state
}

// Clone returns the state itself, which belongs to the cycle as a whole.
func (g *groupState) Clone() fwk.StateData { return g }

func readGroupState(cycle fwk.PodGroupCycleState) (*groupState, error) {
	data, err := cycle.Read(stateKey)
	if errors.Is(err, fwk.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return data.(*groupState), nil
}

// joinGroup keeps the state of a pod for the end of its group cycle, if it is
// in one. s is nil for a pod for which there is nothing to do.
func joinGroup(cycle fwk.CycleState, pod *corev1.Pod, s *state) error {
	group := cycle.GetPodGroupSchedulingCycle()
	if group == nil {
		return nil
	}
	g, err := readGroupState(group)
	if err != nil {
		return err
	}
	if g == nil {
		g = &groupState{pods: make(map[types.UID]*state)}
		group.Write(stateKey, g)
	}
	g.pods[pod.UID] = s
	return nil
}

// reservedFor tells whether the claim lists the consumer.
func reservedFor(claim *resourceapi.ResourceClaim, consumer types.UID) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
		return c.UID == consumer
	})
}
