package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// withGroups gives all devices compatibility groups.
func withGroups(groups ...string) option {
	return func(s *resourceapi.ResourceSlice) {
		for i := range s.Spec.Devices {
			for j := range s.Spec.Devices[i].ConsumesCounters {
				s.Spec.Devices[i].ConsumesCounters[j].CompatibilityGroups = groups
			}
		}
	}
}

func withTaint(s *resourceapi.ResourceSlice) {
	for i := range s.Spec.Devices {
		s.Spec.Devices[i].Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	}
}

// TestGates: what worker-1 can reach with each feature off, by the rules of
// kube-scheduler (GatherPools), and with all on.
func TestGates(t *testing.T) {
	partitions := func(more ...option) []*resourceapi.ResourceSlice {
		return []*resourceapi.ResourceSlice{
			newSlice("a", append([]option{generation(1, 2), withDevices(consumer("half", "gpu-0", "memory"), resourceapi.Device{Name: "plain"})}, more...)...),
			newSlice("b", generation(1, 2), counterSet("gpu-0", "memory")),
		}
	}
	elsewhere := func(s *resourceapi.ResourceSlice) {
		s.Spec.Devices = []resourceapi.Device{{Name: "gpu-0", NodeName: ptr.To("worker-1")}}
	}
	for name, tc := range map[string]struct {
		slices  []*resourceapi.ResourceSlice
		rule    *resourceapi.DeviceTaintRule
		off     func(*device.Features)
		with    []string
		without []string
	}{
		"counter sets": {
			slices:  partitions(),
			off:     func(f *device.Features) { f.PartitionableDevices = false },
			with:    []string{"gpu.example.com/pool half(a 0) plain(a 1)"},
			without: []string{"gpu.example.com/pool half(a 0) plain(a 1)"},
		},
		"nothing but counter sets": {
			slices:  []*resourceapi.ResourceSlice{newSlice("a", counterSet("gpu-0", "memory"))},
			off:     func(f *device.Features) { f.PartitionableDevices = false },
			with:    []string{"gpu.example.com/pool"},
			without: nil,
		},
		"counters that do not exist": {
			slices:  []*resourceapi.ResourceSlice{newSlice("a", withDevices(consumer("half", "gpu-0", "memory"), resourceapi.Device{Name: "plain"}))},
			off:     func(f *device.Features) { f.PartitionableDevices = false },
			with:    []string{"gpu.example.com/pool DanglingCounter"},
			without: []string{"gpu.example.com/pool half(a 0) plain(a 1)"},
		},
		"nodes per device": {
			slices:  []*resourceapi.ResourceSlice{newSlice("a", generation(1, 2), eachDeviceOnItsOwn, elsewhere), newSlice("b", generation(1, 2), named("gpu-1"))},
			off:     func(f *device.Features) { f.PartitionableDevices = false },
			with:    []string{"gpu.example.com/pool gpu-0(a 0) gpu-1(b 0)"},
			without: []string{"gpu.example.com/pool gpu-1(b 0)"},
		},
		"nodes per device, but not really": {
			slices: []*resourceapi.ResourceSlice{newSlice("a", named("gpu-0"), func(s *resourceapi.ResourceSlice) {
				s.Spec.PerDeviceNodeSelection = ptr.To(false)
			})},
			off:     func(f *device.Features) { f.PartitionableDevices = false },
			with:    []string{"gpu.example.com/pool gpu-0(a 0)"},
			without: nil,
		},
		"a bad node selector in what is ignored": {
			slices: []*resourceapi.ResourceSlice{newSlice("a", generation(1, 2), onBadSelector, counterSet("gpu-0", "memory")), newSlice("b", generation(1, 2), named("gpu-1"))},
			off:    func(f *device.Features) { f.PartitionableDevices = false },
			with:   []string{"gpu.example.com/pool BadNodeSelector"},
			// The stock allocator does not even parse the selector.
			without: []string{"gpu.example.com/pool gpu-1(b 0)"},
		},
		"groups": {
			slices:  append(partitions(withGroups("mig")), newSlice("c", inPool("other"), named("gpu-0"))),
			off:     func(f *device.Features) { f.CompatibilityGroups = false },
			with:    []string{"gpu.example.com/other gpu-0(c 0)", "gpu.example.com/pool half(a 0) plain(a 1)"},
			without: []string{"gpu.example.com/other gpu-0(c 0)", "gpu.example.com/pool Incomplete"},
		},
		"nothing but groups": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 2), withDevices(consumer("half", "gpu-0", "memory")), withGroups("mig")),
				newSlice("b", generation(1, 2), onNode("elsewhere"), counterSet("gpu-0", "memory")),
			},
			off:     func(f *device.Features) { f.CompatibilityGroups = false },
			with:    []string{"gpu.example.com/pool half(a 0)"},
			without: nil,
		},
		"the slice with groups is one too many": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 1), named("gpu-0")),
				newSlice("b", generation(1, 2), withDevices(consumer("half", "gpu-0", "memory")), withGroups("mig")),
			},
			off:  func(f *device.Features) { f.CompatibilityGroups = false },
			with: []string{"gpu.example.com/pool Contradictory"},
			// What the ignored slice says about the pool is ignored as well.
			without: []string{"gpu.example.com/pool gpu-0(a 0)"},
		},
		"taints": {
			slices:  []*resourceapi.ResourceSlice{newSlice("a", named("gpu-0"), withTaint)},
			rule:    newRule("rule", "", "pool", "gpu-0"),
			off:     func(f *device.Features) { f.DeviceTaints = false },
			with:    []string{"gpu.example.com/pool gpu-0(a 0)!broken!rule"},
			without: []string{"gpu.example.com/pool gpu-0(a 0)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			off := device.AllFeatures()
			tc.off(&off)
			for _, half := range []struct {
				features device.Features
				want     []string
			}{{device.AllFeatures(), tc.with}, {off, tc.without}} {
				inventory := New(half.features)
				for _, slice := range tc.slices {
					inventory.SetSlice(slice)
				}
				if tc.rule != nil {
					inventory.SetTaintRule(tc.rule)
				}
				view := inventory.Snapshot().Node(newNode("worker-1", "a"))
				if diff := cmp.Diff(half.want, viewLines(view)); diff != "" {
					t.Errorf("features %+v (-want +got):\n%s", half.features, diff)
				}
			}
		})
	}
}
