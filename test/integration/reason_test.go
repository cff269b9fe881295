package integration

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// The condition of a pod that fits nowhere says why, and on how many nodes:
// equal reasons add up, and nodes that were left out from the start are
// counted as well.
func TestReasonsOfSeveralNodes(t *testing.T) {
	e := env(t)
	e.Nodes("empty-1", "empty-2", "busy-1", "busy-2", "small", "half", "sick")
	large := func(name string) *builders.DeviceBuilder { return builders.Device(name).Attribute("model", "large") }
	is := func(model string) string { return own(e, "attributes") + `.model == "` + model + `"` }
	e.Create(class(e, "large").Select(is("large")).Obj(),
		pool(e, "busy-1", large("gpu-0")).Obj(),
		pool(e, "busy-2", large("gpu-0"), large("gpu-1")).Obj(),
		pool(e, "small", builders.Device("gpu-0").Attribute("model", "small")).Obj(),
		pool(e, "half", large("gpu-0")).SliceCount(3).Obj(),
		pool(e, "sick", large("gpu-0").Taint("example.com/sick", resourceapi.DeviceTaintEffectNoSchedule)).Obj())
	for _, name := range []string{"one", "two", "three"} {
		claim := builders.Claim(name, builders.Request("r", e.In("large"))).Obj()
		e.Create(claim, builders.Pod(name).Claim(name).Obj())
		e.Runs(name, "")
	}

	e.Create(builders.Claim("claim", builders.Request("gpu", e.In("large"))).Obj(), builders.Pod("pod").Claim("claim").Obj())
	e.Waits("pod", `0/7 nodes are available: `+
		`1 request "gpu": free devices have the untolerated taint example.com/sick:NoSchedule, `+
		`1 request "gpu": pool `+e.Driver+`/half incomplete (1 of 3 slices), `+
		`2 request "gpu": all matching devices in use, `+
		`3 node(s) didn't satisfy plugin(s) [DeviceAllocation]. `+
		`nodes without enough matching devices: `+
		`1 request "gpu": no device matches selector 2 of class `+e.In("large")+`, 2 request "gpu": no devices on the node, `+
		noPreemption(7))

	// A pod with several claims is told which one.
	e.Create(builders.Claim("small", builders.Request("cpu", e.In("large"))).Obj(),
		builders.Pod("both").Claim("claim").Claim("small").Obj())
	e.Waits("both", `0/7 nodes are available: `+
		`1 claim claim, request "gpu": free devices have the untolerated taint example.com/sick:NoSchedule, `+
		`1 claim claim, request "gpu": pool `+e.Driver+`/half incomplete (1 of 3 slices), `+
		`2 claim claim, request "gpu": all matching devices in use, `+
		`3 node(s) didn't satisfy plugin(s) [DeviceAllocation]. `+
		`nodes without enough matching devices: `+
		`1 claim claim, request "gpu": no device matches selector 2 of class `+e.In("large")+`, `+
		`2 claim claim, request "gpu": no devices on the node, `+noPreemption(7))

	// No node at all has what is asked for.
	e.Create(class(e, "none").Select(is("none")).Obj(),
		builders.Claim("none", builders.Request("gpu", e.In("none"))).Obj(), builders.Pod("none").Claim("none").Obj())
	e.DeleteSlice(e.Driver + "-half")
	e.Waits("none", unfit(7, `3 request "gpu": no devices on the node, 4 request "gpu": no device matches selector 2 of class `+e.In("none")))
}
