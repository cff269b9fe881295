package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestReserve starts with gpu-0 allocated to claim "holder", gpu-1 to "first"
// and "second", and gpu-2 reserved for "pending".
func TestReserve(t *testing.T) {
	claimed := []string{"p/gpu-0: holder", "p/gpu-1: first second", "p/gpu-2: pending(reserved)"}
	tests := map[string]struct {
		reservations []Reservation
		// conflict and busy are the texts of the error, by its type.
		conflict, busy, other string
		// want is what is held in addition.
		want []string
	}{
		"free devices": {
			reservations: []Reservation{reservation("a", "p/gpu-3", "q/gpu-0"), reservation("b", "p/gpu-4")},
			want:         []string{"p/gpu-3: a(reserved)", "p/gpu-4: b(reserved)", "q/gpu-0: a(reserved)"},
		},
		"the same device of another pool": {
			reservations: []Reservation{reservation("a", "q/gpu-0")},
			want:         []string{"q/gpu-0: a(reserved)"},
		},
		"nothing":            {},
		"the same once more": {reservations: []Reservation{reservation("pending", "p/gpu-2")}},
		"allocated so already": {
			reservations: []Reservation{reservation("holder", "p/gpu-0"), reservation("a", "p/gpu-3")},
			want:         []string{"p/gpu-3: a(reserved)"},
		},
		"shared by two claims, for one of them": {reservations: []Reservation{reservation("second", "p/gpu-1")}},
		"a device twice for one claim": {
			reservations: []Reservation{reservation("a", "p/gpu-3", "p/gpu-3")},
			want:         []string{"p/gpu-3: a(reserved)"},
		},
		"allocated to another claim, nothing is reserved": {
			reservations: []Reservation{reservation("a", "p/gpu-3"), reservation("b", "p/gpu-4", "p/gpu-0")},
			conflict:     "reserve device gpu.example.com/p/gpu-0 for claim default/b: it is allocated to claim default/holder (UID uid of holder)",
		},
		"allocated to two claims": {
			reservations: []Reservation{reservation("a", "p/gpu-1")},
			conflict:     "reserve device gpu.example.com/p/gpu-1 for claim default/a: it is allocated to claim default/first (UID uid of first)",
		},
		"reserved for another claim": {
			reservations: []Reservation{reservation("a", "p/gpu-2")},
			conflict:     "reserve device gpu.example.com/p/gpu-2 for claim default/a: it is reserved for claim default/pending (UID uid of pending)",
		},
		"one device in two reservations": {
			reservations: []Reservation{reservation("a", "p/gpu-3"), reservation("b", "p/gpu-3")},
			conflict:     "reserve device gpu.example.com/p/gpu-3 for claim default/b: it is reserved for claim default/a (UID uid of a)",
		},
		"one claim in two reservations": {
			reservations: []Reservation{reservation("a", "p/gpu-3"), reservation("a", "p/gpu-4")},
			other:        "reserve devices for claim default/a: it has two reservations in one call; merge them",
		},
		"without UID": {
			reservations: []Reservation{{Name: types.NamespacedName{Namespace: "default", Name: "a"}}},
			other:        "reserve devices for claim default/a: the reservation has no claim UID; choose one for a claim that does not exist yet",
		},
		"other devices are reserved": {
			reservations: []Reservation{reservation("pending", "p/gpu-3")},
			busy:         "reserve devices for claim default/pending: other devices are reserved for it already",
		},
		"more devices than are reserved": {
			reservations: []Reservation{reservation("pending", "p/gpu-2", "p/gpu-3")},
			busy:         "reserve devices for claim default/pending: other devices are reserved for it already",
		},
		"allocated with other devices": {
			reservations: []Reservation{reservation("holder", "p/gpu-3")},
			busy:         "reserve devices for claim default/holder: it is allocated with other devices already",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := New()
			l.Observe(newClaim("holder", 1, result("p/gpu-0")))
			l.Observe(newClaim("second", 1, result("p/gpu-1")))
			l.Observe(newClaim("first", 1, result("p/gpu-1")))
			if err := l.Reserve(nil, []Reservation{reservation("pending", "p/gpu-2")}); err != nil {
				t.Fatal(err)
			}
			before := l.Snapshot(nil)
			err := l.Reserve(nil, tc.reservations)
			var conflict *ConflictError
			var busy *BusyError
			got := [3]string{}
			switch {
			case errors.As(err, &conflict):
				got[0] = err.Error()
			case errors.As(err, &busy):
				got[1] = err.Error()
			case err != nil:
				got[2] = err.Error()
			}
			if diff := cmp.Diff([3]string{tc.conflict, tc.busy, tc.other}, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			want := append(append([]string{}, claimed...), tc.want...)
			if diff := cmp.Diff(want, held(l, "p/gpu-0", "p/gpu-1", "p/gpu-2", "p/gpu-3", "p/gpu-4", "q/gpu-0")); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if same := l.Snapshot(nil) == before; same != (tc.want == nil) {
				t.Errorf("same snapshot: %v", same)
			}
			for _, r := range tc.reservations {
				l.Unreserve(r.Claim)
				l.Unreserve(r.Claim)
			}
			if tc.want != nil && l.Snapshot(nil).Pool(deviceID("q/gpu-0").PoolID()) != nil {
				t.Error("something is left after all was taken back")
			}
		})
	}
}

