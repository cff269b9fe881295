package inventory

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// amounts are quantities of counters by name.
type amounts map[string]string

func (a amounts) counters() map[string]resourceapi.Counter {
	counters := make(map[string]resourceapi.Counter)
	for name, quantity := range a {
		counters[name] = resourceapi.Counter{Value: resource.MustParse(quantity)}
	}
	return counters
}

func setOf(name string, values amounts) option {
	return func(s *resourceapi.ResourceSlice) {
		s.Spec.SharedCounters = append(s.Spec.SharedCounters, resourceapi.CounterSet{Name: name, Counters: values.counters()})
	}
}

func consuming(set string, values amounts, groups ...string) resourceapi.DeviceCounterConsumption {
	return resourceapi.DeviceCounterConsumption{CounterSet: set, Counters: values.counters(), CompatibilityGroups: groups}
}

func partition(name string, consumptions ...resourceapi.DeviceCounterConsumption) resourceapi.Device {
	return resourceapi.Device{Name: name, ConsumesCounters: consumptions}
}

// compiled returns the pool that slices make.
func compiled(slices ...*resourceapi.ResourceSlice) *Pool {
	inventory := New(device.AllFeatures())
	for _, slice := range slices {
		inventory.SetSlice(slice)
	}
	return inventory.Snapshot().Pool(poolID("pool"))
}

func (c *Counters) describe() []string {
	var lines []string
	for i := range c.Len() {
		set, name := c.Name(i)
		if c.SetName(c.SetOf(i)) != set {
			set += " (number " + fmt.Sprint(c.SetOf(i)) + ")"
		}
		lines = append(lines, set+"/"+name)
	}
	return lines
}

