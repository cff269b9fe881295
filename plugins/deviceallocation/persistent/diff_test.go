package persistent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiffAgainstPlainMaps compares random versions of a map, near and far from
// each other, in both directions.
func TestDiffAgainstPlainMaps(t *testing.T) {
	const seed, keys = 3, 300
	random := rand.New(rand.NewPCG(seed, seed))
	versions := []*Map[string, int]{New[string, int](Strings())}
	for range 600 {
		latest := versions[len(versions)-1]
		key := fmt.Sprint("node-", random.IntN(keys))
		if random.IntN(3) == 0 {
			latest = latest.Without(key)
		} else {
			latest = latest.With(key, random.IntN(3))
		}
		versions = append(versions, latest)
	}
	for range 500 {
		from, to := random.IntN(len(versions)), random.IntN(len(versions))
		if random.IntN(2) == 0 {
			to = min(from+random.IntN(4), len(versions)-1)
		}
		var want []string
		for i := range keys {
			key := fmt.Sprint("node-", i)
			before, had := versions[from].Get(key)
			after, has := versions[to].Get(key)
			if had != has || before != after {
				want = append(want, key)
			}
		}
		got := slices.Collect(Diff(versions[from], versions[to]))
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, versions %d and %d (-want +got):\n%s", seed, from, to, diff)
		}
	}
}

func TestDiffFromNothing(t *testing.T) {
	m := New[string, int](Strings()).With("a", 0).With("b", 1)
	got := slices.Sorted(Diff(nil, m))
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDiffStops: whoever has seen enough is not called again.
func TestDiffStops(t *testing.T) {
	from, to := New[string, int](Strings()), New[string, int](Strings())
	for i := range 2000 {
		from, to = from.With(fmt.Sprint(i), 0), to.With(fmt.Sprint(i), 1)
	}
	visited := 0
	for range Diff(from, to) {
		if visited++; visited == 3 {
			break
		}
	}
	if visited != 3 {
		t.Errorf("%d keys visited, want 3", visited)
	}
}

// TestDiffLooksAtChangesOnly counts what the comparison of two near versions
// looks at.
func TestDiffLooksAtChangesOnly(t *testing.T) {
	compared := 0
	order := Strings()
	compare := order.Compare
	order.Compare = func(a, b string) int { compared++; return compare(a, b) }
	m := New[string, int](order)
	for i := range 5000 {
		m = m.With(fmt.Sprint("node-", i), 0)
	}
	changed := m.With("node-7", 1).With("node-8", 1)
	compared = 0
	if got := slices.Sorted(Diff(m, changed)); !slices.Equal(got, []string{"node-7", "node-8"}) {
		t.Errorf("got %v", got)
	}
	if compared > 40 {
		t.Errorf("%d keys compared for 2 changes among 5000", compared)
	}
}

// BenchmarkDiff is what two versions cost that are one change apart. It must
// not depend on the size.
func BenchmarkDiff(b *testing.B) {
	for _, size := range []int{500, 50000} {
		b.Run(fmt.Sprint("size=", size), func(b *testing.B) {
			m := New[string, int](Strings())
			for i := range size {
				m = m.With(fmt.Sprint("node-", i), 0)
			}
			changed := m.With("node-7", 1)
			b.ReportAllocs()
			for b.Loop() {
				for range Diff(m, changed) {
				}
			}
		})
	}
}
