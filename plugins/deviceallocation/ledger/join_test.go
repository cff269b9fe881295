package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// TestOrderOfJoins gives events of inventory and ledger in every order, with a
// join at the end only and after each of them. Everything is published once.
func TestOrderOfJoins(t *testing.T) {
	for name, tc := range map[string]struct {
		events []func(*world)
		want   []string
		admits string
	}{
		"claims of two kinds": {
			events: []func(*world){
				func(w *world) {
					w.publish(sliceOf("a", 1, partition("left", "2", "a"), shareable(partition("right", "3", "a", "b"), "10")))
				},
				func(w *world) { w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10"}})) },
				func(w *world) { w.ledger.Observe(newClaim("a", 1, result("p/left"))) },
				func(w *world) { w.ledger.Observe(newClaim("b", 1, shareResult("p/right", "1", "1"))) },
				func(w *world) { w.ledger.Observe(newClaim("c", 1, shareResult("p/right", "2", "1"))) },
			},
			want:   []string{"gpu/memory: 5"},
			admits: "a",
		},
		"allocated and given back": {
			events: []func(*world){
				func(w *world) { w.publish(sliceOf("a", 1, partition("left", "2"), partition("right", "3"))) },
				func(w *world) { w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10"}})) },
				func(w *world) { w.ledger.Observe(newClaim("a", 1, result("p/left"))) },
				func(w *world) { w.ledger.Observe(unallocated("a", 2)) },
				func(w *world) { w.ledger.Observe(newClaim("b", 1, result("p/right"))) },
			},
			want:   []string{"gpu/memory: 3"},
			admits: "none",
		},
		"reserved and allocated": {
			events: []func(*world){
				func(w *world) { w.publish(sliceOf("a", 1, partition("left", "2"), partition("right", "3"))) },
				func(w *world) { w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10"}})) },
				func(w *world) {
					if err := w.reserve(asking("a", result("p/left"))); err != nil {
						t.Error(err)
					}
				},
				func(w *world) { w.ledger.Observe(newClaim("a", 1, result("p/left"))) },
				func(w *world) { w.ledger.Observe(newClaim("b", 1, result("p/right"))) },
			},
			want:   []string{"gpu/memory: 5"},
			admits: "none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			permutations(make([]event, len(tc.events)), func(order []int, _ []event) {
				for _, stepwise := range []bool{false, true} {
					w := newWorld()
					for _, i := range order {
						tc.events[i](w)
						if stepwise {
							w.join()
						}
					}
					if diff := cmp.Diff(tc.want, w.drawn("p")); diff != "" {
						t.Fatalf("order %v, joined after each event: %v (-want +got):\n%s", order, stepwise, diff)
					}
					if got := admitted(w.join().Pool(deviceID("p/").PoolID()), w.counters("p")); got != tc.admits {
						t.Fatalf("order %v: admits %q, want %q", order, got, tc.admits)
					}
				}
			})
		})
	}
}

// TestJoinBeforeChange: the device goes away before anybody has looked.
func TestJoinBeforeChange(t *testing.T) {
	w := newWorld()
	w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10"}}))
	w.publish(sliceOf("a", 1, partition("half", "5")))
	w.ledger.Observe(newClaim("a", 1, result("p/half")))
	w.publish(sliceOf("a", 2))
	if diff := cmp.Diff([]string{"gpu/memory: 5"}, w.drawn("p")); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
}

// TestJoinTakesNoClaimBetween: a claim that comes after the join but before the
// change would not be joined with what goes away.
func TestJoinTakesNoClaimBetween(t *testing.T) {
	l := New()
	called := false
	l.Join(nil, func() {
		called = true
		if l.mu.TryLock() {
			t.Error("a claim can be taken in meanwhile")
		}
	})
	if !called {
		t.Error("the change was not made")
	}
}

