package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// TestOrderOfEvents gives each set of events in every order, once with a single
// snapshot at the end and once with one after each event, and wants what the
// objects that exist at the end give when they are all that was ever seen.
func TestOrderOfEvents(t *testing.T) {
	nodes := []*corev1.Node{newNode("worker-1", "a"), newNode("worker-2", "b"), newNode("worker-3", "")}
	tainted := newRule("rule", driver, "", "gpu-0")
	retainted := newRule("rule", driver, "", "gpu-1")
	retainted.ResourceVersion = "9"
	tests := map[string]struct {
		events []event
		exist  []event
	}{
		"#130043: the second slice of a pool appears": {
			events: []event{
				set(newSlice("a", generation(1, 2), named("gpu-0"))),
				set(newSlice("b", generation(1, 2), named("gpu-1"))),
				set(newSlice("b", generation(1, 2), named("gpu-1"))),
			},
			exist: []event{
				set(newSlice("a", generation(1, 2), named("gpu-0"))),
				set(newSlice("b", generation(1, 2), named("gpu-1"))),
			},
		},
		"#141118: slices disagree about resourceSliceCount": {
			events: []event{
				set(newSlice("a", generation(1, 1), named("gpu-0"))),
				set(newSlice("b", generation(1, 2), named("gpu-1"))),
				set(newSlice("c", generation(1, 3), named("gpu-2"))),
			},
			exist: []event{
				set(newSlice("c", generation(1, 3), named("gpu-2"))),
				set(newSlice("b", generation(1, 2), named("gpu-1"))),
				set(newSlice("a", generation(1, 1), named("gpu-0"))),
			},
		},
		"old slice left behind": {
			events: []event{
				set(newSlice("a", generation(1, 2), named("gpu-0"))),
				set(newSlice("b", generation(1, 2), named("gpu-1"))),
				set(newSlice("c", generation(1, 2), named("gpu-2"))),
				set(newSlice("old", version(2), generation(1, 2), named("gpu-3"))),
				remove(newSlice("old", version(2))),
			},
			exist: []event{
				set(newSlice("a", generation(1, 2), named("gpu-0"))),
				set(newSlice("b", generation(1, 2), named("gpu-1"))),
				set(newSlice("c", generation(1, 2), named("gpu-2"))),
			},
		},
		"a new generation replaces the old one, events come twice": {
			events: []event{
				set(newSlice("a", generation(1, 2), named("gpu-0"))),
				set(newSlice("b", generation(1, 2), named("gpu-1"))),
				set(newSlice("a", version(5), generation(2, 1), named("gpu-0", "gpu-1"))),
				set(newSlice("a", version(5), generation(2, 1), named("gpu-0", "gpu-1"))),
				remove(newSlice("b", version(6))),
				remove(newSlice("b", version(6))),
			},
			exist: []event{set(newSlice("a", version(5), generation(2, 1), named("gpu-0", "gpu-1")))},
		},
		"deleted and created anew under its name": {
			events: []event{
				set(newSlice("a", named("gpu-0"))),
				set(newSlice("a", version(2), named("gpu-0", "gpu-1"))),
				remove(newSlice("a", version(3))),
				set(newSlice("a", version(4), uid("new"), named("gpu-2"))),
				set(newSlice("a", version(10), uid("new"), named("gpu-3"))),
			},
			exist: []event{set(newSlice("a", version(10), uid("new"), named("gpu-3")))},
		},
		"moves to another pool and other nodes": {
			events: []event{
				set(newSlice("a", named("gpu-0"))),
				set(newSlice("a", version(2), named("gpu-0"), inPool("other"), onZone("b"))),
				set(newSlice("a", version(3), named("gpu-0"), inPool("other"), onAllNodes)),
				set(newSlice("b", version(4), named("gpu-0"), inPool("local"))),
				set(newSlice("c", version(4), generation(1, 2), named("gpu-0"), inPool("incomplete"), onZone("a"))),
			},
			exist: []event{
				set(newSlice("a", version(3), named("gpu-0"), inPool("other"), onAllNodes)),
				set(newSlice("b", named("gpu-0"), inPool("local"))),
				set(newSlice("c", generation(1, 2), named("gpu-0"), inPool("incomplete"), onZone("a"))),
			},
		},
		"taint rules": {
			events: []event{
				set(newSlice("a", named("gpu-0", "gpu-1"))),
				setRule(tainted),
				setRule(retainted),
				setRule(newRule("another", "", "", "")),
				setRule(newRule("gone", driver, "pool", "")),
				removeRule(newRule("gone", driver, "pool", "")),
			},
			exist: []event{
				set(newSlice("a", named("gpu-0", "gpu-1"))),
				setRule(newRule("another", "", "", "")),
				setRule(retainted),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fresh := New(device.AllFeatures())
			for _, e := range tc.exist {
				e(fresh)
			}
			want := fresh.Snapshot().Dump(nodes...)
			permutations(tc.events, func(order []int, events []event) {
				atOnce, stepwise := New(device.AllFeatures()), New(device.AllFeatures())
				for _, e := range events {
					e(atOnce)
					e(stepwise)
					stepwise.Snapshot().Dump(nodes...)
				}
				if diff := cmp.Diff(want, atOnce.Snapshot().Dump(nodes...)); diff != "" {
					t.Fatalf("order %v (-want +got):\n%s", order, diff)
				}
				if diff := cmp.Diff(want, stepwise.Snapshot().Dump(nodes...)); diff != "" {
					t.Fatalf("order %v, snapshot after each event (-want +got):\n%s", order, diff)
				}
			})
		})
	}
}

