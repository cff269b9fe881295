package allocator

import (
	"errors"
	"math"
	"slices"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// stocks are amounts that several devices, or several shares of one device,
// draw on: the counters of counter sets (KEP-4815) and the capacities of devices
// that can be shared (KEP-5075). Each is one number.
type stocks struct {
	// left is what nobody has taken yet; it is negative if more is taken than
	// there is. total is what there was.
	left, total []int64
	// kinds says which stocks may serve the same purpose: counters with the same
	// name in the sets of one driver, say. kindNames has a name for each kind.
	kinds     []int
	kindNames map[string]int
	// sets are the counter sets, blocks what is always looked at together: the
	// counters of a set, or the capacities of a device.
	sets   []inventory.Compatibility
	blocks []block
}

// block is a run of stocks.
type block struct{ first, n int }

// draw is an amount that is taken from a stock.
type draw struct {
	stock  int
	amount int64
}

// setDraw says that a device draws on a counter set, next to devices with which
// it has one of the groups in common (KEP-5963).
type setDraw struct {
	set    int
	groups []string
}

// offer is what a device draws on when it is taken.
type offer struct {
	// shareable devices can be taken several times: counters are charged for the
	// first time only, shares for each.
	shareable bool
	// charged says that the counters are charged already, for a share that
	// somebody holds.
	charged bool
	// consumes is set if the driver says anything about counters at all.
	consumes bool
	counters []draw
	sets     []setDraw
	shares   [][]draw // for each alternative
	blocks   []int    // that the device draws on, ascending
	own      int      // the block of its own capacities, or -1
	cell     int      // -1 if it draws on nothing
	// exact is set, and shares are not, if amounts are too far apart for whole
	// numbers.
	exact *exactShares
}

// exactShares are what alternatives consume of a device, next to what is used.
type exactShares struct {
	device  *device.Device
	used    capacity.Amounts
	demands []capacity.Amounts // for each alternative
}

// fit tells whether a share for the alternative fits next to those that have
// been taken for others.
func (e *exactShares) fit(alternative int, taken []int) bool {
	used := e.used
	for _, other := range taken {
		used = used.Add(e.demands[other])
	}
	ok, _ := capacity.Fits(e.device.Spec, used, e.demands[alternative])
	return ok
}

func (o *offer) draws() bool { return len(o.blocks) > 0 }

// demands is what the alternatives demand of one device.
type demands struct {
	// misfit says for which alternatives the device does not have the capacity.
	misfit []bool
	// offer is nil if the device draws on nothing.
	offer *offer
}

// poolSurvey is what is needed of the pool of the devices being looked at.
type poolSurvey struct {
	*inventory.NodePool
	usage *ledger.PoolUsage
	// first is the stock of the pool's first counter, -1 until a device needs it;
	// from then on firstSet and firstBlock belong to its first set.
	first, firstSet, firstBlock int
	// overdrawn says that more of a counter is taken than there is.
	overdrawn bool
}

// demands works out what the alternatives demand of a device. The result is
// valid until the next call.
func (s *surveyor) demands(g *group, d *device.Device) demands {
	result := demands{misfit: s.misfit}
	clear(s.misfit)
	// Offers keep the amounts.
	var amounts []capacity.Amounts
	if d.AllowMultiple {
		amounts = make([]capacity.Amounts, len(s.problem.Alternatives))
	}
	for i, alternative := range s.problem.Alternatives {
		if !g.matches[i] || !s.asksForCapacity(alternative, d) {
			continue
		}
		amount, err := capacity.Demand(d.Spec, alternative.Capacity, s.problem.Features.FractionalCapacityRange)
		if err != nil {
			s.unfit(g, alternative, d, &result, err)
		}
		if d.AllowMultiple {
			amounts[i] = amount
		}
	}
	if d.Unsupported == "" {
		result.offer = s.offer(d, amounts)
	}
	return result
}

// asksForCapacity tells whether the capacities of the device matter to the
// alternative. Request policies do even if nothing is requested.
func (s *surveyor) asksForCapacity(alternative *problem.Alternative, d *device.Device) bool {
	if !s.problem.Features.ConsumableCapacity {
		return false
	}
	if alternative.Capacity != nil || d.AllowMultiple {
		return true
	}
	for _, c := range d.Spec.Capacity {
		if c.RequestPolicy != nil {
			return true
		}
	}
	return false
}

// unfit notes that the device can never have the capacity. "All devices" means
// all that can.
func (s *surveyor) unfit(g *group, alternative *problem.Alternative, d *device.Device, result *demands, err error) {
	tally := &s.tallies[alternative.Index]
	var misfit *capacity.Misfit
	if !errors.As(err, &misfit) {
		s.failed(alternative, d, g.inUse, &CapacityError{Alternative: alternative.Index, Device: d, Err: err})
	} else if tally.MissingCapacity == "" {
		tally.MissingCapacity = misfit.Capacity
	}
	if alternative.All {
		g.matches[alternative.Index] = false
		tally.Matching--
		tally.Misfit++
		return
	}
	result.misfit[alternative.Index] = true
}

// offer works out what a device draws on; nil if on nothing.
func (s *surveyor) offer(d *device.Device, amounts []capacity.Amounts) *offer {
	if !d.AllowMultiple && len(d.Spec.ConsumesCounters) == 0 {
		return nil
	}
	o := &offer{shareable: d.AllowMultiple, own: -1}
	if counters := s.pool.Counters; counters != nil {
		s.addCounters(o, counters, d)
	}
	if o.shareable {
		// kube-scheduler thinks of shares only: an administrator's access would
		// be charged for a device that somebody has as a whole.
		o.charged = s.pool.usage.Held(d.ID.Device) && (!s.options.Compatible || len(s.pool.usage.Shares(d.ID.Device)) > 0)
		s.addShares(o, d, amounts)
	}
	if !o.shareable && !o.draws() && !o.consumes {
		return nil
	}
	return o
}

func (s *surveyor) addCounters(o *offer, counters *inventory.Counters, d *device.Device) {
	if len(d.Spec.ConsumesCounters) == 0 {
		return
	}
	o.consumes = true
	s.openCounters(counters)
	last := -1
	for _, each := range counters.Draws(d) {
		if set := counters.SetOf(each.Counter); set != last {
			last = set
			o.blocks = append(o.blocks, s.pool.firstBlock+set)
		}
		// A counter of which nothing is drawn need not be there.
		if each.Amount > 0 {
			o.counters = append(o.counters, draw{stock: s.pool.first + each.Counter, amount: each.Amount})
		}
	}
	for _, each := range counters.Groups(d) {
		if block := s.pool.firstBlock + each.Set; !slices.Contains(o.blocks, block) {
			o.blocks = append(o.blocks, block) // a set of which no counter is drawn
		}
		o.sets = append(o.sets, setDraw{set: s.pool.firstSet + each.Set, groups: each.Groups})
	}
}

// openCounters enters the counters of the pool into the stocks.
func (s *surveyor) openCounters(counters *inventory.Counters) {
	if s.pool.first >= 0 {
		return
	}
	s.pool.first, s.pool.firstSet, s.pool.firstBlock = len(s.stocks.left), len(s.stocks.sets), len(s.stocks.blocks)
	drawn := s.pool.usage.Drawn(counters)
	counted := make([]int, counters.Sets())
	for i := range counters.Len() {
		_, name := counters.Name(i)
		left := counters.Total(i)
		if drawn != nil {
			left = inventory.AddAmounts(left, -max(drawn[i], -math.MaxInt64))
		}
		s.pool.overdrawn = s.pool.overdrawn || left < 0
		s.stocks.add(s.pool.ID.Driver.Value()+"/"+name, left, counters.Total(i))
		counted[counters.SetOf(i)]++
	}
	next := s.pool.first
	for set, n := range counted {
		s.stocks.blocks = append(s.stocks.blocks, block{first: next, n: n})
		s.stocks.sets = append(s.stocks.sets, s.pool.usage.Groups(counters, set))
		next += n
	}
}

func (s *surveyor) addShares(o *offer, d *device.Device, amounts []capacity.Amounts) {
	table := capacity.TableOf(d.Spec)
	names := table.Names()
	o.shares = make([][]draw, len(amounts))
	if len(names) == 0 {
		return
	}
	used := s.pool.usage.Consumed(d.ID.Device)
	if !allExact(table, append(amounts, used)) {
		o.exact = &exactShares{device: d, used: used, demands: amounts}
		o.own = len(s.stocks.blocks)
		o.blocks = append(o.blocks, o.own)
		s.stocks.blocks = append(s.stocks.blocks, block{first: len(s.stocks.left)})
		return
	}
	first := len(s.stocks.left)
	left, total := table.Values(), table.Values()
	left.Sub(table.VectorOf(used))
	for i, name := range names {
		s.stocks.add("capacity "+d.ID.Driver.Value()+"/"+name, left[i], total[i])
	}
	o.own = len(s.stocks.blocks)
	o.blocks = append(o.blocks, o.own)
	s.stocks.blocks = append(s.stocks.blocks, block{first: first, n: len(names)})
	for a := range amounts {
		if amounts[a] == nil {
			continue
		}
		for i, amount := range table.VectorOf(amounts[a]) {
			o.shares[a] = append(o.shares[a], draw{stock: first + i, amount: amount})
		}
	}
}

func allExact(table *capacity.Table, amounts []capacity.Amounts) bool {
	return !slices.ContainsFunc(amounts, func(a capacity.Amounts) bool { return !table.Exact(a) })
}

func (s *stocks) add(kind string, left, total int64) {
	if s.kindNames == nil {
		s.kindNames = make(map[string]int)
	}
	number, known := s.kindNames[kind]
	if !known {
		number = len(s.kindNames)
		s.kindNames[kind] = number
	}
	s.left, s.total, s.kinds = append(s.left, left), append(s.total, total), append(s.kinds, number)
}

// nothing is the offer of devices that draw on nothing. It is never changed.
var nothing = &offer{own: -1, cell: -1}

// addOffer keeps the offer of the device that was added last.
func (f *field) addOffer(o *offer) {
	if o == nil {
		o = nothing
	} else {
		o.cell = -1
	}
	f.offers = append(f.offers, o)
}
