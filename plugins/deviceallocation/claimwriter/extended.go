package claimwriter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/util/retry"
)

const (
	// A generated name is cut like the API server cuts it, so that it looks the same whoever made it.
	maxGeneratedName = 63
	nameSuffix       = 5
)

// CreateExtendedResourceClaim creates the claim of a pod that asks for extended resources and returns it as the API
// server has it. claim needs a GenerateName and the pod as its controller; its Name, UID and status are disregarded. It
// is not changed. The error is an *Error.
//
// The name is made here, not by the API server: a claim whose creation was not answered could otherwise not be found
// again, and a second one would be created for the pod.
func (w *Writer) CreateExtendedResourceClaim(ctx context.Context, claim *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	create := claim.DeepCopy()
	create.UID, create.ResourceVersion = "", ""
	create.Status = resourceapi.ResourceClaimStatus{}
	create.Name = generateName(create.GenerateName)
	var created *resourceapi.ResourceClaim
	lost := false
	err := untilSettled(ctx, retry.DefaultRetry, func() (err error) {
		created, err = w.claims(create.Namespace).Create(ctx, create, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) && lost {
			created, err = w.created(ctx, create)
			return err
		}
		err = w.observe(OperationCreate, "claim", create, err)
		lost = lost || isLost(err)
		return err
	})
	if err != nil {
		return nil, claimError(OperationCreate, create, err)
	}
	return created, nil
}

func generateName(base string) string {
	return base[:min(len(base), maxGeneratedName-nameSuffix)] + rand.String(nameSuffix)
}

// created returns the claim of a creation that was not answered.
func (w *Writer) created(ctx context.Context, create *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	found, err := w.claims(create.Namespace).Get(ctx, create.Name, metav1.GetOptions{})
	if err != nil {
		return nil, claimError(OperationRead, create, requestFailed(err))
	}
	if controllerOf(found) != controllerOf(create) {
		return nil, ErrReplaced
	}
	return found, nil
}

// DeleteClaim deletes the claim of a pod that asks for extended resources, with its finalizer: nothing else would remove
// that while the pod exists. A claim that is gone or was replaced under its name needs nothing. Like Release it does not
// end with ctx. The error, an *Error, is ErrInUse if the claim is reserved for somebody other than its owner.
func (w *Writer) DeleteClaim(ctx context.Context, claim *resourceapi.ResourceClaim) error {
	ctx, cancel := w.cleanupContext(ctx)
	defer cancel()
	err := untilSettled(ctx, cleanupBackoff, func() error {
		current, err := w.read(ctx, claim)
		if err != nil {
			return err
		}
		if isReservedForOthers(current, controllerOf(current)) {
			return ErrInUse
		}
		if finalizer := slices.Index(current.Finalizers, resourceapi.Finalizer); finalizer >= 0 {
			current.Finalizers = slices.Delete(current.Finalizers, finalizer, finalizer+1)
			_, err := w.claims(claim.Namespace).Update(ctx, current, metav1.UpdateOptions{})
			// Removing the last finalizer of a claim that is being deleted ends it: the next step finds nothing.
			if err := w.observe(OperationRemoveFinalizer, "claim", claim, err); err != nil {
				return err
			}
		}
		err = w.claims(claim.Namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
		if apierrors.IsNotFound(err) {
			return ErrGone
		}
		// The UID is the only precondition. If it is another one by now, the read of the next round says so.
		return w.observe(OperationDelete, "claim", claim, err)
	})
	if errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced) {
		return nil
	}
	return claimError(OperationDelete, claim, err)
}

// controllerOf returns the UID of the pod that a claim for extended resources belongs to.
func controllerOf(claim *resourceapi.ResourceClaim) types.UID {
	if owner := metav1.GetControllerOfNoCopy(claim); owner != nil {
		return owner.UID
	}
	return ""
}

// PatchExtendedResourceStatus tells kubelet which claim holds the pod's extended resources; a nil status takes the
// entry out. Other parts of the pod's status are left alone. If the pod has the status already, nothing is written. A
// pod that was deleted meanwhile gives an *Error with ErrGone, one that was replaced under its name ErrReplaced.
func (w *Writer) PatchExtendedResourceStatus(ctx context.Context, pod *v1.Pod, status *v1.PodExtendedResourceClaimStatus) error {
	if equality.Semantic.DeepEqual(pod.Status.ExtendedResourceClaimStatus, status) {
		return nil
	}
	// The UID makes the API server refuse the patch for another pod of the same name.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"extendedResourceClaimStatus": status},
	})
	if err != nil {
		return objectError(OperationPatchPodStatus, "pod", pod, fmt.Errorf("encode patch: %w", err))
	}
	err = untilSettled(ctx, retry.DefaultRetry, func() error {
		_, err := w.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		switch {
		case apierrors.IsNotFound(err):
			return ErrGone
		case apierrors.IsConflict(err):
			if err := w.checkPod(ctx, pod); err != nil {
				return err
			}
		}
		return w.observe(OperationPatchPodStatus, "pod", pod, err)
	})
	return objectError(OperationPatchPodStatus, "pod", pod, err)
}

// checkPod tells a pod that was replaced from one that merely changed while it was patched.
func (w *Writer) checkPod(ctx context.Context, pod *v1.Pod) error {
	current, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return ErrGone
	case err != nil:
		return objectError(OperationRead, "pod", pod, requestFailed(err))
	case current.UID != pod.UID:
		return ErrReplaced
	}
	return nil
}
