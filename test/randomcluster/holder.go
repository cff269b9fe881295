package randomcluster

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// hold lets other claims have some of the devices, or shares of them: more of
// those that can be shared, or that are far on another node.
func (g *generator) hold(p *poolPlan, d *resourceapi.Device, far bool) {
	percent := 15
	if d.AllowMultipleAllocations != nil || far {
		percent = 35
	}
	if !g.chance(percent) || !g.reserve(p, d) {
		return
	}
	if g.chance(5) {
		// An administrator looks at the device besides.
		g.holder(p, d, func(r *resourceapi.DeviceRequestAllocationResult) { r.AdminAccess = ptr.To(true) })
	}
	if d.AllowMultipleAllocations == nil || g.chance(8) {
		g.holder(p, d, func(*resourceapi.DeviceRequestAllocationResult) {})
		return
	}
	left := make(map[resourceapi.QualifiedName]int64)
	for range 1 + g.IntN(2) {
		g.holder(p, d, func(r *resourceapi.DeviceRequestAllocationResult) {
			r.ShareID = ptr.To(types.UID(fmt.Sprintf("share-%d", g.serial)))
			r.ConsumedCapacity = g.portions(d, left)
		})
	}
}

// portions takes something of each capacity of the device, and rarely more than
// there is.
func (g *generator) portions(d *resourceapi.Device, taken map[resourceapi.QualifiedName]int64) map[resourceapi.QualifiedName]resource.Quantity {
	portions := make(map[resourceapi.QualifiedName]resource.Quantity)
	for _, name := range []resourceapi.QualifiedName{"bandwidth", "example.com/memory"} {
		capacity, ok := d.Capacity[name]
		if !ok {
			continue
		}
		amount := 1 + int64(g.IntN(4))
		if taken[name]+amount > capacity.Value.Value() && !g.chance(5) {
			amount = 0
		}
		taken[name] += amount
		portions[name] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	if len(portions) == 0 {
		return nil
	}
	return portions
}

func (g *generator) holder(p *poolPlan, d *resourceapi.Device, change func(*resourceapi.DeviceRequestAllocationResult)) {
	g.serial++
	claim := builders.Claim(fmt.Sprintf("holder-%d", len(g.cluster.Held))).Holding(p.driver, p.name, d.Name).Obj()
	change(&claim.Status.Allocation.Devices.Results[0])
	g.cluster.Held = append(g.cluster.Held, claim)
}
