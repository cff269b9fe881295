package allocationcheck

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

type poolID struct{ driver, name string }

type deviceID struct{ driver, pool, name string }

// device is one device of the newest generation of its pool.
type device struct {
	id    deviceID
	spec  *resourceapi.Device
	slice *resourceapi.ResourceSlice
	// reachable tells whether the node can have it.
	reachable bool
}

type pool struct {
	// fault tells why nothing can be allocated from the pool; "" if all is well.
	fault string
	// relevant pools have a slice for the node.
	relevant bool
	// devices are those of all nodes, names those in slices for the node.
	devices  []*device
	names    map[string]bool
	counters map[string]map[string]resourceapi.Counter
}

// gatherPools finds the newest generation of each pool.
func (s *Situation) gatherPools() map[poolID]*pool {
	newest := make(map[poolID]int64)
	for _, slice := range s.Slices {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		newest[id] = max(newest[id], slice.Spec.Pool.Generation)
	}
	members := make(map[poolID][]*resourceapi.ResourceSlice)
	for _, slice := range s.Slices {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		if slice.Spec.Pool.Generation == newest[id] {
			members[id] = append(members[id], slice)
		}
	}
	pools := make(map[poolID]*pool)
	for id, slices := range members {
		pools[id] = s.poolOf(slices)
	}
	return pools
}

func (s *Situation) poolOf(members []*resourceapi.ResourceSlice) *pool {
	p := &pool{names: make(map[string]bool), counters: make(map[string]map[string]resourceapi.Counter)}
	known := int64(0)
	for _, slice := range members {
		if !s.Features.CompatibilityGroups && hasGroups(slice) {
			continue // as if it had not been published
		}
		known++
		if !s.Features.PartitionableDevices && (slice.Spec.PerDeviceNodeSelection != nil || len(slice.Spec.SharedCounters) > 0) {
			continue // published, but not understood
		}
		s.addSlice(p, slice)
	}
	if known != members[0].Spec.Pool.ResourceSliceCount {
		p.fault = "pool is incomplete"
	}
	if p.fault == "" && s.Features.PartitionableDevices {
		p.fault = p.danglingReference()
	}
	return p
}

func (s *Situation) addSlice(p *pool, slice *resourceapi.ResourceSlice) {
	for _, set := range slice.Spec.SharedCounters {
		if p.counters[set.Name] != nil {
			p.fault = "counter set " + set.Name + " is defined twice"
		}
		p.counters[set.Name] = set.Counters
	}
	perDevice := slice.Spec.PerDeviceNodeSelection != nil && *slice.Spec.PerDeviceNodeSelection
	here := !perDevice && s.reaches(slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector)
	first := len(p.devices)
	for i := range slice.Spec.Devices {
		d := &device{spec: &slice.Spec.Devices[i], slice: slice, reachable: here}
		d.id = deviceID{slice.Spec.Driver, slice.Spec.Pool.Name, d.spec.Name}
		if perDevice {
			d.reachable = s.reaches(d.spec.NodeName, d.spec.AllNodes, d.spec.NodeSelector)
		}
		p.devices = append(p.devices, d)
	}
	here = here || slices.ContainsFunc(p.devices[first:], func(d *device) bool { return d.reachable })
	p.relevant = p.relevant || here
	if here {
		p.checkNames(p.devices[first:])
	}
}

// checkNames: names are compared in the slices for the node only, as
// kube-scheduler does.
func (p *pool) checkNames(devices []*device) {
	for _, d := range devices {
		if p.names[d.id.name] {
			p.fault = "two devices are named " + d.id.name
		}
		p.names[d.id.name] = true
	}
}

func (s *Situation) reaches(name *string, all *bool, selector *corev1.NodeSelector) bool {
	switch {
	case name != nil:
		return *name == s.Node.Name
	case all != nil:
		return *all
	case selector != nil:
		parsed, err := nodeaffinity.NewNodeSelector(selector)
		return err == nil && parsed.Match(s.Node)
	}
	return false
}

func (p *pool) danglingReference() string {
	for _, d := range p.devices {
		for _, consumption := range d.spec.ConsumesCounters {
			for counter := range consumption.Counters {
				if _, ok := p.counters[consumption.CounterSet][counter]; !ok {
					return "device " + d.id.name + " consumes a counter that does not exist"
				}
			}
		}
	}
	return ""
}

func hasGroups(slice *resourceapi.ResourceSlice) bool {
	for _, d := range slice.Spec.Devices {
		for _, consumption := range d.ConsumesCounters {
			if len(consumption.CompatibilityGroups) > 0 {
				return true
			}
		}
	}
	return false
}
