package inventory

import (
	"cmp"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Counters are all counters of all counter sets of a pool (KEP-4815), in one
// table that is made once per pool. Amounts are whole numbers of a unit that
// each counter has of its own: they can be compared and added only within one
// counter of one Counters. It is immutable. All methods may be called on nil,
// which has no counters.
//
// An amount may be negative if the driver published such a quantity: a negative
// draw adds to what is left, a negative total is one that nothing fits in, as in
// kube-scheduler.
type Counters struct {
	sets     []publishedSet
	counters []counter
	draws    map[*device.Device]drawsOf
	zeros    []int64
	pool     *Pool
	// grouped says whether compatibility groups count.
	grouped bool
}

type publishedSet struct {
	name string
	// table converts quantities; its names are those of the counters from
	// first on.
	table *capacity.Table
	first int
}

type counterName struct{ set, counter string }

type counter struct {
	counterName
	set   int
	total int64
}

// Draw is what a device consumes of one counter while it is allocated.
type Draw struct {
	// Counter is an index into the Counters that made the Draw.
	Counter int
	Amount  int64
}

// GroupDraw says which compatibility groups (KEP-5963) a device has on a counter
// set that it consumes from. No groups are a statement as well: the device goes
// together with such devices only.
type GroupDraw struct {
	// Set is a number below Sets.
	Set int
	// Groups belongs to the slice. Nobody may change it.
	Groups []string
}

type drawsOf struct {
	counters []Draw
	groups   []GroupDraw
}

// Len returns the number of counters, Sets that of counter sets.
func (c *Counters) Len() int {
	if c == nil {
		return 0
	}
	return len(c.counters)
}

// Sets returns the number of counter sets. They are numbered in the order of
// their names.
func (c *Counters) Sets() int {
	if c == nil {
		return 0
	}
	return len(c.sets)
}

// SetName returns the name of a counter set.
func (c *Counters) SetName(set int) string { return c.sets[set].name }

// SetOf returns the set that a counter belongs to.
func (c *Counters) SetOf(counter int) int { return c.counters[counter].set }

// Name returns what the driver calls a counter. Counters are in the order of
// their sets' names, then of their own.
func (c *Counters) Name(counter int) (set, name string) {
	found := &c.counters[counter]
	return found.counterName.set, found.counter
}

// Total returns how much there is of a counter while nothing is allocated.
func (c *Counters) Total(counter int) int64 { return c.counters[counter].total }

// Draws returns what a device consumes, sorted by Counter, each once. It is nil
// for a device that consumes nothing. The caller must not change it.
//
// The device must be of the pool that the Counters come from; for one of
// another content of the same pool the answer is right, but has to be worked
// out each time.
func (c *Counters) Draws(d *device.Device) []Draw {
	if c == nil || len(d.Spec.ConsumesCounters) == 0 {
		return nil
	}
	if known, found := c.draws[d]; found {
		return known.counters
	}
	return c.DrawsOf(d.Spec.ConsumesCounters)
}

// Groups returns the compatibility groups of a device, one entry for each
// counter set that it consumes from, in the order of its consumesCounters. It is
// nil while the feature is off. The caller must not change it.
func (c *Counters) Groups(d *device.Device) []GroupDraw {
	if c == nil || len(d.Spec.ConsumesCounters) == 0 {
		return nil
	}
	if known, found := c.draws[d]; found {
		return known.groups
	}
	return c.GroupsOf(d.Spec.ConsumesCounters)
}

// DrawsOf returns what a device would draw that consumes counters like this,
// sorted by Counter. Counters that the pool does not have are left out.
func (c *Counters) DrawsOf(consumptions []resourceapi.DeviceCounterConsumption) []Draw {
	var draws []Draw
	for i := range consumptions {
		consumed := consumptions[i].Counters
		number, found := c.findSet(consumptions[i].CounterSet)
		if !found {
			continue
		}
		set := &c.sets[number]
		amounts := set.table.Vector(func(name string) (resource.Quantity, bool) {
			counter, found := consumed[name]
			return counter.Value, found
		})
		for at, name := range set.table.Names() {
			if _, found := consumed[name]; found {
				draws = append(draws, Draw{Counter: set.first + at, Amount: amounts[at]})
			}
		}
	}
	slices.SortStableFunc(draws, func(a, b Draw) int { return cmp.Compare(a.Counter, b.Counter) })
	return merged(draws)
}

// merged adds up draws from one counter, which the API does not allow.
func merged(draws []Draw) []Draw {
	kept := draws[:0]
	for _, d := range draws {
		if last := len(kept) - 1; last >= 0 && kept[last].Counter == d.Counter {
			kept[last].Amount = AddAmounts(kept[last].Amount, d.Amount)
			continue
		}
		kept = append(kept, d)
	}
	return kept
}

func (c *Counters) findSet(name string) (number int, found bool) {
	if c == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(c.sets, name, func(s publishedSet, name string) int { return cmp.Compare(s.name, name) })
}

// GroupsOf returns the compatibility groups of a device that consumes counters
// like this. Sets that the pool does not have are left out.
func (c *Counters) GroupsOf(consumptions []resourceapi.DeviceCounterConsumption) []GroupDraw {
	if c == nil || !c.grouped {
		return nil
	}
	var groups []GroupDraw
	for i := range consumptions {
		if set, found := c.findSet(consumptions[i].CounterSet); found {
			groups = append(groups, GroupDraw{Set: set, Groups: consumptions[i].CompatibilityGroups})
		}
	}
	return groups
}

// Zeros returns one 0 for each counter. The caller must not change it.
func (c *Counters) Zeros() []int64 {
	if c == nil {
		return nil
	}
	return c.zeros
}

// Device returns the device of the pool with the given name, on whatever node
// it is, or nil.
func (c *Counters) Device(name device.Name) *device.Device {
	if c == nil {
		return nil
	}
	return c.pool.Device(name)
}

// newCounters makes the table of a pool without faults, nil if that has no
// counter sets.
func newCounters(p *Pool, grouped bool) *Counters {
	var sets []*resourceapi.CounterSet
	for _, publication := range p.publications {
		published := publication.counterSets()
		for i := range published {
			sets = append(sets, &published[i])
		}
	}
	if len(sets) == 0 {
		return nil
	}
	slices.SortFunc(sets, func(a, b *resourceapi.CounterSet) int { return cmp.Compare(a.Name, b.Name) })
	c := &Counters{pool: p, grouped: grouped, draws: make(map[*device.Device]drawsOf)}
	for number, set := range sets {
		c.addSet(number, set)
	}
	c.zeros = make([]int64, len(c.counters))
	for _, d := range p.Devices {
		if len(d.Spec.ConsumesCounters) > 0 {
			c.draws[d] = drawsOf{counters: c.DrawsOf(d.Spec.ConsumesCounters), groups: c.GroupsOf(d.Spec.ConsumesCounters)}
		}
	}
	return c
}

func (c *Counters) addSet(number int, set *resourceapi.CounterSet) {
	values := make(map[string]resource.Quantity, len(set.Counters))
	for name, counter := range set.Counters {
		values[name] = counter.Value
	}
	table := capacity.NewTable(values)
	c.sets = append(c.sets, publishedSet{name: set.Name, table: table, first: len(c.counters)})
	totals := table.Values()
	for at, name := range table.Names() {
		c.counters = append(c.counters, counter{counterName: counterName{set.Name, name}, set: number, total: totals[at]})
	}
}

// AddAmounts adds without overflow: what is too large or too small becomes the
// largest or smallest amount.
func AddAmounts(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}