func TestTaintRules(t *testing.T) {
	own := resourceapi.Device{Name: "gpu-0", Taints: []resourceapi.DeviceTaint{{Key: "own", Effect: resourceapi.DeviceTaintEffectNone}}}
	nothing := newRule("nothing", "", "", "")
	nothing.Spec.DeviceSelector = nil
	tests := map[string]struct {
		rules []*resourceapi.DeviceTaintRule
		want  []string
	}{
		"none": {want: []string{"own"}},
		"after those of the driver, in the order of names": {
			rules: []*resourceapi.DeviceTaintRule{newRule("z", "", "", ""), newRule("a", driver, "pool", "gpu-0"), newRule("m", "", "pool", "")},
			want:  []string{"own", "a", "m", "z"},
		},
		"no selector": {rules: []*resourceapi.DeviceTaintRule{nothing}, want: []string{"own"}},
		"each field must match": {
			rules: []*resourceapi.DeviceTaintRule{newRule("a", "other", "", ""), newRule("b", "", "other", ""), newRule("c", "", "", "gpu-1")},
			want:  []string{"own"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			slice := newSlice("a", withDevices(own))
			before := slice.DeepCopy()
			inventory := New(device.AllFeatures())
			inventory.SetSlice(slice)
			inventory.Snapshot()
			for _, rule := range tc.rules {
				inventory.SetTaintRule(rule)
			}
			var got []string
			for _, taint := range inventory.Snapshot().Pools()[0].Devices[0].Taints {
				got = append(got, taint.Key)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, slice); diff != "" {
				t.Errorf("the slice was changed:\n%s", diff)
			}
		})
	}
}

// TestTaintRulesLeaveOldSnapshotsAlone gives a device room for more taints
// behind its own ones, which a careless append would write to.
func TestTaintRulesLeaveOldSnapshotsAlone(t *testing.T) {
	d := resourceapi.Device{Name: "gpu-0", Taints: make([]resourceapi.DeviceTaint, 1, 4)}
	inventory := New(device.AllFeatures())
	inventory.SetSlice(newSlice("a", withDevices(d)))
	inventory.SetTaintRule(newRule("first", driver, "", ""))
	before := inventory.Snapshot().Pools()[0].Devices[0]
	inventory.DeleteTaintRule(newRule("first", driver, "", ""))
	inventory.SetTaintRule(newRule("second", driver, "", ""))
	after := inventory.Snapshot().Pools()[0].Devices[0]
	if got := []string{before.Taints[1].Key, after.Taints[1].Key}; !cmp.Equal(got, []string{"first", "second"}) {
		t.Errorf("taints before and after are %v, want first and second", got)
	}
}
