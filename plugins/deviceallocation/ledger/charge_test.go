package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// TestCharge follows what is charged to the counters of a pool with 10 of
// memory. Each step ends with a look at it.
func TestCharge(t *testing.T) {
	type step struct {
		do   func(*world)
		want []string
	}
	observe := func(claim *resourceapi.ResourceClaim) func(*world) {
		return func(w *world) { w.ledger.Observe(claim) }
	}
	publish := func(slice *resourceapi.ResourceSlice) func(*world) { return func(w *world) { w.publish(slice) } }
	newGeneration := func(slice *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
		slice.Spec.Pool.Generation, slice.Spec.Pool.ResourceSliceCount = 2, 2
		return slice
	}
	whole, half, more, less := partition("half", "10"), partition("half", "5"), partition("half", "7"), partition("half", "3")
	other := resourceapi.Device{Name: "half", ConsumesCounters: []resourceapi.DeviceCounterConsumption{consuming("gpu", map[string]string{"slices": "2"})}}
	charged := func(amount string) []string { return []string{"gpu/memory: " + amount} }
	for name, steps := range map[string][]step{
		"held and given back": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{observe(unallocated("a", 2)), nil},
		},
		"two claims on one device are charged once": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{observe(newClaim("b", 1, result("p/half"))), charged("5")},
			{observe(unallocated("a", 2)), charged("5")},
		},
		"many shares of one device are charged once": {
			{observe(newClaim("a", 1, shareResult("p/half", "1", "1"), shareResult("p/half", "2", "1"))), charged("5")},
			{observe(newClaim("b", 1, shareResult("p/half", "3", "1"))), charged("5")},
		},
		"admin access draws nothing": {
			{observe(newClaim("a", 1, adminResult("p/half"))), nil},
			{observe(newClaim("b", 1, result("p/half"), adminResult("p/half"))), charged("5")},
		},
		"a device of no counters": {
			{observe(newClaim("a", 1, result("p/plain"))), nil},
		},
		"a device that was never there": {
			{observe(newClaim("a", 1, result("p/unknown"))), nil},
			{publish(sliceOf("a", 2, partition("unknown", "4"))), charged("4")},
			{publish(sliceOf("a", 3)), charged("4")},
		},
		"republished without the device": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{publish(sliceOf("a", 2, partition("other", "1"))), charged("5")},
			{observe(newClaim("a", 2, result("p/half"))), charged("5")},
			{observe(unallocated("a", 3)), nil},
		},
		"republished with less": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{publish(sliceOf("a", 2, less)), charged("5")},
			{observe(newClaim("b", 1, result("p/half"))), charged("5")},
			{observe(unallocated("a", 2)), charged("3")},
		},
		"republished with more": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{publish(sliceOf("a", 2, more)), charged("7")},
			{publish(sliceOf("a", 3, half)), charged("5")},
		},
		"republished with another counter": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{publish(sliceOf("a", 2, other)), []string{"gpu/memory: 5", "gpu/slices: 2"}},
		},
		"republished with nothing": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{publish(sliceOf("a", 2, resourceapi.Device{Name: "half"})), charged("5")},
		},
		"a new generation replaces all slices": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{publish(newGeneration(sliceOf("c", 2, whole))), nil}, // no counters published: nothing to charge to
			{publish(newGeneration(countersOf(3, map[string]map[string]string{"gpu": {"memory": "10"}}))), charged("10")},
			{publish(newGeneration(sliceOf("c", 4, partition("other", "1")))), charged("5")},
		},
		"the counter goes away and comes back": {
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{publish(countersOf(2, map[string]map[string]string{"other": {"memory": "10"}})), nil},
			{publish(countersOf(3, map[string]map[string]string{"gpu": {"memory": "10", "slices": "7"}})), charged("5")},
		},
		"a reservation remembers for its allocation": {
			{func(w *world) {
				if err := w.reserve(asking("a", result("p/half"))); err != nil {
					panic(err)
				}
			}, charged("5")},
			{publish(sliceOf("a", 2)), charged("5")},
			{observe(newClaim("a", 1, result("p/half"))), charged("5")},
			{func(w *world) { w.ledger.Forget(newClaim("a", 2)) }, nil},
		},
		"a reservation remembers what it was chosen from": {
			{func(w *world) {
				r := asking("a", result("p/half"))
				r.Chosen = w.inventory.Snapshot()
				w.publish(sliceOf("a", 2))
				if err := w.reserve(r); err != nil {
					panic(err)
				}
			}, charged("5")},
		},
		"another allocation forgets the reserved device": {
			{func(w *world) {
				if err := w.reserve(asking("a", result("p/half"))); err != nil {
					panic(err)
				}
			}, charged("5")},
			{observe(newClaim("a", 1, result("p/plain"))), nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.publish(sliceOf("a", 1, half, resourceapi.Device{Name: "plain"}))
			w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10", "slices": "7"}}))
			w.join()
			for i, step := range steps {
				step.do(w)
				if diff := cmp.Diff(step.want, w.drawn("p")); diff != "" {
					t.Errorf("step %d: drawn (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestChargeOtherCounters: a state joined with one publication is asked for the
// counters of another one.
func TestChargeOtherCounters(t *testing.T) {
	w := newWorld()
	w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10"}}))
	w.publish(sliceOf("a", 1, partition("gone", "1", "a"), partition("kept", "2", "a", "b"), partition("free", "7")))
	w.ledger.Observe(newClaim("a", 1, result("p/gone"), result("p/kept")))
	before := w.counters("p")
	first := w.join()
	w.publish(countersOf(2, map[string]map[string]string{"gpu": {"memory": "500m", "slices": "1"}}))
	w.publish(sliceOf("a", 2, partition("kept", "3", "b")))
	after := w.counters("p")
	second := w.join()
	id := deviceID("p/").PoolID()
	for name, tc := range map[string]struct {
		usage  *PoolUsage
		old    bool
		drawn  string
		admits string
	}{
		"old state, old counters": {usage: first.Pool(id), old: true, drawn: "gpu/memory: 3", admits: "a"},
		"new state, new counters": {usage: second.Pool(id), drawn: "gpu/memory: 4", admits: ""},
		"new state, old counters": {usage: second.Pool(id), old: true, drawn: "gpu/memory: 3", admits: "a"},
		"old state, new counters": {usage: first.Pool(id), drawn: "gpu/memory: 4", admits: ""},
		"nothing held":            {usage: nil, admits: "none a b c"},
	} {
		counters := after
		if tc.old {
			counters = before
		}
		got := ""
		if lines := describeDrawn(tc.usage, counters); len(lines) > 0 {
			got = lines[0]
		}
		if got != tc.drawn {
			t.Errorf("%s: drawn %q, want %q", name, got, tc.drawn)
		}
		if got := admitted(tc.usage, counters); got != tc.admits {
			t.Errorf("%s: admits %q, want %q", name, got, tc.admits)
		}
	}
	if first.Pool(id).Drawn(nil) != nil || (*PoolUsage)(nil).Drawn(nil) != nil {
		t.Error("something is drawn of no counters")
	}
}

// TestDeviceUsage: what is known of each held device.
func TestDeviceUsage(t *testing.T) {
	type usage struct {
		Exclusive bool
		Holders   int
		Memory    string
	}
	noCapacity := shareResult("p/d", "4", "0")
	noCapacity.ConsumedCapacity = nil
	for name, tc := range map[string]struct {
		claims []*resourceapi.ResourceClaim
		want   usage
	}{
		"free":                 {want: usage{Memory: "0"}},
		"exclusive":            {claims: []*resourceapi.ResourceClaim{newClaim("a", 1, result("p/d"))}, want: usage{Exclusive: true, Holders: 1, Memory: "0"}},
		"shares of two claims": {claims: []*resourceapi.ResourceClaim{newClaim("a", 1, shareResult("p/d", "1", "1Gi"), shareResult("p/d", "2", "2Gi")), newClaim("b", 1, shareResult("p/d", "3", "4Gi"))}, want: usage{Holders: 2, Memory: "7Gi"}},
		"a share of nothing":   {claims: []*resourceapi.ResourceClaim{newClaim("a", 1, noCapacity)}, want: usage{Holders: 1, Memory: "0"}},
		"share and whole":      {claims: []*resourceapi.ResourceClaim{newClaim("a", 1, shareResult("p/d", "1", "1Gi")), newClaim("b", 1, result("p/d"))}, want: usage{Exclusive: true, Holders: 2, Memory: "1Gi"}},
		"both for one claim":   {claims: []*resourceapi.ResourceClaim{newClaim("a", 1, shareResult("p/d", "1", "1Gi"), result("p/d"))}, want: usage{Exclusive: true, Holders: 1, Memory: "1Gi"}},
		"for administrators":   {claims: []*resourceapi.ResourceClaim{newClaim("a", 1, adminResult("p/d"))}, want: usage{Memory: "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := New()
			for _, claim := range tc.claims {
				l.Observe(claim)
			}
			pool := l.Snapshot(nil).Pool(deviceID("p/d").PoolID())
			d := device.Intern("d")
			memory := pool.Consumed(d)["memory"]
			got := usage{Exclusive: pool.Exclusive(d), Holders: pool.Holders(d), Memory: memory.String()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
