package ledger

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// TestReserveSharedDevices: one pool with 10 of memory in counter set "gpu",
// and a device "nic" with a capacity of 10 that can be shared.
func TestReserveSharedDevices(t *testing.T) {
	both := shareable(partition("both", "4", "a"), "10")
	devices := []resourceapi.Device{
		partition("half", "5"), partition("other-half", "5"), partition("most", "8"), partition("grouped", "1", "a"),
		partition("grouped-too", "1", "a", "b"), partition("other-group", "1", "b"),
		shareable(resourceapi.Device{Name: "nic"}, "10"), shareable(resourceapi.Device{Name: "unlimited"}, ""), both,
		{Name: "gpu"}, partition("idle", "0"),
	}
	share := func(name, amount string) resourceapi.DeviceRequestAllocationResult {
		return shareResult("p/"+name, types.UID(name+amount), amount)
	}
	const reserve = "reserve device gpu.example.com/p/"
	for name, tc := range map[string]struct {
		held []*resourceapi.ResourceClaim
		asks []Reservation
		want string
		// drawn is what is drawn in the end.
		drawn []string
	}{
		"counters suffice": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, result("p/half"))},
			asks:  []Reservation{asking("a", result("p/other-half"))},
			drawn: []string{"gpu/memory: 10"},
		},
		"counters do not suffice": {
			held:  []*resourceapi.ResourceClaim{newClaim("z", 1, result("p/half")), newClaim("h", 1, result("p/grouped")), newClaim("b", 1, result("p/nic"))},
			asks:  []Reservation{asking("a", result("p/other-half"))},
			want:  reserve + "other-half for claim default/a: too little is left of counter memory in counter set gpu: a device that draws from it is allocated to claim default/h (UID uid of h)",
			drawn: []string{"gpu/memory: 6"},
		},
		"more than there is": {
			asks: []Reservation{asking("a", result("p/other-half"), result("p/half"), result("p/most"))},
			want: reserve + "most for claim default/a: too little is left of counter memory in counter set gpu: a device that draws from it is reserved for claim default/a (UID uid of a)",
		},
		"two claims of one pod, together too much": {
			asks: []Reservation{asking("a", result("p/half")), asking("b", result("p/most"))},
			want: reserve + "most for claim default/b: too little is left of counter memory in counter set gpu: a device that draws from it is reserved for claim default/a (UID uid of a)",
		},
		"over-committed already, but nothing more is drawn": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, result("p/half"), result("p/most"))},
			asks:  []Reservation{asking("a", result("p/gpu"), result("p/idle"))},
			drawn: []string{"gpu/memory: 13"},
		},
		"admin access needs no counters": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, result("p/half"), result("p/other-half"))},
			asks:  []Reservation{asking("a", adminResult("p/most"), adminResult("p/half"))},
			drawn: []string{"gpu/memory: 10"},
		},
		"groups suit": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, result("p/grouped-too"))},
			asks:  []Reservation{asking("a", result("p/grouped"))},
			drawn: []string{"gpu/memory: 2"},
		},
		"groups do not suit": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, result("p/grouped"))},
			asks:  []Reservation{asking("a", result("p/half"))},
			want:  reserve + "half for claim default/a: its compatibility groups on counter set gpu do not suit: a device that draws from it is allocated to claim default/h (UID uid of h)",
			drawn: []string{"gpu/memory: 1"},
		},
		"groups suit in pairs only": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, result("p/grouped-too"))},
			asks:  []Reservation{asking("a", result("p/grouped")), asking("b", result("p/other-group"))},
			want:  reserve + "other-group for claim default/b: its compatibility groups on counter set gpu do not suit: a device that draws from it is reserved for claim default/a (UID uid of a)",
			drawn: []string{"gpu/memory: 1"},
		},
		"shares that fit": {
			held: []*resourceapi.ResourceClaim{newClaim("h", 1, share("nic", "5"))},
			asks: []Reservation{asking("a", share("nic", "2")), asking("b", share("nic", "3"))},
		},
		"shares that do not fit": {
			held: []*resourceapi.ResourceClaim{newClaim("h", 1, share("nic", "5"))},
			asks: []Reservation{asking("a", share("nic", "6"))},
			want: reserve + "nic for claim default/a: too little is left of its capacity memory: another share is allocated to claim default/h (UID uid of h)",
		},
		"shares of two claims that do not fit together": {
			asks: []Reservation{asking("a", share("nic", "5")), asking("b", share("nic", "6"))},
			want: reserve + "nic for claim default/b: too little is left of its capacity memory: another share is reserved for claim default/a (UID uid of a)",
		},
		"shares of one claim that do not fit together": {
			asks: []Reservation{asking("a", share("nic", "5"), share("nic", "6"))},
			want: reserve + "nic for claim default/a: too little is left of its capacity memory",
		},
		"a share next to the whole device": {
			held: []*resourceapi.ResourceClaim{newClaim("b", 1, share("nic", "1")), newClaim("h", 1, result("p/nic"))},
			asks: []Reservation{asking("a", share("nic", "1"))},
			want: reserve + "nic for claim default/a: it is allocated to claim default/h (UID uid of h)",
		},
		"a share next to the whole device in one call": {
			asks: []Reservation{asking("a", result("p/nic")), asking("b", share("nic", "1"))},
			want: reserve + "nic for claim default/b: it is reserved for claim default/a (UID uid of a)",
		},
		"the whole device next to a share": {
			held: []*resourceapi.ResourceClaim{newClaim("h", 1, share("nic", "1"))},
			asks: []Reservation{asking("a", result("p/nic"))},
			want: reserve + "nic for claim default/a: it is allocated to claim default/h (UID uid of h)",
		},
		"a share of a device that is exclusive by now": {
			held: []*resourceapi.ResourceClaim{newClaim("h", 1, share("gpu", "1"))},
			asks: []Reservation{asking("a", share("gpu", "1"))},
			want: reserve + "gpu for claim default/a: it is allocated to claim default/h (UID uid of h)",
		},
		"shares without capacity": {
			held: []*resourceapi.ResourceClaim{newClaim("h", 1, share("unlimited", "1"))},
			asks: []Reservation{asking("a", share("unlimited", "100Ei"))},
		},
		"a device that is not published": {
			asks: []Reservation{asking("a", share("gone", "1"), result("p/gone-too"))},
		},
		"further shares draw nothing": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, share("both", "1"), result("p/grouped"), result("p/grouped-too"))},
			asks:  []Reservation{asking("a", share("both", "1")), asking("b", share("both", "1"))},
			drawn: []string{"gpu/memory: 6"},
		},
		"further shares draw nothing, even if too much is drawn": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, share("both", "1"), result("p/most"))},
			asks:  []Reservation{asking("a", share("both", "1"))},
			drawn: []string{"gpu/memory: 12"},
		},
		"the first share draws": {
			held:  []*resourceapi.ResourceClaim{newClaim("h", 1, result("p/most"))},
			asks:  []Reservation{asking("a", share("both", "1"))},
			want:  reserve + "both for claim default/a: too little is left of counter memory in counter set gpu: a device that draws from it is allocated to claim default/h (UID uid of h)",
			drawn: []string{"gpu/memory: 8"},
		},
		"replayed": {
			held:  []*resourceapi.ResourceClaim{newClaim("a", 1, share("both", "10"), result("p/grouped"))},
			asks:  []Reservation{asking("a", result("p/grouped"), share("both", "10"))},
			drawn: []string{"gpu/memory: 5"},
		},
		"the same devices, but more of them": {
			held: []*resourceapi.ResourceClaim{newClaim("a", 1, share("nic", "1"))},
			asks: []Reservation{asking("a", share("nic", "2"))},
			want: "reserve devices for claim default/a: it is allocated with other devices already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.publish(sliceOf("a", 1, devices...))
			w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10"}}))
			for _, claim := range tc.held {
				w.ledger.Observe(claim)
			}
			before := w.join()
			text := ""
			if err := w.reserve(tc.asks...); err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.drawn, w.drawn("p")); diff != "" {
				t.Errorf("drawn (-want +got):\n%s", diff)
			}
			if tc.want != "" && w.join() != before {
				t.Error("a refused reservation has left something behind")
			}
			replayed := w.join()
			if tc.want == "" {
				if err := w.reserve(tc.asks...); err != nil {
					t.Errorf("reserved a second time: %v", err)
				}
			}
			if w.join() != replayed {
				t.Error("reserving a second time has changed something")
			}
			for _, r := range tc.asks {
				w.ledger.Unreserve(r.Claim)
			}
			was, is := before.Pool(deviceID("p/").PoolID()), w.join().Pool(deviceID("p/").PoolID())
			if was != is && (was == nil || is == nil || !was.equal(is)) {
				t.Error("something is left after all was taken back")
			}
		})
	}
}

