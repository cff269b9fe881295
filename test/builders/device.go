package builders

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// DeviceBuilder builds a device of a ResourceSlice.
type DeviceBuilder struct{ device resourceapi.Device }

// Version is the value of an attribute that is a semantic version.
type Version string

// Device starts a device.
func Device(name string) *DeviceBuilder {
	return &DeviceBuilder{device: resourceapi.Device{Name: name}}
}

// DevicesNamed returns n devices with the names prefix-0, prefix-1 and so on,
// to each of which change is applied if it is not nil.
func DevicesNamed(prefix string, n int, change func(i int, d *DeviceBuilder)) []*DeviceBuilder {
	devices := make([]*DeviceBuilder, n)
	for i := range devices {
		devices[i] = Device(fmt.Sprintf("%s-%d", prefix, i))
		if change != nil {
			change(i, devices[i])
		}
	}
	return devices
}

// Attribute adds an attribute: a string, int, bool or Version, or a list of
// one of them.
func (b *DeviceBuilder) Attribute(name string, value any) *DeviceBuilder {
	if b.device.Attributes == nil {
		b.device.Attributes = make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
	}
	b.device.Attributes[resourceapi.QualifiedName(name)] = attribute(value)
	return b
}

func attribute(value any) resourceapi.DeviceAttribute {
	switch v := value.(type) {
	case string:
		return resourceapi.DeviceAttribute{StringValue: ptr.To(v)}
	case int:
		return resourceapi.DeviceAttribute{IntValue: ptr.To(int64(v))}
	case bool:
		return resourceapi.DeviceAttribute{BoolValue: ptr.To(v)}
	case Version:
		return resourceapi.DeviceAttribute{VersionValue: ptr.To(string(v))}
	case []string:
		return resourceapi.DeviceAttribute{StringValues: v}
	case []int64:
		return resourceapi.DeviceAttribute{IntValues: v}
	default:
		panic(fmt.Sprintf("attribute of type %T: use a string, int, bool, Version, []string or []int64", value))
	}
}

// Capacity adds a capacity, given as a quantity.
func (b *DeviceBuilder) Capacity(name, quantity string) *DeviceBuilder {
	if b.device.Capacity == nil {
		b.device.Capacity = make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity)
	}
	b.device.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: resource.MustParse(quantity)}
	return b
}

// Taint adds a taint without a value.
func (b *DeviceBuilder) Taint(key string, effect resourceapi.DeviceTaintEffect) *DeviceBuilder {
	b.device.Taints = append(b.device.Taints, resourceapi.DeviceTaint{Key: key, Effect: effect})
	return b
}

// Conditions names the conditions that must be true before a pod can use the
// device, and those that say that this will not happen.
func (b *DeviceBuilder) Conditions(binding, failure []string) *DeviceBuilder {
	b.device.BindingConditions, b.device.BindingFailureConditions = binding, failure
	return b
}

// OnNode selects a node, in a slice with PerDevice.
func (b *DeviceBuilder) OnNode(name string) *DeviceBuilder {
	b.device.NodeName = ptr.To(name)
	return b
}

// OnAllNodes selects all nodes, in a slice with PerDevice.
func (b *DeviceBuilder) OnAllNodes() *DeviceBuilder {
	b.device.AllNodes = ptr.To(true)
	return b
}

// OnNodesWith selects nodes by a label, in a slice with PerDevice.
func (b *DeviceBuilder) OnNodesWith(label, value string) *DeviceBuilder {
	b.device.NodeSelector = NodesWith(label, value)
	return b
}

// With changes the device in a way that is too rare for a method of its own.
func (b *DeviceBuilder) With(change func(*resourceapi.Device)) *DeviceBuilder {
	change(&b.device)
	return b
}

// Obj returns the device. Each call returns a new copy.
func (b *DeviceBuilder) Obj() *resourceapi.Device { return b.device.DeepCopy() }
