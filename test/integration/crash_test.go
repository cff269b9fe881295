package integration

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// A scheduler that dies between any two writes of a binding leaves nothing that
// its successor does not put right: the pod runs with one allocation, and no
// device is lost.
func TestKilledDuringBinding(t *testing.T) {
	outer := env(t)
	proxy := outer.StartProxy()
	scheduler := outer.ReplaceScheduler("killed", harness.SchedulerOptions{Proxy: proxy})
	tests := []struct {
		name     string
		write    write
		after    bool
		extended bool
	}{
		{name: "before the finalizer", write: writeFinalizer},
		{name: "after the finalizer", write: writeFinalizer, after: true},
		{name: "after the status", write: writeStatus, after: true},
		{name: "after the binding", write: bindPod, after: true},
		{name: "after the claim", write: createClaim, after: true, extended: true},
		{name: "after the status of the pod", write: patchPod, after: true, extended: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := env(t)
			e.Watch(scheduler)
			e.Nodes("a")
			gpu := class(e, "gpu").Obj()
			gpu.Spec.ExtendedResourceName = ptr.To(e.Driver + "/gpu")
			e.Create(gpu, gpus(e, "a", 2).Obj(), builders.Claim("rest", builders.Request("r", e.In("gpu"))).Obj())

			killed := make(chan error, 1)
			proxy.Intercept(once(tc.after, func(r *http.Request) bool { return tc.write.of(e, "", r) },
				func() { killed <- scheduler.Kill() }))
			if tc.extended {
				e.Create(asking("pod", corev1.ResourceName(e.Driver+"/gpu"), 1, 0))
			} else {
				e.Create(builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("pod").Claim("claim").Obj())
			}
			e.Receive(killed)
			if err := scheduler.Start(t.Context()); err != nil {
				t.Fatal(err)
			}

			e.Runs("pod", "a")
			claim, request := "claim", "r"
			if tc.extended {
				claim, request = extendedClaim(t, e, "pod"), "container-0-request-0"
			}
			e.OnlyClaims(claim, "rest")
			e.Holds(claim, e.Allocation("a", e.Device(request, "a", "gpu-0")), "pod")
			e.Create(builders.Pod("rest").Claim("rest").Obj())
			e.Runs("rest", "a")
			e.Took("rest", "r=a/gpu-1")
			e.DeletePod("pod")
			e.Create(builders.Claim("again", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("again").Claim("again").Obj())
			e.Runs("again", "a")
			e.Took("again", "r=a/gpu-0")
		})
	}
}

// A pod that is deleted while no scheduler runs leaves no allocation behind.
func TestPodDeletedAfterTheSchedulerWasKilled(t *testing.T) {
	e := env(t)
	proxy := e.StartProxy()
	scheduler := e.ReplaceScheduler("killed", harness.SchedulerOptions{Proxy: proxy})
	e.Nodes("a")
	killed := make(chan error, 1)
	proxy.Intercept(once(true, func(r *http.Request) bool { return writeStatus.of(e, "claim", r) },
		func() { killed <- scheduler.Kill() }))
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("pod").Claim("claim").Obj(),
		builders.Claim("next", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("next").Claim("next").Obj())
	e.Receive(killed)
	if e.Claim("claim").Status.Allocation == nil {
		t.Error("the claim was not written: this test tests nothing")
	}
	e.DeletePod("pod")
	if err := scheduler.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Runs("next", "a")
	e.Took("next", "r=a/gpu-0")
	e.Released("claim")
}

// Two replicas share one lease: the second works when the first is killed.
func TestReplicasTakeTurns(t *testing.T) {
	e := env(t)
	first := e.Cluster.Scheduler
	second := e.StartScheduler("second", harness.SchedulerOptions{})
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 2).Obj(),
		builders.Claim("one", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("one").Claim("one").Obj(),
		builders.Claim("two", builders.Request("r", e.In("gpu"))).Obj())
	e.Runs("one", "a")
	e.Elects(second, false)

	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	e.Create(builders.Pod("two").Claim("two").Obj())
	e.Elects(second, true)
	e.Runs("two", "a")
	e.Took("two", "r=a/gpu-1")

	// The first one comes back and waits for its turn.
	if err := first.Launch(); err != nil {
		t.Fatal(err)
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	e.Elects(first, true)
}
