package allocationcheck_test

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// situationMutations change cluster and claims so that the devices no longer
// suit.
var situationMutations = map[string]mutation{
	"one claim more": {"allocations for", func(m *mutant) bool {
		m.situation.Claims = append(m.situation.Claims, m.claim.DeepCopy())
		return true
	}},
	"the request wants one more": {"devices, want", func(m *mutant) bool { *m.count()++; return !m.all() }},
	"the request wants one less": {"devices, want", func(m *mutant) bool { *m.count()--; return !m.all() }},
	"the request wants all and there is one more": {"want all", func(m *mutant) bool {
		again := *m.device.DeepCopy()
		again.Name = "one-more"
		m.slice.Spec.Devices = append(m.slice.Spec.Devices, again)
		return m.all()
	}},
	"a request without devices": {"request another: no devices", func(m *mutant) bool {
		request := *m.request.DeepCopy()
		request.Name = "another"
		m.claim.Spec.Devices.Requests = append(m.claim.Spec.Devices.Requests, request)
		return true
	}},
	"the class is gone": {"class", func(m *mutant) bool {
		m.situation.Classes = nil
		return true
	}},
	"the class selects other devices": {"does not match selector false", func(m *mutant) bool {
		for _, class := range m.situation.Classes {
			class.Spec.Selectors = append(class.Spec.Selectors, selector("false"))
		}
		return true
	}},
	"the request selects other devices": {"does not match selector false", func(m *mutant) bool {
		*m.selectors() = append(*m.selectors(), selector("false"))
		return true
	}},
	"the selector fails": {"no such key", func(m *mutant) bool {
		*m.selectors() = append(*m.selectors(), selector(`device.attributes["example.com"].nobody == "x"`))
		return true
	}},
	"the selector cannot be compiled": {"undefined field", func(m *mutant) bool {
		*m.selectors() = append(*m.selectors(), selector(`device.nobody`))
		return true
	}},
	"a selector of an unknown kind": {"selector of an unknown kind", func(m *mutant) bool {
		*m.selectors() = append(*m.selectors(), resourceapi.DeviceSelector{})
		return true
	}},
	"the device is tainted": {"has taint fresh", func(m *mutant) bool {
		m.device.Taints = append(m.device.Taints, resourceapi.DeviceTaint{Key: "fresh", Effect: resourceapi.DeviceTaintEffectNoSchedule})
		return m.situation.Features.DeviceTaints
	}},
	"the device is to be evicted": {"has taint fresh", func(m *mutant) bool {
		m.device.Taints = append(m.device.Taints, resourceapi.DeviceTaint{Key: "fresh", Effect: resourceapi.DeviceTaintEffectNoExecute})
		return m.situation.Features.DeviceTaints
	}},
	"the pool has been replaced": {"does not exist", func(m *mutant) bool {
		next := m.slice.DeepCopy()
		next.Name += "-next"
		next.Spec.Devices = nil
		next.Spec.Pool.Generation++
		next.Spec.Pool.ResourceSliceCount = 1
		m.situation.Slices = append(m.situation.Slices, next)
		return true
	}},
	"the pool is being replaced": {"incomplete", func(m *mutant) bool {
		next := m.slice.DeepCopy()
		next.Name += "-next"
		next.Spec.Pool.Generation++
		next.Spec.Pool.ResourceSliceCount = 2
		m.situation.Slices = append(m.situation.Slices, next)
		return true
	}},
	"the pool has a slice more": {"incomplete", func(m *mutant) bool {
		m.eachSlice(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.ResourceSliceCount++ })
		return true
	}},
	"the pool has a slice less": {"incomplete", func(m *mutant) bool {
		m.eachSlice(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.ResourceSliceCount-- })
		return true
	}},
	"two devices with one name": {"two devices are named", func(m *mutant) bool {
		m.slice.Spec.Devices = append(m.slice.Spec.Devices, *m.device.DeepCopy())
		return true
	}},
	"two counter sets with one name": {"defined twice", func(m *mutant) bool {
		found := false
		m.eachSlice(func(s *resourceapi.ResourceSlice) {
			found = found || len(s.Spec.SharedCounters) > 0
			s.Spec.SharedCounters = append(s.Spec.SharedCounters, s.Spec.SharedCounters...)
		})
		return found && m.situation.Features.PartitionableDevices
	}},
	"the counter set is gone": {"consumes a counter", func(m *mutant) bool {
		m.eachSlice(func(s *resourceapi.ResourceSlice) { s.Spec.SharedCounters = nil })
		return len(m.device.ConsumesCounters) > 0
	}},
	"the slice is on another node": {"out of reach", func(m *mutant) bool {
		m.slice.Spec.NodeName = ptr.To("node-9")
		return m.slice.Spec.PerDeviceNodeSelection == nil
	}},
	"the device is on another node": {"out of reach", func(m *mutant) bool {
		m.device.NodeName = ptr.To("node-9")
		return m.slice.Spec.PerDeviceNodeSelection != nil
	}},
	"the node has another label": {"out of reach", func(m *mutant) bool {
		selected := m.slice.Spec.NodeSelector != nil || m.slice.Spec.PerDeviceNodeSelection != nil && m.device.NodeSelector != nil
		m.situation.Node.Labels = nil
		return selected
	}},
	"the node cannot leave out calls": {"which the node does not know", func(m *mutant) bool {
		m.situation.Node.Status.DeclaredFeatures = nil
		return len(m.slice.Spec.SkipNodeOperations) > 0
	}},
	"the device binds to the node": {"node selector", func(m *mutant) bool {
		m.device.BindsToNode = ptr.To(true)
		for _, r := range m.of.Devices.Results {
			if _, d := m.find(&r); d != m.device && d.BindsToNode != nil {
				return false
			}
		}
		return m.of.NodeSelector == nil || len(m.of.NodeSelector.NodeSelectorTerms[0].MatchFields) == 0
	}},
}

