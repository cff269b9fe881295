package verdict

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

func key(n int) Key {
	return Key{Signature: problem.Signature{byte(n), byte(n >> 8)}, Profile: "profile"}
}

// TestTablesByKey: verdicts are shared only by those who would find the same.
func TestTablesByKey(t *testing.T) {
	c := New(100)
	first := c.Table(key(1))
	if c.Table(key(1)) != first {
		t.Error("the same key gives another table")
	}
	for name, other := range map[string]Key{
		"signature": key(2),
		"profile":   {Signature: key(1).Signature, Profile: "other"},
		"avoided":   {Signature: key(1).Signature, Profile: "profile", Avoided: 1},
		"nobody":    {Signature: key(1).Signature, Profile: "profile", Nobody: true},
	} {
		if c.Table(other) == first {
			t.Errorf("another %s gives the same table", name)
		}
	}
}

// fill puts verdicts for n nodes into a table.
func fill(t *testing.T, w *world, table *Table, n int) {
	t.Helper()
	p := w.problem(t, builders.Claim("claim", builders.Request("gpu", class)))
	for i := range n {
		w.ask(t, table, p, w.offer(builders.Node(fmt.Sprintf("node-%d", i))))
	}
}

// TestLimit: the tables that were used last stay, whatever comes.
func TestLimit(t *testing.T) {
	w, c := newWorld(), New(25)
	for n := range 10 {
		fill(t, w, c.Table(key(n)), 10)
		fill(t, w, c.Table(key(0)), 10) // stays in use
	}
	if got := c.Len(); got > 35 {
		t.Errorf("got %d verdicts, want at most the limit and what the last one added", got)
	}
	c.Table(key(0))
	if got := c.Len(); got > 25 {
		t.Errorf("got %d verdicts after the next attempt, want at most 25", got)
	}
	if c.Table(key(0)).get("node-1") == nil {
		t.Error("the table in use was dropped")
	}
	if c.Table(key(5)).get("node-1") != nil {
		t.Error("an old table was kept")
	}
}

// TestLimitOfTables: signatures without verdicts cost memory too.
func TestLimitOfTables(t *testing.T) {
	c := New(100)
	for n := range 2 * maxTables {
		c.Table(key(n))
	}
	if got := c.tables.Len(); got != maxTables || len(c.byKey) != maxTables {
		t.Errorf("got %d tables and %d keys, want %d", got, len(c.byKey), maxTables)
	}
}

// TestLargeTable: a single table may have more than the limit, or a large
// cluster would have no use of it.
func TestLargeTable(t *testing.T) {
	w, c := newWorld(), New(5)
	fill(t, w, c.Table(key(1)), 10)
	c.Table(key(1))
	if got := c.Len(); got != 10 {
		t.Errorf("got %d verdicts, want all 10", got)
	}
}

func TestForgetNode(t *testing.T) {
	w, c := newWorld(), New(100)
	for n := range 3 {
		fill(t, w, c.Table(key(n)), 4)
	}
	c.ForgetNode("node-1")
	c.ForgetNode("node-1")
	if got := c.Len(); got != 9 {
		t.Errorf("got %d verdicts, want 9", got)
	}
}

// TestWeight: large verdicts count more, and what counts is what is there.
func TestWeight(t *testing.T) {
	w, c := newWorld(), New(1000)
	slice := builders.Slice(driver, "node").OnNode("node")
	for i := range 32 {
		slice.Devices(builders.Device(fmt.Sprintf("gpu-%d", i)))
	}
	w.publish(slice.Obj())
	for n, count := range []int64{1, 32, 1} {
		p := w.problem(t, builders.Claim("claim", builders.Request("gpu", class).Count(count)))
		table := c.Table(key(1))
		// Something has to change, or the verdict is known.
		slice.Devices(builders.Device(fmt.Sprintf("more-%d", n)))
		w.publish(slice.Obj())
		w.ask(t, table, p, w.offer(builders.Node("node")))
		want := 1
		if count == 32 {
			want = 3
		}
		if got := c.Len(); got != want {
			t.Errorf("a verdict of %d devices counts %d, want %d", count, got, want)
		}
	}
	c.ForgetNode("node")
	if got := c.Len(); got != 0 {
		t.Errorf("nothing counts %d", got)
	}
}

// TestNoAnswer: what is no answer is not remembered.
func TestNoAnswer(t *testing.T) {
	w, table := newWorld(), &Table{}
	p := w.problem(t, builders.Claim("claim", builders.Request("gpu", class)))
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("late")
	cancel(late)
	offer := w.offer(builders.Node("node"))
	if v, err := table.Solve(ctx, 1, p, offer, options); !errors.Is(err, late) || v != nil {
		t.Errorf("got %v, %v, want the error of the context", v, err)
	}
	if table.Known(2, offer) != nil || table.size.Load() != 0 {
		t.Error("it is remembered")
	}
}

