package driver

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/utils/ptr"
)

// Names of the two drivers.
const (
	GPU = "gpu.example.com"
	NIC = "nic.example.com"
)

// pcieRoot is the attribute that devices of different drivers have in common.
const pcieRoot = "resource.kubernetes.io/pcieRoot"

// The PCIe roots of each node.
var roots = []string{"pci0000:00", "pci0000:40"}

// Hardware is what one driver has on one node: its pools, and what was done to
// the devices since the start. Not safe for concurrent use.
type Hardware struct {
	node   string
	pools  map[string][]resourceslice.Slice
	absent map[string]bool                      // by device name
	taints map[string][]resourceapi.DeviceTaint // by device name
	// split says that each device without counters has a slice of its own: a
	// pool with another number of slices gets a new generation.
	split bool
}

// NewHardware returns the devices that a driver has on a node. All nodes are
// equal.
func NewHardware(driver, node string) (*Hardware, error) {
	h := &Hardware{node: node, absent: make(map[string]bool), taints: make(map[string][]resourceapi.DeviceTaint)}
	switch driver {
	case GPU:
		h.pools = map[string][]resourceslice.Slice{
			node:                 {{Devices: wholeGPUs()}},
			PartitionsPool(node): partitions(),
			SharedPool(node):     {{Devices: []resourceapi.Device{sharedGPU()}}},
		}
	case NIC:
		h.pools = map[string][]resourceslice.Slice{node: {{Devices: nics()}}}
	default:
		return nil, fmt.Errorf("find hardware of driver %q: there is none: name %s or %s", driver, GPU, NIC)
	}
	return h, nil
}

// PartitionsPool is the pool with the partitions of a GPU, SharedPool that with
// the GPU that several claims can use. All other devices are in the pool that is
// named like the node.
func PartitionsPool(node string) string { return node + "-partitions" }

// SharedPool: see PartitionsPool.
func SharedPool(node string) string { return node + "-shared" }

// wholeGPUs are a large and a small one, on different PCIe roots.
func wholeGPUs() []resourceapi.Device {
	models := []struct{ name, memory string }{{"large", "80Gi"}, {"small", "40Gi"}}
	var devices []resourceapi.Device
	for i, model := range models {
		devices = append(devices, resourceapi.Device{
			Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"kind": text("gpu"), "model": text(model.name), pcieRoot: text(roots[i]),
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(model.memory)}},
		})
	}
	return devices
}

// partitions are one GPU as a whole, or two halves of it.
func partitions() []resourceslice.Slice {
	const set = "gpu-2"
	memory := func(quantity string) map[string]resourceapi.Counter {
		return map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(quantity)}}
	}
	partition := func(name, quantity string) resourceapi.Device {
		return resourceapi.Device{
			Name:             name,
			Attributes:       map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": text("partition")},
			Capacity:         map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(quantity)}},
			ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: memory(quantity)}},
		}
	}
	return []resourceslice.Slice{
		{SharedCounters: []resourceapi.CounterSet{{Name: set, Counters: memory("80Gi")}}},
		{Devices: []resourceapi.Device{
			partition("gpu-2-all", "80Gi"), partition("gpu-2-half-0", "40Gi"), partition("gpu-2-half-1", "40Gi"),
		}},
	}
}

// sharedGPU can be used by several claims, each with a part of its memory.
func sharedGPU() resourceapi.Device {
	return resourceapi.Device{
		Name:                     "gpu-3",
		Attributes:               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": text("shared")},
		AllowMultipleAllocations: ptr.To(true),
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {
			Value: resource.MustParse("40Gi"),
			RequestPolicy: &resourceapi.CapacityRequestPolicy{
				Default:    ptr.To(resource.MustParse("10Gi")),
				ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: ptr.To(resource.MustParse("10Gi")), Step: ptr.To(resource.MustParse("10Gi"))},
			},
		}},
	}
}

func nics() []resourceapi.Device {
	var devices []resourceapi.Device
	for i, root := range roots {
		devices = append(devices, resourceapi.Device{
			Name:       fmt.Sprintf("nic-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": text("nic"), pcieRoot: text(root)},
		})
	}
	return devices
}

func text(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: ptr.To(value)}
}

// Resources is what is to be published now. The caller owns it.
func (h *Hardware) Resources() resourceslice.DriverResources {
	pools := make(map[string]resourceslice.Pool, len(h.pools))
	for name, all := range h.pools {
		var published []resourceslice.Slice
		for i := range all {
			slice := all[i].DeepCopy()
			slice.Devices = slices.DeleteFunc(slice.Devices, func(d resourceapi.Device) bool { return h.absent[d.Name] })
			for i := range slice.Devices {
				device := &slice.Devices[i]
				device.Taints = slices.Clone(h.taints[device.Name])
			}
			if h.split && len(all) == 1 && len(slice.Devices) > 1 {
				for _, device := range slice.Devices {
					published = append(published, resourceslice.Slice{Devices: []resourceapi.Device{device}})
				}
				continue
			}
			published = append(published, *slice)
		}
		pools[name] = resourceslice.Pool{Slices: published}
	}
	return resourceslice.DriverResources{Pools: pools}
}

// Has tells whether a pool has a device, published or not.
func (h *Hardware) Has(pool, name string) bool {
	return slices.ContainsFunc(h.pools[pool], func(slice resourceslice.Slice) bool { return holds(slice, name) })
}

// exists tells whether any pool has a device.
func (h *Hardware) exists(name string) bool {
	for pool := range h.pools {
		if h.Has(pool, name) {
			return true
		}
	}
	return false
}

func holds(slice resourceslice.Slice, name string) bool {
	return slices.ContainsFunc(slice.Devices, func(d resourceapi.Device) bool { return d.Name == name })
}

// Taint adds a taint to a device.
func (h *Hardware) Taint(device string, taint resourceapi.DeviceTaint) error {
	if !h.exists(device) {
		return fmt.Errorf("taint device %q: node %s has none of that name", device, h.node)
	}
	h.taints[device] = append(h.taints[device], taint)
	return nil
}

// Withdraw takes a device out of what is published.
func (h *Hardware) Withdraw(device string) error {
	if !h.exists(device) {
		return fmt.Errorf("withdraw device %q: node %s has none of that name", device, h.node)
	}
	h.absent[device] = true
	return nil
}

// Repair undoes everything that was done to the devices.
func (h *Hardware) Repair() {
	clear(h.taints)
	clear(h.absent)
	h.split = false
}

// NextGeneration distributes the devices over other slices.
func (h *Hardware) NextGeneration() { h.split = !h.split }
