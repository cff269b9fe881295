package integration

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// memoryOf is a counter of memory.
func memoryOf(size string) map[string]resourceapi.Counter {
	return map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(size)}}
}

// part is a device that draws memory from a counter set.
func part(name, set, size string) *builders.DeviceBuilder {
	return builders.Device(name).Capacity("memory", size).With(func(d *resourceapi.Device) {
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: memoryOf(size)}}
	})
}

// counters is the slice of a pool that has its counter sets, of 80Gi each. The
// pool has one more slice, for the devices.
func counters(e *harness.Env, node string, sets ...string) *resourceapi.ResourceSlice {
	slice := builders.Slice(e.Driver, node).Named(e.In(node + "-counters")).SliceCount(2).OnNode(e.In(node)).Obj()
	for _, set := range sets {
		slice.Spec.SharedCounters = append(slice.Spec.SharedCounters, resourceapi.CounterSet{Name: set, Counters: memoryOf("80Gi")})
	}
	return slice
}

// parts is the slice of a pool that has its devices.
func parts(e *harness.Env, node string, devices ...*builders.DeviceBuilder) *builders.SliceBuilder {
	return pool(e, node, devices...).SliceCount(2)
}

// partitions are a GPU as a whole, in halves and in quarters.
func partitions(set string) []*builders.DeviceBuilder {
	devices := []*builders.DeviceBuilder{part(set+"-whole", set, "80Gi")}
	for i := range 2 {
		devices = append(devices, part(fmt.Sprintf("%s-half-%d", set, i), set, "40Gi"))
	}
	for i := range 4 {
		devices = append(devices, part(fmt.Sprintf("%s-quarter-%d", set, i), set, "20Gi"))
	}
	return devices
}

// sized asks for one device with exactly so much memory.
func sized(e *harness.Env, claim, size string) *builders.ClaimBuilder {
	return builders.Claim(claim, builders.Request("r", e.In("gpu")).Select(own(e, "capacity")+`.memory.compareTo(quantity("`+size+`")) == 0`))
}

// wants creates a claim and a pod of its name.
func wants(e *harness.Env, claim *builders.ClaimBuilder) {
	e.Create(claim.Obj(), builders.Pod(claim.Obj().Name).Claim(claim.Obj().Name).Obj())
}

// usedUp is the reason of a pod when counters, or capacity, of all that matches
// are used up.
const usedUp = `1 request "r": all matching devices have too little capacity or counters left`

// keepsWaiting waits for the scheduler's decision about a pod, which must be
// that it waits, for whatever reason.
func keepsWaiting(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	if node := e.Decided(name).Spec.NodeName; node != "" {
		t.Errorf("pod %s was bound to node %s", name, node)
	}
}

// Partitions that draw on the same counters are handed out as long as these
// last, and what one gives back serves another one.
func TestPartitions(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), counters(e, "a", "gpu"), parts(e, "a", partitions("gpu")...).Obj())
	wants(e, sized(e, "half", "40Gi"))
	e.Runs("half", "a")
	e.Holds("half", e.Allocation("a", e.Device("r", "a", "gpu-half-0")), "half")
	wants(e, sized(e, "whole", "80Gi"))
	e.Waits("whole", unfit(1, usedUp))
	wants(e, sized(e, "quarter", "20Gi"))
	e.Runs("quarter", "a")
	wants(e, sized(e, "other-half", "40Gi"))
	keepsWaiting(t, e, "other-half")
	e.DeletePod("quarter")
	e.Runs("other-half", "a")
	e.Took("other-half", "r=a/gpu-half-1")
	e.DeletePod("half")
	e.DeletePod("other-half")
	e.Runs("whole", "a")
	e.Took("whole", "r=a/gpu-whole")
}

// What a device in use consumes stays charged until its claim is gone, whatever
// its driver publishes meanwhile.
func TestPartitionWithdrawnWhileHeld(t *testing.T) {
	for name, republish := range map[string]func(*resourceapi.ResourceSlice){
		"without the device":          func(s *resourceapi.ResourceSlice) { s.Spec.Devices = append(s.Spec.Devices[:1], s.Spec.Devices[2:]...) },
		"without what it consumes":    func(s *resourceapi.ResourceSlice) { s.Spec.Devices[1].ConsumesCounters = nil },
		"consuming less than it does": func(s *resourceapi.ResourceSlice) { s.Spec.Devices[1].ConsumesCounters[0].Counters = memoryOf("1Gi") },
	} {
		t.Run(name, func(t *testing.T) {
			e := env(t)
			e.Nodes("a")
			e.Create(class(e, "gpu").Obj(), counters(e, "a", "gpu"),
				parts(e, "a", part("whole", "gpu", "80Gi"), part("half-0", "gpu", "40Gi"), part("half-1", "gpu", "40Gi")).Named(e.In("devices")).Obj())
			wants(e, sized(e, "half", "40Gi"))
			e.Runs("half", "a")
			e.Took("half", "r=a/half-0")
			e.UpdateSlice(e.In("devices"), republish)
			wants(e, sized(e, "whole", "80Gi"))
			e.Waits("whole", unfit(1, usedUp))
			e.DeletePod("half")
			e.Runs("whole", "a")
			e.Took("whole", "r=a/whole")
		})
	}
}

