package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
)

// odd are quantities at the edges: of formats, of int64 in whole numbers,
// thousandths and billionths, of how a Quantity is kept in memory.
var odd = []string{
	"0", "1", "2", "3", "7", "10", "0.5", "1.5", "100m", "250m", "1m", "999m", "1001m", "1u", "1500u", "2500001u", "1n", "999999999n",
	"1Gi", "1.5Gi", "0.5Gi", "4Gi", "80Gi", "1Ki", "1.1Ki", "1G", "1k", "1e3", "1e0", "1e-3", "12e2",
	"9223372036854775807", "9223372036854775806", "9223372036854775808", "4611686018427387904", "8Ei", "7Ei",
	"9223372036854775", "9223372036854776", "9223372036854775807m", "9223372036854775808m", "9223372036854775807n", "9223372036854775808n",
	"1e18", "1e19", "1e30", "1e40", "12345678901234567890123", "12345678901234567890123.5", "999999999999999999999n",
	"-1", "-500m", "-1Gi", "-1n", "-9223372036854775808", "-1e30",
}

// scenario is one device, what is held of it, and one request for it.
type scenario struct {
	device     *resourceapi.Device
	requests   *resourceapi.CapacityRequirements
	held       []capacity.Amounts
	fractional bool
}

// generator makes scenarios. Half of them are what drivers publish, the others
// what somebody may publish.
type generator struct {
	*rand.Rand
	hostile bool
	unit    string // of this scenario, unless hostile
}

func randomScenario(seed uint64) scenario {
	random := rand.New(rand.NewPCG(seed, 0))
	g := generator{Rand: random, hostile: random.IntN(2) == 0, unit: pick(random, "", "", "Gi", "Mi", "m", "00m", "e3", "k")}
	s := scenario{fractional: g.chance(2), device: exclusive(capacities{})}
	if !g.chance(4) {
		s.device = shareable(capacities{})
	}
	for i := range g.IntN(4) {
		s.device.Capacity[capacityName(i)] = g.capacity()
	}
	if g.chance(6) {
		return s
	}
	s.requests = &resourceapi.CapacityRequirements{Requests: g.amounts(s.device, 3, 40)}
	if capacity.Shareable(s.device) {
		for range g.IntN(4) {
			s.held = append(s.held, g.shares(s.device))
		}
	}
	return s
}

func capacityName(i int) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(fmt.Sprintf("c%d", i))
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

// quantity returns one between least and most units.
func (g *generator) quantity(least, most int) resource.Quantity {
	if g.hostile && !g.chance(3) {
		return resource.MustParse(pick(g.Rand, odd...))
	}
	unit := g.unit
	if g.chance(8) {
		unit = pick(g.Rand, "", "m", "00m", "Ki", "Mi")
	}
	return resource.MustParse(fmt.Sprintf("%d%s", least+g.IntN(most-least+1), unit))
}

// amounts draws for each capacity of the device with a chance of n-1 to n; one
// name in missing is not the device's.
func (g *generator) amounts(d *resourceapi.Device, n, missing int) capacity.Amounts {
	drawn := capacity.Amounts{}
	for i := range len(d.Capacity) {
		if !g.chance(n) {
			drawn[capacityName(i)] = g.quantity(0, 12)
		}
	}
	if g.chance(missing) {
		drawn["gone"] = g.quantity(0, 12)
	}
	return drawn
}

// shares are what one allocation holds: never negative, because the stock
// allocator then takes the device for larger than it is.
func (g *generator) shares(d *resourceapi.Device) capacity.Amounts {
	drawn := g.amounts(d, 5, 5)
	for name, amount := range drawn {
		if amount.Sign() < 0 {
			delete(drawn, name)
		}
	}
	return drawn
}

func (g *generator) capacity() resourceapi.DeviceCapacity {
	c := resourceapi.DeviceCapacity{Value: g.quantity(10, 40)}
	if g.chance(3) {
		return c
	}
	c.RequestPolicy = &resourceapi.CapacityRequestPolicy{}
	if !g.hostile || !g.chance(4) {
		c.RequestPolicy.Default = g.optional(1, 8)
	}
	if g.chance(3) || g.hostile && g.chance(8) {
		for range g.IntN(4) + 1 {
			c.RequestPolicy.ValidValues = append(c.RequestPolicy.ValidValues, g.quantity(1, 12))
		}
		if !g.hostile {
			slices.SortFunc(c.RequestPolicy.ValidValues, func(a, b resource.Quantity) int { return a.Cmp(b) })
		}
		if !g.chance(8) {
			return c
		}
	}
	if g.chance(8) {
		return c
	}
	bounds := &resourceapi.CapacityRequestPolicyRange{Min: g.optional(0, 4)}
	if g.chance(2) {
		bounds.Max = g.optional(5, 12)
	}
	if !g.chance(3) {
		bounds.Step = g.optional(1, 4)
	}
	if g.hostile && g.chance(8) {
		bounds.Min = nil
	}
	c.RequestPolicy.ValidRange = bounds
	return c
}

func (g *generator) optional(least, most int) *resource.Quantity {
	q := g.quantity(least, most)
	return &q
}
