package inventory

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

const devicesPerNode = 10

func nodeSlice(node, versionNumber int) *resourceapi.ResourceSlice {
	name := fmt.Sprint("worker-", node)
	slice := newSlice(name, version(versionNumber), inPool(name), onNode(name))
	model := fmt.Sprint("model-", versionNumber%2)
	for i := range devicesPerNode {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
			Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"model": {StringValue: &model},
			},
		})
	}
	return slice
}

func fullInventory(nodes, sharedPools int) *Inventory {
	inventory := New(device.AllFeatures())
	for i := range nodes {
		inventory.SetSlice(nodeSlice(i, 1))
	}
	for i := range sharedPools {
		name := fmt.Sprint("shared-", i)
		inventory.SetSlice(newSlice(name, inPool(name), onZone("a"), named("nic-0", "nic-1")))
	}
	inventory.Snapshot()
	return inventory
}

// BenchmarkEventAndSnapshot is what the change of one node's slice costs. It
// must not depend on the number of nodes.
func BenchmarkEventAndSnapshot(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			inventory := fullInventory(nodes, 0)
			slice := nodeSlice(nodes/2, 1)
			other := nodeSlice(nodes/2, 2)
			b.ReportAllocs()
			for number := 2; b.Loop(); number++ {
				slice, other = other, slice
				changed := *slice
				changed.ResourceVersion = fmt.Sprint(number)
				inventory.SetSlice(&changed)
				inventory.Snapshot()
			}
		})
	}
}

// BenchmarkNode is what a look at a node costs whose view is known.
func BenchmarkNode(b *testing.B) {
	for _, shared := range []int{0, 20} {
		b.Run(fmt.Sprint("sharedPools=", shared), func(b *testing.B) {
			const nodes = 5000
			snapshot := fullInventory(nodes, shared).Snapshot()
			all := make([]*corev1.Node, nodes)
			for i := range all {
				all[i] = newNode(fmt.Sprint("worker-", i), "a")
				snapshot.Node(all[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				snapshot.Node(all[i%nodes])
			}
		})
	}
}

// BenchmarkInitialLoad is what the first snapshot of a whole cluster costs.
func BenchmarkInitialLoad(b *testing.B) {
	const nodes = 5000
	slices := make([]*resourceapi.ResourceSlice, nodes)
	for i := range slices {
		slices[i] = nodeSlice(i, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		inventory := New(device.AllFeatures())
		for _, slice := range slices {
			inventory.SetSlice(slice)
		}
		inventory.Snapshot()
	}
}