func selector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

// eachSlice changes all slices of the pool.
func (m *mutant) eachSlice(change func(*resourceapi.ResourceSlice)) {
	for _, s := range m.situation.Slices {
		if s.Spec.Driver == m.result.Driver && s.Spec.Pool.Name == m.result.Pool {
			change(s)
		}
	}
}

// gateMutations switch off a feature that the allocation uses.
var gateMutations = map[string]mutation{
	"gate AdminAccess": {"does not know admin access", func(m *mutant) bool {
		m.situation.Features.AdminAccess = false
		return m.admin()
	}},
	"gate PrioritizedList": {"does not know prioritized lists", func(m *mutant) bool {
		m.situation.Features.PrioritizedList = false
		return m.subrequest != nil
	}},
	"gate PartitionableDevices": {"", func(m *mutant) bool {
		m.situation.Features.PartitionableDevices = false
		return len(m.device.ConsumesCounters) > 0 || m.slice.Spec.PerDeviceNodeSelection != nil
	}},
	"gate ConsumableCapacity": {"", func(m *mutant) bool {
		m.situation.Features.ConsumableCapacity = false
		return m.shared() || *m.capacity() != nil
	}},
	"gate DeviceBindingAndStatus": {"has binding conditions", func(m *mutant) bool {
		m.situation.Features.DeviceBindingAndStatus = false
		return len(m.device.BindingConditions) > 0
	}},
	"gate OptionalNodeOperations": {"which the scheduler does not know", func(m *mutant) bool {
		m.situation.Features.OptionalNodeOperations = false
		return len(m.slice.Spec.SkipNodeOperations) > 0
	}},
	"gate CompatibilityGroups": {"does not exist", func(m *mutant) bool {
		m.situation.Features.CompatibilityGroups = false
		return slices.ContainsFunc(m.device.ConsumesCounters, func(c resourceapi.DeviceCounterConsumption) bool { return len(c.CompatibilityGroups) > 0 })
	}},
	"gate DerivedAttributes": {"does not know derived attributes", func(m *mutant) bool {
		m.situation.Features.DerivedAttributes = false
		return len(*m.derived()) > 0
	}},
}

func (m *mutant) derived() *[]resourceapi.DeviceDerivedAttribute {
	if m.subrequest != nil {
		return &m.subrequest.DerivedAttributes
	}
	return &m.request.Exactly.DerivedAttributes
}