// A candidate that is rejected costs nothing: the next one of the same counters
// is found.
func TestTaintedPartition(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), counters(e, "a", "gpu"), parts(e, "a",
		part("sick", "gpu", "80Gi").Taint("example.com/sick", resourceapi.DeviceTaintEffectNoSchedule),
		part("well", "gpu", "80Gi")).Obj())
	wants(e, sized(e, "pod", "80Gi"))
	e.Runs("pod", "a")
	e.Took("pod", "r=a/well")
}

// All devices of a pool whose partitions overlap cannot be had; all halves can.
func TestAllOverlappingPartitions(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), counters(e, "a", "gpu"), parts(e, "a", partitions("gpu")...).Obj())
	wants(e, builders.Claim("all", builders.Request("r", e.In("gpu")).All()))
	keepsWaiting(t, e, "all")
	wants(e, builders.Claim("halves", builders.Request("r", e.In("gpu")).All().Select(`device.capacity["`+e.Driver+`"].memory.compareTo(quantity("40Gi")) == 0`)))
	e.Runs("halves", "a")
	e.Took("halves", "r=a/gpu-half-0", "r=a/gpu-half-1")
}

// Small partitions that are asked for one after the other fill one GPU and leave
// the other one whole.
func TestSmallestPartitionsArePacked(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), counters(e, "a", "one", "two"), parts(e, "a", append(partitions("one"), partitions("two")...)...).Obj())
	for i := range 4 {
		name := fmt.Sprint("quarter-", i)
		wants(e, sized(e, name, "20Gi"))
		e.Runs(name, "a")
		e.Took(name, fmt.Sprintf("r=a/one-quarter-%d", i))
	}
	wants(e, sized(e, "whole", "80Gi"))
	e.Runs("whole", "a")
	e.Took("whole", "r=a/two-whole")
}

// Administrators get partitions of a device in use and are charged nothing.
func TestAdministratorsOfPartitions(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	administrate(t, e)
	e.Create(class(e, "gpu").Obj(), counters(e, "a", "gpu"), parts(e, "a", partitions("gpu")...).Obj())
	wants(e, sized(e, "half", "40Gi"))
	e.Runs("half", "a")
	wants(e, builders.Claim("monitor", builders.Request("r", e.In("gpu")).All().Admin()))
	e.Runs("monitor", "a")
	if got := len(e.Claim("monitor").Status.Allocation.Devices.Results); got != 7 {
		t.Errorf("the administrator got %d devices, want 7", got)
	}
	wants(e, sized(e, "other-half", "40Gi"))
	e.Runs("other-half", "a")
	e.Took("other-half", "r=a/gpu-half-1")
}

// administrate lets claims of the test's namespace ask for administrators'
// access.
func administrate(t *testing.T, e *harness.Env) {
	t.Helper()
	namespaces := e.Client.CoreV1().Namespaces()
	namespace, err := namespaces.Get(t.Context(), e.Namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespace.Labels[resourceapi.DRAAdminNamespaceLabelKey] = "true"
	if _, err := namespaces.Update(t.Context(), namespace, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Counters of a pool are shared by the devices of all nodes that it reaches.
func TestPartitionsOfSeveralNodes(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	set := builders.Slice(e.Driver, "fabric").Named(e.In("counters")).SliceCount(2).OnAllNodes().Obj()
	set.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "gpu", Counters: memoryOf("80Gi")}}
	e.Create(class(e, "gpu").Obj(), set, builders.Slice(e.Driver, "fabric").SliceCount(2).PerDevice().Devices(
		part("on-a", "gpu", "80Gi").OnNode(e.In("a")), part("on-b", "gpu", "80Gi").OnNode(e.In("b"))).Obj())
	wants(e, builders.Claim("first", builders.Request("r", e.In("gpu"))))
	e.Runs("first", "")
	wants(e, builders.Claim("second", builders.Request("r", e.In("gpu"))))
	keepsWaiting(t, e, "second")
	e.DeletePod("first")
	e.Runs("second", "")
}

// shared lets several claims share a device.
func shared(d *builders.DeviceBuilder) *builders.DeviceBuilder {
	return d.With(func(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) })
}
