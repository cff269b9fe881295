//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
)

// deployment keeps pods with a GPU each running. The claims come from the
// template "gpu".
func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: appLabel(name)},
			Template: pod(name).template("gpu").podTemplate(),
		},
	}
}

func TestDeploymentFillsTheCluster(t *testing.T) {
	e := env(t, "Deployment of 4 replicas fills both nodes")
	e.Create(claimTemplate(gpuClaim("gpu")), deployment("server", 4))
	var devices []string
	for _, name := range e.Replicas("server", 4) {
		devices = append(devices, e.Took(name))
	}
	slices.Sort(devices)
	if diff := cmp.Diff([]string{"node-a/gpu-0", "node-a/gpu-1", "node-b/gpu-0", "node-b/gpu-1"}, devices); diff != "" {
		t.Errorf("devices of the replicas (-want +got):\n%s", diff)
	}
}

func TestJobOutnumbersTheDevices(t *testing.T) {
	e := env(t, "Job of 6 pods waits for 4 GPUs that are in use, and finishes as they come free")
	var holders []string
	for i := range 4 {
		name := fmt.Sprintf("holder-%d", i)
		holders = append(holders, name)
		e.Create(gpuClaim(name), pod(name).claim(name).obj())
	}
	for _, name := range holders {
		e.Took(name)
	}
	e.Create(claimTemplate(gpuClaim("gpu")), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{
			Completions: ptr.To(int32(6)), Parallelism: ptr.To(int32(6)), BackoffLimit: ptr.To(int32(0)),
			Template: pod("job").template("gpu").once().podTemplate(),
		},
	})
	pods := e.Pods("job", 6)
	for _, name := range pods {
		e.Waits(name, `2 request "gpu": all matching devices in use`)
	}
	for _, name := range holders {
		e.Delete(name)
	}
	for _, name := range pods {
		e.Finished(name)
	}
}

func TestDeletion(t *testing.T) {
	e := env(t, "deletion: unprepared, CDI file gone, claim released, device used again at once")
	e.Create(gpuClaim("first"), pod("first").on(cluster.NodeA).claim("first").obj(),
		gpuClaim("second"), pod("second").on(cluster.NodeA).claim("second").obj())
	e.Took("first")
	e.Took("second")
	e.Create(gpuClaim("next"), pod("next").on(cluster.NodeA).claim("next").obj())
	e.Waits("next", inUse)
	freed := e.Took("first")

	e.Delete("first")
	e.Sees("next", "main", "gpu="+freed)
	e.Released("first")
	e.SamePrepared(cluster.NodeA, "second", "next")
	want := []driver.Call{
		{Method: driver.Prepare, Claim: "deletion/first"},
		{Method: driver.Unprepare, Claim: "deletion/first"},
		{Method: driver.Prepare, Claim: "deletion/next"},
	}
	calls := slices.DeleteFunc(e.Calls(cluster.NodeA, driver.GPU), func(c driver.Call) bool { return c.Claim == "deletion/second" })
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls of the driver (-want +got):\n%s", diff)
	}
}