// drawOracle is what should be charged: per claim and device the memory that
// the device drew when the claim got it.
type drawOracle struct {
	published map[string]int
	held      map[string]map[string]int
}

func (o *drawOracle) settle() {
	for _, devices := range o.held {
		for name, memory := range devices {
			if memory == 0 {
				devices[name] = o.published[name]
			}
		}
	}
}

func (o *drawOracle) drawn() int {
	charged := make(map[string]int)
	for _, devices := range o.held {
		for name, memory := range devices {
			charged[name] = max(charged[name], memory, o.published[name])
		}
	}
	sum := 0
	for _, memory := range charged {
		sum += memory
	}
	return sum
}

// TestJoinAgainstOracle publishes devices anew at random while claims get and
// lose them; joins happen at random, and must not change what is charged.
func TestJoinAgainstOracle(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, seed))
		w := newWorld()
		w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "1000"}}))
		o := drawOracle{published: map[string]int{}, held: map[string]map[string]int{}}
		for version := 2; version < 80; version++ {
			name := fmt.Sprint("claim-", random.IntN(4))
			switch random.IntN(6) {
			case 0, 1:
				o.published = map[string]int{}
				var devices []resourceapi.Device
				for i := range 4 {
					if memory := random.IntN(9); memory > 0 {
						o.published[fmt.Sprint("gpu-", i)] = memory
						devices = append(devices, partition(fmt.Sprint("gpu-", i), fmt.Sprint(memory)))
					}
				}
				w.publish(sliceOf("a", version, devices...))
			case 2, 3:
				held := map[string]int{}
				var results []resourceapi.DeviceRequestAllocationResult
				for i := range 4 {
					if d := fmt.Sprint("gpu-", i); random.IntN(3) == 0 {
						held[d] = o.held[name][d]
						results = append(results, result("p/"+d))
					}
				}
				o.held[name] = held
				w.ledger.Observe(newClaim(name, version, results...))
			case 4:
				delete(o.held, name)
				w.ledger.Observe(unallocated(name, version))
			default:
				// A reservation remembers for the allocation that may follow.
				d := fmt.Sprint("gpu-", random.IntN(4))
				if _, allocated := o.held[name]; !allocated && !o.anybodyHas(d) {
					if err := w.reserve(asking(name, result("p/"+d))); err != nil {
						t.Fatalf("seed %d, version %d: %v", seed, version, err)
					}
					if random.IntN(2) == 0 {
						w.ledger.Unreserve(uidOf(name))
					} else {
						o.held[name] = map[string]int{d: 0}
						w.ledger.Observe(newClaim(name, version, result("p/"+d)))
					}
				}
			}
			o.settle()
			if random.IntN(3) > 0 {
				continue
			}
			var want []string
			if sum := o.drawn(); sum > 0 {
				want = []string{fmt.Sprint("gpu/memory: ", sum)}
			}
			if diff := cmp.Diff(want, w.drawn("p")); diff != "" {
				t.Fatalf("seed %d, version %d (-want +got):\n%s", seed, version, diff)
			}
		}
	}
}

func (o *drawOracle) anybodyHas(name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(o.held)), func(devices map[string]int) bool {
		_, found := devices[name]
		return found
	})
}

// manyPools returns a world of pools with 8 GPUs of 7 partitions each, half of
// which are held.
func manyPools(pools int) *world {
	w := newWorld()
	for i := range pools {
		w.publish(poolSlice(i, 1))
		counters := countersOf(1, map[string]map[string]string{"gpu": {"memory": "1000"}})
		counters.Name, counters.UID, counters.Spec.Pool.Name = fmt.Sprint("counters-", i), types.UID(fmt.Sprint("counters-", i)), poolName(i)
		w.publish(counters)
		for j := range 28 {
			w.ledger.Observe(newClaim(fmt.Sprint("claim-", i, "-", j), 1, result(fmt.Sprint(poolName(i), "/gpu-", j))))
		}
	}
	w.join()
	return w
}

