package allocationcheck

import (
	"math/big"

	"k8s.io/apimachinery/pkg/util/sets"
)

// checkCounters checks the counter sets that lose something: a device consumes
// once, whoever has it and however many shares of it there are.
func (c *checker) checkCounters() {
	if !c.Features.PartitionableDevices {
		return
	}
	type setID struct {
		pool poolID
		name string
	}
	picks, order := c.byDevice()
	loses := make(map[setID]sets.Set[string])
	for _, d := range order {
		if c.holdings[d.id].taken() {
			continue // it has consumed before
		}
		for _, consumption := range d.spec.ConsumesCounters {
			id := setID{poolID{d.id.driver, d.id.pool}, consumption.CounterSet}
			if loses[id] == nil {
				loses[id] = sets.New[string]()
			}
			for name, counter := range consumption.Counters {
				if !counter.Value.IsZero() {
					loses[id].Insert(name)
				}
			}
		}
	}
	for id, counters := range loses {
		var users []*device
		for _, other := range c.pools[id.pool].devices {
			if c.holdings[other.id].taken() || len(picks[other.id]) > 0 {
				users = append(users, other)
			}
		}
		c.checkCounterSet(c.pools[id.pool], id.name, counters, users)
	}
}

// checkCounterSet checks the counters that lose something. Others may have been
// overdrawn before, which is not the fault of the allocation.
func (c *checker) checkCounterSet(p *pool, set string, counters sets.Set[string], users []*device) {
	used := make(map[string]*big.Rat)
	var common sets.Set[string]
	members := 0
	for _, d := range users {
		for _, consumption := range d.spec.ConsumesCounters {
			if consumption.CounterSet != set {
				continue
			}
			for name, counter := range consumption.Counters {
				if used[name] == nil {
					used[name] = new(big.Rat)
				}
				used[name].Add(used[name], exactly(counter.Value))
			}
			groups := sets.New(consumption.CompatibilityGroups...)
			if members > 0 && c.Features.CompatibilityGroups {
				both := common.Intersection(groups)
				if both.Len() == 0 && common.Len()+groups.Len() > 0 {
					c.problem("device %s is not compatible with the others on counter set %s", d.id.name, set)
				}
				groups = both
			}
			common = groups
			members++
		}
	}
	for name := range counters {
		amount := used[name]
		counter, ok := p.counters[set][name]
		if !ok || amount.Cmp(exactly(counter.Value)) > 0 {
			c.problem("counter set %s: %s of counter %s is in use, there is %s", set, amount.RatString(), name, counter.Value.String())
		}
	}
}