// TestReserveAgainstPresentState: the pod was looked at before its driver
// published less.
func TestReserveAgainstPresentState(t *testing.T) {
	w := newWorld()
	w.publish(sliceOf("a", 1, partition("half", "5"), partition("most", "8"), shareable(resourceapi.Device{Name: "nic"}, "10")))
	w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10"}}))
	half := asking("a", result("p/half"))
	nic := asking("b", shareResult("p/nic", "1", "6"))
	half.Chosen, nic.Chosen = w.inventory.Snapshot(), w.inventory.Snapshot()
	w.publish(countersOf(2, map[string]map[string]string{"gpu": {"memory": "4"}}))
	w.publish(sliceOf("a", 2, partition("half", "1"), shareable(resourceapi.Device{Name: "nic"}, "5")))
	var conflict *ConflictError
	if err := w.reserve(half); !errors.As(err, &conflict) || conflict.Counter != "memory" || conflict.CounterSet != "gpu" || conflict.Holder.Claim != "" {
		t.Errorf("counters: %v", err)
	}
	if err := w.reserve(nic); !errors.As(err, &conflict) || conflict.Capacity != "memory" {
		t.Errorf("capacity: %v", err)
	}
	// While the pool cannot be used, what was known counts.
	incomplete := sliceOf("a", 3)
	incomplete.Spec.Pool.Generation = 2
	w.publish(incomplete)
	if err := w.reserve(half); err != nil {
		t.Errorf("incomplete pool: %v", err)
	}
	most := asking("c", result("p/most"))
	most.Chosen = half.Chosen
	if err := w.reserve(most); !errors.As(err, &conflict) || conflict.Counter != "memory" || conflict.Holder.Claim != uidOf("a") {
		t.Errorf("too little left, incomplete pool: %v", err)
	}
}

