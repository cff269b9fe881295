package allocator_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// shape limits what the generator makes up.
type shape struct {
	pools, devicesPerSlice, slicesPerPool int
	claims, requests, count               int
	// local keeps all devices on the node and all pools sound.
	local bool
}

// condition is a selector in CEL and, for the oracle, in Go. failing ones
// cannot be evaluated for devices without the attribute "ready".
type condition struct {
	expression string
	match      func(driver string, d *resourceapi.Device) bool
}

const (
	modelAttribute = gpuDriver + "/model"
	numaAttribute  = "example.com/numa"
	serialNumber   = "example.com/serial"
)

var conditions = []condition{
	{"true", func(string, *resourceapi.Device) bool { return true }},
	{`device.driver == "gpu.example.com"`, func(driver string, _ *resourceapi.Device) bool { return driver == gpuDriver }},
	{`device.driver == "nic.example.com"`, func(driver string, _ *resourceapi.Device) bool { return driver == nicDriver }},
	{`device.attributes["gpu.example.com"].?model.orValue("") == "large"`, func(driver string, d *resourceapi.Device) bool {
		model, ok := d.Attributes["model"]
		return ok && driver == gpuDriver && *model.StringValue == "large"
	}},
	{`device.attributes["example.com"].?numa.orValue(-1) == 0`, func(_ string, d *resourceapi.Device) bool {
		numa, ok := d.Attributes[numaAttribute]
		return ok && numa.IntValue != nil && *numa.IntValue == 0
	}},
	{`device.attributes["example.com"].ready`, func(_ string, d *resourceapi.Device) bool {
		ready, ok := d.Attributes["example.com/ready"]
		return ok && *ready.BoolValue
	}},
}

func conditionOf(expression string) condition {
	i := slices.IndexFunc(conditions, func(c condition) bool { return c.expression == expression })
	return conditions[i]
}

type generator struct {
	*rand.Rand
	shape
	serial int
}

