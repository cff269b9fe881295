package ledger

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/recency"
)

// Ledger keeps track of who holds which device. Create it with New. It is safe
// for concurrent use. Claims given to it are never changed.
type Ledger struct {
	mu sync.Mutex
	// names tells old news from new, also about claims that were deleted.
	names *recency.Names[types.NamespacedName]
	// observed has the claims that were seen with an allocation, reserved the
	// reservations in flight. No claim is in both.
	observed map[types.UID]*holding
	reserved map[types.UID]*holding
	// pools has the holders of each device, by claim.
	pools map[device.PoolID]map[device.Name]map[types.UID]*holding
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
		pools:    make(map[device.PoolID]map[device.Name]map[types.UID]*holding),
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
	allocation := allocationOf(claim)
	if allocation == nil {
		l.release(l.observed, claim.UID)
		return
	}
	l.release(l.reserved, claim.UID)
	l.take(l.observed, allocation)
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
	for _, id := range h.devices {
		pool := l.pools[id.PoolID()]
		if pool == nil {
			pool = make(map[device.Name]map[types.UID]*holding)
			l.pools[id.PoolID()] = pool
		}
		if pool[id.Device] == nil {
			pool[id.Device] = make(map[types.UID]*holding, 1)
		}
		pool[id.Device][h.holder.Claim] = h
		l.mark(id.PoolID())
	}
}

func (l *Ledger) release(side map[types.UID]*holding, claim types.UID) {
	h := side[claim]
	if h == nil {
		return
	}
	delete(side, claim)
	for _, id := range h.devices {
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
		holders = append(holders, h.holder)
	}
	slices.SortFunc(holders, compareHolders)
	return holders
}

// Snapshot returns the present state. It is the same pointer for as long as
// nothing changes.
func (l *Ledger) Snapshot() *Snapshot {
	if !l.stale.Load() {
		return l.snapshot.Load()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stale.Load() {
		return l.snapshot.Load()
	}
	old := l.snapshot.Load()
	pools := old.pools
	for _, id := range slices.SortedFunc(maps.Keys(l.dirty), device.PoolID.Compare) {
		before := old.Pool(id)
		usage := newUsage(id, l.pools[id])
		switch {
		case usage == nil:
			pools = pools.Without(id)
		case before == nil || !before.equal(usage):
			l.epoch++
			usage.epoch = l.epoch
			pools = pools.With(id, usage)
		}
	}
	clear(l.dirty)
	snapshot := old
	if pools != old.pools {
		l.epoch++
		snapshot = &Snapshot{epoch: l.epoch, pools: pools}
	}
	l.snapshot.Store(snapshot)
	// Only now: whoever reads false must find the new snapshot.
	l.stale.Store(false)
	return snapshot
}
