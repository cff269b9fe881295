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
