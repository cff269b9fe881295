package deviceallocation

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
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
			Event:             fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Add | fwk.Update | fwk.Delete},
			QueueingHintFn:    pl.afterClaim,
			PreQueueingHintFn: pl.podsForClaim,
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

func queueIf(helps bool) fwk.QueueingHint {
	if helps {
		return fwk.Queue
	}
	return fwk.QueueSkip
}

// latest keeps what was found out about one event, because a hint is asked for
// each pod that waits. It is safe for concurrent use.
type latest[E any] struct {
	mutex         sync.Mutex
	before, after any
	event         *E
}

// get returns the event with the two objects, made anew unless it was the one
// before. The objects must be comparable.
func (l *latest[E]) get(before, after any, see func() *E) *E {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.event == nil || l.before != before || l.after != after {
		l.before, l.after, l.event = before, after, see()
	}
	return l.event
}
