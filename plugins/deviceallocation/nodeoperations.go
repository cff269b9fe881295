package deviceallocation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
)

// skipsNodeOperations tells whether the kubelet of a node knows that it has
// nothing to do for some devices (KEP-5945). An older one would wait for a
// driver on the node that is not there.
func skipsNodeOperations(node *corev1.Node) bool {
	return slices.Contains(node.Status.DeclaredFeatures, draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate)
}

// needsSkippedOperations tells whether an allocation can be used only on such a
// node. It holds whether or not the feature is on in the scheduler: the devices
// are there, and kubelet looks at them.
func needsSkippedOperations(allocation *resourceapi.AllocationResult) bool {
	return slices.ContainsFunc(allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return len(result.SkipNodeOperations) > 0
	})
}
