//go:build linux

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
)

func TestSchedulerKilled(t *testing.T) {
	e := env(t, "scheduler killed between the write of the claim and the binding: its successor binds the pod")
	killed := e.KillSchedulerAt(func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods/pod/binding")
	})
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeA).claim("gpu").obj())
	killed()
	if e.Claim("gpu").Status.Allocation == nil || e.Pod("pod").Spec.NodeName != "" {
		t.Error("the claim is not written or the pod is bound: this test tests nothing")
	}
	written := e.Claim("gpu").Status.Allocation.AllocationTimestamp
	e.StartScheduler()
	e.Sees("pod", "main", "gpu=node-a/gpu-1")
	if now := e.Claim("gpu").Status.Allocation.AllocationTimestamp; !now.Equal(written) {
		t.Errorf("the claim was allocated once more")
	}
	e.Create(gpuClaim("next"), pod("next").on(cluster.NodeA).claim("next").obj())
	e.Sees("next", "main", "gpu=node-a/gpu-0")
}
