package allocator

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// surveyor sorts the devices of a node into groups.
type surveyor struct {
	*field
	ctx     context.Context
	options Options
	known   map[string]int // group by key
	key     []byte         // scratch space
	// skipsNodeOperations is that of the Node.
	skipsNodeOperations bool
}

// add looks at one device, the next in the canonical order.
func (s *surveyor) add(d *device.Device, inUse bool) error {
	g := group{inUse: inUse, feature: d.Unsupported, kubelet: len(d.SkipNodeOperations) > 0 && !s.skipsNodeOperations}
	alternatives := s.problem.Alternatives
	g.matches = make([]bool, len(alternatives))
	matched := false
	for i, alternative := range alternatives {
		matches, err := s.matches(alternative, d, inUse)
		if err != nil {
			return err
		}
		g.matches[i] = matches
		matched = matched || matches
	}
	if !matched {
		return nil
	}
	s.complete(&g, d)
	index, ok := s.known[string(s.encode(&g))]
	if !ok {
		index = len(s.groups)
		s.groups = append(s.groups, g)
		s.known[string(s.key)] = index
	}
	s.groups[index].members = append(s.groups[index].members, len(s.devices))
	s.devices = append(s.devices, d)
	s.groupOf = append(s.groupOf, index)
	return nil
}

// matches asks all selectors of an alternative and counts the answer.
func (s *surveyor) matches(alternative *problem.Alternative, d *device.Device, inUse bool) (bool, error) {
	tally := &s.tallies[alternative.Index]
	tally.Seen++
	for i := range alternative.Selectors {
		matches, err := alternative.Selectors[i].Expression.Matches(s.ctx, d)
		if err != nil {
			if s.ctx.Err() != nil {
				return false, context.Cause(s.ctx)
			}
			s.failed(alternative, i, d, inUse, err)
		}
		if !matches {
			tally.Selector = max(tally.Selector, i)
			return false, nil
		}
	}
	tally.Matching++
	return true, nil
}

func (s *surveyor) failed(alternative *problem.Alternative, selector int, d *device.Device, inUse bool, err error) {
	tally := &s.tallies[alternative.Index]
	tally.Errors++
	if tally.Failed == nil {
		tally.Failed, tally.Err = d, err
	}
	if s.options.FailOnSelectorError {
		s.errors = append(s.errors, failedEvaluation{
			alternative: alternative.Index, selector: selector, device: d,
			before: len(s.devices), inUse: inUse && !alternative.Admin, err: err,
		})
	}
}

// complete fills in what tells a matching device apart from others.
func (s *surveyor) complete(g *group, d *device.Device) {
	alternatives := s.problem.Alternatives
	g.values = make([]device.Value, len(s.constraints))
	g.has = make([]bool, len(s.constraints))
	for i := range s.constraints {
		g.values[i], g.has[i] = s.valueFor(i, g, d)
	}
	g.usable = make([]bool, len(alternatives))
	g.cost = make([]int64, len(alternatives))
	for i, alternative := range alternatives {
		if !g.matches[i] {
			continue
		}
		g.usable[i] = s.usable(alternative, g, d)
		if g.usable[i] && s.options.Objective != nil {
			g.cost[i] = s.options.Objective.DeviceCost(alternative, d)
		}
	}
}

// valueFor looks an attribute up only where it can matter: a constraint on
// unique identifiers must not split the devices of requests beyond its reach.
func (s *surveyor) valueFor(constraint int, g *group, d *device.Device) (device.Value, bool) {
	for _, alternative := range s.problem.Alternatives {
		if g.matches[alternative.Index] && s.constraints[constraint].Covers(alternative) {
			return d.Attribute(s.constraints[constraint].Attribute)
		}
	}
	return device.Value{}, false
}

func (s *surveyor) usable(alternative *problem.Alternative, g *group, d *device.Device) bool {
	if g.feature != "" || g.kubelet || g.inUse && !alternative.Admin {
		return false
	}
	if len(d.Taints) > 0 && device.UntoleratedTaint(d.Taints, alternative.Tolerations) != nil {
		if g.taints == nil {
			g.taints = d
		}
		return false
	}
	for i := range s.constraints {
		if !g.has[i] && s.constraints[i].Covers(alternative) {
			return false
		}
	}
	return true
}

// encode writes the group's key into the scratch space.
func (s *surveyor) encode(g *group) []byte {
	key := s.key[:0]
	key = append(key, flag(g.inUse)|flag(g.kubelet)<<1, flag(g.taints != nil))
	key = append(key, g.feature...)
	for i := range g.matches {
		key = append(key, flag(g.matches[i])|flag(g.usable[i])<<1)
		key = binary.AppendVarint(key, g.cost[i])
	}
	for i := range g.values {
		key = append(key, flag(g.has[i]))
		key = g.values[i].Append(key)
	}
	s.key = key
	return key
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// sortByCost lists the usable groups of each alternative. Groups are numbered
// by their first member, so equal costs keep the canonical order.
func (f *field) sortByCost() {
	f.byCost = make([][]int, len(f.problem.Alternatives))
	for a := range f.byCost {
		for g := range f.groups {
			if f.groups[g].usable[a] {
				f.byCost[a] = append(f.byCost[a], g)
			}
		}
		slices.SortStableFunc(f.byCost[a], func(x, y int) int {
			return cmp.Compare(f.groups[x].cost[a], f.groups[y].cost[a])
		})
	}
}
