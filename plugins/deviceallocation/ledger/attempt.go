package ledger

import (
	"slices"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// attempt is what one call of Reserve takes, on top of what is held.
type attempt struct {
	ledger   *Ledger
	held     *Snapshot
	holdings []*holding
	devices  map[device.ID]*taken
	pools    map[device.PoolID]*drawnPool
}

// taken is what the attempt has taken of a device so far.
type taken struct {
	first     Holder
	exclusive bool
	consumed  capacity.Amounts
}

// drawnPool is what is drawn of a pool's counters, the attempt included.
type drawnPool struct {
	counters *inventory.Counters
	drawn    []int64
	groups   []inventory.Compatibility
}

func newAttempt(l *Ledger, held *Snapshot) *attempt {
	return &attempt{ledger: l, held: held, devices: make(map[device.ID]*taken), pools: make(map[device.PoolID]*drawnPool)}
}

// add takes what a claim is to have, which has nothing yet. After an error the
// attempt is of no use any more.
func (a *attempt) add(h *holding, chosen *inventory.Snapshot) error {
	a.holdings = append(a.holdings, h)
	for _, p := range h.devices {
		p.join(chosen)
		p.join(a.ledger.devices)
		if err := a.takeDevice(h, p, chosen); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) takeDevice(h *holding, p *part, chosen *inventory.Snapshot) error {
	d := publishedIn(a.ledger.devices, p.id)
	if d == nil {
		d = publishedIn(chosen, p.id)
	}
	usage := a.held.Pool(p.id.PoolID())
	before := a.devices[p.id]
	if holder, found := a.blocking(p, d, before); found {
		return &ConflictError{Device: p.id, Claim: h.holder.Name, Holder: holder}
	}
	consumed := p.consumed()
	if before == nil {
		before = &taken{first: h.holder}
		if !usage.Held(p.id.Device) {
			if err := a.draw(h, p, chosen); err != nil {
				return err
			}
		}
	}
	if d != nil && len(p.shares) > 0 {
		used := usage.Consumed(p.id.Device).Add(before.consumed)
		if fits, short := capacity.Fits(d.Spec, used, consumed); !fits {
			return a.conflict(&ConflictError{Device: p.id, Claim: h.holder.Name, Capacity: string(short)}, before, h)
		}
	}
	before.exclusive = before.exclusive || p.exclusive
	before.consumed = before.consumed.Add(consumed)
	a.devices[p.id] = before
	return nil
}

// blocking finds who keeps the part from being taken, however much capacity is
// left. d may be nil.
func (a *attempt) blocking(p *part, d *device.Device, before *taken) (holder Holder, found bool) {
	holders := a.ledger.holders(p.id)
	if p.exclusive || d != nil && !d.AllowMultiple {
		if len(holders) > 0 {
			return holders[0], true
		}
		if before != nil {
			return before.first, true
		}
		return Holder{}, false
	}
	for _, h := range holders {
		if a.ledger.pools[p.id.PoolID()][p.id.Device][h.Claim].part.exclusive {
			return h, true
		}
	}
	if before != nil && before.exclusive {
		return before.first, true
	}
	return Holder{}, false
}

// conflict adds the first holder to an error about capacity, if there is one.
func (a *attempt) conflict(err *ConflictError, before *taken, h *holding) error {
	if holders := a.ledger.holders(err.Device); len(holders) > 0 {
		err.Holder = holders[0]
	} else if before.first.Claim != h.holder.Claim {
		err.Holder = before.first
	}
	return err
}

// draw charges a device that nobody has yet to the counters of its pool.
func (a *attempt) draw(h *holding, p *part, chosen *inventory.Snapshot) error {
	pool := a.pool(p.id.PoolID(), chosen)
	if pool.counters == nil {
		return nil
	}
	draws, groups := chargesOf(pool.counters, pool.counters.Device(p.id.Device), p.before())
	for _, draw := range draws {
		pool.drawn[draw.Counter] = inventory.AddAmounts(pool.drawn[draw.Counter], draw.Amount)
		if draw.Amount > 0 && pool.drawn[draw.Counter] > pool.counters.Total(draw.Counter) {
			set, counter := pool.counters.Name(draw.Counter)
			return a.counterConflict(&ConflictError{Device: p.id, Claim: h.holder.Name, CounterSet: set, Counter: counter}, pool.counters)
		}
	}
	for _, g := range groups {
		if !pool.groups[g.Set].Admits(g.Groups) {
			set := pool.counters.SetName(g.Set)
			return a.counterConflict(&ConflictError{Device: p.id, Claim: h.holder.Name, CounterSet: set}, pool.counters)
		}
		pool.groups[g.Set] = pool.groups[g.Set].Add(g.Groups)
	}
	return nil
}

// pool returns what is drawn of a pool so far. The counters are the present
// ones; while the pool cannot be used, because its driver is publishing it anew,
// those that the devices were chosen by.
func (a *attempt) pool(id device.PoolID, chosen *inventory.Snapshot) *drawnPool {
	if known := a.pools[id]; known != nil {
		return known
	}
	found := &drawnPool{counters: countersIn(a.ledger.devices, id)}
	if found.counters == nil {
		found.counters = countersIn(chosen, id)
	}
	usage := a.held.Pool(id)
	found.drawn = slices.Clone(usage.Drawn(found.counters))
	for set := range found.counters.Sets() {
		found.groups = append(found.groups, usage.Groups(found.counters, set))
	}
	a.pools[id] = found
	return found
}

// counterConflict adds the first claim with a device that draws from the
// counter, or from any of the set if the error is about groups.
func (a *attempt) counterConflict(err *ConflictError, counters *inventory.Counters) error {
	id := err.Device.PoolID()
	var holders []Holder
	note := func(p *part, holder Holder) {
		draws, _ := chargesOf(counters, counters.Device(p.id.Device), p.before())
		for _, draw := range draws {
			set, counter := counters.Name(draw.Counter)
			if p.id != err.Device && set == err.CounterSet && (err.Counter == "" || counter == err.Counter) {
				holders = append(holders, holder)
			}
		}
	}
	for _, claims := range a.ledger.pools[id] {
		for _, claim := range claims {
			note(claim.part, claim.holding.holder)
		}
	}
	for _, h := range a.holdings {
		for _, p := range h.devices {
			if p.id.PoolID() == id && a.devices[p.id] != nil {
				note(p, h.holder)
			}
		}
	}
	if len(holders) > 0 {
		err.Holder = slices.MinFunc(holders, compareHolders)
	}
	return err
}

func publishedIn(devices *inventory.Snapshot, id device.ID) *device.Device {
	if devices == nil {
		return nil
	}
	return devices.Device(id)
}

func countersIn(devices *inventory.Snapshot, id device.PoolID) *inventory.Counters {
	if devices == nil {
		return nil
	}
	if pool := devices.Pool(id); pool != nil {
		return pool.Counters
	}
	return nil
}
