package ledger

import (
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// claimPart is what one claim has of a device.
type claimPart struct {
	holding *holding
	part    *part
}

// join remembers what the device consumes as it is published. What is the same
// as before is shared with the newest slice, so that old ones need not be kept
// and the two are found to be the same at a glance.
func (p *part) join(devices *inventory.Snapshot) {
	d := publishedIn(devices, p.id)
	if d == nil || same(p.drawn, d.Spec.ConsumesCounters) {
		return
	}
	if len(p.drawn) == 0 || equalConsumptions(p.drawn, d.Spec.ConsumesCounters) {
		p.drawn = d.Spec.ConsumesCounters
	}
}

// Join brings the state up to date with what is published and then calls then,
// which is about to change that; no claim is taken in between. It is for
// changes that devices with counters may not survive (Inventory.Displaces):
//
//	Observe(claim)      the claim holds gpu-0-half
//	SetSlice(...)       gpu-0-half is gone
//	Snapshot(devices)   nobody knows what gpu-0-half draws
//
// With the join before SetSlice, the holding remembers. then must not call the
// Ledger.
func (l *Ledger) Join(devices *inventory.Snapshot, then func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refresh(devices)
	then()
}

// before returns what the device consumed when the claim got it, for chargesOf.
func (p *part) before() [][]resourceapi.DeviceCounterConsumption {
	if len(p.drawn) == 0 {
		return nil
	}
	return [][]resourceapi.DeviceCounterConsumption{p.drawn}
}

// refresh brings the snapshot up to date. Only pools are looked at that have
// changed in the ledger, or in the inventory while something of them is held.
func (l *Ledger) refresh(devices *inventory.Snapshot) *Snapshot {
	old := l.snapshot.Load()
	if newer(devices, l.devices) {
		for id := range devices.Changed(l.devices) {
			if l.pools[id] != nil {
				l.dirty[id] = struct{}{}
			}
		}
		l.devices = devices
	}
	pools := old.pools
	for _, id := range slices.SortedFunc(maps.Keys(l.dirty), device.PoolID.Compare) {
		before := old.Pool(id)
		usage := l.newUsage(id)
		switch {
		case usage == nil:
			pools = pools.Without(id)
			continue
		case before == nil || !before.equal(usage):
			l.epoch++
			usage.epoch = l.epoch
		case before.counters == usage.counters:
			continue
		default:
			// The same is held, but amounts are counted in other units.
			usage.epoch = before.epoch
		}
		pools = pools.With(id, usage)
	}
	clear(l.dirty)
	snapshot := old
	if pools != old.pools {
		l.epoch++
		snapshot = &Snapshot{epoch: l.epoch, pools: pools}
	}
	l.snapshot.Store(snapshot)
	l.joined.Store(l.devices)
	// Only now: whoever reads false must find the new snapshot.
	l.stale.Store(false)
	return snapshot
}

// newUsage works out what is held of a pool, nil if nothing is.
func (l *Ledger) newUsage(id device.PoolID) *PoolUsage {
	if len(l.pools[id]) == 0 {
		return nil
	}
	usage := &PoolUsage{devices: make(map[device.Name]deviceUsage, len(l.pools[id]))}
	usage.counters = countersIn(l.devices, id)
	for name, holders := range l.pools[id] {
		usage.devices[name] = l.newDeviceUsage(holders)
	}
	usage.drawn, usage.groups = usage.charge(usage.counters)
	return usage
}

func (l *Ledger) newDeviceUsage(holders map[types.UID]claimPart) deviceUsage {
	usage := deviceUsage{holders: len(holders)}
	for _, claim := range slices.Sorted(maps.Keys(holders)) {
		part := holders[claim].part
		part.join(l.devices)
		usage.exclusive = usage.exclusive || part.exclusive
		usage.shares = append(usage.shares, part.shares...)
		usage.consumed = usage.consumed.Add(part.consumed())
		usage.drawn = append(usage.drawn, part.before()...)
	}
	return usage
}
