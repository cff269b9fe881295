package device

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// Device is one device of one ResourceSlice, checked once when it is
// published. It is immutable.
type Device struct {
	ID ID
	// Slice is the name of the ResourceSlice, Index the position in it. Inside
	// a pool the two give the order in which equal devices are handed out.
	Slice string
	Index int
	// Spec is the device as its driver published it. Nobody may change it.
	Spec *resourceapi.Device
	// Taints are those of the driver and those of the DeviceTaintRules that
	// select the device.
	Taints []resourceapi.DeviceTaint
	// Reach says from which nodes the device can be used.
	Reach Reach
	// SkipNodeOperations is what kubelet need not do for the device, as its slice
	// says; if it is not empty, only a node whose kubelet knows the field can use
	// the device (KEP-5945). Nobody may change it.
	SkipNodeOperations []resourceapi.SkipNodeOperation
	// Unsupported names the feature that makes this version refuse the device;
	// it is empty for a device that can be allocated.
	Unsupported Feature
	// AllowMultiple is set if each allocation takes a share of the device
	// (KEP-5075). While the feature is off, all devices are exclusive.
	AllowMultiple bool
	// Malformed says why no CEL expression can be evaluated for the device. It
	// is nil for a well-formed one. The stock scheduler builds all attributes
	// before each evaluation, so that one odd attribute spoils all expressions.
	Malformed error
}

// Reach says from which nodes a device can be used. At most one of the three
// fields is set; none means that the slice uses a way of selecting nodes that
// this version does not know, and then the device is out of reach.
type Reach struct {
	NodeName     string
	AllNodes     bool
	NodeSelector *corev1.NodeSelector
}

// New checks one device of a slice. The slice must not be changed afterwards;
// taints is what the device is tainted with, owned by the result.
func New(slice *resourceapi.ResourceSlice, index int, taints []resourceapi.DeviceTaint, features Features) *Device {
	spec := &slice.Spec.Devices[index]
	return &Device{
		ID:                 NewID(slice.Spec.Driver, slice.Spec.Pool.Name, spec.Name),
		Slice:              slice.Name,
		Index:              index,
		Spec:               spec,
		Taints:             taints,
		Reach:              reachOf(slice, spec),
		SkipNodeOperations: slice.Spec.SkipNodeOperations,
		Unsupported:        unsupportedFeature(slice, spec, features),
		Malformed:          malformed(spec),
		AllowMultiple:      features.ConsumableCapacity && spec.AllowMultipleAllocations != nil && *spec.AllowMultipleAllocations,
	}
}

func reachOf(slice *resourceapi.ResourceSlice, spec *resourceapi.Device) Reach {
	nodeName, allNodes, selector := slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector
	if perDevice := slice.Spec.PerDeviceNodeSelection; perDevice != nil && *perDevice {
		nodeName, allNodes, selector = spec.NodeName, spec.AllNodes, spec.NodeSelector
	}
	switch {
	case nodeName != nil && *nodeName != "":
		return Reach{NodeName: *nodeName}
	case allNodes != nil && *allNodes:
		return Reach{AllNodes: true}
	default:
		return Reach{NodeSelector: selector}
	}
}

// malformed finds the first attribute, in the order of names, that CEL cannot
// be given.
func malformed(spec *resourceapi.Device) error {
	var first resourceapi.QualifiedName
	var problem error
	for name, attribute := range spec.Attributes {
		if problem != nil && name >= first {
			continue
		}
		if err := checkAttribute(attribute); err != nil {
			first, problem = name, fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return problem
}

func checkAttribute(attribute resourceapi.DeviceAttribute) error {
	versions := attribute.VersionValues
	if value, ok := ValueOf(attribute); ok && value.kind == versionKind {
		versions = []string{value.text}
	} else if !ok && !isList(attribute) {
		return fmt.Errorf("has no value of a known type")
	}
	for _, version := range versions {
		if _, err := semver.Parse(version); err != nil {
			return fmt.Errorf("%q is not a semantic version: %w", version, err)
		}
	}
	return nil
}

// Attribute returns what the driver says about an attribute that a constraint
// names. A fully qualified entry wins; a bare one belongs to the driver's own
// domain. ok is false when the device does not have the attribute.
func (d *Device) Attribute(name resourceapi.FullyQualifiedName) (attribute resourceapi.DeviceAttribute, ok bool) {
	if attribute, ok = d.Spec.Attributes[resourceapi.QualifiedName(name)]; ok {
		return attribute, true
	}
	domain, id, qualified := strings.Cut(string(name), "/")
	if !qualified || domain != d.ID.Driver.Value() {
		return resourceapi.DeviceAttribute{}, false
	}
	attribute, ok = d.Spec.Attributes[resourceapi.QualifiedName(id)]
	return attribute, ok
}
