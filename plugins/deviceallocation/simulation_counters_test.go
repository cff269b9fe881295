package deviceallocation

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// drawKey is a claim and a device that it holds.
type drawKey struct {
	claim  types.UID
	device device.ID
}

// counterKey is a counter of some pool.
type counterKey struct {
	pool         device.PoolID
	set, counter string
}

type amounts map[counterKey]int64

// charge is what a device that a claim holds draws from counters.
type charge struct {
	// taken is what it consumed when the claim got it. A scheduler that has
	// started since cannot know it if the driver does not publish it any more:
	// it is in no claim. Then it is nothing.
	taken amounts
	// known is what the running scheduler must charge: what the device consumed
	// when it was first seen with counters, by that scheduler, in the claim.
	known amounts
}

// newest returns the slices of the newest generation of a pool.
func newest(published []*resourceapi.ResourceSlice, id device.PoolID) []*resourceapi.ResourceSlice {
	var found []*resourceapi.ResourceSlice
	for _, slice := range published {
		pool := &slice.Spec.Pool
		if device.NewID(slice.Spec.Driver, pool.Name, "").PoolID() != id {
			continue
		}
		if len(found) > 0 && found[0].Spec.Pool.Generation != pool.Generation {
			if found[0].Spec.Pool.Generation > pool.Generation {
				continue
			}
			found = nil
		}
		found = append(found, slice)
	}
	return found
}

// consumption is what a device consumes as it is published.
func consumption(published []*resourceapi.ResourceSlice, id device.ID) amounts {
	for _, slice := range newest(published, id.PoolID()) {
		for i := range slice.Spec.Devices {
			if d := &slice.Spec.Devices[i]; d.Name == id.Device.Value() {
				return consumed(d, id.PoolID())
			}
		}
	}
	return nil
}

func consumed(d *resourceapi.Device, pool device.PoolID) amounts {
	sum := make(amounts)
	for _, c := range d.ConsumesCounters {
		for name, counter := range c.Counters {
			sum[counterKey{pool, c.CounterSet, name}] += counter.Value.Value()
		}
	}
	return sum
}

// totals are the counters of a pool.
func totals(published []*resourceapi.ResourceSlice, id device.PoolID) amounts {
	sum := make(amounts)
	for _, slice := range newest(published, id) {
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				sum[counterKey{id, set.Name, name}] = counter.Value.Value()
			}
		}
	}
	return sum
}

// seenSlices are the slices that the informers of the scheduler have.
func (s *simulation) seenSlices() []*resourceapi.ResourceSlice {
	published, err := s.scheduler.informers.Resource().V1().ResourceSlices().Lister().List(labels.Everything())
	s.must(err)
	return published
}

// partitionsOf visits the partitions that an allocation takes from others.
func partitionsOf(allocation *resourceapi.AllocationResult, visit func(device.ID)) {
	if allocation == nil {
		return
	}
	for _, result := range allocation.Devices.Results {
		if result.Driver == partitionDriver && (result.AdminAccess == nil || !*result.AdminAccess) {
			visit(device.NewID(result.Driver, result.Pool, result.Device))
		}
	}
}

// holdings returns the partitions that claims hold: according to the API server,
// and to attempts in flight that have not written their claims yet. What has been
// written may end before the attempt does, with a pod that is deleted.
func (s *simulation) holdings() map[drawKey]bool {
	keys := make(map[drawKey]bool)
	for _, claim := range s.allClaims() {
		partitionsOf(claim.Status.Allocation, func(id device.ID) { keys[drawKey{claim.UID, id}] = true })
	}
	for _, f := range s.flights {
		if f.preBound != nil {
			continue
		}
		for _, c := range s.reserved(f.attempt) {
			partitionsOf(c.allocation, func(id device.ID) { keys[drawKey{c.claim.UID, id}] = true })
		}
	}
	return keys
}

func (s *simulation) reserved(a *attempt) []reservedClaim {
	state, err := readState(a.cycle)
	s.must(err)
	if state == nil || state.reservation == nil {
		return nil
	}
	return state.reservation.claims
}

// learn notes what the scheduler has seen of held devices.
func (s *simulation) learn() {
	published, held := s.seenSlices(), s.holdings()
	for key := range s.charges {
		if !held[key] {
			delete(s.charges, key)
		}
	}
	for key := range held {
		c := s.charges[key]
		if c == nil {
			c = &charge{}
			s.charges[key] = c
		}
		if len(c.known) == 0 {
			c.known = consumption(published, key.device)
		}
	}
}