// TestConcurrentReserveOfShares lets claims fight for capacity and counters,
// under the race detector, while devices are published anew.
func TestConcurrentReserveOfShares(t *testing.T) {
	const workers, rounds = 4, 100
	w := newWorld()
	w.publish(countersOf(1, map[string]map[string]string{"gpu": {"memory": "10"}}))
	w.publish(sliceOf("a", 1, partition("half", "6"), shareable(partition("nic", "4"), "10")))
	var group sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	check := func() {
		devices := w.inventory.Snapshot()
		pool := devices.Pool(deviceID("p/").PoolID())
		usage := w.ledger.Snapshot(devices).Pool(pool.ID)
		if drawn := usage.Drawn(pool.Counters)[0]; drawn > pool.Counters.Total(0) {
			t.Errorf("%d of %d drawn", drawn, pool.Counters.Total(0))
		}
		memory := usage.Consumed(device.Intern("nic"))["memory"]
		if memory.CmpInt64(10) > 0 {
			t.Errorf("%s of 10 consumed", memory.String())
		}
	}
	for worker := range workers {
		group.Go(func() {
			name := fmt.Sprint("claim-", worker)
			for round := range rounds {
				ask := asking(name, shareResult("p/nic", types.UID(name), fmt.Sprint(3+round%4)))
				if round%5 == 0 {
					ask = asking(name, result("p/half"))
				}
				ask.Chosen = w.inventory.Snapshot()
				if w.reserve(ask) == nil {
					mu.Lock()
					granted++
					mu.Unlock()
				}
				check()
				w.ledger.Observe(unallocated(name, round+1))
				w.ledger.Unreserve(uidOf(name))
			}
		})
	}
	group.Go(func() {
		for round := range rounds {
			w.publish(sliceOf("a", round+2, partition("half", "6"), shareable(partition("nic", "4"), "10")))
		}
	})
	group.Wait()
	if granted == 0 {
		t.Error("nobody ever got anything")
	}
	if got := w.drawn("p"); got != nil {
		t.Errorf("still drawn: %v", got)
	}
}
