package builders

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// SliceBuilder builds a ResourceSlice.
type SliceBuilder struct{ slice resourceapi.ResourceSlice }

// Slice starts the only slice, of generation 1, of a pool. It is named
// driver-pool and selects no node yet.
func Slice(driver, pool string) *SliceBuilder {
	return &SliceBuilder{slice: resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: driver + "-" + pool},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver,
			Pool:   resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
		},
	}}
}

// Named sets the name, which decides the order of slices inside a pool.
func (b *SliceBuilder) Named(name string) *SliceBuilder {
	b.slice.Name = name
	return b
}

// Generation sets the generation of the pool.
func (b *SliceBuilder) Generation(generation int64) *SliceBuilder {
	b.slice.Spec.Pool.Generation = generation
	return b
}

// SliceCount sets how many slices the pool has.
func (b *SliceBuilder) SliceCount(count int64) *SliceBuilder {
	b.slice.Spec.Pool.ResourceSliceCount = count
	return b
}

// OnNode makes the devices local to a node.
func (b *SliceBuilder) OnNode(name string) *SliceBuilder {
	b.slice.Spec.NodeName = ptr.To(name)
	return b
}

// OnAllNodes makes the devices reachable from everywhere.
func (b *SliceBuilder) OnAllNodes() *SliceBuilder {
	b.slice.Spec.AllNodes = ptr.To(true)
	return b
}

// OnNodesWith makes the devices reachable from nodes with a label.
func (b *SliceBuilder) OnNodesWith(label, value string) *SliceBuilder {
	b.slice.Spec.NodeSelector = NodesWith(label, value)
	return b
}

// PerDevice lets each device select its own nodes.
func (b *SliceBuilder) PerDevice() *SliceBuilder {
	b.slice.Spec.PerDeviceNodeSelection = ptr.To(true)
	return b
}

// SkipNodeOperations says that kubelet has nothing to do for the devices.
func (b *SliceBuilder) SkipNodeOperations() *SliceBuilder {
	b.slice.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
	return b
}

// Devices adds devices.
func (b *SliceBuilder) Devices(devices ...*DeviceBuilder) *SliceBuilder {
	for _, d := range devices {
		b.slice.Spec.Devices = append(b.slice.Spec.Devices, *d.Obj())
	}
	return b
}

// Obj returns the slice. Each call returns a new copy.
func (b *SliceBuilder) Obj() *resourceapi.ResourceSlice { return b.slice.DeepCopy() }

// NodesWith selects the nodes with a label.
func NodesWith(label, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
		}},
	}}}
}
