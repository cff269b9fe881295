package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// Pods that share a claim run where its devices are; the allocation goes away
// with the last of them.
func TestSharedClaim(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 2).Obj(), gpus(e, "b", 2).Obj(),
		builders.Claim("shared", builders.Request("r", e.In("gpu")).Count(2)).Obj(),
		builders.Pod("first").Claim("shared").Obj(), builders.Pod("second").Claim("shared").Obj())
	node := e.Runs("first", "").Spec.NodeName
	if got := e.Runs("second", "").Spec.NodeName; got != node {
		t.Errorf("pods that share a claim run on nodes %s and %s", node, got)
	}
	short := node[len(node)-1:]
	allocation := e.Allocation(short, e.Device("r", short, "gpu-0"), e.Device("r", short, "gpu-1"))
	e.Holds("shared", allocation, "first", "second")

	e.DeletePod("first")
	e.AwaitConsumers("shared", "second")
	e.Holds("shared", allocation, "second")
	e.DeletePod("second")
	e.Released("shared")
}

// A pod joins a shared claim whose devices can be reached from everywhere, and
// gets devices of its own beside it.
func TestSharedClaimBesideAnOwnOne(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	kind := func(name string) string { return own(e, "attributes") + `.kind == "` + name + `"` }
	e.Create(class(e, "net").Select(kind("net")).Obj(), class(e, "gpu").Select(kind("gpu")).Obj(),
		builders.Slice(e.Driver, "net").OnAllNodes().Devices(builders.Device("net").Attribute("kind", "net")).Obj(),
		pool(e, "a", builders.Device("gpu").Attribute("kind", "gpu")).Obj(),
		pool(e, "b", builders.Device("gpu").Attribute("kind", "gpu")).Obj(),
		builders.Claim("net", builders.Request("n", e.In("net"))).Obj())
	nodes := make(map[string]bool)
	for _, name := range []string{"first", "second"} {
		e.Create(builders.Claim(name, builders.Request("g", e.In("gpu"))).Obj(), builders.Pod(name).Claim("net").Claim(name).Obj())
		nodes[e.Runs(name, "").Spec.NodeName] = true
	}
	if len(nodes) != 2 {
		t.Errorf("pods run on nodes %v, want both", nodes)
	}
	e.Holds("net", &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{e.Device("n", "net", "net")},
	}}, "first", "second")
}

// The API allows 256 consumers. The 257th waits, and nothing is written for it.
func TestConsumersOfASharedClaim(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(),
		builders.Claim("shared", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("first").Claim("shared").Obj())
	e.Runs("first", "a")
	fill(t, e, "shared", resourceapi.ResourceClaimReservedForMaxSize)
	before := e.Claim("shared")

	e.Create(builders.Pod("late").Claim("shared").Obj())
	e.Waits("late", unfit(1, fmt.Sprintf("resourceclaim %s/shared has 256 consumers, which is the limit", e.Namespace)))
	if after := e.Claim("shared"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the claim was written: %v", after.ManagedFields)
	}

	// A consumer leaves, the pod takes its place.
	fill(t, e, "shared", resourceapi.ResourceClaimReservedForMaxSize-1)
	e.Runs("late", "a")
	if got := len(e.Claim("shared").Status.ReservedFor); got != resourceapi.ResourceClaimReservedForMaxSize {
		t.Errorf("got %d consumers, want %d", got, resourceapi.ResourceClaimReservedForMaxSize)
	}
}

// fill gives a claim n consumers: those that it has first, then some that are
// no pods, which the controller leaves alone.
func fill(t *testing.T, e *harness.Env, name string, n int) {
	t.Helper()
	claim := e.Claim(name)
	claim.Status.ReservedFor = claim.Status.ReservedFor[:min(n, len(claim.Status.ReservedFor))]
	for i := len(claim.Status.ReservedFor); i < n; i++ {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{
			APIGroup: "example.com", Resource: "consumers", Name: fmt.Sprint("consumer-", i), UID: types.UID(fmt.Sprint("uid-", i)),
		})
	}
	_, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("write consumers: %v", err)
	}
}

// Where consumers leave, as many pods that wait take their places.
func TestManyConsumersTakeTurns(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(),
		builders.Claim("shared", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("first").Claim("shared").Obj())
	e.Runs("first", "a")
	fill(t, e, "shared", resourceapi.ResourceClaimReservedForMaxSize-3)
	const pods = 8
	for i := range pods {
		e.Create(builders.Pod(fmt.Sprint("pod-", i)).Claim("shared").Obj())
	}
	e.RunExactly(4, pods+1)
	e.Await("the other consumers to leave", func(ctx context.Context) string {
		claim := e.Claim("shared")
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
			return c.APIGroup != ""
		})
		if _, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err.Error() // the scheduler writes as well
		}
		return ""
	})
	e.RunExactly(pods+1, pods+1)
}

// The statuses that drivers write about devices in use are none of the
// scheduler's business: they stay when further pods come.
func TestStatusOfDevices(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "nic").Obj(), gpus(e, "a", 1).Obj(),
		builders.Claim("shared", builders.Request("r", e.In("nic"))).Obj(), builders.Pod("first").Claim("shared").Obj())
	e.Runs("first", "a")
	statuses := []resourceapi.AllocatedDeviceStatus{{
		Driver: e.Driver, Pool: "a", Device: "gpu-0",
		Conditions:  []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Configured", LastTransitionTime: metav1.Unix(1, 0)}},
		NetworkData: &resourceapi.NetworkDeviceData{InterfaceName: "net-1", IPs: []string{"10.9.8.0/24"}, HardwareAddress: "ea:9f:cb:40:b1:7b"},
	}}
	claim := e.Claim("shared")
	claim.Status.Devices = statuses
	if _, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("write statuses of devices: %v", err)
	}
	e.Create(builders.Pod("second").Claim("shared").Obj())
	e.Runs("second", "a")
	if diff := cmp.Diff(statuses, e.Claim("shared").Status.Devices); diff != "" {
		t.Errorf("statuses of devices (-want +got):\n%s", diff)
	}
	e.AwaitConsumers("shared", "first", "second")
	e.DeletePod("first")
	e.DeletePod("second")
	e.Released("shared")
}
