package allocationcheck

import (
	"math/big"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// holding is what claims have of one device.
type holding struct {
	exclusive int
	shares    sets.Set[types.UID]
	consumed  map[resourceapi.QualifiedName]*big.Rat
}

func newHolding() *holding {
	return &holding{shares: sets.New[types.UID](), consumed: make(map[resourceapi.QualifiedName]*big.Rat)}
}

// taken tells whether anybody has the device or a share of it.
func (h *holding) taken() bool { return h != nil && (h.exclusive > 0 || h.shares.Len() > 0) }

func (h *holding) consume(amounts map[resourceapi.QualifiedName]resource.Quantity) {
	for name, amount := range amounts {
		if h.consumed[name] == nil {
			h.consumed[name] = new(big.Rat)
		}
		h.consumed[name].Add(h.consumed[name], exactly(amount))
	}
}

// gatherHoldings adds up the claims that were allocated before.
func (s *Situation) gatherHoldings() map[deviceID]*holding {
	holdings := make(map[deviceID]*holding)
	for _, claim := range s.Held {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.AdminAccess != nil && *r.AdminAccess {
				continue // an administrator takes nothing
			}
			id := deviceID{r.Driver, r.Pool, r.Device}
			if holdings[id] == nil {
				holdings[id] = newHolding()
			}
			if r.ShareID == nil || !s.Features.ConsumableCapacity {
				holdings[id].exclusive++
				continue
			}
			holdings[id].shares.Insert(*r.ShareID)
			holdings[id].consume(r.ConsumedCapacity)
		}
	}
	return holdings
}

// shareable tells whether the scheduler gives out shares of the device.
func (c *checker) shareable(d *device) bool {
	return c.Features.ConsumableCapacity && d.spec.AllowMultipleAllocations != nil && *d.spec.AllowMultipleAllocations
}

// byDevice groups the picks that take something, in the order of the claims.
func (c *checker) byDevice() (map[deviceID][]*pick, []*device) {
	picks := make(map[deviceID][]*pick)
	var order []*device
	for _, p := range c.picks {
		if p.ask.admin {
			continue
		}
		if picks[p.device.id] == nil {
			order = append(order, p.device)
		}
		picks[p.device.id] = append(picks[p.device.id], p)
	}
	return picks, order
}

// checkUse checks that nobody gets what somebody else has.
func (c *checker) checkUse() {
	c.checkTwiceInOneClaim()
	picks, order := c.byDevice()
	for _, d := range order {
		held := c.holdings[d.id]
		if c.shareable(d) {
			c.checkShares(d, held, picks[d.id])
			continue
		}
		for _, p := range picks[d.id][1:] {
			c.problem("%v is given to another request as well", p)
		}
		if held.taken() {
			c.problem("%v is in use", picks[d.id][0])
		}
	}
}

// checkTwiceInOneClaim: one claim cannot name a device twice, not even for an
// administrator.
func (c *checker) checkTwiceInOneClaim() {
	type use struct {
		claim int
		id    deviceID
	}
	seen := make(map[use]bool)
	for _, p := range c.picks {
		u := use{p.claim, p.device.id}
		if seen[u] && !c.shareable(p.device) {
			c.problem("%v is in the claim already", p)
		}
		seen[u] = true
	}
}

func (c *checker) checkShares(d *device, held *holding, picks []*pick) {
	total := newHolding()
	if held != nil {
		if held.exclusive > 0 {
			c.problem("%v is in use as a whole", picks[0])
		}
		total.shares = held.shares.Clone()
		for name, amount := range held.consumed {
			total.consumed[name] = new(big.Rat).Set(amount)
		}
	}
	for _, p := range picks {
		if p.result.ShareID == nil {
			continue // checkResult has said so
		}
		if total.shares.Has(*p.result.ShareID) {
			c.problem("%v: share %s exists already", p, *p.result.ShareID)
		}
		total.shares.Insert(*p.result.ShareID)
		total.consume(p.result.ConsumedCapacity)
	}
	for name, capacity := range d.spec.Capacity {
		if used := total.consumed[name]; used != nil && used.Cmp(exactly(capacity.Value)) > 0 {
			c.problem("%v: all shares together have %s of capacity %s, the device has %s", picks[0], used.RatString(), name, capacity.Value.String())
		}
	}
}
