package persistent

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMapAgainstPlainMap applies random changes to a Map and to plain copies;
// each version must stay what it was when it was made.
func TestMapAgainstPlainMap(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	type version struct {
		got  *Map[string, int]
		want map[string]int
	}
	versions := []version{{New[string, int](Strings()), map[string]int{}}}
	for i := range 1000 {
		latest := versions[len(versions)-1]
		next := version{want: maps.Clone(latest.want)}
		key := fmt.Sprint("node-", random.IntN(400))
		if random.IntN(3) == 0 {
			delete(next.want, key)
			next.got = latest.got.Without(key)
		} else {
			next.want[key] = i
			next.got = latest.got.With(key, i)
		}
		versions = append(versions, next)
	}
	for i, v := range versions {
		if got := maps.Collect(v.got.All()); !maps.Equal(v.want, got) {
			t.Fatalf("seed %d, version %d (-want +got):\n%s", seed, i, cmp.Diff(v.want, got))
		}
		if v.got.Len() != len(v.want) {
			t.Fatalf("seed %d, version %d: Len() = %d, want %d", seed, i, v.got.Len(), len(v.want))
		}
		key := fmt.Sprint("node-", i%400)
		got, found := v.got.Get(key)
		if want, wantFound := v.want[key]; got != want || found != wantFound {
			t.Fatalf("seed %d, version %d: Get(%s) = %d, %v, want %d, %v", seed, i, key, got, found, want, wantFound)
		}
	}
}

// TestMapOrderDependsOnKeysOnly guards results that are built by visiting a Map.
func TestMapOrderDependsOnKeysOnly(t *testing.T) {
	order := func(ascending bool) []string {
		m := New[string, int](Strings())
		for i := range 5000 {
			if !ascending {
				i = 4999 - i
			}
			m = m.With(fmt.Sprint("node-", i), i)
		}
		var keys []string
		for key := range m.All() {
			keys = append(keys, key)
		}
		return keys
	}
	if diff := cmp.Diff(order(true), order(false)); diff != "" {
		t.Errorf("the order depends on how the map came about (-ascending +descending):\n%s", diff)
	}
}

func TestMapSharesWhatDidNotChange(t *testing.T) {
	m := New[string, int](Strings())
	for i := range 5000 {
		m = m.With(fmt.Sprint("node-", i), i)
	}
	changed := m.With("node-7", 0)
	differ := 0
	for i := range m.branches {
		if m.branches[i] != changed.branches[i] {
			differ++
		}
	}
	if differ != 1 {
		t.Errorf("%d branches were copied, want 1", differ)
	}
	if m.Without("no such node") != m {
		t.Error("removing nothing made a new map")
	}
}
