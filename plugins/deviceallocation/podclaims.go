package deviceallocation

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// claimError says why a pod cannot use its claims now. It is the pod's user or
// a controller who has to do something, so the pod waits for an event.
type claimError struct{ text string }

func (e *claimError) Error() string { return e.text }

func claimErrorf(format string, args ...any) error {
	return &claimError{text: fmt.Sprintf(format, args...)}
}

// podClaims returns the claims of a pod in the order of the pod's spec, each
// once: a pod may list a claim under several names. They are as the tracker
// knows them and must not be changed. The error is a *claimError unless the
// tracker fails.
func (pl *Plugin) podClaims(pod *corev1.Pod) ([]*resourceapi.ResourceClaim, error) {
	claims := make([]*resourceapi.ResourceClaim, 0, len(pod.Spec.ResourceClaims))
	seen := make(map[types.UID]bool, len(pod.Spec.ResourceClaims))
	for i := range pod.Spec.ResourceClaims {
		claim, err := pl.podClaim(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, err
		}
		if claim != nil && !seen[claim.UID] {
			seen[claim.UID] = true
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// podClaim returns nil without an error when there is legitimately no claim:
// the controller found that none is needed.
func (pl *Plugin) podClaim(pod *corev1.Pod, reference *corev1.PodResourceClaim) (*resourceapi.ResourceClaim, error) {
	name, ofPod, err := resourceclaim.Name(pod, reference)
	if err != nil {
		return nil, claimErrorf("waiting for the claim %q of the pod: %v", reference.Name, err)
	}
	if name == nil {
		return nil, nil
	}
	claim, err := pl.claims.Get(pod.Namespace, *name)
	if isNotFound(err) {
		return nil, claimErrorf("resourceclaim %q not found", *name)
	}
	if err != nil {
		return nil, claimErrorf("resourceclaim %q: %v", *name, err)
	}
	if claim.DeletionTimestamp != nil {
		return nil, claimErrorf("resourceclaim %q is being deleted", *name)
	}
	if ofPod {
		if err := resourceclaim.IsForPod(pod, claim, pl.gates.EnableDRAWorkloadResourceClaims); err != nil {
			return nil, claimErrorf("%v", err)
		}
	}
	return claim, nil
}

// isNotFound tells whether the tracker does not have a claim.
func isNotFound(err error) bool {
	return errors.Is(err, assumecache.ErrNotFound) || apierrors.IsNotFound(err)
}
