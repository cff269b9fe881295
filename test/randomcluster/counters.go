package randomcluster

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// setID names a counter set of a pool, counterID one of its counters.
type setID struct{ driver, pool, set string }

type counterID struct {
	setID
	counter string
}

// counterSets makes up one or two GPUs that can be cut into pieces.
func (g *generator) counterSets() []resourceapi.CounterSet {
	var sets []resourceapi.CounterSet
	for i := range 1 + g.IntN(2) {
		sets = append(sets, resourceapi.CounterSet{
			Name: fmt.Sprintf("set-%d", i),
			Counters: map[string]resourceapi.Counter{
				"memory": {Value: *resource.NewQuantity(oneOf[int64](g, 40, 60, 80, 80), resource.DecimalSI)},
				"slices": {Value: *resource.NewQuantity(oneOf[int64](g, 5, 7, 9, 9), resource.DecimalSI)},
			},
		})
	}
	return sets
}

// counterSlices publishes the counter sets, in slices without devices.
func (g *generator) counterSlices(p *poolPlan) []*builders.SliceBuilder {
	if len(p.sets) == 0 {
		return nil
	}
	parts := [][]resourceapi.CounterSet{p.sets}
	if len(p.sets) == 2 && g.chance(50) {
		parts = [][]resourceapi.CounterSet{p.sets[:1], p.sets[1:]}
	}
	var made []*builders.SliceBuilder
	for i, sets := range parts {
		slice := builders.Slice(p.driver, p.name).Named(fmt.Sprintf("%s-%s-counters-%d", p.name, p.driver, i))
		p.target(slice, nil)
		made = append(made, slice.With(func(s *resourceapi.ResourceSlice) { s.Spec.SharedCounters = sets }))
		if g.uses.faults && g.chance(8) {
			// A counter set is missing while the number of slices is right.
			slice.With(func(s *resourceapi.ResourceSlice) { s.Spec.SharedCounters[0].Name = "renamed" })
		}
	}
	return made
}

// partition makes the device a piece of one or two counter sets.
func (g *generator) partition(p *poolPlan, d *resourceapi.Device) {
	sets := p.sets
	if len(sets) == 2 && g.chance(80) {
		i := g.IntN(2)
		sets = sets[i : i+1]
	}
	size := oneOf[int64](g, 1, 1, 2, 2, 4)
	var groups []string
	if g.uses.groups {
		groups = oneOf(g, nil, []string{"mig"}, []string{"vgpu"}, []string{"mig", "vgpu"}, []string{"mig"})
	}
	for _, set := range sets {
		counters := map[string]resourceapi.Counter{"memory": {Value: *resource.NewQuantity(10*size, resource.DecimalSI)}}
		if g.chance(70) {
			counters["slices"] = resourceapi.Counter{Value: *resource.NewQuantity(oneOf(g, size, 2*size-1), resource.DecimalSI)}
		}
		d.ConsumesCounters = append(d.ConsumesCounters, resourceapi.DeviceCounterConsumption{
			CounterSet: set.Name, Counters: counters, CompatibilityGroups: groups,
		})
	}
}

// reserve takes the counters of a device for a holder. It returns false, and
// takes nothing, if the holder could not have got them; rarely it overlooks that.
func (g *generator) reserve(p *poolPlan, d *resourceapi.Device) bool {
	careless := g.chance(3)
	for _, consumption := range d.ConsumesCounters {
		set := setID{p.driver, p.name, consumption.CounterSet}
		if groups, found := g.groups[set]; found && fmt.Sprint(groups) != fmt.Sprint(consumption.CompatibilityGroups) {
			return false
		}
		for name, counter := range consumption.Counters {
			if counter.Value.Value() > g.left(p, counterID{set, name}) && !careless {
				return false
			}
		}
	}
	for _, consumption := range d.ConsumesCounters {
		set := setID{p.driver, p.name, consumption.CounterSet}
		g.groups[set] = consumption.CompatibilityGroups
		for name, counter := range consumption.Counters {
			id := counterID{set, name}
			g.remaining[id] = g.left(p, id) - counter.Value.Value()
		}
	}
	return true
}

func (g *generator) left(p *poolPlan, id counterID) int64 {
	if left, found := g.remaining[id]; found {
		return left
	}
	for _, set := range p.sets {
		if counter, ok := set.Counters[id.counter]; ok && set.Name == id.set {
			return counter.Value.Value()
		}
	}
	return 0
}
