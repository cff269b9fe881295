package deviceallocation

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	portDriver = "port.example.com"
	// portBandwidth is what each port has, portDefault what a share gets that
	// does not ask; shares are multiples of portStep.
	portBandwidth, portDefault, portStep = 10, 4, 2
)

// publishPorts writes a pool of devices that several claims can share, in a new
// generation or the present one. Now and then a port is for one claim only.
func (s *simulation) publishPorts(pool *simulatedPool) string {
	if pool.generation == 0 || s.random.IntN(2) == 0 {
		pool.generation++
	}
	slice := emptySlice(pool, "0").Devices(builders.DevicesNamed("port", 1+s.random.IntN(2), func(_ int, d *builders.DeviceBuilder) {
		d.Attribute("model", []string{"a", "b"}[s.random.IntN(2)]).Capacity("bandwidth", fmt.Sprint(portBandwidth))
		d.Policy("bandwidth", resourceapi.CapacityRequestPolicy{
			Default: resource.NewQuantity(portDefault, resource.DecimalSI),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{
				Min: resource.NewQuantity(portStep, resource.DecimalSI), Step: resource.NewQuantity(portStep, resource.DecimalSI),
			},
		})
		if s.random.IntN(4) > 0 {
			d.Shared()
		}
	})...).Obj()
	s.putSlice(slice)
	return fmt.Sprintf("publish %s %s generation %d: %d devices", pool.driver, pool.name, pool.generation, len(slice.Spec.Devices))
}

func (s *simulation) portClaim(name string) *builders.ClaimBuilder {
	port := func(name string) *builders.RequestBuilder {
		b := builders.Request(name, "port")
		if amount := []string{"", "3", "5", "8"}[s.random.IntN(4)]; amount != "" {
			b.Capacity("bandwidth", amount)
		}
		return b
	}
	switch s.random.IntN(6) {
	case 0:
		return builders.Claim(name, port("main").Admin())
	case 1:
		return builders.Claim(name, port("main"), port("more"))
	case 2:
		return builders.Claim(name, port("main").Count(2))
	default:
		return builders.Claim(name, port("main"))
	}
}

func bandwidth(amount int64) map[resourceapi.QualifiedName]resource.Quantity {
	return map[resourceapi.QualifiedName]resource.Quantity{"bandwidth": *resource.NewQuantity(amount, resource.DecimalSI)}
}

// shareOf is what a share for the request takes.
func shareOf(requests *resourceapi.CapacityRequirements) int64 {
	if requests == nil {
		return portDefault
	}
	asked, found := requests.Requests["bandwidth"]
	if !found {
		return portDefault
	}
	return (asked.Value() + portStep - 1) / portStep * portStep
}

// heldResult is a result that takes a device from others.
type heldResult struct {
	claim  *resourceapi.ResourceClaim
	result *resourceapi.DeviceRequestAllocationResult
}

func (s *simulation) anyForeign(held []heldResult) bool {
	return slices.ContainsFunc(held, func(h heldResult) bool { return s.foreign[h.claim.UID] })
}

// checkHolders: a device without shares is in one allocation, all shares of a
// device fit into it, and no two have the same ID. What another scheduler takes
// without looking is not our fault.
func (s *simulation) checkHolders(holders map[device.ID][]heldResult) {
	s.Helper()
	ids := make(map[types.UID]bool)
	for id, held := range holders {
		used, exclusive := int64(0), false
		for _, h := range held {
			if h.result.ShareID == nil {
				exclusive = true
				continue
			}
			if ids[*h.result.ShareID] {
				s.failf("share ID %s of %s is not unique", *h.result.ShareID, id)
			}
			ids[*h.result.ShareID] = true
			used += s.checkShare(h)
		}
		switch {
		case s.anyForeign(held):
		case len(held) > 1 && exclusive:
			s.failf("device %s is in the allocations of %s and %s", id, held[0].claim.Name, held[1].claim.Name)
		case used > portBandwidth:
			s.failf("shares of %s take %d of %d", id, used, portBandwidth)
		}
	}
}

// checkShare returns what a share takes, and compares it with what was asked
// for.
func (s *simulation) checkShare(h heldResult) int64 {
	s.Helper()
	quantity, found := h.result.ConsumedCapacity["bandwidth"]
	if !found {
		s.failf("claim %s has a share of %s that takes nothing", h.claim.Name, h.result.Device)
	}
	for _, request := range h.claim.Spec.Devices.Requests {
		if request.Exactly == nil || request.Name != h.result.Request || s.foreign[h.claim.UID] {
			continue
		}
		if want := shareOf(request.Exactly.Capacity); quantity.CmpInt64(want) != 0 {
			s.failf("claim %s has a share of %s, want %d", h.claim.Name, ptr.To(quantity).String(), want)
		}
	}
	return quantity.Value()
}

// checkSeen: what another scheduler has allocated, as the informers show, is not
// reserved once more for another claim, unless as a share that fits.
func (s *simulation) checkSeen(a *attempt) {
	s.Helper()
	claims, err := s.scheduler.informers.Resource().V1().ResourceClaims().Lister().List(labels.Everything())
	s.must(err)
	held := make(map[device.ID][]*resourceapi.DeviceRequestAllocationResult)
	for _, claim := range claims {
		own := slices.ContainsFunc(s.reserved(a), func(c reservedClaim) bool { return c.claim.UID == claim.UID })
		if s.foreign[claim.UID] && !own {
			collect(held, claim.Status.Allocation)
		}
	}
	for _, c := range s.reserved(a) {
		taken := make(map[device.ID][]*resourceapi.DeviceRequestAllocationResult)
		collect(taken, c.allocation)
		for id, results := range taken {
			used := int64(0)
			for _, result := range append(results, held[id]...) {
				quantity := result.ConsumedCapacity["bandwidth"]
				if used += quantity.Value(); len(held[id]) > 0 && (result.ShareID == nil || used > portBandwidth) {
					s.failf("%s: reserved %s, which another scheduler has allocated", a.pod.Name, id)
				}
			}
		}
	}
}

// collect adds what an allocation takes from others.
func collect(held map[device.ID][]*resourceapi.DeviceRequestAllocationResult, allocation *resourceapi.AllocationResult) {
	if allocation == nil {
		return
	}
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		if result.AdminAccess == nil || !*result.AdminAccess {
			id := device.NewID(result.Driver, result.Pool, result.Device)
			held[id] = append(held[id], result)
		}
	}
}
