package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// A pod gets a device of a class; the device is free again with the pod.
func TestOneDeviceOfAClass(t *testing.T) {
	e := env(t)
	e.Nodes("plain", "gpu")
	e.Create(class(e, "gpu").Obj(), gpus(e, "gpu", 1).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(),
		builders.Pod("first").Claim("claim").Obj())
	e.Runs("first", "gpu")
	e.Holds("claim", e.Allocation("gpu", e.Device("r", "gpu", "gpu-0")), "first")

	// The only device comes free and serves the next claim.
	e.DeletePod("first")
	e.Released("claim")
	e.Create(builders.Claim("next", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("second").Claim("next").Obj())
	e.Runs("second", "gpu")
	e.Holds("next", e.Allocation("gpu", e.Device("r", "gpu", "gpu-0")), "second")
}

// ExactCount takes so many, All takes every one and only where all are free.
func TestExactCountAndAll(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 4).Obj(), gpus(e, "b", 3).Obj(),
		builders.Claim("three", builders.Request("r", e.In("gpu")).Count(3)).Obj(),
		builders.Pod("three").Claim("three").Obj())
	// Packed: b is full with it.
	e.Runs("three", "b")
	e.Holds("three", e.Allocation("b",
		e.Device("r", "b", "gpu-0"), e.Device("r", "b", "gpu-1"), e.Device("r", "b", "gpu-2")), "three")

	e.Create(builders.Claim("all", builders.Request("r", e.In("gpu")).All()).Obj(), builders.Pod("all").Claim("all").Obj())
	e.Runs("all", "a")
	e.Holds("all", e.Allocation("a",
		e.Device("r", "a", "gpu-0"), e.Device("r", "a", "gpu-1"), e.Device("r", "a", "gpu-2"), e.Device("r", "a", "gpu-3")), "all")

	e.Create(builders.Claim("all-again", builders.Request("r", e.In("gpu")).All()).Obj(),
		builders.Pod("all-again").Claim("all-again").Obj())
	e.Waits("all-again", unfit(2, `2 request "r": all matching devices in use`))
	e.DeletePod("three")
	e.Runs("all-again", "b")
	e.Took("all-again", "r=b/gpu-0", "r=b/gpu-1", "r=b/gpu-2")
}

// Requests of one claim, and claims of one pod, get different devices of one
// node, in their order.
func TestSeveralRequestsAndClaims(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	model := func(name string) func(int, *builders.DeviceBuilder) {
		return func(_ int, d *builders.DeviceBuilder) { d.Attribute("model", name) }
	}
	devices := append(builders.DevicesNamed("big", 2, model("big")), builders.DevicesNamed("small", 2, model("small"))...)
	is := func(name string) string { return `device.attributes["` + e.Driver + `"].model == "` + name + `"` }
	e.Create(class(e, "any").Obj(), class(e, "big").Select(is("big")).Obj(), class(e, "small").Select(is("small")).Obj(),
		pool(e, "a", builders.DevicesNamed("big", 3, model("big"))...).Obj(), pool(e, "b", devices...).Obj(),
		// The request for any device must leave the small ones to the others.
		builders.Claim("mixed", builders.Request("any", e.In("any")), builders.Request("small", e.In("small")).Count(2)).Obj(),
		builders.Claim("big", builders.Request("big", e.In("big"))).Obj(),
		builders.Pod("pod").Claim("mixed").Claim("big").Obj())
	e.Runs("pod", "b")
	e.Holds("mixed", e.Allocation("b",
		e.Device("any", "b", "big-0"), e.Device("small", "b", "small-0"), e.Device("small", "b", "small-1")), "pod")
	e.Holds("big", e.Allocation("b", e.Device("big", "b", "big-1")), "pod")

	e.DeletePod("pod")
	e.Released("mixed")
	e.Released("big")
}

// A pod may list a claim under two names: it is allocated and reserved once.
func TestOneClaimUnderTwoNames(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	pod := builders.Pod("pod").Claim("claim").Obj()
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims,
		corev1.PodResourceClaim{Name: "again", ResourceClaimName: ptr.To("claim")})
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 2).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(), pod)
	e.Runs("pod", "a")
	e.Holds("claim", e.Allocation("a", e.Device("r", "a", "gpu-0")), "pod")
	e.DeletePod("pod")
	e.Released("claim")
}

// As many pods as there are devices, created at once before their devices are:
// all run, and no device is in use twice (which the end of each test checks).
func TestAllDevicesAreUsed(t *testing.T) {
	e := env(t)
	nodes := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	const each = 12
	e.Nodes(nodes...)
	e.Create(class(e, "gpu").Obj())
	for i := range each * len(nodes) {
		claimAndPod(e, fmt.Sprint("pod-", i))
	}
	for _, node := range nodes {
		e.Create(gpus(e, node, each).Obj())
	}
	e.RunExactly(each*len(nodes), each*len(nodes))
}

// One device too few on one node, and just enough on another: the search ends
// at once, where trying all orders of 20 devices would take for ever.
func TestManyDevicesOfOneRequest(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 20).Obj(), gpus(e, "b", 21).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("gpu")).Count(21)).Obj(), builders.Pod("pod").Claim("claim").Obj())
	e.Runs("pod", "b")
	e.Create(builders.Claim("next", builders.Request("r", e.In("gpu")).Count(21)).Obj(), builders.Pod("next").Claim("next").Obj())
	e.Waits("next", unfitBeside(1, `1 request "r": fewer than 21 matching devices free`, `request "r": all matching devices in use`))
	e.UpdateSlice(e.Driver+"-a", func(s *resourceapi.ResourceSlice) {
		s.Spec.Devices = append(s.Spec.Devices, *builders.Device("gpu-20").Obj())
	})
	e.Runs("next", "a")
}
