package allocationcheck_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// resultMutations change what the allocator answers.
var resultMutations = map[string]mutation{
	"no allocation for the last claim": {"allocations for", func(m *mutant) bool {
		m.allocations = m.allocations[:len(m.allocations)-1]
		return true
	}},
	"a device is missing": {"request", func(m *mutant) bool {
		m.of.Devices.Results = slices.Delete(m.of.Devices.Results, 0, 1)
		return true
	}},
	"a device twice": {"one device twice", func(m *mutant) bool {
		m.of.Devices.Results = append(m.of.Devices.Results, *m.of.Devices.Results[len(m.of.Devices.Results)-1].DeepCopy())
		return true
	}},
	"the name of the request is wrong": {"which is not a request", func(m *mutant) bool { m.result.Request += "x"; return true }},
	"main instead of main/sub": {"which is not a request", func(m *mutant) bool {
		m.result.Request = m.request.Name
		return m.subrequest != nil
	}},
	"main/sub instead of main": {"which is not a request", func(m *mutant) bool { m.result.Request += "/sub-0"; return m.subrequest == nil }},
	"the order of requests": {"not in the order", func(m *mutant) bool {
		results := m.of.Devices.Results
		slices.Reverse(results)
		return results[0].Request != results[len(results)-1].Request
	}},
	"no such device": {"does not exist", func(m *mutant) bool { m.result.Device = "none"; return true }},
	"no such pool":   {"does not exist", func(m *mutant) bool { m.result.Pool = "none"; return true }},
	"no such driver": {"does not exist", func(m *mutant) bool { m.result.Driver = "none"; return true }},
	"a device of another node": {"out of reach", func(m *mutant) bool {
		for _, s := range m.situation.Slices {
			if s.Spec.NodeName != nil && *s.Spec.NodeName != m.situation.Node.Name && len(s.Spec.Devices) > 0 {
				m.result.Driver, m.result.Pool, m.result.Device = s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Devices[0].Name
				return true
			}
		}
		return false
	}},
	"a device of two requests": {"in the claim already", func(m *mutant) bool {
		for i := range m.of.Devices.Results {
			other := &m.of.Devices.Results[i]
			if other.Request != m.result.Request && other.ShareID == nil {
				m.result.Driver, m.result.Pool, m.result.Device = other.Driver, other.Pool, other.Device
				return true
			}
		}
		return false
	}},
	"adminAccess without being asked": {"adminAccess is wrong", func(m *mutant) bool {
		asked := m.admin()
		m.result.AdminAccess = ptr.To(true)
		return !asked
	}},
	"adminAccess is missing": {"adminAccess is wrong", func(m *mutant) bool {
		asked := m.admin()
		m.result.AdminAccess = nil
		return asked
	}},
	"adminAccess is false": {"adminAccess is wrong", func(m *mutant) bool { m.result.AdminAccess = ptr.To(false); return true }},
	"one more toleration": {"tolerations are not", func(m *mutant) bool {
		m.result.Tolerations = append(m.result.Tolerations, resourceapi.DeviceToleration{Key: "more", Operator: resourceapi.DeviceTolerationOpExists})
		return true
	}},
	"tolerations are missing": {"tolerations are not", func(m *mutant) bool {
		some := len(m.result.Tolerations) > 0
		m.result.Tolerations = nil
		return some
	}},
	"binding conditions are missing": {"binding conditions are not", func(m *mutant) bool {
		some := len(m.result.BindingConditions) > 0
		m.result.BindingConditions = nil
		return some
	}},
	"one more binding condition": {"binding conditions are not", func(m *mutant) bool {
		m.result.BindingConditions = append(slices.Clone(m.result.BindingConditions), "More")
		return true
	}},
	"binding failure conditions are missing": {"binding conditions are not", func(m *mutant) bool {
		some := len(m.result.BindingFailureConditions) > 0
		m.result.BindingFailureConditions = nil
		return some
	}},
	"skipNodeOperations are missing": {"skipNodeOperations are not", func(m *mutant) bool {
		some := len(m.result.SkipNodeOperations) > 0
		m.result.SkipNodeOperations = nil
		return some
	}},
	"skipNodeOperations without being told": {"skipNodeOperations are not", func(m *mutant) bool {
		none := len(m.result.SkipNodeOperations) == 0
		m.result.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
		return none
	}},
	"a share without ID": {"a share has no shareID", func(m *mutant) bool {
		share := m.shared() && !m.admin()
		m.result.ShareID = nil
		return share
	}},
	"a share with an empty ID": {"shareID is empty", func(m *mutant) bool {
		share := m.shared()
		m.result.ShareID = ptr.To(types.UID(""))
		return share
	}},
	"a whole device with a share's ID": {"given as a whole", func(m *mutant) bool {
		share := m.shared()
		m.result.ShareID = ptr.To(types.UID("share"))
		return !share
	}},
	"consumedCapacity is missing": {"consumedCapacity has 0 entries", func(m *mutant) bool {
		some := len(m.result.ConsumedCapacity) > 0
		m.result.ConsumedCapacity = nil
		return some
	}},
	"consumedCapacity is too high": {": consumes", func(m *mutant) bool { return m.addConsumed("1") }},
	"consumedCapacity is too low":  {": consumes", func(m *mutant) bool { return m.addConsumed("-1m") }},
	"one more consumedCapacity": {"consumedCapacity", func(m *mutant) bool {
		if m.result.ConsumedCapacity == nil {
			m.result.ConsumedCapacity = make(map[resourceapi.QualifiedName]resource.Quantity)
		}
		m.result.ConsumedCapacity["more"] = resource.MustParse("0")
		return true
	}},
	"usable everywhere": {"node selector", func(m *mutant) bool {
		some := m.of.NodeSelector != nil
		m.of.NodeSelector = nil
		return some
	}},
	"usable on another node": {"node selector", func(m *mutant) bool {
		m.of.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-9"}}},
		}}}
		return true
	}},
	"usable in fewer places": {"node selector", func(m *mutant) bool {
		none := m.of.NodeSelector == nil
		m.of.NodeSelector = builders.NodesWith("zone", "a")
		return none
	}},
	"configuration is missing": {": configuration", func(m *mutant) bool {
		some := len(m.of.Devices.Config) > 0
		m.of.Devices.Config = nil
		return some
	}},
	"configuration twice": {": configuration", func(m *mutant) bool {
		if len(m.of.Devices.Config) == 0 {
			return false
		}
		m.of.Devices.Config = append(m.of.Devices.Config, m.of.Devices.Config[0])
		return true
	}},
	"source of the configuration": {": configuration", func(m *mutant) bool {
		if len(m.of.Devices.Config) == 0 {
			return false
		}
		m.of.Devices.Config[0].Source = "FromNowhere"
		// Configuration for a subrequest that was not chosen reaches nobody.
		return len(m.of.Devices.Config[0].Requests) == 0
	}},
	"configuration for an unknown request": {"configuration for", func(m *mutant) bool {
		m.of.Devices.Config = append(m.of.Devices.Config, resourceapi.DeviceAllocationConfiguration{Requests: []string{"unknown"}})
		return true
	}},
}

// addConsumed changes one capacity of a share.
func (m *mutant) addConsumed(difference string) bool {
	for name, amount := range m.result.ConsumedCapacity {
		amount.Add(resource.MustParse(difference))
		m.result.ConsumedCapacity[name] = amount
		return true
	}
	return false
}
