//go:build linux

package e2e

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
)

func TestOneGPU(t *testing.T) {
	e := env(t, "one GPU")
	e.Create(gpuClaim("gpu"), pod("one").on(cluster.NodeA).claim("gpu").obj())
	e.Sees("one", "main", "gpu=node-a/gpu-0")
}