// TestSnapshots follows one claim through its life.
func TestSnapshots(t *testing.T) {
	l := New()
	l.Observe(newClaim("other", 1, result("q/gpu-0")))
	p, q := deviceID("p/gpu-0").PoolID(), deviceID("q/gpu-0").PoolID()
	first := l.Snapshot(nil)
	if l.Snapshot(nil) != first {
		t.Error("another snapshot though nothing changed")
	}
	if first.Pool(p) != nil || first.Pool(p).Held(deviceID("p/gpu-0").Device) || first.Pool(p).Epoch() != 0 || first.Pool(p).Shares(deviceID("p/gpu-0").Device) != nil {
		t.Error("something is held of a pool of which nothing is held")
	}
	if err := l.Reserve(nil, []Reservation{reservation("a", "p/gpu-0")}); err != nil {
		t.Fatal(err)
	}
	reserved := l.Snapshot(nil)
	if reserved.Epoch() <= first.Epoch() || reserved.Pool(p).Epoch() == 0 {
		t.Errorf("epochs do not grow: snapshot %d, pool %d", reserved.Epoch(), reserved.Pool(p).Epoch())
	}
	if first.Pool(p) != nil {
		t.Error("an old snapshot has changed")
	}
	if reserved.Pool(q) != first.Pool(q) {
		t.Error("a pool has changed that nobody touched")
	}
	l.Observe(newClaim("a", 2, result("p/gpu-0")))
	if l.Snapshot(nil) != reserved {
		t.Error("the allocation seen changed what is held: verdicts would be computed anew")
	}
	l.Observe(newClaim("b", 3, result("p/gpu-0")))
	twice := l.Snapshot(nil)
	if got := twice.Pool(p).Holders(deviceID("p/gpu-0").Device); got != 2 || twice.Pool(p).Epoch() <= reserved.Pool(p).Epoch() {
		t.Errorf("%d holders, epoch %d after %d", got, twice.Pool(p).Epoch(), reserved.Pool(p).Epoch())
	}
	l.Forget(newClaim("a", 4))
	l.Forget(newClaim("b", 5))
	if l.Snapshot(nil).Pool(p) != nil {
		t.Error("still held")
	}
	if len(l.pools) != 1 || len(l.observed) != 1 || len(l.reserved) != 0 {
		t.Error("released claims leave something behind")
	}
}

func TestShares(t *testing.T) {
	l := New()
	l.Observe(newClaim("b", 1, shareResult("p/gpu-0", "share-1", "1Gi"), shareResult("p/gpu-0", "share-2", "2Gi"), result("p/gpu-1")))
	l.Observe(newClaim("a", 2, shareResult("p/gpu-0", "share-3", "3Gi")))
	describe := func() []string {
		var lines []string
		for _, share := range l.Snapshot(nil).Pool(deviceID("p/gpu-0").PoolID()).Shares(deviceID("p/gpu-0").Device) {
			memory := share.ConsumedCapacity["memory"]
			lines = append(lines, string(share.Claim)+" "+string(share.ID)+" "+memory.String())
		}
		return lines
	}
	if diff := cmp.Diff([]string{"uid of a share-3 3Gi", "uid of b share-1 1Gi", "uid of b share-2 2Gi"}, describe()); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"p/gpu-0: a b", "p/gpu-1: b"}, held(l, "p/gpu-0", "p/gpu-1")); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	before := l.Snapshot(nil)
	l.Observe(newClaim("a", 3, shareResult("p/gpu-0", "share-3", "4Gi")))
	if l.Snapshot(nil) == before {
		t.Error("another capacity is consumed, but the snapshot is the same")
	}
	if diff := cmp.Diff("uid of a share-3 4Gi", describe()[0]); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}

// TestRecreatedClaim covers an informer that reports a claim which was deleted
// and created anew as an update, and never the deletion.
func TestRecreatedClaim(t *testing.T) {
	l := New()
	l.Observe(newClaim("a", 1, result("p/gpu-0")))
	l.Observe(recreated(unallocated("a", 5)))
	l.Observe(newClaim("a", 2, result("p/gpu-0")))
	if got := held(l, "p/gpu-0"); got != nil {
		t.Errorf("the old claim still holds its device: %v", got)
	}
}
