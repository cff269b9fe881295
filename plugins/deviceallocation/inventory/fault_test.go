package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// TestFaults looks at the pool "pool" from worker-1 in zone a, beside a pool
// "good" that must not suffer.
func TestFaults(t *testing.T) {
	tests := map[string]struct {
		slices []*resourceapi.ResourceSlice
		// want is nil if the node must see the pool without a fault.
		want *Fault
		// devices are those that the node can reach.
		devices []string
		// text is what a person reads about the pool, short and long.
		text, long string
		// outOfReach is set if the pool must not be in the view of the node.
		outOfReach bool
		// poolFault is the fault of the pool as a whole, if not that of the node.
		poolFault FaultKind
	}{
		"complete, devices in the order of slice names": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("b", generation(1, 2), named("gpu-0")),
				newSlice("a", generation(1, 2), named("gpu-2", "gpu-1")),
			},
			devices: []string{"gpu-2", "gpu-1", "gpu-0"},
		},
		"#130043: one of two slices published": {
			slices: []*resourceapi.ResourceSlice{newSlice("a", generation(1, 2), named("gpu-0"))},
			want:   &Fault{Kind: Incomplete, Generation: 1, Have: 1, Want: 2},
			text:   "pool gpu.example.com/pool incomplete (1 of 2 slices)",
			long:   "pool gpu.example.com/pool incomplete (1 of 2 slices)",
		},
		"the other slice is published for another node": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 2), named("gpu-0")),
				newSlice("b", generation(1, 2), named("gpu-1"), onNode("worker-2")),
			},
			devices: []string{"gpu-0"},
		},
		"the other slice uses an unknown node selection": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 2), named("gpu-0")),
				newSlice("b", generation(1, 2), named("gpu-1"), onNowhere),
			},
			devices: []string{"gpu-0"},
		},
		"old slice left behind": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", named("gpu-0")),
				newSlice("left-behind", named("gpu-0")),
			},
			want: &Fault{Kind: Surplus, Generation: 1, Have: 2, Want: 1,
				Detail: "generation 1 consists of slices a, left-behind; delete the ones that the driver left behind"},
			text: "pool gpu.example.com/pool has too many slices (2 instead of 1)",
			long: "pool gpu.example.com/pool has too many slices (2 instead of 1): generation 1 consists of slices a, left-behind; delete the ones that the driver left behind",
		},
		"old slice of an older generation does no harm": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(2, 1), named("gpu-0")),
				newSlice("left-behind", named("gpu-0", "gpu-1")),
			},
			devices: []string{"gpu-0"},
		},
		"newer generation started on another node": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", named("gpu-0")),
				newSlice("b", generation(2, 1), named("gpu-0"), onNode("worker-2")),
			},
			outOfReach: true,
		},
		"#141118: slices disagree about resourceSliceCount": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 1), named("gpu-0")),
				newSlice("b", generation(1, 2), named("gpu-1")),
			},
			want: &Fault{Kind: Contradictory, Generation: 1, Have: 2, Want: 2,
				Detail: "resourceSliceCount of generation 1 is 1 in slice a and 2 in slice b; the driver must publish one value, or a new generation"},
			text: "pool gpu.example.com/pool invalid (slices disagree about resourceSliceCount)",
			long: "pool gpu.example.com/pool invalid (slices disagree about resourceSliceCount): resourceSliceCount of generation 1 is 1 in slice a and 2 in slice b; the driver must publish one value, or a new generation",
		},
		"duplicate device in one slice": {
			slices: []*resourceapi.ResourceSlice{newSlice("a", named("gpu-0", "gpu-0"))},
			want: &Fault{Kind: DuplicateDevice, Generation: 1, Have: 1, Want: 1,
				Detail: "device gpu-0 is twice in slice a; the driver must give each device its own name"},
			text: "pool gpu.example.com/pool invalid (duplicate device name)",
			long: "pool gpu.example.com/pool invalid (duplicate device name): device gpu-0 is twice in slice a; the driver must give each device its own name",
		},
		"duplicate device in two slices": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 2), named("gpu-0")),
				newSlice("b", generation(1, 2), named("gpu-1", "gpu-0")),
			},
			want: &Fault{Kind: DuplicateDevice, Generation: 1, Have: 2, Want: 2,
				Detail: "device gpu-0 is in slice a and in slice b; the driver must give each device its own name"},
			text: "pool gpu.example.com/pool invalid (duplicate device name)",
			long: "pool gpu.example.com/pool invalid (duplicate device name): device gpu-0 is in slice a and in slice b; the driver must give each device its own name",
		},
		"duplicate device that the node cannot reach": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 2), named("gpu-0")),
				newSlice("b", generation(1, 2), named("gpu-0"), onNode("worker-2")),
			},
			devices:   []string{"gpu-0"},
			poolFault: DuplicateDevice,
		},
		"duplicate counter set": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 2), counterSet("gpu-0", "memory")),
				newSlice("b", generation(1, 2), counterSet("gpu-0", "memory")),
			},
			want: &Fault{Kind: DuplicateCounterSet, Generation: 1, Have: 2, Want: 2,
				Detail: "counter set gpu-0 is defined a second time in slice b; the driver must give each set its own name"},
			text: "pool gpu.example.com/pool invalid (duplicate counter set)",
			long: "pool gpu.example.com/pool invalid (duplicate counter set): counter set gpu-0 is defined a second time in slice b; the driver must give each set its own name",
		},
		"consumes from an unknown counter set": {
			slices: []*resourceapi.ResourceSlice{newSlice("a", withDevices(consumer("part-0", "gpu-0", "memory")))},
			want: &Fault{Kind: DanglingCounter, Generation: 1, Have: 1, Want: 1,
				Detail: "device part-0 in slice a consumes from counter set gpu-0, which no slice of the pool defines"},
			text: "pool gpu.example.com/pool invalid (unknown counter consumed)",
			long: "pool gpu.example.com/pool invalid (unknown counter consumed): device part-0 in slice a consumes from counter set gpu-0, which no slice of the pool defines",
		},
		"consumes an unknown counter, on another node": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 3), named("gpu-1")),
				newSlice("b", generation(1, 3), onNode("worker-2"), withDevices(consumer("part-0", "gpu-0", "cores"))),
				newSlice("c", generation(1, 3), counterSet("gpu-0", "memory")),
			},
			want: &Fault{Kind: DanglingCounter, Generation: 1, Have: 3, Want: 3,
				Detail: "device part-0 in slice b consumes counter cores, which counter set gpu-0 does not define"},
			text: "pool gpu.example.com/pool invalid (unknown counter consumed)",
			long: "pool gpu.example.com/pool invalid (unknown counter consumed): device part-0 in slice b consumes counter cores, which counter set gpu-0 does not define",
		},
		"consumes a known counter": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 2), withDevices(consumer("part-0", "gpu-0", "memory"))),
				newSlice("b", generation(1, 2), counterSet("gpu-0", "memory")),
			},
			devices: []string{"part-0"},
		},
		"bad node selector of another slice": {
			slices: []*resourceapi.ResourceSlice{
				newSlice("a", generation(1, 2), named("gpu-0")),
				newSlice("b", generation(1, 2), named("gpu-1"), onBadSelector),
			},
			want: &Fault{Kind: BadNodeSelector, Generation: 1, Have: 2, Want: 2,
				Detail: `slice b: parse node selector: nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"`},
			text: "pool gpu.example.com/pool invalid (bad node selector)",
			long: `pool gpu.example.com/pool invalid (bad node selector): slice b: parse node selector: nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"`,
		},
		"bad node selector and nothing else": {
			slices:     []*resourceapi.ResourceSlice{newSlice("a", named("gpu-0"), onBadSelector)},
			outOfReach: true,
			poolFault:  BadNodeSelector,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inventory := New(device.AllFeatures())
			inventory.SetSlice(newSlice("good", inPool("good"), named("gpu-0")))
			for _, slice := range tc.slices {
				inventory.SetSlice(slice)
			}
			snapshot := inventory.Snapshot()
			view := snapshot.Node(newNode("worker-1", "a"))
			if good := view.Pools[0]; good.ID != poolID("good") || good.Fault != nil || len(good.Devices) != 1 {
				t.Errorf("the other pool suffers: %+v", good)
			}
			poolFault := tc.poolFault
			if tc.want != nil {
				poolFault = tc.want.Kind
			}
			checkPoolFault(t, snapshot.Pool(poolID("pool")), poolFault)
			if tc.outOfReach {
				if len(view.Pools) != 1 {
					t.Errorf("the node sees the pool: %+v", view.Pools[1])
				}
				return
			}
			pool := view.Pools[1]
			if tc.want != nil {
				tc.want.Pool = poolID("pool")
			}
			if diff := cmp.Diff(tc.want, pool.Fault, cmp.Comparer(func(a, b device.PoolID) bool { return a == b })); diff != "" {
				t.Fatalf("fault (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.devices, deviceNames(pool.Devices)); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			if pool.Fault == nil {
				return
			}
			if pool.Devices != nil {
				t.Error("a faulty pool has devices")
			}
			if diff := cmp.Diff([]string{tc.text, tc.long}, []string{pool.Fault.String(), pool.Fault.Error()}); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
		})
	}
}

func checkPoolFault(t *testing.T, pool *Pool, want FaultKind) {
	t.Helper()
	var got FaultKind
	if pool.Fault != nil {
		got = pool.Fault.Kind
	}
	if got != want {
		t.Errorf("fault of the pool as a whole is %q, want %q", got, want)
	}
}

func deviceNames(devices []*device.Device) []string {
	var names []string
	for _, d := range devices {
		names = append(names, d.ID.Device.Value())
	}
	return names
}
