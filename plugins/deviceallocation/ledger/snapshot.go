package ledger

import (
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/persistent"
)

// Snapshot is the state of the Ledger at one moment. It is immutable and safe
// for concurrent use.
type Snapshot struct {
	epoch uint64
	pools *persistent.Map[device.PoolID, *PoolUsage]
}

// PoolUsage says what of a pool is held. It is immutable. All methods may be
// called on nil: nothing is held.
type PoolUsage struct {
	epoch   uint64
	devices map[device.Name]deviceUsage
	// counters are those of the pool as it was joined; drawn and groups are
	// charged to them.
	counters *inventory.Counters
	drawn    []int64
	groups   []inventory.Compatibility
}

type deviceUsage struct {
	holders   int
	exclusive bool
	shares    []Share
	consumed  capacity.Amounts
	// drawn is what the device consumed when its holders got it, for each that
	// is known to have got it with counters.
	drawn [][]resourceapi.DeviceCounterConsumption
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

// Exclusive reports whether a claim holds the device without a share ID. Such a
// holder blocks all others, even if the device allows multiple allocations by
// now. A device that is held but not exclusive has shares only.
func (u *PoolUsage) Exclusive(name device.Name) bool {
	return u != nil && u.devices[name].exclusive
}

// Consumed returns what all shares of the device take of its capacities
// together. The caller must not change the result.
func (u *PoolUsage) Consumed(name device.Name) capacity.Amounts {
	if u == nil {
		return nil
	}
	return u.devices[name].consumed
}

// Shares returns the shares of the device, sorted by claim UID. The caller must
// not change the result.
func (u *PoolUsage) Shares(name device.Name) []Share {
	if u == nil {
		return nil
	}
	return u.devices[name].shares
}

// Drawn returns what all held devices of the pool consume of each counter: each
// device once, however many shares it has (KEP-4815). A device that its driver
// has taken away or changed is charged with what it consumed when it was
// allocated as well; of the two the larger amount counts. The caller must not
// change the result.
//
// The counters should be those of the inventory snapshot that this state was
// joined with. For others of the same pool the answer is right, but has to be
// worked out each time.
func (u *PoolUsage) Drawn(counters *inventory.Counters) []int64 {
	if u == nil {
		return counters.Zeros()
	}
	if u.counters == counters {
		return u.drawn
	}
	drawn, _ := u.charge(counters)
	return drawn
}

// Groups returns what the compatibility groups (KEP-5963) of all held devices
// that consume from a counter set have in common. The counters are those that
// Drawn describes, set is one of their numbers.
func (u *PoolUsage) Groups(counters *inventory.Counters, set int) inventory.Compatibility {
	if u == nil {
		return inventory.Compatibility{}
	}
	if u.counters == counters {
		return u.groups[set]
	}
	_, groups := u.charge(counters)
	return groups[set]
}

func (u *PoolUsage) equal(other *PoolUsage) bool {
	return maps.EqualFunc(u.devices, other.devices, func(a, b deviceUsage) bool {
		return a.holders == b.holders && a.exclusive == b.exclusive && slices.EqualFunc(a.shares, b.shares, equalShares) &&
			slices.EqualFunc(a.drawn, b.drawn, equalConsumptions)
	})
}

func equalConsumptions(a, b []resourceapi.DeviceCounterConsumption) bool {
	return same(a, b) || apiequality.Semantic.DeepEqual(a, b)
}

func equalShares(a, b Share) bool {
	return a.Claim == b.Claim && a.ID == b.ID && equalAmounts(a.ConsumedCapacity, b.ConsumedCapacity)
}