func TestCounters(t *testing.T) {
	pool := compiled(
		newSlice("a", generation(1, 3), withDevices(
			partition("whole", consuming("gpu-1", amounts{"memory": "40Gi", "slices": "7"}), consuming("gpu-0", amounts{"memory": "40Gi"})),
			partition("half", consuming("gpu-0", amounts{"memory": "20Gi", "slices": "0"}, "mig", "vgpu")),
			resourceapi.Device{Name: "plain"},
		)),
		newSlice("b", generation(1, 3), setOf("gpu-1", amounts{"slices": "7", "memory": "40Gi"})),
		newSlice("c", generation(1, 3), setOf("gpu-0", amounts{"slices": "7", "memory": "40Gi"}), setOf("empty", nil)),
	)
	c := pool.Counters
	if diff := cmp.Diff([]string{"gpu-0/memory", "gpu-0/slices", "gpu-1/memory", "gpu-1/slices"}, c.describe()); diff != "" {
		t.Fatalf("counters (-want +got):\n%s", diff)
	}
	if c.Sets() != 3 || c.SetName(0) != "empty" {
		t.Errorf("%d sets, the first is %s", c.Sets(), c.SetName(0))
	}
	memory, one := c.Total(0), c.Total(1)/7
	want := map[string][]Draw{
		"whole": {{0, memory}, {2, memory}, {3, 7 * one}},
		"half":  {{0, memory / 2}, {1, 0}},
		"plain": nil,
	}
	got := make(map[string][]Draw)
	for _, d := range pool.Devices {
		got[d.Spec.Name] = c.Draws(d)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("draws (-want +got):\n%s", diff)
	}
	groups := map[string][]GroupDraw{}
	for _, d := range pool.Devices {
		groups[d.Spec.Name] = c.Groups(d)
	}
	if diff := cmp.Diff(map[string][]GroupDraw{"whole": {{Set: 2}, {Set: 1}}, "half": {{Set: 1, Groups: []string{"mig", "vgpu"}}}, "plain": nil}, groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if view := pool.whole; view.Counters != c {
		t.Error("the node does not see the counters of its pool")
	}
}

// TestFits: whether a list of devices fits must be answered as the quantities
// say, whatever unit a counter has.
func TestFits(t *testing.T) {
	for name, tc := range map[string]struct {
		total string
		draws []string
		want  bool
	}{
		"exactly":                 {total: "40Gi", draws: []string{"20Gi", "20Gi"}, want: true},
		"one byte too much":       {total: "40Gi", draws: []string{"20Gi", "21474836481"}},
		"fractions":               {total: "1", draws: []string{"500m", "500m"}, want: true},
		"fractions, too much":     {total: "1", draws: []string{"500m", "501m"}},
		"tiny":                    {total: "10n", draws: []string{"5n", "5n"}, want: true},
		"tiny, too much":          {total: "10n", draws: []string{"5n", "6n"}},
		"huge":                    {total: "6Ei", draws: []string{"3Ei", "3Ei"}, want: true},
		"huge, much too much":     {total: "8Ei", draws: []string{"8Ei", "8Ei", "8Ei"}},
		"everything there can be": {total: "9223372036854775807", draws: []string{"9223372036854775807"}, want: true},
		"huge and tiny":           {total: "9223372036854775807", draws: []string{"9223372036854775807", "1n"}},
		"nothing of nothing":      {total: "0", draws: []string{"0"}, want: true},
		"something of nothing":    {total: "0", draws: []string{"1n"}},
		"something given back":    {total: "1", draws: []string{"-1", "2"}, want: true},
		"less than nothing":       {total: "-1", draws: []string{"0"}},
		"less of less":            {total: "-1", draws: []string{"-1"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var devices []resourceapi.Device
			for i, draw := range tc.draws {
				devices = append(devices, partition(fmt.Sprint(i), consuming("set", amounts{"c": draw})))
			}
			pool := compiled(newSlice("a", generation(1, 2), withDevices(devices...)), newSlice("b", generation(1, 2), setOf("set", amounts{"c": tc.total})))
			var drawn int64
			for _, d := range pool.Devices {
				drawn = AddAmounts(drawn, pool.Counters.Draws(d)[0].Amount)
			}
			if got := drawn <= pool.Counters.Total(0); got != tc.want {
				t.Errorf("drawn %d of %d: fits %v, want %v", drawn, pool.Counters.Total(0), got, tc.want)
			}
		})
	}
}

// TestDrawsOfOthers: devices that are not of this content of the pool.
func TestDrawsOfOthers(t *testing.T) {
	c := compiled(newSlice("a", setOf("set", amounts{"c": "4"}))).Counters
	unit := c.Total(0) / 4
	for name, tc := range map[string]struct {
		consumptions []resourceapi.DeviceCounterConsumption
		want         []Draw
	}{
		"known":            {consumptions: []resourceapi.DeviceCounterConsumption{consuming("set", amounts{"c": "1"})}, want: []Draw{{0, unit}}},
		"unknown set":      {consumptions: []resourceapi.DeviceCounterConsumption{consuming("gone", amounts{"c": "1"})}},
		"unknown counter":  {consumptions: []resourceapi.DeviceCounterConsumption{consuming("set", amounts{"gone": "1", "c": "2"})}, want: []Draw{{0, 2 * unit}}},
		"one set twice":    {consumptions: []resourceapi.DeviceCounterConsumption{consuming("set", amounts{"c": "1"}), consuming("set", amounts{"c": "2"})}, want: []Draw{{0, 3 * unit}}},
		"more than all":    {consumptions: []resourceapi.DeviceCounterConsumption{consuming("set", amounts{"c": "9Ei"}), consuming("set", amounts{"c": "9Ei"})}, want: []Draw{{0, math.MaxInt64}}},
		"nothing consumed": {},
	} {
		t.Run(name, func(t *testing.T) {
			spec := partition("x", tc.consumptions...)
			if diff := cmp.Diff(tc.want, c.Draws(&device.Device{Spec: &spec})); diff != "" {
				t.Errorf("draws (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoCounters: a pool without counter sets has none, and that can be asked
// for everything.
func TestNoCounters(t *testing.T) {
	for name, pool := range map[string]*Pool{
		"plain":      compiled(newSlice("a", named("gpu-0"))),
		"incomplete": compiled(newSlice("a", generation(1, 2), setOf("set", amounts{"c": "4"}))),
	} {
		c := pool.Counters
		if c != nil || c.Len() != 0 || c.Sets() != 0 || c.Zeros() != nil || c.DrawsOf([]resourceapi.DeviceCounterConsumption{consuming("set", amounts{"c": "1"})}) != nil ||
			c.Device(device.Intern("gpu-0")) != nil || c.GroupsOf([]resourceapi.DeviceCounterConsumption{consuming("set", nil)}) != nil {
			t.Errorf("pool %s has counters", name)
		}
	}
}

// TestMultiHostCounters: devices of one pool on two nodes draw from the same
// counters, which both nodes see.
func TestMultiHostCounters(t *testing.T) {
	inventory := New(device.AllFeatures())
	inventory.SetSlice(newSlice("a", generation(1, 3), onNode("worker-1"), withDevices(partition("left", consuming("set", amounts{"c": "1"})))))
	inventory.SetSlice(newSlice("b", generation(1, 3), onNode("worker-2"), withDevices(partition("right", consuming("set", amounts{"c": "1"})))))
	inventory.SetSlice(newSlice("c", generation(1, 3), onNode("nowhere"), setOf("set", amounts{"c": "1"})))
	snapshot := inventory.Snapshot()
	counters := snapshot.Pool(poolID("pool")).Counters
	for node, name := range map[string]string{"worker-1": "left", "worker-2": "right"} {
		pool := snapshot.Node(newNode(node, "")).Pools[0]
		if len(pool.Devices) != 1 || pool.Devices[0].Spec.Name != name || pool.Counters != counters {
			t.Errorf("%s sees %v and counters %p, want %s and %p", node, pool.Devices, pool.Counters, name, counters)
		}
	}
	if counters.Device(device.Intern("right")) == nil {
		t.Error("a device on another node is not found")
	}
}

// TestDisplaces: which events must not overtake the join with the ledger.
func TestDisplaces(t *testing.T) {
	half := withDevices(partition("half", consuming("set", amounts{"c": "1"})))
	known := []*resourceapi.ResourceSlice{
		newSlice("a", generation(1, 2), half), newSlice("b", generation(1, 2), setOf("set", amounts{"c": "1"})),
		newSlice("plain", inPool("plain"), named("gpu-0")),
	}
	for name, tc := range map[string]struct {
		slice *resourceapi.ResourceSlice
		want  bool
	}{
		"changed":                         {slice: newSlice("a", version(2), generation(1, 2)), want: true},
		"moved to another pool":           {slice: newSlice("a", version(2), inPool("other")), want: true},
		"newer generation":                {slice: newSlice("c", generation(2, 1)), want: true},
		"older generation":                {slice: newSlice("c", generation(0, 1), half)},
		"one more slice":                  {slice: newSlice("c", generation(1, 2), half)},
		"counters only":                   {slice: newSlice("b", version(2), generation(1, 2))},
		"a pool of its own":               {slice: newSlice("c", inPool("other"), half)},
		"plain devices":                   {slice: newSlice("plain", version(2), inPool("plain"))},
		"newer generation of plain ones":  {slice: newSlice("plain-2", inPool("plain"), generation(2, 1))},
		"plain devices that become parts": {slice: newSlice("plain", version(2), inPool("plain"), half)},
	} {
		t.Run(name, func(t *testing.T) {
			off := device.AllFeatures()
			off.PartitionableDevices = false
			for _, features := range []device.Features{device.AllFeatures(), off} {
				inventory := New(features)
				for _, slice := range known {
					inventory.SetSlice(slice)
				}
				if got := inventory.Displaces(tc.slice); got != (tc.want && features.PartitionableDevices) {
					t.Errorf("got %v with %+v", got, features)
				}
			}
		})
	}
}

// TestChanged: the pools that differ, and no others.
func TestChanged(t *testing.T) {
	inventory := New(device.AllFeatures())
	for _, name := range []string{"p", "q", "r"} {
		inventory.SetSlice(newSlice(name, inPool(name), named("gpu-0")))
	}
	first := inventory.Snapshot()
	inventory.SetSlice(newSlice("q", inPool("q"), version(2), named("gpu-1")))
	inventory.DeleteSlice(newSlice("r", inPool("r")))
	inventory.SetSlice(newSlice("s", inPool("s"), named("gpu-0")))
	second := inventory.Snapshot()
	for name, tc := range map[string]struct {
		since *Snapshot
		want  []string
	}{
		"itself":  {since: second},
		"nothing": {want: []string{"p", "q", "s"}},
		"earlier": {since: first, want: []string{"q", "r", "s"}},
	} {
		var got []string
		for id := range second.Changed(tc.since) {
			got = append(got, id.Pool.Value())
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// BenchmarkCounters is what the republication of one GPU with 60 partitions
// costs.
func BenchmarkCounters(b *testing.B) {
	inventory := New(device.AllFeatures())
	var devices []resourceapi.Device
	for i := range 60 {
		devices = append(devices, partition(fmt.Sprint("mig-", i), consuming("gpu-0", amounts{"memory": "5Gi", "slices": "1", "engines": "1"})))
	}
	inventory.SetSlice(newSlice("b", generation(1, 2), setOf("gpu-0", amounts{"memory": "40Gi", "slices": "7", "engines": "4"})))
	b.ReportAllocs()
	for number := 2; b.Loop(); number++ {
		inventory.SetSlice(newSlice("a", version(number), generation(1, 2), withDevices(devices...), func(s *resourceapi.ResourceSlice) {
			s.Spec.Devices = slices.Clone(s.Spec.Devices)
			s.Spec.Devices[0].Name = fmt.Sprint("mig-", number)
		}))
		inventory.Snapshot()
	}
}
