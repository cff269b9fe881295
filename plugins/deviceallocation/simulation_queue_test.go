package deviceallocation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// queued is a pod that has no node yet, as the scheduling queue knows it.
type queued struct {
	pod *corev1.Pod
	// waiting is set from a failure until a hint says that trying may help.
	waiting  bool
	inFlight bool
	// missed are the events of an attempt in flight; they are looked at when it
	// has failed.
	missed []clusterEvent
}

// clusterEvent is what the plugin's hints are asked about. pod is set if only
// that pod is concerned.
type clusterEvent struct {
	event    fwk.ClusterEvent
	before   any
	after    any
	pod      string
	notAbout string
}

// watch registers for events where kube-scheduler does: claims come from its
// assume cache, slices from its tracker.
func (s *simulation) watch(h *harness) {
	for resource, source := range map[fwk.EventResource]interface {
		AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	}{
		fwk.Node:          h.informers.Core().V1().Nodes().Informer(),
		fwk.Pod:           h.informers.Core().V1().Pods().Informer(),
		fwk.DeviceClass:   h.informers.Resource().V1().DeviceClasses().Informer(),
		fwk.ResourceSlice: h.sliceEvents,
	} {
		_, err := source.AddEventHandler(s.recorder(resource))
		s.must(err)
	}
	h.claimEvents.AddEventHandler(s.recorder(fwk.ResourceClaim))
}

func (s *simulation) recorder(resource fwk.EventResource) cache.ResourceEventHandler {
	record := func(action fwk.ActionType, before, after any) {
		s.recording.Lock()
		defer s.recording.Unlock()
		s.recorded = append(s.recorded, clusterEvent{event: fwk.ClusterEvent{Resource: resource, ActionType: action}, before: before, after: after})
	}
	update := fwk.Update
	if resource == fwk.Node {
		update = fwk.UpdateNodeLabel // nothing else changes in a node here
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { record(fwk.Add, nil, obj) },
		UpdateFunc: func(before, after any) { record(update, before, after) },
		DeleteFunc: func(obj any) { record(fwk.Delete, obj, nil) },
	}
}

// settle waits until all events that are not held back have been delivered, and
// lets the queue act on them.
func (s *simulation) settle() {
	for {
		s.scheduler.settle()
		s.recording.Lock()
		events := s.recorded
		s.recorded = nil
		s.recording.Unlock()
		if len(events) == 0 {
			s.learn()
			return
		}
		for _, event := range events {
			if event.event.Resource == fwk.Pod {
				s.podEvent(event)
			} else {
				s.announce(event)
			}
		}
	}
}

func (s *simulation) podEvent(event clusterEvent) {
	before, _ := event.before.(*corev1.Pod)
	after, _ := event.after.(*corev1.Pod)
	switch {
	case after == nil:
		delete(s.queue, before.Name)
		if before.Spec.NodeName != "" {
			gone := before.DeepCopy()
			gone.DeletionTimestamp = &metav1.Time{}
			s.announce(clusterEvent{event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, before: gone})
		}
	case after.Spec.NodeName != "":
		delete(s.queue, after.Name)
	case s.queue[after.Name] == nil:
		if s.bound[after.Name] {
			return // known to be bound, although the event is late
		}
		q := &queued{pod: after}
		s.queue[after.Name] = q
		s.enqueue(q)
	default:
		s.queue[after.Name].pod = after
		if before != nil && len(before.Status.ResourceClaimStatuses) != len(after.Status.ResourceClaimStatuses) {
			s.announce(clusterEvent{event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodGeneratedResourceClaim},
				before: before, after: after, pod: after.Name})
		}
	}
}

// announce asks the hints of all pods that the event may concern.
func (s *simulation) announce(event clusterEvent) {
	about := s.about(event)
	for _, name := range sortedNames(s.queue) {
		q := s.queue[name]
		switch {
		case !q.inFlight && about != nil && !about[name]:
			// the scheduler does not even ask
		case event.pod != "" && event.pod != name || event.notAbout == name:
		case q.inFlight:
			q.missed = append(q.missed, event)
		case q.waiting && s.helps(q.pod, event):
			s.enqueue(q)
		}
	}
}

// about returns the pods that the plugin names for an event, nil for all. Every
// other simulation has the feature gate SchedulerPreQueueingHints off.
func (s *simulation) about(event clusterEvent) map[string]bool {
	if s.seed/2%2 == 0 {
		return nil
	}
	for _, registered := range s.hints {
		if registered.PreQueueingHintFn == nil || registered.Event.Resource != event.event.Resource {
			continue
		}
		result, err := registered.PreQueueingHintFn(klog.Background(), event.before, event.after)
		if err != nil {
			s.failf("pods for an event: %v", err)
		}
		if result.AllPods {
			return nil
		}
		about := make(map[string]bool)
		for _, pod := range result.Pods {
			about[pod.Name] = true
		}
		return about
	}
	return nil
}

func (s *simulation) helps(pod *corev1.Pod, event clusterEvent) bool {
	for _, registered := range s.hints {
		if registered.Event.Resource != event.event.Resource || registered.Event.ActionType&event.event.ActionType == 0 {
			continue
		}
		hint, err := registered.QueueingHintFn(klog.Background(), pod, event.before, event.after)
		if err != nil {
			s.failf("hint for %s: %v", pod.Name, err)
		}
		if hint == fwk.Queue {
			return true
		}
	}
	return false
}

// enqueue makes a pod ready for an attempt, unless PreEnqueue keeps it.
func (s *simulation) enqueue(q *queued) {
	q.waiting = !s.scheduler.plugin.PreEnqueue(s.T.Context(), q.pod).IsSuccess()
}

// failed puts a pod back. Errors are tried again at once, everything else waits
// for a hint; events that came during the attempt count.
func (s *simulation) failed(q *queued, status *fwk.Status) {
	missed := q.missed
	q.inFlight, q.missed = false, nil
	if s.queue[q.pod.Name] != q {
		return // the pod is gone, or has a node after all
	}
	q.waiting = true
	if status.Code() == fwk.Error || slices.ContainsFunc(missed, func(event clusterEvent) bool {
		return (event.pod == "" || event.pod == q.pod.Name) && s.helps(q.pod, event)
	}) {
		s.enqueue(q)
	}
}

// ready lists the pods that an attempt may start for.
func (s *simulation) ready() []*queued {
	var ready []*queued
	for _, name := range sortedNames(s.queue) {
		if q := s.queue[name]; !q.waiting && !q.inFlight {
			ready = append(ready, q)
		}
	}
	return ready
}

// waiting lists the pods that no hint has woken.
func (s *simulation) waiting() []*queued {
	var waiting []*queued
	for _, name := range sortedNames(s.queue) {
		if s.queue[name].waiting {
			waiting = append(waiting, s.queue[name])
		}
	}
	return waiting
}

// tolerations are those of the request that got a device.
func tolerations(claim *resourceapi.ResourceClaim, name string) []resourceapi.DeviceToleration {
	for _, request := range claim.Spec.Devices.Requests {
		if request.Exactly != nil && request.Name == name {
			return request.Exactly.Tolerations
		}
		for _, sub := range request.FirstAvailable {
			if request.Name+"/"+sub.Name == name {
				return sub.Tolerations
			}
		}
	}
	return nil
}
