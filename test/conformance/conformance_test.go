package deviceallocationconformance

import (
	"testing"

	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
)

// features are all that the suite knows: no case is left out.
var features = allocatortesting.Features{
	AdminAccess:             true,
	CompatibilityGroups:     true,
	ConsumableCapacity:      true,
	DerivedAttributes:       true,
	DeviceBindingAndStatus:  true,
	DeviceTaints:            true,
	FractionalCapacityRange: true,
	ListTypeAttributes:      true,
	OptionalNodeOperations:  true,
	PartitionableDevices:    true,
	PrioritizedList:         true,
}

func TestAllocator(t *testing.T) {
	allocatortesting.TestAllocator(t, features, newAdapter)
}

func TestLexicographicalOrder(t *testing.T) {
	allocatortesting.TestLexicographicalAllocator(t, features, newAdapter)
}
