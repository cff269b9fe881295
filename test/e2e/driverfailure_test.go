//go:build linux

package e2e

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
)

func TestDriverDownBeforeThePod(t *testing.T) {
	e := env(t, "driver down before a pod comes: the pod says so, and runs when the driver is back")
	e.KillDriver(cluster.NodeA, driver.GPU)
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeA).claim("gpu").obj())
	e.Stuck("pod", "gpu.example.com")
	e.StartDriver(cluster.NodeA, driver.GPU)
	e.Sees("pod", "main", "gpu=node-a/gpu-1")
}

func TestDriverDownWhileItsClaimIsPrepared(t *testing.T) {
	e := env(t, "driver down while its claim is prepared: the device is free once it was unprepared, not before")
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeA).claim("gpu").obj(),
		gpuClaim("other"), pod("other").on(cluster.NodeA).claim("other").obj())
	freed := e.Took("pod")
	e.Took("other")
	e.KillDriver(cluster.NodeA, driver.GPU)
	e.StartDeletion("pod")
	e.Ended("pod")
	e.Create(gpuClaim("next"), pod("next").on(cluster.NodeA).claim("next").obj())
	e.Waits("next", inUse)

	e.StartDriver(cluster.NodeA, driver.GPU)
	e.Gone("pod")
	e.Sees("next", "main", "gpu="+freed)
	e.SamePrepared(cluster.NodeA, "next", "other")
}

func TestDriverRestarted(t *testing.T) {
	e := env(t, "driver restarted with a claim in use: the container goes on, the new driver unprepares")
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeA).claim("gpu").obj())
	e.Sees("pod", "main", "gpu=node-a/gpu-1")
	container := e.Container("pod")
	e.KillDriver(cluster.NodeA, driver.GPU)
	e.StartDriver(cluster.NodeA, driver.GPU)

	// The new driver serves a new pod beside the old one.
	e.Create(gpuClaim("next"), pod("next").on(cluster.NodeA).claim("next").obj())
	e.Sees("next", "main", "gpu=node-a/gpu-0")
	if now := e.Container("pod"); now != container {
		t.Errorf("pod has the container %s, and had %s before", now, container)
	}
	e.Delete("pod")
	e.SamePrepared(cluster.NodeA, "next")
	want := []driver.Call{
		{Method: driver.Prepare, Claim: e.Namespace + "/next"},
		{Method: driver.Unprepare, Claim: e.Namespace + "/gpu"},
	}
	if diff := cmp.Diff(want, e.Calls(cluster.NodeA, driver.GPU)); diff != "" {
		t.Errorf("calls of the new driver (-want +got):\n%s", diff)
	}
}

func TestPrepareFailsTwice(t *testing.T) {
	e := env(t, "prepare fails twice, then works: same claim, same device")
	e.Order(cluster.NodeB, driver.GPU, driver.Order{FailPrepares: 2})
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeB).claim("gpu").obj())
	e.Stuck("pod", "told to fail")
	e.Sees("pod", "main", "gpu=node-b/gpu-1")
	failed := 0
	for _, call := range e.Calls(cluster.NodeB, driver.GPU) {
		if call.Error != "" {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d calls failed, not 2: %v", failed, e.Calls(cluster.NodeB, driver.GPU))
	}
}

func TestDriverCrashesInPrepare(t *testing.T) {
	e := env(t, "driver crashes when it has prepared a claim and not answered yet: it is prepared once more")
	e.Order(cluster.NodeA, driver.GPU, driver.Order{CrashInPrepare: true})
	e.AwaitCrash(cluster.NodeA, driver.GPU, func() {
		e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeA).claim("gpu").obj())
	})
	e.StartDriver(cluster.NodeA, driver.GPU)
	e.Sees("pod", "main", "gpu=node-a/gpu-1")
	e.SamePrepared(cluster.NodeA, "gpu")
}

func TestDeviceWithdrawn(t *testing.T) {
	e := env(t, "device withdrawn under a running pod: the pod goes on, nobody else gets the device")
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeB).claim("gpu").obj(),
		gpuClaim("other"), pod("other").on(cluster.NodeB).claim("other").obj())
	device := e.Took("pod")
	e.Took("other")
	container := e.Container("pod")
	e.Order(cluster.NodeB, driver.GPU, driver.Order{Withdraw: device[len("node-b/"):]})
	e.Published(cluster.NodeB, driver.GPU, device[len("node-b/"):], false)

	e.Create(gpuClaim("next"), pod("next").on(cluster.NodeB).claim("next").obj())
	e.Waits("next", inUse)
	if now := e.Container("pod"); now != container {
		t.Errorf("pod has the container %s, and had %s before", now, container)
	}
	e.Delete("pod")
	e.Released("gpu")
	e.Waits("next", inUse) // the device is not there any more

	e.Order(cluster.NodeB, driver.GPU, driver.Order{Repair: true})
	e.Sees("next", "main", "gpu="+device)
}

func TestNextGeneration(t *testing.T) {
	e := env(t, "pools published anew under a running pod: its device stays its own")
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeA).claim("gpu").obj())
	e.Sees("pod", "main", "gpu=node-a/gpu-1")
	before := e.Generation(cluster.NodeA, cluster.NodeA)
	e.Order(cluster.NodeA, driver.GPU, driver.Order{NextGeneration: true})
	e.AwaitGeneration(cluster.NodeA, cluster.NodeA, before)

	e.Create(gpuClaim("next"), pod("next").on(cluster.NodeA).claim("next").obj())
	e.Sees("next", "main", "gpu=node-a/gpu-0")
	e.Create(gpuClaim("third"), pod("third").on(cluster.NodeA).claim("third").obj())
	e.Waits("third", inUse)
}

func TestDeviceTainted(t *testing.T) {
	e := env(t, "device tainted NoExecute under a running pod: its replacement gets another device")
	e.Create(claimTemplate(gpuClaim("gpu")), deployment("server", 1))
	evicted := e.Replicas("server", 1)[0]
	broken := e.Took(evicted)
	node, name := broken[:len("node-a")], broken[len("node-a/"):]
	e.Order(node, driver.GPU, driver.Order{Taint: &driver.DeviceTaint{Device: name, Taint: noExecute}})
	e.Gone(evicted)
	replacement := e.Replicas("server", 1)
	if got := e.Took(replacement[0]); got == broken || slices.Contains(replacement, evicted) {
		t.Errorf("pod %s got device %s: it replaces %s, whose device %s is broken", replacement[0], got, evicted, broken)
	}
}
