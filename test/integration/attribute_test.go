package integration

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// kinds creates a class for each kind of devices.
func kinds(e *harness.Env, names ...string) {
	for _, name := range names {
		e.Create(class(e, name).Select(own(e, "attributes") + `.kind == "` + name + `"`).Obj())
	}
}

// Devices that are close to several NUMA nodes say so in a list. They go
// together if one node is common to all of them.
func TestListAttributes(t *testing.T) {
	e := env(t)
	e.ReplaceScheduler("lists", harness.SchedulerOptions{FeatureGates: map[string]bool{"DRAListTypeAttributes": true}})
	e.Nodes("a")
	kinds(e, "gpu", "nic")
	device := func(name, kind string, numa any) *builders.DeviceBuilder {
		return builders.Device(name).Attribute("kind", kind).Attribute(numaNode, numa)
	}
	e.Create(pool(e, "a",
		device("gpu-0", "gpu", 0), device("gpu-1", "gpu", []int64{1, 2}),
		device("nic-0", "nic", []int64{2, 3}), device("nic-1", "nic", []int64{3, 4})).Obj())
	both := func(name string) *builders.ClaimBuilder {
		return builders.Claim(name, builders.Request("g", e.In("gpu")), builders.Request("n", e.In("nic"))).MatchAttribute(numaNode)
	}
	wants(e, both("first"))
	e.Runs("first", "a")
	e.Holds("first", e.Allocation("a", e.Device("g", "a", "gpu-1"), e.Device("n", "a", "nic-0")), "first")
	wants(e, both("second"))
	e.Waits("second", unfit(1, "1 no value of attribute "+numaNode+" is common to enough free devices (matchAttribute)"))

	// Lists are different if they have nothing in common.
	e.DeletePod("second")
	e.DeletePod("first")
	wants(e, builders.Claim("apart", builders.Request("g", e.In("gpu")).Count(2), builders.Request("n", e.In("nic"))).DistinctAttribute(numaNode))
	e.Runs("apart", "a")
	e.Took("apart", "g=a/gpu-0", "g=a/gpu-1", "n=a/nic-1")
}

// Selectors can look into lists.
func TestSelectorsOfListAttributes(t *testing.T) {
	e := env(t)
	e.ReplaceScheduler("lists", harness.SchedulerOptions{FeatureGates: map[string]bool{"DRAListTypeAttributes": true}})
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), pool(e, "a",
		builders.Device("gpu-0").Attribute("links", []string{"left", "right"}), builders.Device("gpu-1").Attribute("links", []string{"up"})).Obj())
	wants(e, builders.Claim("pod", builders.Request("r", e.In("gpu")).Select(`"up" in `+own(e, "attributes")+".links")))
	e.Runs("pod", "a")
	e.Took("pod", "r=a/gpu-1")
}

// Two drivers call the same thing by different names: expressions of the claim
// make them comparable.
func TestDerivedAttributes(t *testing.T) {
	e := env(t)
	e.ReplaceScheduler("derived", harness.SchedulerOptions{FeatureGates: map[string]bool{"DRADerivedAttributes": true}})
	e.Nodes("a")
	kinds(e, "gpu", "nic")
	const place = "derived.example.com/place"
	e.Create(pool(e, "a",
		builders.Device("gpu-0").Attribute("kind", "gpu").Attribute("numa", "node-0"), builders.Device("gpu-1").Attribute("kind", "gpu").Attribute("numa", "node-1"),
		builders.Device("nic-0").Attribute("kind", "nic").Attribute("socket", 1), builders.Device("nic-1").Attribute("kind", "nic").Attribute("socket", 2)).Obj())
	derived := func(request, class, expression string) *builders.RequestBuilder {
		return builders.Request(request, e.In(class)).With(func(r *resourceapi.ExactDeviceRequest) {
			r.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: place, Expression: expression}}
		})
	}
	claim := func(name string) *builders.ClaimBuilder {
		return builders.Claim(name, derived("g", "gpu", own(e, "attributes")+".numa"),
			derived("n", "nic", `"node-" + string(`+own(e, "attributes")+".socket)")).MatchAttribute(place)
	}
	wants(e, claim("first"))
	e.Runs("first", "a")
	e.Holds("first", e.Allocation("a", e.Device("g", "a", "gpu-1"), e.Device("n", "a", "nic-0")), "first")
	wants(e, claim("second"))
	e.Waits("second", unfit(1, "1 no value of attribute "+place+" is common to enough free devices (matchAttribute)"))
}
