package allocator_test

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/randomcluster"
)

// situation writes the miniature as API objects.
func (m *miniature) situation() *allocationcheck.Situation {
	s := &allocationcheck.Situation{
		Features: randomcluster.AllFeatures(), Node: builders.Node(nodeName),
		Classes: []*resourceapi.DeviceClass{builders.Class("gpu").Obj()},
	}
	for pool := range 1 + m.pieces[len(m.pieces)-1].pool {
		devices, sets := builders.Slice(gpuDriver, poolName(pool)).OnNode(nodeName), builders.Slice(gpuDriver, poolName(pool)).OnNode(nodeName)
		for i := range m.sets {
			if m.sets[i].pool == pool {
				sets.CounterSet(setName(i), quantities(m.sets[i].total))
			}
		}
		for i := range m.pieces {
			if m.pieces[i].pool == pool {
				devices.Devices(m.pieces[i].builder())
				s.Held = append(s.Held, m.pieces[i].holders()...)
			}
		}
		s.Slices = append(s.Slices, devices.SliceCount(2).Named(poolName(pool)+"-devices").Obj())
		s.Slices = append(s.Slices, sets.SliceCount(2).Named(poolName(pool)+"-counters").Obj())
	}
	for i := range m.claims {
		s.Claims = append(s.Claims, m.claim(i))
	}
	return s
}

func poolName(pool int) string { return fmt.Sprintf("pool-%d", pool) }
func setName(set int) string   { return fmt.Sprintf("set-%d", set) }

func quantities(amounts [counters]int64) map[string]string {
	result := make(map[string]string)
	for c, amount := range amounts {
		result[counterNames[c]] = fmt.Sprint(amount)
	}
	return result
}

func (p *piece) builder() *builders.DeviceBuilder {
	d := builders.Device(p.name).Attribute("kind", p.kind)
	if p.links != nil {
		d.Attribute(linksAttribute, p.links)
	}
	for _, each := range p.draws {
		d.Consumes(setName(each.set), quantities(each.amount), each.groups...)
	}
	if p.capacity > 0 {
		d.Capacity("bandwidth", fmt.Sprint(p.capacity))
	}
	if p.shared {
		d.Shared()
	}
	return d
}

func (p *piece) holders() []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	add := func(change func(*resourceapi.DeviceRequestAllocationResult)) {
		name := fmt.Sprintf("holder-%s-%s-%d", poolName(p.pool), p.name, len(claims))
		claim := builders.Claim(name).Holding(gpuDriver, poolName(p.pool), p.name).Obj()
		change(&claim.Status.Allocation.Devices.Results[0])
		claims = append(claims, claim)
	}
	if p.whole {
		add(func(*resourceapi.DeviceRequestAllocationResult) {})
	}
	for i, portion := range p.portions {
		add(func(r *resourceapi.DeviceRequestAllocationResult) {
			r.ShareID = ptr.To(types.UID(fmt.Sprintf("share-%s-%s-%d", poolName(p.pool), p.name, i)))
			if p.capacity > 0 {
				r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"bandwidth": *resource.NewQuantity(portion, resource.DecimalSI)}
			}
		})
	}
	return claims
}

func (m *miniature) claim(number int) *resourceapi.ResourceClaim {
	claim := builders.Claim(fmt.Sprintf("claim-%d", number))
	for _, w := range m.wants {
		if w.claim != number {
			continue
		}
		if !w.list {
			claim.Requests(w.ways[0].builder(w.name))
			continue
		}
		var subrequests []*builders.RequestBuilder
		for rank := range w.ways {
			subrequests = append(subrequests, w.ways[rank].builder(fmt.Sprintf("sub-%d", rank)))
		}
		claim.Requests(builders.FirstAvailable(w.name, subrequests...))
	}
	for _, r := range m.constraints {
		if r.claim == number && r.match {
			claim.MatchAttribute(linksAttribute, r.covered...)
		} else if r.claim == number {
			claim.DistinctAttribute(linksAttribute, r.covered...)
		}
	}
	return claim.Obj()
}

func (w *way) builder(name string) *builders.RequestBuilder {
	b := builders.Request(name, "gpu").Count(int64(w.count))
	if w.all {
		b.All()
	}
	if len(w.kinds) == 1 {
		b.Select(fmt.Sprintf(`device.attributes["gpu.example.com"].kind == %q`, w.kinds[0]))
	}
	if w.amount > 0 {
		b.Capacity("bandwidth", fmt.Sprint(w.amount))
	}
	if w.admin {
		b.Admin()
	}
	if w.derivation >= 0 {
		b.Derive(linksAttribute, linkDerivations[w.derivation].expression)
	}
	return b
}
