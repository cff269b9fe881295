package randomcluster

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// Attributes that claims constrain or select. The model belongs to the driver
// and is published without a domain.
const (
	modelAttribute   = gpuDriver + "/model"
	numaAttribute    = "example.com/numa"
	serialAttribute  = "example.com/serial"
	linksAttribute   = "example.com/links"
	versionAttribute = "example.com/version"
	readyAttribute   = "example.com/ready"
	derivedAttribute = "derived.example.com/tier"
)

func (g *generator) device(p *poolPlan, name string) *builders.DeviceBuilder {
	d := builders.Device(name)
	g.attributes(d)
	return d.With(func(spec *resourceapi.Device) {
		if g.uses.taints && g.chance(20) {
			spec.Taints = append(spec.Taints, resourceapi.DeviceTaint{
				Key: oneOf(g, "broken", "old"), Value: oneOf(g, "", "", "fan"),
				Effect: oneOf(g, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNone, "FromTheFuture"),
			})
		}
		if g.uses.lists && spec.Attributes != nil && g.chance(25) {
			spec.Attributes[versionAttribute] = resourceapi.DeviceAttribute{VersionValues: oneOf(g, []string{"1.0.0"}, []string{"1.0.0", "2.1.0"}, []string{"2.1.0", "3.0.0"})}
		}
		g.capacities(p, spec)
		if len(p.sets) > 0 && g.chance(80) {
			g.partition(p, spec)
		}
		if g.uses.conditions && g.chance(40) {
			spec.BindingConditions = oneOf(g, []string{"Attached"}, []string{"Attached", "Booted"})
			spec.BindingFailureConditions = oneOf(g, nil, []string{"AttachFailed"})
			if g.chance(50) {
				spec.BindsToNode = ptr.To(true)
			}
		}
	})
}

func (g *generator) attributes(d *builders.DeviceBuilder) {
	g.serial++
	if g.chance(92) {
		d.Attribute("model", oneOf(g, "small", "large", "large"))
	}
	if g.chance(94) {
		d.Attribute(numaAttribute, g.numa())
	}
	if g.chance(60) {
		d.Attribute(readyAttribute, g.chance(80))
	}
	if g.chance(60) {
		d.Attribute(versionAttribute, builders.Version(oneOf(g, "1.0.0", "1.0.0", "2.1.0")))
	}
	if g.chance(70) {
		d.Attribute(serialAttribute, fmt.Sprint(g.serial))
	}
	if g.uses.lists && g.chance(92) {
		d.Attribute(linksAttribute, oneOf(g, []string{"a"}, []string{"a", "b"}, []string{"b", "c"}, []string{"c"}, []string{"a", "c"}))
	}
}

// numa is the node of the memory, or several, or rarely of another type than
// that of the other devices.
func (g *generator) numa() any {
	switch {
	case g.uses.lists && g.chance(50):
		return oneOf(g, []int64{0}, []int64{0, 1}, []int64{1, 2}, []int64{0, 2}, []int64{2})
	case g.chance(2):
		return "0"
	}
	return g.IntN(3)
}

// capacities gives most devices some capacity and, if the pool has shares, lets
// several requests have the same device.
func (g *generator) capacities(p *poolPlan, spec *resourceapi.Device) {
	shared := p.sharing && g.chance(70)
	if shared {
		spec.AllowMultipleAllocations = ptr.To(true)
	}
	if !g.uses.sharing || g.chance(10) {
		return
	}
	spec.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
	for _, name := range []resourceapi.QualifiedName{"bandwidth", "example.com/memory"} {
		if !g.chance(80) {
			continue
		}
		capacity := resourceapi.DeviceCapacity{Value: resource.MustParse(oneOf(g, "4", "8", "10", "10"))}
		if shared && g.uses.policies && g.chance(70) {
			capacity.RequestPolicy = g.policy()
		}
		spec.Capacity[name] = capacity
	}
}

// policy makes up in which portions a capacity is given. All defaults are
// portions themselves, as the API server wants it.
func (g *generator) policy() *resourceapi.CapacityRequestPolicy {
	quantity := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
	between := func(otherwise, min, max, step string) *resourceapi.CapacityRequestPolicy {
		limits := &resourceapi.CapacityRequestPolicyRange{Min: quantity(min)}
		if max != "" {
			limits.Max = quantity(max)
		}
		if step != "" {
			limits.Step = quantity(step)
		}
		return &resourceapi.CapacityRequestPolicy{Default: quantity(otherwise), ValidRange: limits}
	}
	if g.uses.fractions && g.chance(50) {
		return oneOf(g, between("1500m", "500m", "3500m", "500m"), between("100m", "100m", "", "300m"), between("2", "250m", "3", ""))
	}
	switch g.IntN(5) {
	case 0:
		return &resourceapi.CapacityRequestPolicy{Default: quantity(oneOf(g, "1", "2", "3"))}
	case 1:
		return between("3", "1", "7", "2")
	case 2:
		return between("2", "2", "", oneOf(g, "3", "1"))
	case 3:
		return between("1", "1", oneOf(g, "4", "6"), "")
	}
	return &resourceapi.CapacityRequestPolicy{Default: quantity("2"), ValidValues: []resource.Quantity{
		resource.MustParse("1"), resource.MustParse("2"), resource.MustParse("4"), resource.MustParse("8"),
	}}
}
