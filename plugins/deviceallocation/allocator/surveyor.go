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
	pool    poolSurvey
	// The rest is scratch space: most devices are like one before, and for those
	// nothing new is kept.
	device group
	misfit []bool
	key    []byte
	values []device.Value
}

func newSurveyor(ctx context.Context, f *field, node Node) *surveyor {
	alternatives := len(f.problem.Alternatives)
	flags := make([]bool, 3*alternatives)
	return &surveyor{
		field: f, ctx: ctx, node: node,
		known: make(map[string]int), numbers: make(map[device.Value]int),
		device: group{
			matches: flags[:alternatives:alternatives],
			usable:  flags[alternatives : 2*alternatives : 2*alternatives],
			values:  make([][]int, len(f.slots)),
			cost:    make([]int64, alternatives),
		},
		misfit: flags[2*alternatives:],
	}
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
	g := &s.device
	g.reset(inUse)
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
	demands := s.demands(g, d)
	if err := s.complete(g, d, &demands); err != nil {
		return err
	}
	index, ok := s.known[string(s.encode(g, demands.offer != nil && demands.offer.shareable))]
	if !ok {
		index = len(s.groups)
		s.groups = append(s.groups, g.clone())
		s.known[string(s.key)] = index
	}
	s.groups[index].members = append(s.groups[index].members, len(s.devices))
	s.devices = append(s.devices, d)
	s.groupOf = append(s.groupOf, index)
	s.addOffer(demands.offer)
	return nil
}

// reset empties the description of a device for the next one.
func (g *group) reset(inUse bool) {
	g.inUse = inUse
	clear(g.matches)
	clear(g.usable)
	clear(g.cost)
	for i := range g.values {
		g.values[i] = g.values[i][:0]
	}
	g.obstacles.kinds, g.obstacles.shown = g.obstacles.kinds[:0], nil
}

// clone makes a group of the description of its first device.
func (g *group) clone() group {
	kept := *g
	kept.matches, kept.usable = slices.Clone(g.matches), slices.Clone(g.usable)
	kept.cost, kept.obstacles.kinds = slices.Clone(g.cost), slices.Clone(g.obstacles.kinds)
	kept.values = make([][]int, len(g.values))
	for i, values := range g.values {
		if len(values) > 0 {
			kept.values[i] = slices.Clone(values)
		}
	}
	return kept
}

// inUse tells whether nobody but administrators can have the device. One that
// allows multiple allocations is in use only if somebody has it for himself,
// from the time before it could be shared.
func (s *surveyor) inUse(d *device.Device) bool {
	name := d.ID.Device
	if s.options.Compatible && s.problem.Features.ConsumableCapacity || d.AllowMultiple {
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
	for i := range s.slots {
		if err := s.setValues(i, g, d); err != nil {
			return err
		}
	}
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
		if slot := s.constraints[i].slots[alternative.Index]; slot >= 0 && len(g.values[slot]) == 0 {
			g.obstacles.set(alternative, attributeObstacle, d)
			return false
		}
	}
	return true
}

// encode writes the group's key into the scratch space. What devices draw on is
// not part of it; see divide.
func (s *surveyor) encode(g *group, shareable bool) []byte {
	key := append(s.key[:0], flag(g.inUse), flag(shareable))
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
