package allocationcheck

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Situation is everything that decides about an allocation.
type Situation struct {
	// Features are the feature gates of the scheduler.
	Features structured.Features
	// Node is where the devices are wanted.
	Node    *corev1.Node
	Slices  []*resourceapi.ResourceSlice
	Classes []*resourceapi.DeviceClass
	// Held are the claims that have been allocated before.
	Held []*resourceapi.ResourceClaim
	// Claims are those to be allocated, all of one pod.
	Claims []*resourceapi.ResourceClaim
}

// Class looks up a device class; nil means that it does not exist.
func (s *Situation) Class(name string) *resourceapi.DeviceClass {
	for _, class := range s.Classes {
		if class.Name == name {
			return class
		}
	}
	return nil
}

// DeepCopy returns a copy that shares nothing with the original.
func (s *Situation) DeepCopy() *Situation {
	return &Situation{
		Features: s.Features,
		Node:     s.Node.DeepCopy(),
		Slices:   copies(s.Slices),
		Classes:  copies(s.Classes),
		Held:     copies(s.Held),
		Claims:   copies(s.Claims),
	}
}

func copies[T interface{ DeepCopy() T }](objects []T) []T {
	var result []T
	for _, object := range objects {
		result = append(result, object.DeepCopy())
	}
	return result
}
