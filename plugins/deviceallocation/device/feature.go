package device

import resourceapi "k8s.io/api/resource/v1"

// Feature names a feature of the resource.k8s.io API in the words that a user
// finds in the Kubernetes documentation.
type Feature string

// The features that a device, request or claim can ask for and that are refused
// while their gate is off. With NodeAllocatableResources it is the other way
// round: without its gate such devices are ordinary ones, with it they would have
// to be accounted for in a way that is closed to plugins.
const (
	PartitionableDevices     Feature = "partitionable devices"
	ConsumableCapacity       Feature = "consumable capacity"
	BindingConditions        Feature = "binding conditions"
	ListTypeAttributes       Feature = "list-type attributes"
	DerivedAttributes        Feature = "derived attributes"
	OptionalNodeOperations   Feature = "optional node operations"
	NodeAllocatableResources Feature = "node-allocatable resources"
	PrioritizedList          Feature = "prioritized lists"
	AdminAccess              Feature = "admin access"
)

// unsupportedFeature returns the first feature of a device that keeps it from
// being allocated, or "". The order is fixed so that
// equal devices are always refused with the same words.
//
// Two features are not in here, because without them devices keep their older
// meaning: one that allows multiple allocations is exclusive, and list-type
// attributes never satisfy a constraint.
func unsupportedFeature(slice *resourceapi.ResourceSlice, spec *resourceapi.Device, features Features) Feature {
	switch {
	case !features.PartitionableDevices && len(spec.ConsumesCounters) > 0:
		return PartitionableDevices
	case !features.BindingConditions && len(spec.BindingConditions) > 0:
		return BindingConditions
	case !features.OptionalNodeOperations && len(slice.Spec.SkipNodeOperations) > 0:
		return OptionalNodeOperations
	case features.NodeAllocatableResources && len(spec.NodeAllocatableResources) > 0:
		return NodeAllocatableResources
	}
	return ""
}
