package deviceallocation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// EventsToRegister lists the events that may help a pod which this plugin has
// rejected. DeviceClass events must be in it: the scheduler keeps its own table
// of extended resources only if some plugin asks for them.
func (pl *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{
			Event:          fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel | fwk.UpdateNodeAllocatable | fwk.UpdateNodeDeclaredFeature},
			QueueingHintFn: pl.afterNode,
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Add | fwk.Update | fwk.Delete},
			QueueingHintFn: pl.afterClaim,
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodGeneratedResourceClaim},
			QueueingHintFn: pl.afterOwnClaims,
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.DeviceClass, ActionType: fwk.Add | fwk.Update},
			QueueingHintFn: pl.afterClass,
		},
		{
			// A slice that goes away can help as well: a pool with one slice too
			// many becomes usable.
			Event:          fwk.ClusterEvent{Resource: fwk.ResourceSlice, ActionType: fwk.Add | fwk.Update | fwk.Delete},
			QueueingHintFn: pl.afterSlice,
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete},
			QueueingHintFn: pl.afterPod,
		},
	}, nil
}

// afterPod: a pod could not be bound, which the scheduler reports as the end of
// an assigned pod, and its devices are free again without any claim having
// changed. When a pod is deleted in fact, its devices come free with its claim.
func (pl *Plugin) afterPod(_ klog.Logger, _ *corev1.Pod, oldObj, _ any) (fwk.QueueingHint, error) {
	gone, _, err := schedutil.As[*corev1.Pod](oldObj, nil)
	if err != nil {
		return fwk.Queue, err
	}
	if gone == nil || gone.DeletionTimestamp != nil {
		return fwk.QueueSkip, nil
	}
	return queueIf(len(gone.Spec.ResourceClaims) > 0 || len(pl.extendedResources(gone)) > 0), nil
}

// afterNode: a new node, new labels, a device plugin that starts or stops to
// offer a resource, or a kubelet that knows more than its predecessor. Pods that
// still lack claims wait for those.
func (pl *Plugin) afterNode(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := schedutil.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if _, err := pl.podClaims(pod); err != nil {
		return fwk.QueueSkip, nil
	}
	if before == nil || after == nil || !equality.Semantic.DeepEqual(before.Labels, after.Labels) {
		return fwk.Queue, nil
	}
	return queueIf(skipsNodeOperations(after) && !skipsNodeOperations(before) || len(pl.extendedResources(pod)) > 0), nil
}

// afterClaim: devices come free, or a claim of the pod changes.
func (pl *Plugin) afterClaim(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	if unknown, ok := oldObj.(cache.DeletedFinalStateUnknown); ok && newObj == nil {
		// The claim may have held anything.
		ifType(unknown.Obj, pl.ledger.Forget)
		return fwk.Queue, nil
	}
	before, after, err := schedutil.As[*resourceapi.ResourceClaim](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if after == nil {
		pl.ledger.Forget(before)
		// The pod may have waited for the end of a claim of an earlier attempt.
		return queueIf(before.Status.Allocation != nil || madeFor(before, pod)), nil
	}
	pl.inFlight.observe(after)
	claims, err := pl.podClaims(pod)
	if err != nil {
		return fwk.QueueSkip, nil
	}
	if before != nil && before.Status.Allocation != nil && !equality.Semantic.DeepEqual(before.Status.Allocation, after.Status.Allocation) {
		return fwk.Queue, nil
	}
	if !uses(pod, claims, after) {
		return fwk.QueueSkip, nil
	}
	return queueIf(before == nil || !equality.Semantic.DeepEqual(&before.Status, &after.Status)), nil
}

func uses(pod *corev1.Pod, claims []*resourceapi.ResourceClaim, claim *resourceapi.ResourceClaim) bool {
	for _, own := range claims {
		if own.UID == claim.UID {
			return true
		}
	}
	return madeFor(claim, pod)
}

// madeFor tells whether the claim is for extended resources of the pod.
func madeFor(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	owners, _ := extendedOwner(claim)
	return len(owners) == 1 && types.UID(owners[0]) == pod.UID
}

// afterOwnClaims: the controller has made the claims that the pod was waiting
// for.
func (pl *Plugin) afterOwnClaims(_ klog.Logger, _ *corev1.Pod, _, newObj any) (fwk.QueueingHint, error) {
	_, after, err := schedutil.As[*corev1.Pod](nil, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	_, err = pl.podClaims(after)
	return queueIf(err == nil), nil
}

// afterClass: a class that the pod asks for appears or changes, or now backs an
// extended resource.
func (pl *Plugin) afterClass(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	_, after, err := schedutil.As[*resourceapi.DeviceClass](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if after == nil {
		return fwk.QueueSkip, nil
	}
	claims, err := pl.podClaims(pod)
	if err != nil {
		return fwk.QueueSkip, nil
	}
	if len(pl.extendedResources(pod)) > 0 {
		return fwk.Queue, nil
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil && asksFor(claim, after.Name) {
			return fwk.Queue, nil
		}
	}
	return fwk.QueueSkip, nil
}

func asksFor(claim *resourceapi.ResourceClaim, class string) bool {
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if request.Exactly != nil && request.Exactly.DeviceClassName == class {
			return true
		}
		for j := range request.FirstAvailable {
			if request.FirstAvailable[j].DeviceClassName == class {
				return true
			}
		}
	}
	return false
}

// afterSlice: devices appear, change or lose a taint. Pods that still lack
// claims, and those whose claims all have devices without any trouble, do not
// wait for that.
func (pl *Plugin) afterSlice(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	event := newObj
	if event == nil {
		event = oldObj
		if unknown, ok := event.(cache.DeletedFinalStateUnknown); ok {
			event = unknown.Obj
		}
	}
	if slice, ok := event.(*resourceapi.ResourceSlice); ok {
		pl.feed.refreshSlices(slice)
	}
	_, err := pl.podClaims(pod)
	return queueIf(err == nil), nil
}

func queueIf(helps bool) fwk.QueueingHint {
	if helps {
		return fwk.Queue
	}
	return fwk.QueueSkip
}
