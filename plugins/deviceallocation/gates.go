package deviceallocation

import (
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// deviceFeatures returns the feature gates that the core needs.
func deviceFeatures(gates plfeature.Features) device.Features {
	return device.Features{
		AdminAccess: gates.EnableDRAAdminAccess,
		// Drivers report that a device is ready in the status of the claim.
		BindingConditions:        gates.EnableDRADeviceBindingConditions && gates.EnableDRAResourceClaimDeviceStatus,
		CompatibilityGroups:      gates.EnableDRADeviceCompatibilityGroups,
		ConsumableCapacity:       gates.EnableDRAConsumableCapacity,
		DerivedAttributes:        gates.EnableDRADerivedAttributes,
		DeviceTaints:             gates.EnableDRADeviceTaints,
		FractionalCapacityRange:  gates.EnableDRAFractionalCapacityRange,
		ListTypeAttributes:       gates.EnableDRAListTypeAttributes,
		NodeAllocatableResources: gates.EnableDRANodeAllocatableResources,
		OptionalNodeOperations:   gates.EnableDRAOptionalNodeOperations,
		PartitionableDevices:     gates.EnableDRAPartitionableDevices,
		PrioritizedList:          gates.EnableDRAPrioritizedList,
	}
}
