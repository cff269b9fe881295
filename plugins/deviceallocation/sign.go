package deviceallocation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// devicesFragment is the key of what SignPod says about a pod.
const devicesFragment = Name

// devicesSignature is equal for pods that get the same devices on the same
// nodes, at the same price.
type devicesSignature struct {
	// Problem is what the pod needs.
	Problem problem.Signature
	// Claims are those that have a say of their own: they have devices, or may
	// get them for another pod.
	Claims []types.UID `json:",omitempty"`
	// Extended has the resources of the pod that classes back.
	Extended []corev1.ResourceName `json:",omitempty"`
}

// SignPod lets pods that need the same devices share what one of them has found
// out about nodes (opportunistic batching, KEP-5598): pods whose claims were made
// from templates with the same content, and pods that use the very same claims.
// A pod whose claims cannot be used yet has no signature; the scheduler asks again
// when the pod has changed. Pods without devices look alike to this plugin.
//
// The signature only chooses which node is looked at first: Filter looks at the
// pod's own claims there.
func (pl *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	extended := pl.extendedResources(pod)
	if len(pod.Spec.ResourceClaims) == 0 && len(extended) == 0 {
		return nil, nil
	}
	claims, err := pl.podClaims(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	var signature devicesSignature
	var pending []*resourceapi.ResourceClaim
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			pending = append(pending, claim)
		}
		if claim.Status.Allocation != nil || resourceclaim.IsForPod(pod, claim, false) != nil {
			signature.Claims = append(signature.Claims, claim.UID)
		}
	}
	if len(extended) > 0 {
		e := newExtendedState(pod, extended)
		claim, _ := e.claim(e.names)
		pending, signature.Extended = append(pending, claim), e.names
	}
	p, err := pl.problem(pending)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, statusOf(err, nil).Message())
	}
	signature.Problem = p.Signature
	return []fwk.SignFragment{{Key: devicesFragment, Value: signature}}, nil
}

// problem builds the problem of allocating claims.
func (pl *Plugin) problem(claims []*resourceapi.ResourceClaim) (*problem.Problem, error) {
	return problem.Build(claims, problem.Source{Classes: pl.classes.Get, Compiler: pl.compiler, Features: pl.features})
}
