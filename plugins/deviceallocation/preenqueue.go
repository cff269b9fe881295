package deviceallocation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreEnqueue keeps a pod out of the queue until its claims exist.
func (pl *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if _, err := pl.podClaims(pod); err != nil {
		return statusOf(err, nil)
	}
	return nil
}

// SignPod says that pods with claims cannot share a scheduling result. Pods
// without claims look alike to this plugin.
func (pl *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if len(pod.Spec.ResourceClaims) > 0 || len(pl.extendedResources(pod)) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "pods with devices are not signable")
	}
	return nil, nil
}
