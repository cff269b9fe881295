package device

import resourceapi "k8s.io/api/resource/v1"

// Feature names a feature of the resource.k8s.io API in the words that a user
// finds in the Kubernetes documentation.
type Feature string

// The features that a device, request or claim can ask for and that this
// version refuses instead of understanding them by half.
const (
	PartitionableDevices     Feature = "partitionable devices"
	ConsumableCapacity       Feature = "consumable capacity"
	BindingConditions        Feature = "binding conditions"
	ListTypeAttributes       Feature = "list-type attributes"
	DerivedAttributes        Feature = "derived attributes"
	OptionalNodeOperations   Feature = "optional node operations"
	NodeAllocatableResources Feature = "node-allocatable resources"
)

// unsupportedFeature returns the first feature of a device that this version
// cannot allocate, or "". The order is fixed so that equal devices are always
// refused with the same words.
func unsupportedFeature(spec *resourceapi.Device) Feature {
	switch {
	case len(spec.ConsumesCounters) > 0:
		return PartitionableDevices
	case spec.AllowMultipleAllocations != nil && *spec.AllowMultipleAllocations:
		return ConsumableCapacity
	case len(spec.NodeAllocatableResources) > 0:
		return NodeAllocatableResources
	}
	for _, attribute := range spec.Attributes {
		if isList(attribute) {
			return ListTypeAttributes
		}
	}
	return ""
}
