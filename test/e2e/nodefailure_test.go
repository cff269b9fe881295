//go:build linux

package e2e

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
)

// noExecute is what a driver says of a device that has failed.
var noExecute = resourceapi.DeviceTaint{Key: "example.com/broken", Effect: resourceapi.DeviceTaintEffectNoExecute}

func TestKubeletRestarted(t *testing.T) {
	e := env(t, "kubelet restarted with a claim in use: the container goes on, and is unprepared in the end")
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeB).claim("gpu").obj())
	e.Sees("pod", "main", "gpu=node-b/gpu-1")
	container := e.Container("pod")
	e.RestartKubelet(cluster.NodeB)

	e.Create(gpuClaim("next"), pod("next").on(cluster.NodeB).claim("next").obj())
	e.Sees("next", "main", "gpu=node-b/gpu-0")
	if now := e.Container("pod"); now != container {
		t.Errorf("pod has the container %s, and had %s before", now, container)
	}
	e.Delete("pod")
	e.Released("gpu")
	e.SamePrepared(cluster.NodeB, "next")
}

func TestNodeDrained(t *testing.T) {
	e := env(t, "node drained: its pods get devices of the other node")
	e.Create(claimTemplate(gpuClaim("gpu")), deployment("server", 2))
	for _, name := range e.Replicas("server", 2) {
		e.Took(name)
	}
	e.Drain(cluster.NodeA)
	for _, name := range e.Replicas("server", 2) {
		if device := e.Took(name); !strings.HasPrefix(device, "node-b/") {
			t.Errorf("pod %s has device %s", name, device)
		}
	}
	e.SamePrepared(cluster.NodeA)
}

func TestNodeStopped(t *testing.T) {
	e := env(t, "node loses its power: pods move, its devices stay taken, and are free when it is back")
	e.Cordon(cluster.NodeA)
	e.Create(claimTemplate(gpuClaim("gpu")), deployment("server", 1))
	lost := e.Replicas("server", 1)[0]
	if device := e.Took(lost); device != "node-b/gpu-1" {
		t.Errorf("pod %s has device %s", lost, device)
	}
	claim := e.ClaimOf(lost, "gpu")
	e.Uncordon(cluster.NodeA)

	e.Off(cluster.NodeB)
	e.Deleting(lost)
	replacement := e.Replicas("server", 1)[0]
	if device := e.Took(replacement); device != "node-a/gpu-1" {
		t.Errorf("pod %s has device %s", replacement, device)
	}
	if e.Claim(claim).Status.Allocation == nil {
		t.Errorf("claim %s is not allocated any more: its pod may still run", claim)
	}
	e.On(cluster.NodeB)
	e.Gone(lost)
	e.Create(gpuClaim("next"), pod("next").on(cluster.NodeB).claim("next").obj())
	e.Sees("next", "main", "gpu=node-b/gpu-1")
}
