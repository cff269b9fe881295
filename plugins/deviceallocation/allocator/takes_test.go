package allocator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	isLarge  = `device.attributes["gpu.example.com"].model == "large"`
	isSmall  = `device.attributes["gpu.example.com"].model == "small"`
	noDevice = `device.driver == "none.example.com"`
)

// bySize offers a large GPU first and then small ones.
func bySize(n int) *builders.SliceBuilder {
	return gpus(n, func(i int, d *builders.DeviceBuilder) {
		if i == 0 {
			d.Attribute("model", "large").Capacity("memory", "80Gi")
		} else {
			d.Attribute("model", "small").Capacity("memory", "16Gi")
		}
	})
}

func onNUMA(nodes ...int) func(int, *builders.DeviceBuilder) {
	return func(i int, d *builders.DeviceBuilder) { d.Attribute(numaAttribute, nodes[i]) }
}

func tainted(names ...int) func(int, *builders.DeviceBuilder) {
	return func(i int, d *builders.DeviceBuilder) {
		for _, name := range names {
			if i == name {
				d.Taint("broken", resourceapi.DeviceTaintEffectNoSchedule)
			}
		}
	}
}

func TestSolveTakes(t *testing.T) {
	large := func(name string) *builders.RequestBuilder { return builders.Request(name, "gpu").Select(isLarge) }
	small := func(name string) *builders.RequestBuilder { return builders.Request(name, "gpu").Select(isSmall) }
	cases := map[string]struct {
		cluster *cluster
		options allocator.Options
		want    []string
		left    int
	}{
		"nothing for nothing": {
			cluster: newCluster(slicesOf(gpus(1, nil)), builders.Claim("claim")),
		},
		"the first devices without an objective": {
			cluster: newCluster(slicesOf(bySize(3)), builders.Claim("claim", builders.Request("gpu", "gpu").Count(2))),
			want:    []string{"claim gpu: gpu-0 gpu-1"},
			left:    1,
		},
		"the small device for a small need": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.Request("gpu", "gpu"))),
			options: allocator.Options{Objective: objective.BestFit{}},
			want:    []string{"claim gpu: gpu-1"},
			left:    1,
		},
		"the large device when the small ones are in use": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.Request("gpu", "gpu"))).inUse(gpuDriver, "gpus", "gpu-1"),
			options: allocator.Options{Objective: objective.BestFit{}},
			want:    []string{"claim gpu: gpu-0"},
		},
		"what the user prefers, at any cost": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.FirstAvailable("gpu", large("large"), small("small")))),
			options: allocator.Options{Objective: objective.BestFit{}},
			want:    []string{"claim gpu/large: gpu-0"},
			left:    0,
		},
		"the second choice where the first is gone": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.FirstAvailable("gpu", large("large"), small("small")))).inUse(gpuDriver, "gpus", "gpu-0"),
			want:    []string{"claim gpu/small: gpu-1"},
		},
		"the better rank for the earlier request": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim",
				builders.FirstAvailable("a", large("large"), small("small")), builders.FirstAvailable("b", large("large"), small("small")))),
			options: allocator.Options{Objective: objective.BestFit{}},
			want:    []string{"claim a/large: gpu-0", "claim b/small: gpu-1"},
		},
		"another device so that a later request gets its own": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.Request("any", "gpu"), large("large"))),
			want:    []string{"claim any: gpu-1", "claim large: gpu-0"},
		},
		"devices with a common attribute": {
			cluster: newCluster(slicesOf(gpus(4, onNUMA(0, 1, 0, 1))), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(2)).MatchAttribute(numaAttribute)).inUse(gpuDriver, "gpus", "gpu-0"),
			want: []string{"claim gpu: gpu-1 gpu-3"},
			left: 1,
		},
		"devices of two drivers with a common attribute": {
			cluster: newCluster(slicesOf(gpus(2, onNUMA(0, 1)), nics(1, onNUMA(1))), builders.Claim("claim",
				builders.Request("gpu", "gpu"), builders.Request("nic", "nic")).MatchAttribute(numaAttribute)),
			want: []string{"claim gpu: gpu-1", "claim nic: nic-0"},
			left: 1,
		},
		"only the requests that a constraint names": {
			cluster: newCluster(slicesOf(gpus(2, onNUMA(0, 1)), nics(1, onNUMA(1))), builders.Claim("claim",
				builders.Request("gpu", "gpu"), builders.Request("nic", "nic")).MatchAttribute(numaAttribute, "nic")),
			want: []string{"claim gpu: gpu-0", "claim nic: nic-0"},
			left: 1,
		},
		"devices with different attributes": {
			cluster: newCluster(slicesOf(gpus(3, onNUMA(0, 0, 1))), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(2)).DistinctAttribute(numaAttribute)),
			want: []string{"claim gpu: gpu-0 gpu-2"},
			left: 1,
		},
		"each claim for itself as far as constraints go": {
			cluster: newCluster(slicesOf(gpus(2, onNUMA(0, 1))),
				builders.Claim("a", builders.Request("gpu", "gpu")).MatchAttribute(numaAttribute),
				builders.Claim("b", builders.Request("gpu", "gpu")).MatchAttribute(numaAttribute)),
			want: []string{"a gpu: gpu-0", "b gpu: gpu-1"},
		},
		"all devices": {
			cluster: newCluster(slicesOf(gpus(3, nil), nics(1, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All())),
			want:    []string{"claim gpu: gpu-0 gpu-1 gpu-2"},
		},
		"a device in use for an administrator": {
			cluster: newCluster(slicesOf(gpus(1, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").Admin())).inUse(gpuDriver, "gpus", "gpu-0"),
			want:    []string{"claim gpu: gpu-0"},
		},
		"all devices for an administrator, in use or not": {
			cluster: newCluster(slicesOf(gpus(2, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All().Admin())).inUse(gpuDriver, "gpus", "gpu-0"),
			want:    []string{"claim gpu: gpu-0 gpu-1"},
		},
		"the device of another claim of the pod for an administrator": {
			cluster: newCluster(slicesOf(gpus(1, nil)), builders.Claim("a", builders.Request("gpu", "gpu")), builders.Claim("b", builders.Request("gpu", "gpu").Admin())),
			want:    []string{"a gpu: gpu-0", "b gpu: gpu-0"},
		},
		"the other device so that an administrator of the same claim gets this one": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("a", builders.Request("gpu", "gpu")),
				builders.Claim("b", builders.Request("gpu", "gpu"), small("watch").Admin())),
			want: []string{"a gpu: gpu-1", "b gpu: gpu-0", "b watch: gpu-1"},
		},
		"a tainted device for who tolerates it": {
			cluster: newCluster(slicesOf(gpus(2, tainted(0))), builders.Claim("claim", builders.Request("gpu", "gpu").Tolerate("broken"))),
			want:    []string{"claim gpu: gpu-0"},
			left:    1,
		},
		"no tainted device for who does not": {
			cluster: newCluster(slicesOf(gpus(2, tainted(0))), builders.Claim("claim", builders.Request("gpu", "gpu"))),
			want:    []string{"claim gpu: gpu-1"},
		},
		"a device with a taint that forbids nothing": {
			cluster: newCluster(slicesOf(gpus(1, func(_ int, d *builders.DeviceBuilder) {
				d.Taint("note", resourceapi.DeviceTaintEffectNone).Taint("future", "Unknown")
			})), builders.Claim("claim", builders.Request("gpu", "gpu"))),
			want: []string{"claim gpu: gpu-0"},
		},
		"32 devices for a claim, and more for the next one": {
			cluster: newCluster(slicesOf(gpus(33, nil)), builders.Claim("a", builders.Request("gpu", "gpu").Count(32)), builders.Claim("b", builders.Request("gpu", "gpu"))),
			want:    []string{"a gpu:" + names(0, 32), "b gpu: gpu-32"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, s, err := tc.cluster.solve(t, tc.options)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(tc.want, placement(p, s)); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
			if s.Left != tc.left {
				t.Errorf("%d devices left, want %d", s.Left, tc.left)
			}
			if s.Exhausted {
				t.Error("exhausted without a budget")
			}
		})
	}
}

func names(from, to int) string {
	var text strings.Builder
	for _, d := range builders.DevicesNamed("gpu", to, nil)[from:] {
		text.WriteString(" " + d.Obj().Name)
	}
	return text.String()
}
