package ledger

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/persistent"
)

// Snapshot is the state of the Ledger at one moment. It is immutable and safe
// for concurrent use.
type Snapshot struct {
	epoch uint64
	pools *persistent.Map[device.PoolID, *PoolUsage]
}

// PoolUsage says which devices of a pool are held. It is immutable. All methods
// may be called on nil: nothing is held.
type PoolUsage struct {
	epoch   uint64
	devices map[device.Name]deviceUsage
}

type deviceUsage struct {
	holders int
	shares  []Share
}

func emptySnapshot() *Snapshot {
	return &Snapshot{pools: persistent.New[device.PoolID, *PoolUsage](persistent.Pools())}
}

// Epoch is larger than that of all earlier snapshots of the same Ledger.
func (s *Snapshot) Epoch() uint64 { return s.epoch }

// Pool returns what is held of a pool: nil if nothing is.
func (s *Snapshot) Pool(id device.PoolID) *PoolUsage {
	usage, _ := s.pools.Get(id)
	return usage
}

// Epoch numbers the content: usages of one pool that have the same epoch are
// equal. Later content has a larger number, except that it is 0 while nothing
// is held.
func (u *PoolUsage) Epoch() uint64 {
	if u == nil {
		return 0
	}
	return u.epoch
}

// Held reports whether any claim holds the device, whole or in part.
func (u *PoolUsage) Held(name device.Name) bool { return u.Holders(name) > 0 }

// Holders returns how many claims hold the device. It is more than one for a
// device that is shared, or that two schedulers have handed out.
func (u *PoolUsage) Holders(name device.Name) int {
	if u == nil {
		return 0
	}
	return u.devices[name].holders
}

// Shares returns the shares of the device that claims were seen to hold, sorted
// by claim UID. The caller must not change the result.
func (u *PoolUsage) Shares(name device.Name) []Share {
	if u == nil {
		return nil
	}
	return u.devices[name].shares
}

func newUsage(pool device.PoolID, devices map[device.Name]map[types.UID]*holding) *PoolUsage {
	if len(devices) == 0 {
		return nil
	}
	usage := &PoolUsage{devices: make(map[device.Name]deviceUsage, len(devices))}
	for name, holders := range devices {
		usage.devices[name] = newDeviceUsage(device.ID{Driver: pool.Driver, Pool: pool.Pool, Device: name}, holders)
	}
	return usage
}

func newDeviceUsage(id device.ID, holders map[types.UID]*holding) deviceUsage {
	usage := deviceUsage{holders: len(holders)}
	for _, claim := range slices.Sorted(maps.Keys(holders)) {
		usage.shares = append(usage.shares, holders[claim].shares[id]...)
	}
	return usage
}

func (u *PoolUsage) equal(other *PoolUsage) bool {
	return maps.EqualFunc(u.devices, other.devices, func(a, b deviceUsage) bool {
		return a.holders == b.holders && slices.EqualFunc(a.shares, b.shares, equalShares)
	})
}

func equalShares(a, b Share) bool {
	return a.Claim == b.Claim && a.ID == b.ID &&
		maps.EqualFunc(a.ConsumedCapacity, b.ConsumedCapacity, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
}
