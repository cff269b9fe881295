package hardware

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Apply creates the objects, or updates those that exist: classes first, then
// nodes, then the slices, which get their node as owner as a driver would set
// it, so that deleting the node deletes them. Applying the same objects again
// changes nothing. What others wrote to a node (conditions, taints, further
// labels) stays. objects is read only. On an error, which names the object,
// those before it have been applied.
func Apply(ctx context.Context, client kubernetes.Interface, objects *Objects) error {
	for _, class := range objects.Classes {
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			return applyClass(ctx, client, class)
		}); err != nil {
			return fmt.Errorf("apply DeviceClass %s: %w", class.Name, err)
		}
	}
	owners := map[string]metav1.OwnerReference{}
	for _, node := range objects.Nodes {
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			return applyNode(ctx, client, node, owners)
		}); err != nil {
			return fmt.Errorf("apply Node %s: %w", node.Name, err)
		}
	}
	for _, slice := range objects.Slices {
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			return applySlice(ctx, client, slice, owners)
		}); err != nil {
			return fmt.Errorf("apply ResourceSlice %s: %w", slice.Name, err)
		}
	}
	return nil
}

// portable keeps of an object's metadata what makes sense in another cluster:
// descriptions may come out of a real one.
func portable(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        meta.Name,
		Labels:      maps.Clone(meta.Labels),
		Annotations: maps.Clone(meta.Annotations),
	}
}

// overlay sets want's entries in have and keeps the others.
func overlay(have, want map[string]string) map[string]string {
	if len(want) == 0 {
		return have
	}
	merged := maps.Clone(want)
	for key, value := range have {
		if _, ok := merged[key]; !ok {
			merged[key] = value
		}
	}
	return merged
}

func applyClass(ctx context.Context, client kubernetes.Interface, want *resourcev1.DeviceClass) error {
	classes := client.ResourceV1().DeviceClasses()
	have, err := classes.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err := classes.Create(ctx, &resourcev1.DeviceClass{
			ObjectMeta: portable(want.ObjectMeta), Spec: *want.Spec.DeepCopy(),
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	updated := have.DeepCopy()
	updated.Labels = overlay(have.Labels, want.Labels)
	updated.Annotations = overlay(have.Annotations, want.Annotations)
	updated.Spec = *want.Spec.DeepCopy()
	if apiequality.Semantic.DeepEqual(have, updated) {
		return nil
	}
	_, err = classes.Update(ctx, updated, metav1.UpdateOptions{})
	return err
}

// applyNode creates the node with its capacity, as a kubelet registers, or
// updates it in two steps, because an update of the node leaves out its status.
func applyNode(ctx context.Context, client kubernetes.Interface, want *corev1.Node, owners map[string]metav1.OwnerReference) error {
	nodes := client.CoreV1().Nodes()
	have, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node := &corev1.Node{
			ObjectMeta: portable(want.ObjectMeta),
			Spec:       corev1.NodeSpec{Taints: slices.Clone(want.Spec.Taints), Unschedulable: want.Spec.Unschedulable},
			Status:     nodeStatus(corev1.NodeStatus{}, want.Status),
		}
		have, err = nodes.Create(ctx, node, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}

	updated := have.DeepCopy()
	updated.Labels = overlay(have.Labels, want.Labels)
	updated.Annotations = overlay(have.Annotations, want.Annotations)
	updated.Spec.Unschedulable = want.Spec.Unschedulable
	for _, taint := range want.Spec.Taints {
		if !slices.ContainsFunc(updated.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			updated.Spec.Taints = append(updated.Spec.Taints, taint)
		}
	}
	if !apiequality.Semantic.DeepEqual(have, updated) {
		if have, err = nodes.Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}

	updated = have.DeepCopy()
	updated.Status = nodeStatus(have.Status, want.Status)
	if !apiequality.Semantic.DeepEqual(have, updated) {
		if have, err = nodes.UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	owners[have.Name] = metav1.OwnerReference{
		APIVersion: "v1", Kind: "Node", Name: have.Name, UID: have.UID, Controller: new(true),
	}
	return nil
}

// nodeStatus sets in have the facts of hardware that want gives. Conditions and
// the like are the (simulated) kubelet's.
func nodeStatus(have, want corev1.NodeStatus) corev1.NodeStatus {
	status := *have.DeepCopy()
	if len(want.Capacity) > 0 {
		status.Capacity = want.Capacity.DeepCopy()
	}
	if len(want.Allocatable) > 0 {
		status.Allocatable = want.Allocatable.DeepCopy()
	}
	if len(want.Addresses) > 0 {
		status.Addresses = slices.Clone(want.Addresses)
	}
	if len(want.DeclaredFeatures) > 0 {
		status.DeclaredFeatures = slices.Clone(want.DeclaredFeatures)
	}
	return status
}

func applySlice(ctx context.Context, client kubernetes.Interface, want *resourcev1.ResourceSlice, owners map[string]metav1.OwnerReference) error {
	slicesClient := client.ResourceV1().ResourceSlices()
	var references []metav1.OwnerReference
	if want.Spec.NodeName != nil {
		if owner, ok := owners[*want.Spec.NodeName]; ok {
			references = []metav1.OwnerReference{owner}
		}
	}
	have, err := slicesClient.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		slice := &resourcev1.ResourceSlice{ObjectMeta: portable(want.ObjectMeta), Spec: *want.Spec.DeepCopy()}
		slice.OwnerReferences = references
		_, err := slicesClient.Create(ctx, slice, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	updated := have.DeepCopy()
	updated.Labels = overlay(have.Labels, want.Labels)
	updated.Annotations = overlay(have.Annotations, want.Annotations)
	updated.Spec = *want.Spec.DeepCopy()
	if references != nil {
		updated.OwnerReferences = references
	}
	if apiequality.Semantic.DeepEqual(have, updated) {
		return nil
	}
	_, err = slicesClient.Update(ctx, updated, metav1.UpdateOptions{})
	return err
}
