package integration

import (
	"context"
	"testing"

	"github.com/device-scheduler/device-scheduler/config"
	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// With the other shipped file the scheduler takes the place, and the lease, of
// the cluster's own one: it schedules pods that name no scheduler.
func TestInsteadOfTheDefaultScheduler(t *testing.T) {
	e := env(t)
	const lease = "manifests/overlays/replace-default/role-lease.yaml"
	if _, err := cluster.Kubectl(t.Context(), nil, "apply", "-f", lease); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context is over.
		if _, err := cluster.Kubectl(context.Background(), nil, "delete", "-f", lease); err != nil {
			t.Error(err)
		}
	})
	e.Nodes("a")
	pod := builders.Pod("pod").Claim("claim").Obj()
	pod.Spec.SchedulerName = "default-scheduler"
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(), builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(), pod)

	scheduler := e.StartScheduler("default", harness.SchedulerOptions{Config: config.ReplaceDefault})
	e.Elects(scheduler, true)
	e.Runs("pod", "a")
	e.Holds("claim", e.Allocation("a", e.Device("r", "a", "gpu-0")), "pod")
	// The other scheduler has not taken notice of the pod, but of the device.
	claimAndPod(e, "next")
	e.Waits("next", unfit(1, `1 request "r": all matching devices in use`))
}
