package allocator

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// surveyor sorts the devices of a node into groups.
type surveyor struct {
	*field
	ctx     context.Context
	node    Node
	known   map[string]int // group by key
	numbers map[device.Value]int
	key     []byte         // scratch space
	values  []device.Value // scratch space
	pool    poolSurvey
}

func newSurveyor(ctx context.Context, f *field, node Node) *surveyor {
	return &surveyor{field: f, ctx: ctx, node: node, known: make(map[string]int), numbers: make(map[device.Value]int)}
}

// enter starts with the devices of another pool.
func (s *surveyor) enter(pool *inventory.NodePool) {
	s.pool = poolSurvey{NodePool: pool, usage: s.node.Usage.Pool(pool.ID), first: -1}
}

// add looks at one device, the next in the canonical order.
func (s *surveyor) add(d *device.Device) error {
	if len(d.Spec.BindingConditions) > 0 && !s.problem.Features.BindingConditions {
		return nil // kube-scheduler does not even count it for "all devices"
	}
	inUse := s.inUse(d)
	alternatives := s.problem.Alternatives
	g := group{inUse: inUse, matches: make([]bool, len(alternatives))}
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
	demands, err := s.demands(&g, d)
	if err != nil {
		return err
	}
	if err := s.complete(&g, d, &demands); err != nil {
		return err
	}
	index, ok := s.known[string(s.encode(&g))]
	if !ok {
		index = len(s.groups)
		s.groups = append(s.groups, g)
		s.known[string(s.key)] = index
	}
	s.groups[index].members = append(s.groups[index].members, len(s.devices))
	s.devices = append(s.devices, d)
	s.groupOf = append(s.groupOf, index)
	s.addOffer(demands.offer)
	return nil
}

// inUse tells whether nobody but administrators can have the device. One that
// allows multiple allocations is in use only if somebody has it for himself,
// from the time before it could be shared.
func (s *surveyor) inUse(d *device.Device) bool {
	name := d.ID.Device
	if s.options.Compatible || d.AllowMultiple {
		return s.pool.usage.Exclusive(name)
	}
	return s.pool.usage.Held(name)
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
			s.failed(alternative, d, inUse, &SelectorError{Alternative: alternative.Index, Selector: i, Device: d, Err: err})
		}
		if !matches {
			tally.Selector = max(tally.Selector, i)
			return false, nil
		}
	}
	tally.Matching++
	return true, nil
}

// failed notes that something about the device could not be evaluated.
func (s *surveyor) failed(alternative *problem.Alternative, d *device.Device, inUse bool, err error) {
	tally := &s.tallies[alternative.Index]
	tally.Errors++
	if tally.Failed == nil {
		tally.Failed, tally.Err, tally.FailedPart = d, errors.Unwrap(err), partOfClaim(err)
	}
	if s.options.FailOnSelectorError {
		s.errors = append(s.errors, failedEvaluation{
			alternative: alternative.Index, before: len(s.devices), inUse: inUse && !alternative.Admin, err: err,
		})
	}
}

// partOfClaim names what could not be evaluated.
func partOfClaim(err error) string {
	switch e := err.(type) {
	case *DerivationError:
		return "derived attribute " + string(e.Attribute)
	case *CapacityError:
		return "the requested capacity"
	default:
		return "a selector"
	}
}

// complete fills in what tells a matching device apart from others.
func (s *surveyor) complete(g *group, d *device.Device, demands *demands) error {
	alternatives := s.problem.Alternatives
	g.values = make([][]int, len(s.slots))
	for i := range s.slots {
		if err := s.setValues(i, g, d); err != nil {
			return err
		}
	}
	g.usable = make([]bool, len(alternatives))
	g.cost = make([]int64, len(alternatives))
	for i, alternative := range alternatives {
		if !g.matches[i] {
			continue
		}
		g.usable[i] = s.usable(alternative, g, d, demands)
		if g.usable[i] && s.options.Objective != nil {
			g.cost[i] = s.options.Objective.DeviceCost(alternative, d)
		}
	}
	return nil
}

// setValues looks an attribute up only where it can matter: a constraint on
// unique identifiers must not split the devices of requests beyond its reach.
func (s *surveyor) setValues(index int, g *group, d *device.Device) error {
	slot := &s.slots[index]
	user := s.userOf(index, g)
	if user == nil {
		return nil
	}
	attribute, ok := d.Attribute(slot.attribute)
	if slot.derivation != nil {
		var err error
		attribute, err = slot.derivation.Attribute(s.ctx, d)
		if err != nil && s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		if ok = err == nil; !ok {
			s.failed(user, d, g.inUse, &DerivationError{Alternative: user.Index, Attribute: slot.attribute, Device: d, Err: err})
		}
	}
	if !ok {
		return nil
	}
	s.values = device.AppendValues(s.values[:0], attribute, s.problem.Features.ListTypeAttributes)
	for _, value := range s.values {
		number, known := s.numbers[value]
		if !known {
			number = len(s.numbers)
			s.numbers[value] = number
		}
		g.values[index] = append(g.values[index], number)
	}
	slices.Sort(g.values[index])
	return nil
}

// userOf returns the first alternative that matches and whose values are in the
// slot, or nil.
func (s *surveyor) userOf(slot int, g *group) *problem.Alternative {
	for _, alternative := range s.problem.Alternatives {
		if !g.matches[alternative.Index] {
			continue
		}
		for i := range s.constraints {
			if s.constraints[i].slots[alternative.Index] == slot {
				return alternative
			}
		}
	}
	return nil
}

func (s *surveyor) usable(alternative *problem.Alternative, g *group, d *device.Device, demands *demands) bool {
	if g.inUse && !alternative.Admin {
		return false
	}
	if found := s.obstacle(alternative, d, demands); found != noObstacle {
		g.obstacles.set(alternative, found, d)
		return false
	}
	for i := range s.constraints {
		if slot := s.constraints[i].slots[alternative.Index]; slot >= 0 && g.values[slot] == nil {
			g.obstacles.set(alternative, attributeObstacle, d)
			return false
		}
	}
	return true
}

// encode writes the group's key into the scratch space. What devices draw on is
// not part of it; see divide.
func (s *surveyor) encode(g *group) []byte {
	key := append(s.key[:0], flag(g.inUse))
	for i := range g.matches {
		key = append(key, flag(g.matches[i])|flag(g.usable[i])<<1, byte(g.obstacles.of(i)))
		key = binary.AppendVarint(key, g.cost[i])
	}
	for _, values := range g.values {
		key = binary.AppendUvarint(key, uint64(len(values)))
		for _, value := range values {
			key = binary.AppendUvarint(key, uint64(value))
		}
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
