package allocationcheck

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	resourceapi "k8s.io/api/resource/v1"
)

// checkResult checks what the result says besides the device.
func (c *checker) checkResult(p *pick) {
	r, d := p.result, p.device
	if admin := r.AdminAccess != nil && *r.AdminAccess; admin != p.ask.admin || r.AdminAccess != nil && !admin {
		c.problem("%v: adminAccess is wrong", p)
	}
	if !equality.Semantic.DeepEqual(r.Tolerations, p.ask.tolerations) {
		c.problem("%v: tolerations are not those of the request", p)
	}
	if !slices.Equal(r.SkipNodeOperations, d.slice.Spec.SkipNodeOperations) {
		c.problem("%v: skipNodeOperations are not those of the slice", p)
	}
	var conditions, failures []string
	if c.Features.DeviceBindingAndStatus {
		conditions, failures = d.spec.BindingConditions, d.spec.BindingFailureConditions
	}
	if !slices.Equal(r.BindingConditions, conditions) || !slices.Equal(r.BindingFailureConditions, failures) {
		c.problem("%v: binding conditions are not those of the device", p)
	}
	switch {
	case c.shareable(d) && r.ShareID == nil && p.ask.admin:
		// An administrator need not have a share.
	case c.shareable(d) && r.ShareID == nil:
		c.problem("%v: a share has no shareID", p)
	case !c.shareable(d) && (r.ShareID != nil || r.ConsumedCapacity != nil):
		c.problem("%v: the device is given as a whole, but the result has a shareID or consumedCapacity", p)
	}
	if r.ShareID != nil && *r.ShareID == "" {
		c.problem("%v: shareID is empty", p)
	}
	if r.ShareID == nil && r.ConsumedCapacity != nil {
		c.problem("%v: consumedCapacity without a share", p)
	}
	if r.ShareID != nil {
		c.checkConsumed(p)
	}
}

func (c *checker) checkConsumed(p *pick) {
	want, ok := c.consumption(p.device, p.ask)
	if !ok {
		return // checkDevice has said so
	}
	if len(p.result.ConsumedCapacity) != len(want) {
		c.problem("%v: consumedCapacity has %d entries, want %d", p, len(p.result.ConsumedCapacity), len(want))
	}
	for name, amount := range want {
		got, ok := p.result.ConsumedCapacity[name]
		if !ok || exactly(got).Cmp(amount) != 0 {
			c.problem("%v: consumes %s of %s, want %s", p, got.String(), name, amount.RatString())
		}
	}
}

// checkConfig checks what the driver of each device finds: the configuration of
// the class, then that of the claim.
func (c *checker) checkConfig(claim *resourceapi.ResourceClaim, chosen []*ask, allocation *resourceapi.AllocationResult) {
	for _, a := range chosen {
		var want []resourceapi.DeviceAllocationConfiguration
		if class := c.Class(a.class); class != nil {
			for _, config := range class.Spec.Config {
				want = append(want, resourceapi.DeviceAllocationConfiguration{
					Source: resourceapi.AllocationConfigSourceClass, DeviceConfiguration: config.DeviceConfiguration,
				})
			}
		}
		for _, config := range claim.Spec.Devices.Config {
			if a.coveredBy(config.Requests) {
				want = append(want, resourceapi.DeviceAllocationConfiguration{
					Source: resourceapi.AllocationConfigSourceClaim, DeviceConfiguration: config.DeviceConfiguration,
				})
			}
		}
		var got []resourceapi.DeviceAllocationConfiguration
		for _, config := range allocation.Devices.Config {
			if a.coveredBy(config.Requests) {
				config.Requests = nil
				got = append(got, config)
			}
		}
		if !equality.Semantic.DeepEqual(got, want) {
			c.problem("claim %s, request %s: configuration %v, want %v", claim.Name, a.name, got, want)
		}
	}
	for _, config := range allocation.Devices.Config {
		for _, request := range config.Requests {
			if !slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
				return r.Name == resourceclaim.BaseRequestRef(request)
			}) {
				c.problem("claim %s: configuration for %q, which is not a request", claim.Name, request)
			}
		}
	}
}

// checkNodeSelector: where the claim can be used is where all devices can.
func (c *checker) checkNodeSelector(claim *resourceapi.ResourceClaim, picks []*pick, got *corev1.NodeSelector) {
	var term corev1.NodeSelectorTerm
	for _, p := range picks {
		name, selector := p.device.slice.Spec.NodeName, p.device.slice.Spec.NodeSelector
		if perDevice := p.device.slice.Spec.PerDeviceNodeSelection; perDevice != nil && *perDevice {
			name, selector = p.device.spec.NodeName, p.device.spec.NodeSelector
		}
		if name != nil || p.device.spec.BindsToNode != nil && *p.device.spec.BindsToNode {
			term = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{c.Node.Name}},
			}}
			break
		}
		if selector != nil {
			term.MatchExpressions = merge(term.MatchExpressions, selector.NodeSelectorTerms[0].MatchExpressions)
			term.MatchFields = merge(term.MatchFields, selector.NodeSelectorTerms[0].MatchFields)
		}
	}
	var want *corev1.NodeSelector
	if len(term.MatchExpressions)+len(term.MatchFields) > 0 {
		want = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
	}
	if !equality.Semantic.DeepEqual(got, want) {
		c.problem("claim %s: node selector %v, want %v", claim.Name, got, want)
	}
}

func merge(into, more []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	for _, requirement := range more {
		if !slices.ContainsFunc(into, func(r corev1.NodeSelectorRequirement) bool { return equality.Semantic.DeepEqual(r, requirement) }) {
			into = append(into, requirement)
		}
	}
	return into
}