func poolName(i int) string { return fmt.Sprint("pool-", i) }

func poolSlice(i, version int) *resourceapi.ResourceSlice {
	slice := sliceOf(fmt.Sprint("slice-", i), version)
	slice.Spec.Pool.Name = poolName(i)
	node := fmt.Sprint("worker-", i)
	slice.Spec.NodeName = &node
	for j := range 56 {
		slice.Spec.Devices = append(slice.Spec.Devices, partition(fmt.Sprint("gpu-", j), fmt.Sprint(1+version%2)))
	}
	return slice
}

// TestJoinLooksAtChangesOnly: of many pools, a change of one of them touches one.
func TestJoinLooksAtChangesOnly(t *testing.T) {
	w := manyPools(50)
	before := w.join()
	w.publish(poolSlice(7, 2))
	after := w.join()
	for i := range 50 {
		id := device.NewPoolID(driver, poolName(i))
		if same := before.Pool(id) == after.Pool(id); same != (i != 7) {
			t.Errorf("pool %d: same usage %v", i, same)
		}
	}
	id := device.NewPoolID(driver, poolName(7))
	if before.Pool(id).Epoch() != after.Pool(id).Epoch() {
		t.Error("the same is held, but the epoch has changed: verdicts would be computed anew")
	}
	if w.join() != after {
		t.Error("another snapshot though nothing has changed")
	}
	w.inventory.SetSlice(sliceOf("unheld", 1, resourceapi.Device{Name: "x"}))
	if w.join() != after {
		t.Error("another snapshot though nothing has changed that is held")
	}
}

// TestJoinDoesNotGoBack: a snapshot of the inventory that is older than what was
// joined already.
func TestJoinDoesNotGoBack(t *testing.T) {
	w := manyPools(2)
	old := w.inventory.Snapshot()
	w.publish(poolSlice(1, 2))
	now := w.join()
	if w.ledger.Snapshot(old) != now || w.ledger.Snapshot(nil) != now || w.ledger.Snapshot((*inventory.Snapshot)(nil)) != now {
		t.Error("the present state depends on who asks")
	}
}

// BenchmarkEventAndJoin is what one slice event, one claim event and the
// snapshots after them cost. It must not depend on the number of pools.
func BenchmarkEventAndJoin(b *testing.B) {
	for _, pools := range []int{50, 1000} {
		w := manyPools(pools)
		slices := []*resourceapi.ResourceSlice{poolSlice(7, 1), poolSlice(7, 2)}
		b.Run(fmt.Sprint("slice/pools=", pools), func(b *testing.B) {
			b.ReportAllocs()
			for number := 3; b.Loop(); number++ {
				slice := *slices[number%2]
				slice.ResourceVersion = fmt.Sprint(number)
				w.publish(&slice)
				w.join()
			}
		})
		b.Run(fmt.Sprint("claim/pools=", pools), func(b *testing.B) {
			b.ReportAllocs()
			for number := 1; b.Loop(); number++ {
				claim := newClaim("late", number, result("pool-7/gpu-50"))
				if number%2 == 0 {
					claim.Status.Allocation = nil
				}
				w.ledger.Observe(claim)
				w.join()
			}
		})
		b.Run(fmt.Sprint("nothing/pools=", pools), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.join()
			}
		})
	}
}

// BenchmarkReserveShared is what reserving a partition costs, next to many.
func BenchmarkReserveShared(b *testing.B) {
	for _, pools := range []int{50, 1000} {
		b.Run(fmt.Sprint("pools=", pools), func(b *testing.B) {
			w := manyPools(pools)
			ask := asking("late", result("pool-7/gpu-50"))
			b.ReportAllocs()
			for b.Loop() {
				if err := w.reserve(ask); err != nil {
					b.Fatal(err)
				}
				w.ledger.Unreserve(ask.Claim)
			}
		})
	}
}
