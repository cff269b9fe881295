package ledger

import (
	"slices"
	"sync"
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/recency"
)

// Ledger keeps track of who holds which device. Create it with New. It is safe
// for concurrent use. Claims given to it are never changed.
type Ledger struct {
	mu sync.Mutex
	// names tells old news from new, also about claims that were deleted.
	names *recency.Names[types.NamespacedName]
	// devices is the newest snapshot of what is published that holdings were
	// joined with; joined is the same for those without the lock.
	devices *inventory.Snapshot
	joined  atomic.Pointer[inventory.Snapshot]
	// observed has the claims that were seen with an allocation, reserved the
	// reservations in flight. No claim is in both.
	observed map[types.UID]*holding
	reserved map[types.UID]*holding
	// pools has the holders of each device, by claim.
	pools map[device.PoolID]map[device.Name]map[types.UID]claimPart
	// dirty pools have to be looked at before the next snapshot. stale says
	// the same without the lock.
	dirty map[device.PoolID]struct{}
	stale atomic.Bool

	epoch    uint64
	snapshot atomic.Pointer[Snapshot]
}

// New returns a Ledger in which nobody holds anything.
func New() *Ledger {
	l := &Ledger{
		names:    recency.NewNames[types.NamespacedName](),
		observed: make(map[types.UID]*holding),
		reserved: make(map[types.UID]*holding),
		pools:    make(map[device.PoolID]map[device.Name]map[types.UID]claimPart),
		dirty:    make(map[device.PoolID]struct{}),
	}
	l.snapshot.Store(emptySnapshot())
	return l
}

// Observe takes in a claim that was seen, by an informer, in a queueing hint or
// as the answer to a write. What is older than what was seen is ignored, so
// each event may come several times and in any order. Each claim must have its
// UID.
//
// A claim seen with an allocation, whichever, ends its reservation: from now
// on the allocation says what the claim holds. Without an allocation the
// reservation stays, because that may be the claim before our own write.
func (l *Ledger) Observe(claim *resourceapi.ResourceClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news, replaced := l.names.Observe(nameOf(claim), claim.UID, claim.ResourceVersion)
	if !news {
		return
	}
	if replaced != "" {
		l.release(l.observed, replaced)
	}
	if claim.Status.Allocation == nil {
		l.release(l.observed, claim.UID)
		return
	}
	h := holdingOf(Holder{Claim: claim.UID, Name: nameOf(claim)}, claim.Status.Allocation)
	h.inherit(l.reserved[claim.UID])
	h.inherit(l.observed[claim.UID])
	l.release(l.reserved, claim.UID)
	l.take(l.observed, h)
}

// Forget takes in that a claim was deleted. A reservation stays until its
// attempt takes it back.
func (l *Ledger) Forget(claim *resourceapi.ResourceClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names.Delete(nameOf(claim), claim.UID)
	l.release(l.observed, claim.UID)
}

// take records a holding in the place of what the claim held before in the
// same way.
func (l *Ledger) take(side map[types.UID]*holding, h *holding) {
	l.release(side, h.holder.Claim)
	side[h.holder.Claim] = h
	for _, p := range h.devices {
		id := p.id
		pool := l.pools[id.PoolID()]
		if pool == nil {
			pool = make(map[device.Name]map[types.UID]claimPart)
			l.pools[id.PoolID()] = pool
		}
		if pool[id.Device] == nil {
			pool[id.Device] = make(map[types.UID]claimPart, 1)
		}
		pool[id.Device][h.holder.Claim] = claimPart{holding: h, part: p}
		l.mark(id.PoolID())
	}
}

func (l *Ledger) release(side map[types.UID]*holding, claim types.UID) {
	h := side[claim]
	if h == nil {
		return
	}
	delete(side, claim)
	for _, p := range h.devices {
		id := p.id
		pool := l.pools[id.PoolID()]
		delete(pool[id.Device], claim)
		if len(pool[id.Device]) == 0 {
			delete(pool, id.Device)
		}
		if len(pool) == 0 {
			delete(l.pools, id.PoolID())
		}
		l.mark(id.PoolID())
	}
}

func (l *Ledger) mark(pool device.PoolID) {
	l.dirty[pool] = struct{}{}
	l.stale.Store(true)
}

// Holders returns who holds a device, sorted by name and UID.
func (l *Ledger) Holders(id device.ID) []Holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holders(id)
}

func (l *Ledger) holders(id device.ID) []Holder {
	var holders []Holder
	for _, h := range l.pools[id.PoolID()][id.Device] {
		holders = append(holders, h.holding.holder)
	}
	slices.SortFunc(holders, compareHolders)
	return holders
}

// Settled reports whether a claim holds the device that was seen with its
// allocation, and not one for which the device is only reserved.
func (l *Ledger) Settled(id device.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.pools[id.PoolID()][id.Device] {
		if !h.holding.holder.Reserved {
			return true
		}
	}
	return false
}

// Snapshot returns the present state, joined with what is published: devices
// may be nil if nothing is. It is the same pointer for as long as nothing
// changes that is held. What is published must come from one Inventory. If
// devices is older than what was given before, that stays the present state.
func (l *Ledger) Snapshot(devices *inventory.Snapshot) *Snapshot {
	if !l.stale.Load() && !newer(devices, l.joined.Load()) {
		return l.snapshot.Load()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh(devices)
}

// newer reports whether a snapshot of the inventory comes after another one.
func newer(devices, than *inventory.Snapshot) bool {
	return devices != nil && (than == nil || devices.Epoch() > than.Epoch())
}
