package ledger

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// charge works out what all held devices consume of counters.
func (u *PoolUsage) charge(counters *inventory.Counters) (drawn []int64, groups []inventory.Compatibility) {
	if counters == nil {
		return nil, nil
	}
	var sum balance
	groups = make([]inventory.Compatibility, counters.Sets())
	for name, usage := range u.devices {
		draws, groupDraws := chargesOf(counters, counters.Device(name), usage.drawn)
		for _, draw := range draws {
			sum.add(draw, counters.Len())
		}
		for _, g := range groupDraws {
			groups[g.Set] = groups[g.Set].Add(g.Groups)
		}
	}
	return sum.amounts(counters), groups
}

// balance adds up draws. What is drawn is kept apart from negative draws, which
// give something back: a sum that stops at the end of int64 depends on the order
// of its terms only if their signs differ.
type balance struct{ drawn, given []int64 }

func (b *balance) add(draw inventory.Draw, counters int) {
	side := &b.drawn
	if draw.Amount < 0 {
		side = &b.given
	}
	if *side == nil {
		*side = make([]int64, counters)
	}
	(*side)[draw.Counter] = inventory.AddAmounts((*side)[draw.Counter], draw.Amount)
}

func (b *balance) amounts(counters *inventory.Counters) []int64 {
	switch {
	case b.drawn == nil && b.given == nil:
		return counters.Zeros()
	case b.given == nil:
		return b.drawn
	case b.drawn == nil:
		return b.given
	}
	for i := range b.drawn {
		b.drawn[i] = inventory.AddAmounts(b.drawn[i], b.given[i])
	}
	return b.drawn
}

// chargesOf returns what a held device is charged with. d is the device as it is
// published, or nil; before has what it consumed when its holders got it. Of
// each counter the largest amount counts, and all compatibility groups do. The
// caller must not change the results.
func chargesOf(counters *inventory.Counters, d *device.Device, before [][]resourceapi.DeviceCounterConsumption) ([]inventory.Draw, []inventory.GroupDraw) {
	var draws []inventory.Draw
	var groups []inventory.GroupDraw
	var now []resourceapi.DeviceCounterConsumption
	if d != nil {
		now = d.Spec.ConsumesCounters
		draws, groups = counters.Draws(d), slices.Clip(counters.Groups(d))
	}
	for _, consumptions := range before {
		if same(consumptions, now) {
			continue
		}
		draws = larger(draws, counters.DrawsOf(consumptions))
		groups = append(groups, counters.GroupsOf(consumptions)...)
	}
	return draws, groups
}

// same reports whether the two are one and the same list, as they are unless
// the driver has published the device anew.
func same(a, b []resourceapi.DeviceCounterConsumption) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// larger merges two lists of draws that are sorted by counter. If only one of
// them has a counter, the other one draws nothing from it.
func larger(a, b []inventory.Draw) []inventory.Draw {
	if len(a) == 0 {
		return b
	}
	merged := slices.Clone(a)
	for _, draw := range b {
		at, found := slices.BinarySearchFunc(merged, draw.Counter, func(d inventory.Draw, counter int) int { return d.Counter - counter })
		switch {
		case found:
			merged[at].Amount = max(merged[at].Amount, draw.Amount)
		case draw.Amount > 0:
			merged = slices.Insert(merged, at, draw)
		}
	}
	return merged
}