// randomCluster makes up a cluster. The same seed gives the same cluster.
func randomCluster(seed uint64, s shape) *cluster {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), shape: s}
	c := newCluster(nil)
	c.classes[0] = builders.Class("any").Config(gpuDriver, `{"from":"class any"}`).Obj()
	for pool := range 1 + g.IntN(g.pools) {
		g.addPool(c, pool)
	}
	for i := range 1 + g.IntN(g.claims) {
		c.claims = append(c.claims, g.claim(fmt.Sprintf("claim-%d", i)))
	}
	return c
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func oneOf[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

func (g *generator) addPool(c *cluster, number int) {
	driver, pool := oneOf(g, gpuDriver, gpuDriver, nicDriver), fmt.Sprintf("pool-%d", number)
	count, missing := 1+g.IntN(g.slicesPerPool), 0
	if !g.local && g.chance(5) {
		missing = 1
	}
	var target func(*builders.SliceBuilder, []*builders.DeviceBuilder) = onNode
	if !g.local {
		target = oneOf(g, onNode, onNode, onNode, onAllNodes, onZoneA, onZoneB, g.perDevice)
	}
	for i := range count {
		devices := make([]*builders.DeviceBuilder, g.IntN(g.devicesPerSlice+1))
		for j := range devices {
			devices[j] = g.device(fmt.Sprintf("dev-%d-%d", i, j))
			if g.chance(15) {
				c.inUse(driver, pool, devices[j].Obj().Name)
			}
		}
		slice := builders.Slice(driver, pool).Named(fmt.Sprintf("%s-%s-%d", pool, driver, (i*7)%5)).SliceCount(int64(count + missing))
		target(slice, devices)
		c.slices = append(c.slices, slice.Devices(devices...).Obj())
		if !g.local && g.chance(2) {
			// The driver is about to replace the pool.
			c.slices = append(c.slices, slice.Named(slice.Obj().Name+"-new").Generation(2).Obj())
		}
	}
}

func onNode(s *builders.SliceBuilder, _ []*builders.DeviceBuilder)     { s.OnNode(nodeName) }
func onAllNodes(s *builders.SliceBuilder, _ []*builders.DeviceBuilder) { s.OnAllNodes() }
func onZoneA(s *builders.SliceBuilder, _ []*builders.DeviceBuilder)    { s.OnNodesWith("zone", "a") }
func onZoneB(s *builders.SliceBuilder, _ []*builders.DeviceBuilder)    { s.OnNodesWith("zone", "b") }

func (g *generator) perDevice(s *builders.SliceBuilder, devices []*builders.DeviceBuilder) {
	s.PerDevice()
	for _, d := range devices {
		switch g.IntN(4) {
		case 0:
			d.OnNode(nodeName)
		case 1:
			d.OnNode("node-2")
		case 2:
			d.OnAllNodes()
		default:
			d.OnNodesWith("zone", "a")
		}
	}
}

func (g *generator) device(name string) *builders.DeviceBuilder {
	g.serial++
	d := builders.Device(name)
	if g.chance(80) {
		d.Attribute("model", oneOf(g, "small", "large"))
	}
	if g.chance(85) {
		d.Attribute(numaAttribute, g.IntN(3))
	}
	if g.chance(70) {
		d.Attribute("example.com/ready", g.chance(80))
	}
	if g.chance(30) {
		d.Attribute(serialNumber, fmt.Sprint(g.serial))
	}
	if g.chance(12) {
		d.Taint(oneOf(g, "broken", "old"), oneOf(g, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNone))
	}
	return d
}

func (g *generator) claim(name string) *resourceapi.ResourceClaim {
	claim := builders.Claim(name)
	var names []string
	similar := g.chance(30)
	var last builders.AnyRequest
	for i := range 1 + g.IntN(g.requests) {
		request := g.request(fmt.Sprintf("req-%d", i), &names)
		if similar && last != nil {
			// Equal requests are what symmetry breaking is about.
			names = append(names[:len(names)-1:len(names)-1], fmt.Sprintf("req-%d", i))
			request = renamed{last, fmt.Sprintf("req-%d", i)}
		}
		last = request
		claim.Requests(request)
	}
	for range oneOf(g, 0, 0, 1, 2) {
		var covered []string
		for _, name := range names {
			if g.chance(50) {
				covered = append(covered, name)
			}
		}
		if g.chance(60) {
			claim.MatchAttribute(oneOf(g, numaAttribute, modelAttribute), covered...)
		} else {
			claim.DistinctAttribute(oneOf(g, numaAttribute, serialNumber), covered...)
		}
	}
	if g.chance(30) {
		claim.Config(gpuDriver, `{"from":"claim"}`, names[g.IntN(len(names))])
	}
	return claim.Obj()
}

type renamed struct {
	request builders.AnyRequest
	name    string
}

func (r renamed) Obj() resourceapi.DeviceRequest {
	request := r.request.Obj()
	request.Name = r.name
	return request
}

func (g *generator) request(name string, names *[]string) builders.AnyRequest {
	if g.chance(70) {
		*names = append(*names, name)
		ask := g.ask(name)
		if g.chance(12) {
			ask.Admin()
		}
		return ask
	}
	var subrequests []*builders.RequestBuilder
	for i := range 1 + g.IntN(3) {
		sub := fmt.Sprintf("sub-%d", i)
		subrequests = append(subrequests, g.ask(sub))
		*names = append(*names, name+"/"+sub)
	}
	*names = append(*names, name)
	return builders.FirstAvailable(name, subrequests...)
}

func (g *generator) ask(name string) *builders.RequestBuilder {
	ask := builders.Request(name, oneOf(g, "any", "gpu", "gpu", "any", "nic"))
	if g.chance(10) {
		ask.All()
	} else {
		ask.Count(int64(1 + g.IntN(g.count)))
	}
	for g.chance(20) {
		ask.Select(oneOf(g, conditions...).expression)
	}
	if g.chance(25) {
		ask.Tolerate(oneOf(g, "broken", "old"))
	}
	return ask
}
