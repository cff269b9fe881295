package inventory

import (
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// newPool builds a pool from all slices of its newest generation, in the order
// of their names. There is at least one.
func newPool(id device.PoolID, publications []*publication, features device.Features, next func() uint64) *Pool {
	p := &Pool{
		ID:           id,
		Epoch:        next(),
		Generation:   publications[0].slice.Spec.Pool.Generation,
		publications: publications,
	}
	devices, unknown := 0, 0
	for _, publication := range publications {
		count := int(publication.slice.Spec.Pool.ResourceSliceCount)
		if publication.uncounted {
			unknown = max(unknown, count)
		} else {
			p.Have++
			p.Want = max(p.Want, count)
		}
		p.shared = p.shared || slices.ContainsFunc(publication.targets, func(t target) bool { return t.shared() })
		devices += len(publication.devices)
	}
	if p.Have == 0 {
		p.Want = unknown
	}
	p.Devices = make([]*device.Device, 0, devices)
	for _, publication := range publications {
		p.Devices = append(p.Devices, publication.devices...)
	}
	p.duplicates = p.findDuplicates()
	p.everywhere = p.firstFault(features)
	p.Fault = p.everywhere
	if p.Fault == nil && len(p.duplicates) > 0 {
		p.Fault = p.duplicateFault(p.duplicates[0])
	}
	p.whole = &NodePool{
		ID: id, Epoch: p.Epoch, Fault: p.everywhere,
		BindingConditions: slices.ContainsFunc(publications, func(p *publication) bool { return p.conditional }),
	}
	if p.everywhere == nil {
		p.Counters = newCounters(p, features.CompatibilityGroups)
		p.whole.Devices, p.whole.Counters = p.Devices, p.Counters
	}
	return p
}

func (p *Pool) fault(kind FaultKind, detail string) *Fault {
	return &Fault{Kind: kind, Pool: p.ID, Generation: p.Generation, Have: p.Have, Want: p.Want, Detail: detail}
}

// firstFault finds what makes the pool unusable on every node. An incomplete
// pool is not looked at any closer: what seems to be wrong with it may be right
// once the rest is there.
func (p *Pool) firstFault(features device.Features) *Fault {
	var first *resourceapi.ResourceSlice
	for _, publication := range p.publications {
		other := publication.slice
		switch {
		case publication.uncounted:
			continue
		case first == nil:
			first = other
		}
		if other.Spec.Pool.ResourceSliceCount != first.Spec.Pool.ResourceSliceCount {
			return p.fault(Contradictory, fmt.Sprintf(
				"resourceSliceCount of generation %d is %d in slice %s and %d in slice %s; the driver must publish one value, or a new generation",
				p.Generation, first.Spec.Pool.ResourceSliceCount, first.Name, other.Spec.Pool.ResourceSliceCount, other.Name))
		}
	}
	switch {
	case p.Have < p.Want:
		return p.fault(Incomplete, "")
	case p.Have > p.Want:
		return p.fault(Surplus, fmt.Sprintf(
			"generation %d consists of slices %s; delete the ones that the driver left behind", p.Generation, p.sliceNames()))
	}
	if fault := p.badNodeSelector(); fault != nil {
		return fault
	}
	if !features.PartitionableDevices {
		return nil // nobody looks at counters
	}
	return p.counterFault()
}

// namedSlices bounds how many slices a Fault names.
const namedSlices = 8

func (p *Pool) sliceNames() string {
	text := ""
	for i, publication := range p.publications {
		switch {
		case i == namedSlices:
			return fmt.Sprintf("%s and %d more", text, len(p.publications)-i)
		case i > 0:
			text += ", "
		}
		text += publication.slice.Name
	}
	return text
}

func (p *Pool) badNodeSelector() *Fault {
	for _, publication := range p.publications {
		for i := range publication.targets {
			err := publication.targets[i].err
			switch {
			case err == nil:
			case publication.perDevice:
				return p.fault(BadNodeSelector, fmt.Sprintf("device %s in slice %s: %v",
					publication.devices[i].Spec.Name, publication.slice.Name, err))
			default:
				return p.fault(BadNodeSelector, fmt.Sprintf("slice %s: %v", publication.slice.Name, err))
			}
		}
	}
	return nil
}

// findDuplicates returns each pair of slices that use the same device name,
// with the first such name. Nearly always there is none.
func (p *Pool) findDuplicates() []duplicate {
	names := make(map[device.Name]struct{}, len(p.Devices))
	for _, d := range p.Devices {
		names[d.ID.Device] = struct{}{}
	}
	if len(names) == len(p.Devices) {
		return nil
	}
	users := make(map[device.Name][]int, len(names))
	pairs := make(map[[2]int]struct{})
	var duplicates []duplicate
	for i, publication := range p.publications {
		for _, d := range publication.devices {
			earlierUsers := users[d.ID.Device]
			for _, earlier := range earlierUsers {
				pair := [2]int{earlier, i}
				if _, found := pairs[pair]; !found {
					pairs[pair] = struct{}{}
					duplicates = append(duplicates, duplicate{name: d.Spec.Name, first: earlier, second: i})
				}
			}
			if last := len(earlierUsers) - 1; last < 0 || earlierUsers[last] != i {
				users[d.ID.Device] = append(earlierUsers, i)
			}
		}
	}
	return duplicates
}

func (p *Pool) duplicateFault(d duplicate) *Fault {
	first, second := p.publications[d.first].slice.Name, p.publications[d.second].slice.Name
	if first == second {
		return p.fault(DuplicateDevice, fmt.Sprintf("device %s is twice in slice %s; the driver must give each device its own name", d.name, first))
	}
	return p.fault(DuplicateDevice, fmt.Sprintf("device %s is in slice %s and in slice %s; the driver must give each device its own name",
		d.name, first, second))
}

func (p *Pool) counterFault() *Fault {
	sets := make(map[string]*resourceapi.CounterSet)
	for _, publication := range p.publications {
		published := publication.counterSets()
		for i := range published {
			set := &published[i]
			if sets[set.Name] != nil {
				return p.fault(DuplicateCounterSet, fmt.Sprintf("counter set %s is defined a second time in slice %s; the driver must give each set its own name",
					set.Name, publication.slice.Name))
			}
			sets[set.Name] = set
		}
	}
	for _, d := range p.Devices {
		for i := range d.Spec.ConsumesCounters {
			consumption := &d.Spec.ConsumesCounters[i]
			set := sets[consumption.CounterSet]
			if set == nil {
				return p.fault(DanglingCounter, fmt.Sprintf("device %s in slice %s consumes from counter set %s, which no slice of the pool defines",
					d.Spec.Name, d.Slice, consumption.CounterSet))
			}
			for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
				if _, found := set.Counters[name]; !found {
					return p.fault(DanglingCounter, fmt.Sprintf("device %s in slice %s consumes counter %s, which counter set %s does not define",
						d.Spec.Name, d.Slice, name, set.Name))
				}
			}
		}
	}
	return nil
}
