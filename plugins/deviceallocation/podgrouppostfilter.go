package deviceallocation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

// PodGroupPostFilter helps a group for which there is no placement. What
// PostFilter does for a single pod happens for each pod that was left over; if
// one of them has nothing to give back, a claim of the group is given back: one
// whose devices a pod cannot reach, else one that an earlier attempt has
// reserved for the group, which must not hold devices while it cannot run. Once
// a pod of the group has its place, the group keeps its claims. The group is
// tried again when a claim has been written.
func (pl *Plugin) PodGroupPostFilter(ctx context.Context, cycle fwk.PodGroupCycleState, info fwk.PodGroupInfo, _ fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	group := info.GetPodGroup()
	switch {
	case info.GetType() == fwk.CompositePodGroupKeyType || group == nil:
		return nil, fwk.NewStatus(fwk.Unschedulable)
	case pl.gates.EnableTopologyAwareWorkloadScheduling && group.Spec.SchedulingConstraints != nil:
		// Each placement was tried with devices of its own: what is unavailable in
		// one of them need not be so in the others.
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	g, err := readGroupState(cycle)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if g == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	pods := info.GetUnscheduledPods()
	done, idle, status := pl.helpPods(ctx, g, pods)
	if status.Code() == fwk.Error {
		return nil, status
	}
	if idle && pl.gates.EnableDRAWorkloadResourceClaims {
		freed, err := pl.freeGroupClaim(ctx, g, group, pods)
		if err != nil {
			return nil, pl.againAll(ctx, pods, err)
		}
		if freed != "" {
			done = append(done, freed)
		}
	}
	if len(done) == 0 {
		if done, err = pl.groupRemarks(g, pods); err != nil {
			return nil, fwk.AsStatus(err)
		}
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, done...)
}

// helpPods does for each pod what PostFilter does for a single one. done are the
// texts of what was done, each once; idle says that there was nothing to do for
// one of the pods.
func (pl *Plugin) helpPods(ctx context.Context, g *groupState, pods []*corev1.Pod) (done []string, idle bool, status *fwk.Status) {
	freed := sets.New[types.UID]()
	for _, pod := range pods {
		s, tried := g.pods[pod.UID]
		if !tried {
			continue
		}
		status, claim := pl.giveBack(ctx, pod, s, freed)
		switch {
		case status.Code() == fwk.Error:
			return nil, false, status
		case claim == "":
			idle = true
			continue
		}
		freed.Insert(claim)
		for _, text := range status.Reasons() {
			if !slices.Contains(done, text) {
				done = append(done, text)
			}
		}
	}
	return done, idle, nil
}

// giveBack gives back what keeps a pod from running: the claim of an earlier
// attempt for its extended resources, or an allocation. It returns which claim
// that was, also when somebody was faster; it is empty if there was nothing to
// do. Claims in freed have been given back in this cycle.
func (pl *Plugin) giveBack(ctx context.Context, pod *corev1.Pod, s *state, freed sets.Set[types.UID]) (*fwk.Status, types.UID) {
	if s == nil {
		return nil, ""
	}
	if s.extended != nil && s.extended.leftover != nil {
		if err := pl.writer.DeleteClaim(ctx, s.extended.leftover); err != nil {
			return pl.again(ctx, pod, fmt.Errorf("delete claim of an earlier attempt: %w", err)), s.extended.leftover.UID
		}
		return fwk.NewStatus(fwk.Unschedulable, "deletion of ResourceClaim completed"), s.extended.leftover.UID
	}
	c := s.unavailable(pod)
	switch {
	case c == nil:
		return nil, ""
	case freed.Has(c.claim.UID):
		return fwk.NewStatus(fwk.Unschedulable), c.claim.UID
	}
	return pl.deallocate(ctx, pod, c), c.claim.UID
}

// freeGroupClaim gives back one claim of a group of which no pod has a place,
// and returns what was done; that is empty if there was nothing to do.
func (pl *Plugin) freeGroupClaim(ctx context.Context, g *groupState, group *schedulingapi.PodGroup, pods []*corev1.Pod) (string, error) {
	placed, err := pl.handle.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return "", fmt.Errorf("read state of podgroup %s: %w", klog.KObj(group), err)
	}
	// This is the live state, without the pods that the cycle has tried. It cannot
	// change to our surprise: only this goroutine assumes pods.
	if placed.ScheduledPodsCount() > 0 {
		return "", nil
	}
	claim, text := g.unavailable(group, pods), "deallocation of PodGroup ResourceClaim completed"
	if claim == nil {
		if claim, err = pl.reservedForGroup(group); err != nil {
			return "", err
		}
		text = "ResourceClaim unreserved for PodGroup"
	}
	if claim == nil {
		return "", nil
	}
	if reservedFor(claim, group.UID) {
		// The answer to a binding may have been lost: then the pod runs although
		// the queue still has it.
		if bound, err := pl.anyBound(ctx, group.Namespace, pods); bound || err != nil {
			return "", err
		}
	}
	return text, pl.freeFor(ctx, group, claim)
}

