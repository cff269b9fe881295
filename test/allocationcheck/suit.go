package allocationcheck

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// optionalNodeOperations is what nodes declare whose kubelet can leave out
// calls to the driver (KEP-5945).
const optionalNodeOperations = "DRAOptionalNodeOperations"

// checkDevice checks whether the device suits the request.
func (c *checker) checkDevice(p *pick) {
	d := p.device
	if fault := c.pools[poolID{d.id.driver, d.id.pool}].fault; fault != "" {
		c.problem("%v: %s", p, fault)
	}
	if !d.reachable {
		c.problem("%v is out of reach of the node", p)
	}
	if !c.understood(d) {
		c.problem("%v has binding conditions, which the scheduler does not know", p)
	}
	if len(d.spec.ConsumesCounters) > 0 && !c.Features.PartitionableDevices {
		c.problem("%v consumes counters, which the scheduler does not know", p)
	}
	if mismatch := c.matches(d, p.ask); mismatch != "" {
		c.problem("%v: %s", p, mismatch)
	}
	if c.Features.ConsumableCapacity && !c.largeEnough(d, p.ask) {
		c.problem("%v is too small", p)
	}
	for _, taint := range d.spec.Taints {
		if c.Features.DeviceTaints && repels(taint, p.ask) {
			c.problem("%v has taint %s, which is not tolerated", p, taint.Key)
		}
	}
	if len(d.slice.Spec.SkipNodeOperations) > 0 {
		if !c.Features.OptionalNodeOperations {
			c.problem("%v leaves out node operations, which the scheduler does not know", p)
		}
		if !slices.Contains(c.Node.Status.DeclaredFeatures, optionalNodeOperations) {
			c.problem("%v leaves out node operations, which the node does not know", p)
		}
	}
}

// understood tells whether the scheduler may consider the device at all.
func (c *checker) understood(d *device) bool {
	return c.Features.DeviceBindingAndStatus || len(d.spec.BindingConditions) == 0
}

func repels(taint resourceapi.DeviceTaint, a *ask) bool {
	if taint.Effect != resourceapi.DeviceTaintEffectNoSchedule && taint.Effect != resourceapi.DeviceTaintEffectNoExecute {
		return false
	}
	return !slices.ContainsFunc(a.tolerations, func(t resourceapi.DeviceToleration) bool {
		return resourceclaim.ToleratesTaint(t, taint)
	})
}

// matches returns "", or why a device does not match class and request.
func (c *checker) matches(d *device, a *ask) string {
	class := c.Class(a.class)
	if class == nil {
		return fmt.Sprintf("class %s does not exist", a.class)
	}
	for _, s := range slices.Concat(class.Spec.Selectors, a.selectors) {
		if s.CEL == nil {
			return "there is a selector of an unknown kind"
		}
		compiled := c.expressions.GetOrCompile(s.CEL.Expression)
		if compiled.Error != nil {
			return fmt.Sprintf("selector %s: %v", s.CEL.Expression, compiled.Error)
		}
		match, _, err := compiled.DeviceMatches(context.Background(), forCEL(d))
		if err != nil {
			return fmt.Sprintf("selector %s: %v", s.CEL.Expression, err)
		}
		if !match {
			return "does not match selector " + s.CEL.Expression
		}
	}
	return ""
}

func forCEL(d *device) cel.Device {
	return cel.Device{
		Driver:                   d.id.driver,
		AllowMultipleAllocations: d.spec.AllowMultipleAllocations,
		Attributes:               d.spec.Attributes,
		Capacity:                 d.spec.Capacity,
	}
}