// TestReason: one verdict is worded for pods whose claims have different names.
func TestReason(t *testing.T) {
	w := newWorld()
	offer := w.offer(builders.Node("node"))
	for name, tc := range map[string]struct {
		claims []string
		want   string
	}{
		"one claim":  {claims: []string{"a"}, want: `request "gpu": no devices on the node`},
		"two claims": {claims: []string{"a", "b"}, want: `claim a, request "gpu": no devices on the node`},
	} {
		t.Run(name, func(t *testing.T) {
			table := &Table{}
			var mine, others []*builders.ClaimBuilder
			for _, claim := range tc.claims {
				mine = append(mine, builders.Claim(claim, builders.Request("gpu", class)))
				others = append(others, builders.Claim("other-"+claim, builders.Request("gpu", class)))
			}
			w.ask(t, table, w.problem(t, others...), offer)
			p := w.problem(t, mine...)
			v, known := w.ask(t, table, p, offer)
			if got := v.Reason(p); got != tc.want || !known {
				t.Errorf("got %q, known %v, want %q, known", got, known, tc.want)
			}
		})
	}
}

// TestChecked: an attempt gets back what it has found, not what others have.
func TestChecked(t *testing.T) {
	w, table := newWorld(), &Table{}
	w.publish(builders.Slice(driver, "node").OnNode("node").Devices(builders.Device("gpu-0")).Obj())
	p := w.problem(t, builders.Claim("claim", builders.Request("gpu", class)))
	offer := w.offer(builders.Node("node"))
	v, _ := w.ask(t, table, p, offer)
	if table.Checked(w.attempt, "node") != v || table.WithID(v.ID(), "node") != v {
		t.Error("the verdict of the attempt is not found")
	}
	for name, got := range map[string]*Verdict{
		"of another attempt":          table.Checked(w.attempt+1, "node"),
		"of no attempt":               table.Checked(0, "node"),
		"of another node":             table.Checked(w.attempt, "other"),
		"with another number":         table.WithID(v.ID()+1, "node"),
		"with the number, other node": table.WithID(v.ID(), "other"),
	} {
		if got != nil {
			t.Errorf("verdict %s: got %v, want nil", name, got)
		}
	}
	w.ask(t, table, p, offer)
	if table.Checked(w.attempt, "node") != v || table.Checked(w.attempt-1, "node") != nil {
		t.Error("the verdict does not belong to the last attempt")
	}
}

// TestInParallel is for the race detector.
func TestInParallel(t *testing.T) {
	w, c := newWorld(), New(50)
	p := w.problem(t, builders.Claim("claim", builders.Request("gpu", class)))
	var names []string
	for i := range 8 {
		name := fmt.Sprintf("node-%d", i)
		names = append(names, name)
		w.publish(builders.Slice(driver, name).OnNode(name).Devices(builders.Device("gpu-0")).Obj())
	}
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			for round := range 50 {
				table := c.Table(key(round % 9))
				name := names[(round+worker)%len(names)]
				offer := w.offer(builders.Node(name))
				if v := table.Known(Attempt(round), offer); v != nil && v.Solution == nil {
					t.Errorf("%s: no solution", name)
				}
				if _, err := table.Solve(t.Context(), Attempt(round), p, offer, options); err != nil {
					t.Error(err)
				}
				if round%10 == 0 {
					c.ForgetNode(name)
				}
			}
		})
	}
	running.Wait()
	c.Table(key(0))
	if got := c.Len(); got > 50 {
		t.Errorf("got %d verdicts, want at most 50", got)
	}
}

// TestKnownAllocatesNothing: it is called for each node and pod.
func TestKnownAllocatesNothing(t *testing.T) {
	w, table := newWorld(), &Table{}
	for _, pool := range []string{"a", "b", "c"} {
		w.publish(builders.Slice(driver, pool).OnNode("node").Devices(builders.Device("gpu-0")).Obj())
	}
	p := w.problem(t, builders.Claim("claim", builders.Request("gpu", class)))
	offer := w.offer(builders.Node("node"))
	w.ask(t, table, p, offer)
	if got := testing.AllocsPerRun(100, func() {
		if table.Known(7, offer) == nil {
			t.Fatal("not known")
		}
	}); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
	if got := len(offer.View.Pools); got != 3 {
		t.Errorf("the node reaches %d pools, want 3", got)
	}
}

func BenchmarkKnown(b *testing.B) {
	w, table := newWorld(), &Table{}
	w.publish(builders.Slice(driver, "node").OnNode("node").Devices(builders.Device("gpu-0")).Obj())
	p := w.problem(b, builders.Claim("claim", builders.Request("gpu", class)))
	offer := w.offer(builders.Node("node"))
	if _, err := table.Solve(b.Context(), 1, p, offer, options); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		table.Known(2, offer)
	}
}
