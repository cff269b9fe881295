package inventory

import (
	"iter"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Pool is the newest generation of a resource pool, in the whole cluster. It
// is immutable.
type Pool struct {
	ID device.PoolID
	// Epoch is larger than that of any earlier content of the pool.
	Epoch      uint64
	Generation int64
	// Have is the number of slices of the generation that have been published,
	// Want how many there should be. Slices with compatibility groups do not
	// count as published while that feature is off.
	Have, Want int
	// Fault is the first thing that is wrong with the pool, or nil. It makes
	// the pool unusable everywhere, except for DuplicateDevice: that harms
	// only nodes that can reach slices with the same device name, as it does
	// for kube-scheduler.
	Fault *Fault
	// Devices are all devices of the generation, even those of a faulty pool,
	// ordered by slice name and index. Device.Reach says from where each can
	// be used.
	Devices []*device.Device
	// Counters are those of the generation. It is nil for a pool without counter
	// sets and for one that is at fault on all nodes.
	Counters *Counters

	publications []*publication
	// everywhere is the fault that the pool has on each node.
	everywhere *Fault
	duplicates []duplicate
	// shared pools need a look at the labels of each node; others are listed
	// by node name.
	shared bool
	// whole is what a node gets that reaches all devices, or any device of a
	// pool that is at fault everywhere.
	whole *NodePool

	indexOnce sync.Once
	index     map[device.Name]*device.Device
}

// duplicate is a device name that two slices of a pool, or one slice twice,
// use. The numbers are indices in Pool.publications.
type duplicate struct {
	name          string
	first, second int
}

// NodePool is what one node can reach of a pool. It is immutable.
type NodePool struct {
	ID    device.PoolID
	Epoch uint64
	// Fault says why nothing can be allocated from the pool, or is nil.
	Fault *Fault
	// Devices are ordered by slice name and index. It is nil if there is a Fault.
	Devices []*device.Device
	// Counters are those of the whole pool: devices on other nodes draw from
	// them as well. It is nil if there are none, or if there is a Fault.
	Counters *Counters
	// BindingConditions is set if a device has some, in a slice that targets the
	// node: kube-scheduler then tries all other pools first.
	BindingConditions bool
}

// Device returns the device with the given name, or nil. If several devices
// have the name, it is the first one in the order of Devices.
func (p *Pool) Device(name device.Name) *device.Device {
	if len(p.publications) == 1 {
		return p.publications[0].device(name)
	}
	p.indexOnce.Do(func() {
		p.index = make(map[device.Name]*device.Device, len(p.Devices))
		for _, d := range slices.Backward(p.Devices) {
			p.index[d.ID.Device] = d
		}
	})
	return p.index[name]
}

// reach collects what one node can reach of a pool.
type reach struct {
	devices  []*device.Device
	targeted []int
}

func (r *reach) add(publication int, devices ...*device.Device) {
	r.devices = append(r.devices, devices...)
	if last := len(r.targeted) - 1; last < 0 || r.targeted[last] != publication {
		r.targeted = append(r.targeted, publication)
	}
}

// at returns what the node can reach of the pool: nil if no slice and no device
// targets it. next hands out epochs.
func (p *Pool) at(node *corev1.Node, next func() uint64) *NodePool {
	var reached reach
	for i, publication := range p.publications {
		if devices, targeted := publication.at(node); targeted {
			if p.everywhere != nil {
				return p.whole
			}
			reached.add(i, devices...)
		}
	}
	return p.nodePool(&reached, next)
}

// byNodeName returns what the nodes can reach that the pool names. It is all
// that can be said about a pool that is not shared.
func (p *Pool) byNodeName(next func() uint64) map[string]*NodePool {
	var names []string
	reached := make(map[string]*reach)
	visit := func(publication int, name string, devices ...*device.Device) {
		if name == "" {
			return
		}
		if reached[name] == nil {
			reached[name] = &reach{}
			names = append(names, name)
		}
		reached[name].add(publication, devices...)
	}
	for i, publication := range p.publications {
		if !publication.perDevice {
			visit(i, publication.targets[0].nodeName, publication.devices...)
			continue
		}
		for j := range publication.targets {
			visit(i, publication.targets[j].nodeName, publication.devices[j])
		}
	}
	pools := make(map[string]*NodePool, len(names))
	for _, name := range names {
		pools[name] = p.nodePool(reached[name], next)
	}
	return pools
}

func (p *Pool) nodePool(reached *reach, next func() uint64) *NodePool {
	if len(reached.targeted) == 0 {
		return nil
	}
	if p.everywhere != nil {
		return p.whole
	}
	for _, d := range p.duplicates {
		if slices.Contains(reached.targeted, d.first) && slices.Contains(reached.targeted, d.second) {
			return &NodePool{ID: p.ID, Epoch: next(), Fault: p.duplicateFault(d)}
		}
	}
	if len(reached.devices) == len(p.Devices) {
		return p.whole
	}
	return &NodePool{ID: p.ID, Epoch: next(), Devices: reached.devices, Counters: p.Counters, BindingConditions: p.conditional(reached.targeted)}
}

// conditional reports whether a device in one of the publications has binding
// conditions.
func (p *Pool) conditional(publications []int) bool {
	return slices.ContainsFunc(publications, func(i int) bool { return p.publications[i].conditional })
}

// nodeNames visits each node name that the pool uses, each once, in the order
// of the pool's slices.
func (p *Pool) nodeNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		last := ""
		seen := make(map[string]struct{})
		for _, publication := range p.publications {
			for i := range publication.targets {
				name := publication.targets[i].nodeName
				if name == last || name == "" {
					continue
				}
				last = name
				if _, found := seen[name]; found {
					continue
				}
				seen[name] = struct{}{}
				if !yield(name) {
					return
				}
			}
		}
	}
}