// freeFor takes a group out of a claim. The allocation goes too if nobody else
// uses it.
func (pl *Plugin) freeFor(ctx context.Context, group *schedulingapi.PodGroup, claim *resourceapi.ResourceClaim) error {
	written, err := pl.writer.Deallocate(ctx, claim, group.UID)
	switch {
	case err == nil:
		pl.inFlight.observe(written)
		klog.FromContext(ctx).V(5).Info("Deallocated claim of a group", "podGroup", klog.KObj(group), "resourceclaim", klog.KObj(claim))
		return nil
	case errors.Is(err, claimwriter.ErrInUse):
		if err := pl.writer.Release(ctx, claim, group.UID, true); err != nil {
			return fmt.Errorf("take podgroup %s out of claim %s: %w", klog.KObj(group), klog.KObj(claim), err)
		}
		return nil
	case errors.Is(err, claimwriter.ErrGone), errors.Is(err, claimwriter.ErrReplaced), errors.Is(err, claimwriter.ErrAllocatedElsewhere):
		return nil // somebody was faster; an event will tell
	default:
		return fmt.Errorf("take back the allocation of claim %s: %w", klog.KObj(claim), err)
	}
}

// unavailable picks the claim that rules out most nodes of those that nobody but
// the group has reserved, the first of equals in the order of the pods. It
// returns nil if there is none.
func (g *groupState) unavailable(group *schedulingapi.PodGroup, pods []*corev1.Pod) *resourceapi.ResourceClaim {
	var worst *allocatedClaim
	for _, pod := range pods {
		s := g.pods[pod.UID]
		if s == nil {
			continue
		}
		for _, c := range s.allocated {
			if c.blocked == "" && c.unreachable.Load() == 0 || reservedForOthers(c.claim, group.UID) {
				continue
			}
			if worst == nil || c.worse(worst) {
				worst = c
			}
		}
	}
	if worst == nil {
		return nil
	}
	return worst.claim
}

// reservedForGroup returns the first claim of a group that is allocated and
// reserved for it, or nil.
func (pl *Plugin) reservedForGroup(group *schedulingapi.PodGroup) (*resourceapi.ResourceClaim, error) {
	for i := range group.Spec.ResourceClaims {
		name, own, err := resourceclaim.NameFromPodGroup(group, &group.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue // not made yet, so it holds nothing
		}
		claim, err := pl.claims.Get(group.Namespace, *name)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read claim %s/%s: %w", group.Namespace, *name, err)
		}
		if own && resourceclaim.IsForPodGroup(group, claim) != nil {
			continue
		}
		if claim.Status.Allocation != nil && reservedFor(claim, group.UID) {
			return claim, nil
		}
	}
	return nil, nil
}

// anyBound asks the API server whether one of the pods has a node.
func (pl *Plugin) anyBound(ctx context.Context, namespace string, pods []*corev1.Pod) (bool, error) {
	waiting := sets.New[types.UID]()
	for _, pod := range pods {
		waiting.Insert(pod.UID)
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	list, err := pl.handle.ClientSet().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", "").String(),
	})
	if err != nil {
		return false, fmt.Errorf("list bound pods: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName != "" && waiting.Has(pod.UID)
	}), nil
}

// groupRemarks are what the reasons of the single nodes do not say, each once.
func (pl *Plugin) groupRemarks(g *groupState, pods []*corev1.Pod) ([]string, error) {
	var remarks []string
	for _, pod := range pods {
		s := g.pods[pod.UID]
		if s == nil {
			continue
		}
		texts, err := pl.remarks(s)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			if !slices.Contains(remarks, text) {
				remarks = append(remarks, text)
			}
		}
	}
	return remarks, nil
}

// againAll asks for another attempt of the group, as again does for a pod.
func (pl *Plugin) againAll(ctx context.Context, pods []*corev1.Pod, err error) *fwk.Status {
	waiting := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		waiting[klog.KObj(pod).String()] = pod
	}
	pl.handle.Activate(klog.FromContext(ctx), waiting)
	return fwk.AsStatus(err)
}
