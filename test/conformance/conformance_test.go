package deviceallocationconformance

import (
	"testing"

	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
)

// features are those whose cases may be in scope; outOfScope has the last word.
var features = allocatortesting.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

func TestAllocator(t *testing.T) {
	allocatortesting.TestAllocator(t, features, newAdapter)
}

func TestLexicographicalOrder(t *testing.T) {
	allocatortesting.TestLexicographicalAllocator(t, features, newAdapter)
}
