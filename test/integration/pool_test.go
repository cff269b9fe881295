package integration

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// waitsForA creates the class, a claim for n devices and its pod.
func waitsForA(e *harness.Env, n int64) {
	e.Create(class(e, "gpu").Obj(), builders.Claim("claim", builders.Request("r", e.In("gpu")).Count(n)).Obj(),
		builders.Pod("pod").Claim("claim").Obj())
}

// A pool of which a slice is missing is not used, and is named; the pod runs
// when the slice has come.
func TestIncompletePool(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(gpus(e, "a", 1).SliceCount(2).Obj())
	waitsForA(e, 1)
	e.Waits("pod", unfit(1, `1 request "r": pool `+e.Driver+`/a incomplete (1 of 2 slices)`))
	e.Create(pool(e, "a", builders.Device("last")).SliceCount(2).Named(e.In("second")).Obj())
	e.Runs("pod", "a")
	e.Took("claim", "r=a/last") // the pool's slices are in the order of their names
}

// Beside an incomplete pool, complete ones are used.
func TestIncompletePoolBesideACompleteOne(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(gpus(e, "a", 1).SliceCount(2).Obj(), gpus(e, "b", 1).Obj())
	waitsForA(e, 1)
	e.Runs("pod", "b")
	e.Took("claim", "r=b/gpu-0")
}

// Slices of one generation that disagree about their number make a pool
// invalid, until a new generation replaces them.
func TestContradictoryPool(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(gpus(e, "a", 1).SliceCount(2).Named(e.In("one")).Obj(),
		pool(e, "a", builders.Device("other")).SliceCount(1).Named(e.In("two")).Obj())
	waitsForA(e, 1)
	e.Waits("pod", unfit(1, `1 request "r": pool `+e.Driver+`/a invalid (slices disagree about resourceSliceCount)`))
	e.UpdateSlice(e.In("two"), func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Generation = 2 })
	e.Runs("pod", "a")
	e.Took("claim", "r=a/other")
}

// A slice too many makes a pool invalid, until it is deleted.
func TestSurplusSlice(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(gpus(e, "a", 1).Named(e.In("new")).Obj(), pool(e, "a", builders.Device("leftover")).Named(e.In("old")).Obj())
	waitsForA(e, 1)
	e.Waits("pod", unfit(1, `1 request "r": pool `+e.Driver+`/a has too many slices (2 instead of 1)`))
	e.DeleteSlice(e.In("old"))
	e.Runs("pod", "a")
	e.Took("claim", "r=a/gpu-0")
}

// Only the newest generation counts. What is held stays held in it, and what it
// leaves out is not used again.
func TestGenerations(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(pool(e, "a", builders.Device("kept"), builders.Device("removed")).Named(e.In("one")).Obj())
	waitsForA(e, 1)
	e.Runs("pod", "a")
	e.Took("claim", "r=a/kept")
	another := func(name string) {
		e.Create(builders.Claim(name, builders.Request("r", e.In("gpu"))).Obj(), builders.Pod(name).Claim(name).Obj())
	}
	another("second")
	e.Runs("second", "a")
	e.Took("second", "r=a/removed")
	another("third")
	inUse := unfit(1, `1 request "r": all matching devices in use`)
	e.Waits("third", inUse)

	e.Create(pool(e, "a", builders.Device("added"), builders.Device("kept")).Generation(2).Named(e.In("two")).Obj())
	e.Runs("third", "a")
	e.Took("third", "r=a/added")
	e.DeletePod("second")
	e.Released("second")
	another("fourth")
	e.Waits("fourth", inUse)
	e.DeletePod("pod")
	e.Runs("fourth", "a")
	e.Took("fourth", "r=a/kept")
}

// duplicated publishes a pool of a node in two slices that name one device
// twice.
func duplicated(e *harness.Env, node string) {
	e.Create(gpus(e, node, 1).SliceCount(2).Named(e.In(node+"-one")).Obj(), gpus(e, node, 1).SliceCount(2).Named(e.In(node+"-two")).Obj())
}

// A pool that names a device twice is not used: other nodes are, and where
// there are none, the pool is the reason.
func TestDuplicateDevice(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b", "c")
	duplicated(e, "a")
	e.Create(gpus(e, "b", 1).Obj())
	waitsForA(e, 1)
	e.Runs("pod", "b")
	e.Took("claim", "r=b/gpu-0")

	claimAndPod(e, "next")
	invalid := func(node string) string {
		return `request "r": pool ` + e.Driver + "/" + node + ` invalid (duplicate device name)`
	}
	e.Waits("next", "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [DeviceAllocation], "+
		`1 request "r": all matching devices in use, 1 `+invalid("a")+
		`. nodes without enough matching devices: 1 request "r": no devices on the node, `+noPreemption(3))
	duplicated(e, "c")
	e.Waits("next", unfit(3, `1 request "r": all matching devices in use, 1 `+invalid("a")+", 1 "+invalid("c")))
	// It is put right.
	e.UpdateSlice(e.In("c-two"), func(s *resourceapi.ResourceSlice) { s.Spec.Devices[0].Name = "gpu-1" })
	e.Runs("next", "c")
	e.Took("next", "r=c/gpu-0")
}

// The largest slices that the API takes: as many devices as there may be, each
// with as many attributes, and both as long as they may be.
func TestLargestSlice(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	long := strings.Repeat("v", resourceapi.DeviceAttributeMaxValueLength)
	attribute := func(i int) string {
		return fmt.Sprintf("%s%02d", strings.Repeat("x", resourceapi.DeviceMaxIDLength-2), i)
	}
	devices := builders.DevicesNamed("gpu", resourceapi.ResourceSliceMaxDevices, func(i int, d *builders.DeviceBuilder) {
		for j := range resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice - 1 {
			d.Attribute(attribute(j), long)
		}
		d.Attribute("index", i)
	})
	e.Create(class(e, "gpu").Obj(), pool(e, "a", devices...).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("gpu")).Select(
			own(e, "attributes")+fmt.Sprintf(".index == %d", len(devices)-1),
			own(e, "attributes")+"."+attribute(0)+".startsWith('vvv')")).Obj(),
		builders.Pod("pod").Claim("claim").Obj())
	e.Runs("pod", "a")
	e.Took("claim", fmt.Sprintf("r=a/gpu-%d", len(devices)-1))
}
