package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOrderOfEvents gives each set of events in every order, once with a single
// snapshot at the end and once with one after each event. Reservations are in
// there only where the order does not decide who gets the device.
func TestOrderOfEvents(t *testing.T) {
	reserve := func(r Reservation) event {
		return func(l *Ledger) {
			if err := l.Reserve(nil, []Reservation{r}); err != nil {
				t.Error(err)
			}
		}
	}
	tests := map[string]struct {
		before []event
		events []event
		want   []string
	}{
		"allocated, events come twice": {
			events: []event{
				observe(unallocated("a", 1)),
				observe(newClaim("a", 2, result("p/gpu-0"))),
				observe(newClaim("a", 2, result("p/gpu-0"))),
				observe(newClaim("b", 10, result("p/gpu-1"))),
				observe(unallocated("b", 9)),
			},
			want: []string{"p/gpu-0: a", "p/gpu-1: b"},
		},
		"allocated and deallocated": {
			events: []event{
				observe(newClaim("a", 9, result("p/gpu-0"))),
				observe(unallocated("a", 10)),
				observe(newClaim("a", 11, result("p/gpu-1"))),
				observe(unallocated("a", 100)),
			},
		},
		"allocation replaced in one update": {
			events: []event{
				observe(newClaim("a", 1, result("p/gpu-0"), result("q/gpu-0"))),
				observe(newClaim("a", 2, result("p/gpu-1"))),
				observe(newClaim("a", 2, result("p/gpu-1"))),
			},
			want: []string{"p/gpu-1: a"},
		},
		"two claims on one device, one goes": {
			events: []event{
				observe(newClaim("a", 1, result("p/gpu-0"))),
				observe(newClaim("b", 2, result("p/gpu-0"))),
				observe(unallocated("a", 3)),
				forget(newClaim("c", 5, result("p/gpu-0"))),
				observe(newClaim("c", 4, result("p/gpu-0"))),
			},
			want: []string{"p/gpu-0: b"},
		},
		"deleted": {
			events: []event{
				observe(newClaim("a", 1, result("p/gpu-0"))),
				observe(newClaim("a", 2, result("p/gpu-0"))),
				forget(newClaim("a", 3, result("p/gpu-0"))),
				forget(newClaim("a", 3, result("p/gpu-0"))),
			},
		},
		"deleted and created anew under its name": {
			events: []event{
				observe(newClaim("a", 1, result("p/gpu-0"))),
				forget(newClaim("a", 2, result("p/gpu-0"))),
				observe(recreated(unallocated("a", 3))),
				observe(recreated(newClaim("a", 4, result("p/gpu-1")))),
			},
			want: []string{"p/gpu-1: new uid of a"},
		},
		"reservation outlives the claim without allocation": {
			events: []event{
				observe(unallocated("a", 1)),
				observe(unallocated("a", 2)),
				reserve(reservation("a", "p/gpu-0")),
				observe(newClaim("b", 3, result("p/gpu-1"))),
			},
			want: []string{"p/gpu-0: a(reserved)", "p/gpu-1: b"},
		},
		"reservation turns into the allocation": {
			events: []event{
				reserve(reservation("a", "p/gpu-0", "q/gpu-0")),
				reserve(reservation("a", "q/gpu-0", "p/gpu-0")),
				observe(unallocated("a", 1)),
				observe(newClaim("a", 2, result("p/gpu-0"), result("q/gpu-0"))),
				observe(newClaim("a", 2, result("p/gpu-0"), result("q/gpu-0"))),
			},
			want: []string{"p/gpu-0: a", "q/gpu-0: a"},
		},
		"reservation ends with another allocation": {
			before: []event{reserve(reservation("a", "p/gpu-0"))},
			events: []event{
				observe(unallocated("a", 1)),
				observe(newClaim("a", 2, result("q/gpu-0"))),
				forget(newClaim("b", 9)),
			},
			want: []string{"q/gpu-0: a"},
		},
		"reservation ended by an allocation does not come back": {
			before: []event{reserve(reservation("a", "p/gpu-0"))},
			events: []event{
				observe(newClaim("a", 2, result("p/gpu-0"))),
				observe(newClaim("a", 3, result("p/gpu-0"))),
				func(l *Ledger) { l.Unreserve(uidOf("a"), uidOf("a"), "unknown") },
			},
			want: []string{"p/gpu-0: a"},
		},
		"a deleted claim keeps its reservation until it is taken back": {
			before: []event{reserve(reservation("a", "p/gpu-0"))},
			events: []event{observe(unallocated("a", 1)), forget(unallocated("a", 2))},
			want:   []string{"p/gpu-0: a(reserved)"},
		},
		"admin access takes nothing": {
			events: []event{
				observe(newClaim("a", 1, adminResult("p/gpu-0"), result("p/gpu-1"))),
				observe(newClaim("b", 1, result("p/gpu-0"))),
				forget(newClaim("b", 2, result("p/gpu-0"))),
			},
			want: []string{"p/gpu-1: a"},
		},
	}
	paths := []string{"p/gpu-0", "p/gpu-1", "q/gpu-0"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			permutations(tc.events, func(order []int, events []event) {
				atOnce, stepwise := New(), New()
				for _, l := range []*Ledger{atOnce, stepwise} {
					for _, e := range tc.before {
						e(l)
					}
				}
				for _, e := range events {
					e(atOnce)
					e(stepwise)
					stepwise.Snapshot(nil)
				}
				if diff := cmp.Diff(tc.want, held(atOnce, paths...)); diff != "" {
					t.Fatalf("order %v (-want +got):\n%s", order, diff)
				}
				if diff := cmp.Diff(tc.want, held(stepwise, paths...)); diff != "" {
					t.Fatalf("order %v, snapshot after each event (-want +got):\n%s", order, diff)
				}
			})
		})
	}
}