// forget is what a restart of the scheduler does: nothing is known of held
// devices but what is published (#140802). What cannot be known, and only that,
// may be drawn a second time.
func (s *simulation) forget() {
	published := s.seenSlices()
	for key, c := range s.charges {
		c.known = consumption(published, key.device)
		if len(c.known) == 0 {
			c.taken = nil
		}
	}
}

// checkDraws notes what a new reservation draws and checks that there was so
// much left, next to everything that the scheduler must have known.
func (s *simulation) checkDraws(a *attempt, node string) {
	s.Helper()
	published := s.seenSlices()
	for _, c := range s.reserved(a) {
		partitionsOf(c.allocation, func(id device.ID) {
			draws := consumption(published, id)
			s.charges[drawKey{c.claim.UID, id}] = &charge{taken: draws, known: draws}
		})
	}
	if key := s.overdrawn(s.reserved(a), published); key != nil {
		s.failf("%s on %s: reserved more than there is of %s in %s of pool %s", a.pod.Name, node, key.counter, key.set, key.pool)
	}
}

// overdraws tells whether the devices that a fresh scheduler has found on a node
// are not there because of draws that it cannot know.
func (s *simulation) overdraws(a *attempt, node string) bool {
	s.Helper()
	a.must(a.reserve(node))
	defer a.unreserve(node)
	return s.overdrawn(s.reserved(a), s.allSlices()) != nil
}

// overdrawn returns a counter from which claims draw of which there is not
// enough for what is charged and what they draw, nil if there is none.
func (s *simulation) overdrawn(claims []reservedClaim, published []*resourceapi.ResourceSlice) *counterKey {
	charged := s.charged()
	fresh := make(map[device.ID]amounts)
	for _, c := range claims {
		partitionsOf(c.allocation, func(id device.ID) { fresh[id] = consumption(published, id) })
	}
	for id, draws := range fresh {
		charged[id] = draws
	}
	for id, draws := range fresh {
		available := totals(published, id.PoolID())
		sum := total(charged)
		for key := range draws {
			if sum[key] > available[key] {
				return &key
			}
		}
	}
	return nil
}

// charged returns what the scheduler must charge for each held device. A claim
// of another scheduler counts when the informers have shown its devices.
func (s *simulation) charged() map[device.ID]amounts {
	seen := make(map[types.UID]bool)
	claims, err := s.scheduler.informers.Resource().V1().ResourceClaims().Lister().List(labels.Everything())
	s.must(err)
	for _, claim := range claims {
		seen[claim.UID] = claim.Status.Allocation != nil
	}
	charged := make(map[device.ID]amounts)
	for key, c := range s.charges {
		// The amounts of a device are always the same, if it has any.
		if len(charged[key.device]) == 0 && (seen[key.claim] || !s.foreign[key.claim]) {
			charged[key.device] = c.known
		}
	}
	return charged
}

func total(devices map[device.ID]amounts) amounts {
	sum := make(amounts)
	for _, draws := range devices {
		for key, amount := range draws {
			sum[key] += amount
		}
	}
	return sum
}

// checkCounters: what allocations drew when they were made is not more than
// there is. Pools of which another scheduler takes devices are left out.
func (s *simulation) checkCounters(holders map[device.ID][]heldResult) {
	s.Helper()
	spoilt := make(map[device.PoolID]bool)
	taken := make(map[device.ID]amounts)
	for id, held := range holders {
		spoilt[id.PoolID()] = spoilt[id.PoolID()] || s.anyForeign(held)
		for _, h := range held {
			if c := s.charges[drawKey{h.claim.UID, id}]; c != nil {
				taken[id] = c.taken
			}
		}
	}
	for key, amount := range total(taken) {
		most := totals([]*resourceapi.ResourceSlice{boards(&simulatedPool{driver: key.pool.Driver.Value(), name: key.pool.Pool.Value()})}, key.pool)
		if !spoilt[key.pool] && amount > most[key] {
			s.failf("allocations draw %d of %d of %s in %s of pool %s", amount, most[key], key.counter, key.set, key.pool)
		}
	}
}
