package randomcluster

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// target lets a slice, or its devices one by one, select nodes.
type target func(*builders.SliceBuilder, []*builders.DeviceBuilder)

func onNode(s *builders.SliceBuilder, _ []*builders.DeviceBuilder)      { s.OnNode(NodeName) }
func onOtherNode(s *builders.SliceBuilder, _ []*builders.DeviceBuilder) { s.OnNode(otherNode) }
func onAllNodes(s *builders.SliceBuilder, _ []*builders.DeviceBuilder)  { s.OnAllNodes() }
func onRack(s *builders.SliceBuilder, _ []*builders.DeviceBuilder)      { s.OnNodesWith("rack", "r1") }
func onZone(s *builders.SliceBuilder, _ []*builders.DeviceBuilder)      { s.OnNodesWith("zone", "a") }
func onOtherZone(s *builders.SliceBuilder, _ []*builders.DeviceBuilder) { s.OnNodesWith("zone", "b") }

func (g *generator) perDevice(s *builders.SliceBuilder, devices []*builders.DeviceBuilder) {
	s.PerDevice()
	for _, d := range devices {
		switch g.IntN(5) {
		case 0:
			d.OnNode(otherNode)
		case 1:
			d.OnAllNodes()
		case 2:
			d.OnNodesWith("zone", oneOf(g, "a", "b"))
		default:
			d.OnNode(NodeName)
		}
	}
}

// target draws where a pool is.
func (g *generator) target() target {
	if g.uses.perDevice && g.chance(60) {
		return g.perDevice
	}
	return oneOf[target](g, onNode, onNode, onNode, onNode, onNode, onAllNodes, onAllNodes, onZone, onRack, onOtherZone)
}

// addPool adds a pool with one to three slices of devices, and one or two of
// counter sets if there are partitions.
func (g *generator) addPool(name string) {
	driver := oneOf(g, gpuDriver, gpuDriver, nicDriver)
	p := &poolPlan{driver: driver, name: name, target: g.target(), sharing: g.uses.sharing && g.chance(75)}
	if g.uses.partitions && g.chance(75) {
		p.sets = g.counterSets()
	}
	var made []*builders.SliceBuilder
	left := oneOf(g, 1, 2, 3, 4, 5, 6, 7, 8, 8)
	count := 1 + g.IntN(3)
	for i := range count {
		n := left
		if i < count-1 {
			n = g.IntN(left + 1)
		}
		left -= n
		made = append(made, g.deviceSlice(p, i, n))
	}
	made = append(made, g.counterSlices(p)...)
	g.publish(made)
}

// poolPlan is what the slices of a pool have in common.
type poolPlan struct {
	driver, name string
	target       target
	sharing      bool
	sets         []resourceapi.CounterSet
}

func (g *generator) deviceSlice(p *poolPlan, number, size int) *builders.SliceBuilder {
	var devices []*builders.DeviceBuilder
	for i := range size {
		devices = append(devices, g.device(p, fmt.Sprintf("dev-%d-%d", number, i)))
	}
	// Names are not in the order of the numbers, as those of a driver are not.
	slice := builders.Slice(p.driver, p.name).Named(fmt.Sprintf("%s-%s-%d", p.name, p.driver, (number*7)%5))
	where := p.target
	if g.uses.mixed && g.chance(40) {
		where = oneOf[target](g, onOtherNode, onOtherNode, onOtherZone, onNode, onAllNodes)
	}
	where(slice, devices)
	slice.Devices(devices...)
	if g.uses.skips && g.chance(60) {
		slice.With(func(s *resourceapi.ResourceSlice) {
			s.Spec.SkipNodeOperations = oneOf(g,
				[]resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll},
				[]resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationNodePrepareResources, resourceapi.SkipNodeOperationNodeUnprepareResources})
		})
	}
	if g.uses.faults && g.chance(6) && size > 0 {
		slice.Devices(builders.Device("dev-0-0"), builders.Device("dev-0-0"))
	}
	if g.chance(3) {
		// The driver no longer publishes what somebody still has.
		g.holder(p, &resourceapi.Device{Name: "gone"}, func(*resourceapi.DeviceRequestAllocationResult) {})
	}
	far := slice.Obj().Spec.NodeName
	for _, d := range devices {
		spec, far := d.Obj(), far
		if spec.NodeName != nil {
			far = spec.NodeName
		}
		g.hold(p, spec, far != nil && *far == otherNode)
	}
	return slice
}

// publish adds the slices of a pool, or all but one, or twice.
func (g *generator) publish(made []*builders.SliceBuilder) {
	count := int64(len(made))
	if g.uses.faults && g.chance(30) {
		count++
	}
	for _, slice := range made {
		g.cluster.Slices = append(g.cluster.Slices, slice.SliceCount(count).Obj())
	}
	if g.uses.faults && g.chance(15) {
		// The driver is about to replace the pool.
		again := made[0].Obj()
		again.Name += "-new"
		again.Spec.Pool.Generation = 2
		g.cluster.Slices = append(g.cluster.Slices, again)
	}
	if g.uses.faults && g.chance(30) {
		// The driver has replaced the pool and not yet cleaned up.
		old := made[0].Obj()
		old.Name += "-old"
		old.Spec.Pool.Generation = 0
		g.cluster.Slices = append(g.cluster.Slices, old)
	}
}
