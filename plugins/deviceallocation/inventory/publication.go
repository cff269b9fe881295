package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// publication is one ResourceSlice with everything worked out that does not
// depend on the other slices of its pool. It is immutable.
type publication struct {
	slice   *resourceapi.ResourceSlice
	devices []*device.Device
	// targets has one entry for the whole slice, or one per device.
	targets   []target
	perDevice bool
	// conditional is set if a device has binding conditions.
	conditional bool
	// ignored slices reach no node and have neither devices nor counter sets: a
	// feature that they need is off.
	ignored bool
	// uncounted slices are ignored and do not even count as slices of the pool.
	uncounted bool
}

// publish compiles a slice. old is what it was compiled to before, or nil: what
// did not change is shared with it, up to the publication itself.
func publish(slice *resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule, features device.Features, old *publication) *publication {
	sameSlice := old != nil && old.slice == slice
	p := &publication{slice: slice, perDevice: perDevice(slice)}
	if p.uncounted = !features.CompatibilityGroups && usesGroups(slice); p.uncounted || !features.PartitionableDevices && needsPartitionable(slice) {
		return ignore(p, old)
	}
	// Counter sets come in slices of their own. If devices are in there as
	// well, against the API's rules, kube-scheduler does not use them either.
	if len(slice.Spec.SharedCounters) == 0 {
		p.devices = make([]*device.Device, len(slice.Spec.Devices))
	}
	changed := !sameSlice
	for i := range p.devices {
		var taints []resourceapi.DeviceTaint
		if features.DeviceTaints {
			taints = taintsOf(slice, i, rules)
		}
		if sameSlice && apiequality.Semantic.DeepEqual(old.devices[i].Taints, taints) {
			p.devices[i] = old.devices[i]
			continue
		}
		p.devices[i] = device.New(slice, i, taints, features)
		changed = true
	}
	p.conditional = slices.ContainsFunc(p.devices, func(d *device.Device) bool { return len(d.Spec.BindingConditions) > 0 })
	switch {
	case !changed:
		return old
	case sameSlice:
		p.targets = old.targets
	case p.perDevice:
		p.targets = make([]target, len(p.devices))
		for i, d := range p.devices {
			p.targets[i] = newTarget(d.Reach)
		}
	default:
		p.targets = []target{newTarget(sliceReach(slice))}
	}
	return p
}

// ignore makes p the publication of a slice that is not used, old if that is
// the same.
func ignore(p, old *publication) *publication {
	if old != nil && old.slice == p.slice {
		return old
	}
	p.ignored, p.perDevice, p.targets = true, false, []target{{}}
	return p
}

// needsPartitionable reports whether kube-scheduler does not look at the slice
// while the feature PartitionableDevices is off. It still counts the slice.
func needsPartitionable(slice *resourceapi.ResourceSlice) bool {
	return slice.Spec.PerDeviceNodeSelection != nil || len(slice.Spec.SharedCounters) > 0
}

// usesGroups reports whether kube-scheduler takes the slice for not published
// while the feature CompatibilityGroups is off, which makes its pool incomplete:
// the devices could not be kept from being allocated together.
func usesGroups(slice *resourceapi.ResourceSlice) bool {
	for i := range slice.Spec.Devices {
		for j := range slice.Spec.Devices[i].ConsumesCounters {
			if len(slice.Spec.Devices[i].ConsumesCounters[j].CompatibilityGroups) > 0 {
				return true
			}
		}
	}
	return false
}

// counterSets returns the counter sets that are used.
func (p *publication) counterSets() []resourceapi.CounterSet {
	if p.ignored {
		return nil
	}
	return p.slice.Spec.SharedCounters
}

// taintsOf returns the taints of a device: its own, then those of the rules
// that select it. rules must be in the order of names.
func taintsOf(slice *resourceapi.ResourceSlice, index int, rules []*resourceapi.DeviceTaintRule) []resourceapi.DeviceTaint {
	spec := &slice.Spec.Devices[index]
	// Clipped, so that appending copies instead of writing into the slice.
	taints := slices.Clip(spec.Taints)
	for _, rule := range rules {
		selector := rule.Spec.DeviceSelector
		if selectsPool(selector, slice.Spec.Driver, slice.Spec.Pool.Name) &&
			(selector.Device == nil || *selector.Device == spec.Name) {
			taints = append(taints, rule.Spec.Taint)
		}
	}
	return taints
}

// selectsPool reports whether the selector of a DeviceTaintRule can select a
// device of the pool. Without a selector a rule selects nothing.
func selectsPool(selector *resourceapi.DeviceTaintSelector, driver, pool string) bool {
	return selector != nil &&
		(selector.Driver == nil || *selector.Driver == driver) &&
		(selector.Pool == nil || *selector.Pool == pool)
}

// at returns which devices can be reached from the node. targeted is also true
// for a slice that selects the node, but has no devices.
func (p *publication) at(node *corev1.Node) (devices []*device.Device, targeted bool) {
	if !p.perDevice {
		if !p.targets[0].matches(node) {
			return nil, false
		}
		return p.devices, true
	}
	for i := range p.targets {
		if p.targets[i].matches(node) {
			devices = append(devices, p.devices[i])
		}
	}
	return devices, len(devices) > 0
}

// device finds a device by its name.
func (p *publication) device(name device.Name) *device.Device {
	for _, d := range p.devices {
		if d.ID.Device == name {
			return d
		}
	}
	return nil
}
