//go:build linux

package e2e

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
)

func TestOneGPU(t *testing.T) {
	e := env(t, "one GPU: the least valuable one that will do")
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeA).claim("gpu").obj())
	e.Sees("pod", "main", "gpu=node-a/gpu-1")
}

func TestContainersShareAClaim(t *testing.T) {
	e := env(t, "two containers of a pod share a claim, the third has none")
	e.Create(gpuClaim("gpu"), pod("pod").on(cluster.NodeB).claim("gpu").
		container("first", "gpu").container("second", "gpu").container("third").obj())
	e.Sees("pod", "first", "gpu=node-b/gpu-1")
	e.Sees("pod", "second", "gpu=node-b/gpu-1")
	e.Sees("pod", "third")
}

func TestPodsShareAClaim(t *testing.T) {
	e := env(t, "two pods share a claim, on the node of its device")
	e.Create(gpuClaim("gpu"), pod("first").on(cluster.NodeB).claim("gpu").obj())
	e.Sees("first", "main", "gpu=node-b/gpu-1")
	e.Create(pod("second").claim("gpu").obj())
	e.Sees("second", "main", "gpu=node-b/gpu-1")

	e.Delete("first")
	e.SamePrepared(cluster.NodeB, "gpu") // the second still uses it
}

func TestPartition(t *testing.T) {
	e := env(t, "partitions of a GPU: two halves leave nothing of the whole")
	partition := func(name, memory string) *builders.ClaimBuilder {
		return builders.Claim(name, builders.Request("part", cluster.Partition).
			Select(`device.capacity["gpu.example.com"].memory == quantity("`+memory+`")`))
	}
	e.Create(partition("half", "40Gi").Obj(), partition("other", "40Gi").Obj(), partition("whole", "80Gi").Obj(),
		pod("half").on(cluster.NodeA).claim("half").obj())
	e.Sees("half", "main", "part=node-a-partitions/gpu-2-half-0")
	e.Create(pod("other").on(cluster.NodeA).claim("other").obj())
	e.Sees("other", "main", "part=node-a-partitions/gpu-2-half-1")
	e.Create(pod("whole").on(cluster.NodeA).claim("whole").obj())
	e.Waits("whole", `1 request "part": all matching devices have too little capacity or counters left`)
}

func TestShare(t *testing.T) {
	e := env(t, "shares of a GPU: each claim gets a part of its memory")
	share := func(name, memory string) *builders.ClaimBuilder {
		return builders.Claim(name, builders.Request("share", cluster.Shared).Capacity("memory", memory))
	}
	e.Create(share("one", "20Gi").Obj(), share("two", "10Gi").Obj(), share("three", "20Gi").Obj(),
		pod("one").on(cluster.NodeA).claim("one").obj(), pod("two").on(cluster.NodeA).claim("two").obj())
	e.Sees("one", "main", "share=node-a-shared/gpu-3")
	e.Sees("two", "main", "share=node-a-shared/gpu-3")
	e.Create(pod("three").on(cluster.NodeA).claim("three").obj())
	e.Waits("three", `1 request "share": all matching devices have too little capacity or counters left`)
}
