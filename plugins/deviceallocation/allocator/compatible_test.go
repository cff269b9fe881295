package allocator_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestDifferencesToKubeScheduler has each verdict of kube-scheduler that is a
// fault: the compatible mode reproduces it, and by default it is another one.
func TestDifferencesToKubeScheduler(t *testing.T) {
	parts := func() []*builders.SliceBuilder {
		counters := builders.Slice(gpuDriver, "gpus").Named("counters").OnNode(nodeName).SliceCount(2).
			CounterSet("gpu-0", map[string]string{"memory": "80Gi"}).CounterSet("gpu-1", map[string]string{"memory": "80Gi"})
		devices := builders.Slice(gpuDriver, "gpus").Named("devices").OnNode(nodeName).SliceCount(2)
		for _, gpu := range []string{"gpu-0", "gpu-1"} {
			devices.Devices(
				builders.Device(gpu).Attribute("gpu", gpu).Consumes(gpu, map[string]string{"memory": "80Gi"}),
				builders.Device(gpu+"-half").Attribute("gpu", gpu).Consumes(gpu, map[string]string{"memory": "40Gi"}))
		}
		return slicesOf(counters, devices)
	}
	shared := func() *builders.DeviceBuilder { return builders.Device("gpu-0").Capacity("memory", "80Gi").Shared() }
	onFirst := `device.attributes["` + gpuDriver + `"].gpu == "gpu-0"`
	gpu := builders.Request("r", "gpu")
	admin := func() *builders.RequestBuilder { return builders.Request("r", "gpu").Admin() }

	cases := map[string]struct {
		cluster *cluster
		ours    []string
		kubes   []string // nil: rejected
	}{
		"administrators look at a partition of a GPU that is used up (#140729)": {
			cluster: newCluster(parts(), builders.Claim("claim", admin().Select(onFirst))).inUse(gpuDriver, "gpus", "gpu-0"),
			ours:    []string{"claim r: gpu-0"},
		},
		"administrators look at a shared device that is used up (#140729)": {
			cluster: newCluster(slicesOf(gpus(0, nil).Devices(shared())), builders.Claim("claim", admin())).shareInUse("80Gi"),
			ours:    []string{"claim r: gpu-0"},
		},
		"what administrators look at is left for others": {
			cluster: newCluster(slicesOf(gpus(0, nil).Devices(shared())),
				builders.Claim("watch", admin()), builders.Claim("use", builders.Request("r", "gpu").Capacity("memory", "80Gi"))),
			ours: []string{"watch r: gpu-0", "use r: gpu-0"},
		},
		"a GPU that two schedulers have handed out does not spoil others": {
			cluster: newCluster(parts(), builders.Claim("claim", gpu)).inUse(gpuDriver, "gpus", "gpu-0", "gpu-0-half"),
			ours:    []string{"claim r: gpu-1"},
		},
		"a device that is no longer shared has a share": {
			cluster: newCluster(slicesOf(gpus(1, func(_ int, d *builders.DeviceBuilder) { d.Capacity("memory", "80Gi") })),
				builders.Claim("claim", gpu)).shareInUse("40Gi"),
			kubes: []string{"claim r: gpu-0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, compatible := range []bool{false, true} {
				want := tc.ours
				if compatible {
					want = tc.kubes
				}
				p := tc.cluster.problem(t)
				solution, err := allocator.Solve(context.Background(), p, tc.cluster.view(), allocator.Options{Compatible: compatible})
				if (err == nil) != (want != nil) {
					t.Errorf("compatible %t: error %v", compatible, err)
				}
				if diff := cmp.Diff(want, placement(p, solution)); diff != "" {
					t.Errorf("compatible %t: placement (-want +got):\n%s", compatible, diff)
				}
			}
		})
	}
}

// shareInUse adds a claim that has a share of gpu-0.
func (c *cluster) shareInUse(memory string) *cluster {
	holder := builders.Claim("sharer").Holding(gpuDriver, "gpus", "gpu-0").Obj()
	share := types.UID("5f1c6e0a-4c53-4d7e-9a55-8a3c5a1f0b11")
	result := &holder.Status.Allocation.Devices.Results[0]
	result.ShareID = &share
	result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}
	c.allocated = append(c.allocated, holder)
	return c
}
