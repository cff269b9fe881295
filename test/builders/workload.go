package builders

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Node returns a node with labels, given as key, value, key, value.
func Node(name string, labels ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: make(map[string]string)}}
	for i := 0; i < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	return node
}

// PodBuilder builds a Pod.
type PodBuilder struct{ pod corev1.Pod }

// Pod starts a pod without containers. Its UID is derived from the name.
func Pod(name string) *PodBuilder {
	return &PodBuilder{pod: corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-of-" + name)},
	}}
}

// Claim lets the pod use an existing claim, under the claim's own name.
func (b *PodBuilder) Claim(name string) *PodBuilder {
	b.pod.Spec.ResourceClaims = append(b.pod.Spec.ResourceClaims,
		corev1.PodResourceClaim{Name: name, ResourceClaimName: ptr.To(name)})
	return b
}

// ClaimTemplate lets the pod use a claim that was made for it from a template.
// An empty generated name means that it has not been made yet.
func (b *PodBuilder) ClaimTemplate(name, template, generated string) *PodBuilder {
	b.pod.Spec.ResourceClaims = append(b.pod.Spec.ResourceClaims,
		corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: ptr.To(template)})
	if generated != "" {
		b.pod.Status.ResourceClaimStatuses = append(b.pod.Status.ResourceClaimStatuses,
			corev1.PodResourceClaimStatus{Name: name, ResourceClaimName: ptr.To(generated)})
	}
	return b
}

// Priority sets the priority.
func (b *PodBuilder) Priority(priority int32) *PodBuilder {
	b.pod.Spec.Priority = ptr.To(priority)
	return b
}

// OnNode makes the pod one that has been scheduled.
func (b *PodBuilder) OnNode(name string) *PodBuilder {
	b.pod.Spec.NodeName = name
	return b
}

// Obj returns the pod. Each call returns a new copy.
func (b *PodBuilder) Obj() *corev1.Pod { return b.pod.DeepCopy() }
