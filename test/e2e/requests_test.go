//go:build linux

package e2e

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
)

func TestPrioritizedList(t *testing.T) {
	e := env(t, "prioritized list: a large GPU, else a small one")
	for _, name := range []string{"first", "second"} {
		e.Create(builders.Claim(name, builders.FirstAvailable("gpu", gpuOfModel("large", "large"), gpuOfModel("small", "small"))).Obj())
	}
	e.Create(pod("first").on(cluster.NodeA).claim("first").obj())
	e.Sees("first", "main", "gpu/large=node-a/gpu-0")
	e.Create(pod("second").on(cluster.NodeA).claim("second").obj())
	e.Sees("second", "main", "gpu/small=node-a/gpu-1")
}

func TestExtendedResource(t *testing.T) {
	e := env(t, "extended resource: GPUs without a claim of the user's own")
	e.Create(pod("pod").on(cluster.NodeB).extended(cluster.GPUResource, "2").obj())
	e.Sees("pod", "main", "container-0-request-0=node-b/gpu-0", "container-0-request-0=node-b/gpu-1")
}

func TestAligned(t *testing.T) {
	e := env(t, "GPU and NIC on one PCIe root, each for a container of its own")
	claim := builders.Claim("both", gpuOfModel("gpu", "small"), builders.Request("nic", cluster.NIC)).
		MatchAttribute("resource.kubernetes.io/pcieRoot")
	e.Create(claim.Obj(), pod("pod").on(cluster.NodeA).claim("both").
		container("main", "both").container("computes", "both/gpu").container("talks", "both/nic").obj())
	e.Sees("pod", "main", "gpu=node-a/gpu-1", "nic=node-a/nic-1")
	e.Sees("pod", "computes", "gpu=node-a/gpu-1")
	e.Sees("pod", "talks", "nic=node-a/nic-1")
}
