package allocationcheck_test

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// useMutations let somebody else have what has been allocated, or let there be
// less of it.
var useMutations = map[string]mutation{
	"the device is in use": {"in use", func(m *mutant) bool {
		m.hold(m.device.Name, nil)
		return !m.admin()
	}},
	"a share of the whole device is in use": {"is in use", func(m *mutant) bool {
		m.hold(m.device.Name, func(r *resourceapi.DeviceRequestAllocationResult) { r.ShareID = ptr.To(types.UID("other")) })
		return !m.admin() && !m.shared()
	}},
	"the share exists already": {"exists already", func(m *mutant) bool {
		m.hold(m.device.Name, func(r *resourceapi.DeviceRequestAllocationResult) { r.ShareID = m.result.ShareID })
		return !m.admin() && m.shared()
	}},
	"two shares with one ID": {"exists already", func(m *mutant) bool {
		for i := range m.allocations {
			for j := range m.allocations[i].Devices.Results {
				other := &m.allocations[i].Devices.Results[j]
				if other != m.result && m.shared() && !m.admin() && other.ShareID != nil && other.AdminAccess == nil &&
					other.Driver == m.result.Driver && other.Pool == m.result.Pool && other.Device == m.result.Device {
					other.ShareID = m.result.ShareID
					return true
				}
			}
		}
		return false
	}},
	"the rest of the capacity is in use": {"all shares together", func(m *mutant) bool {
		for name, amount := range m.result.ConsumedCapacity {
			if amount.Sign() > 0 && !m.admin() {
				m.hold(m.device.Name, func(r *resourceapi.DeviceRequestAllocationResult) {
					r.ShareID = ptr.To(types.UID("other"))
					r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{name: m.device.Capacity[name].Value}
				})
				return true
			}
		}
		return false
	}},
	"the request wants more than there is": {"too small", func(m *mutant) bool {
		for name, capacity := range m.device.Capacity {
			more := capacity.Value.DeepCopy()
			more.Add(resource.MustParse("1"))
			*m.capacity() = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{name: more}}
			return m.situation.Features.ConsumableCapacity
		}
		return false
	}},
	"the request wants another capacity": {"too small", func(m *mutant) bool {
		*m.capacity() = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"none": resource.MustParse("1")}}
		return m.situation.Features.ConsumableCapacity
	}},
	"portions are larger": {"", func(m *mutant) bool {
		for name, amount := range m.result.ConsumedCapacity {
			capacity := m.device.Capacity[name]
			larger := amount.DeepCopy()
			larger.Add(resource.MustParse("1"))
			capacity.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: &larger, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &larger}}
			m.device.Capacity[name] = capacity
			return true
		}
		return false
	}},
	"portions are not that large": {"too small", func(m *mutant) bool {
		for name := range m.result.ConsumedCapacity {
			if *m.capacity() == nil || !hasKey((*m.capacity()).Requests, name) {
				continue
			}
			capacity, tiny := m.device.Capacity[name], resource.MustParse("1m")
			capacity.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: &tiny, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &tiny, Max: &tiny}}
			m.device.Capacity[name] = capacity
			return true
		}
		return false
	}},
	"there are no such portions": {"too small", func(m *mutant) bool {
		for name := range m.result.ConsumedCapacity {
			if *m.capacity() == nil || !hasKey((*m.capacity()).Requests, name) {
				continue
			}
			capacity, tiny := m.device.Capacity[name], resource.MustParse("1m")
			capacity.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: &tiny, ValidValues: []resource.Quantity{tiny}}
			m.device.Capacity[name] = capacity
			return true
		}
		return false
	}},
	"a counter is lower than what the device consumes": {"is in use, there is", func(m *mutant) bool {
		return m.charged() && m.lowerCounter(m.device)
	}},
	"two devices together consume too much": {"is in use, there is", func(m *mutant) bool {
		if !m.charged() || len(m.device.ConsumesCounters[0].Counters) == 0 {
			return false
		}
		// The device "elsewhere" is of the same pool, but on another node, and
		// uses up a counter set.
		set := m.device.ConsumesCounters[0].CounterSet
		elsewhere := resourceapi.Device{Name: "elsewhere", NodeName: ptr.To("node-9")}
		m.eachSlice(func(s *resourceapi.ResourceSlice) {
			for _, c := range s.Spec.SharedCounters {
				if c.Name == set {
					elsewhere.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{
						CounterSet: set, Counters: c.Counters, CompatibilityGroups: m.device.ConsumesCounters[0].CompatibilityGroups,
					}}
				}
			}
		})
		return m.addElsewhere(elsewhere)
	}},
	"another device is not compatible": {"is not compatible", func(m *mutant) bool {
		if !m.charged() || !m.situation.Features.CompatibilityGroups {
			return false
		}
		last := m.device.ConsumesCounters[len(m.device.ConsumesCounters)-1]
		return m.addElsewhere(resourceapi.Device{Name: "elsewhere", NodeName: ptr.To("node-9"), ConsumesCounters: []resourceapi.DeviceCounterConsumption{{
			CounterSet: last.CounterSet, CompatibilityGroups: []string{"alien"},
		}}})
	}},
	"another device is compatible with everything": {"is not compatible", func(m *mutant) bool {
		// Without groups it is compatible only with others that have none.
		if !m.charged() || !m.situation.Features.CompatibilityGroups || len(m.device.ConsumesCounters[0].CompatibilityGroups) == 0 {
			return false
		}
		return m.addElsewhere(resourceapi.Device{Name: "elsewhere", NodeName: ptr.To("node-9"), ConsumesCounters: []resourceapi.DeviceCounterConsumption{{
			CounterSet: m.device.ConsumesCounters[0].CounterSet,
		}}})
	}},
}

func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}

// charged tells whether the allocation makes the device consume counters.
func (m *mutant) charged() bool { return !m.admin() && !m.held() && len(m.device.ConsumesCounters) > 0 }

// addElsewhere adds a device that is held to the pool.
func (m *mutant) addElsewhere(d resourceapi.Device) bool {
	m.hold(d.Name, nil)
	more := m.slice.DeepCopy()
	more.Name += "-more"
	more.Spec.NodeName, more.Spec.AllNodes, more.Spec.NodeSelector = nil, nil, nil
	more.Spec.PerDeviceNodeSelection = ptr.To(true)
	more.Spec.SkipNodeOperations = nil
	more.Spec.Devices = []resourceapi.Device{d}
	m.situation.Slices = append(m.situation.Slices, more)
	m.eachSlice(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.ResourceSliceCount++ })
	// There must be no other reason for a rejection.
	return m.situation.Features.PartitionableDevices && !m.all() && more.Spec.Pool.Generation == m.slice.Spec.Pool.Generation
}

// lowerCounter takes what the device consumes of its last counter set, and a
// little more, from the total.
func (m *mutant) lowerCounter(d *resourceapi.Device) bool {
	consumption := d.ConsumesCounters[len(d.ConsumesCounters)-1]
	lowered := false
	m.eachSlice(func(s *resourceapi.ResourceSlice) {
		i := slices.IndexFunc(s.Spec.SharedCounters, func(c resourceapi.CounterSet) bool { return c.Name == consumption.CounterSet })
		if i < 0 {
			return
		}
		for name, counter := range consumption.Counters {
			lower := counter.Value.DeepCopy()
			lower.Sub(resource.MustParse("1m"))
			s.Spec.SharedCounters[i].Counters[name] = resourceapi.Counter{Value: lower}
			lowered = true
		}
	})
	return lowered
}
