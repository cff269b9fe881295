package verdict

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/reason"
)

// Attempt numbers the scheduling attempts of a process. All searches of one
// attempt must see the same snapshots. 0 is no attempt.
type Attempt uint64

// ids numbers the verdicts.
var ids atomic.Int64

// Table has the verdicts of the nodes for one problem signature. It is safe for
// concurrent use; goroutines that look at different nodes do not wait for each
// other.
type Table struct {
	byNode sync.Map // *Verdict by node name
	// size is the sum of the weights.
	size atomic.Int64
}

// Known returns the verdict for a node if it is remembered and still good, else
// nil. It allocates nothing.
func (t *Table) Known(attempt Attempt, node allocator.Node) *Verdict {
	v := t.get(node.View.Name)
	if v == nil || !v.from.is(node) {
		return nil
	}
	v.checked.Store(uint64(attempt))
	return v
}

// Solve has allocator.Solve find the verdict for a node and remembers it. The
// problem must have the signature of the Table, and the options must be those
// for which the Table was asked.
//
// An error is one of allocator.Solve that is not a *allocator.Rejection.
func (t *Table) Solve(ctx context.Context, attempt Attempt, p *problem.Problem, node allocator.Node, options allocator.Options) (*Verdict, error) {
	solution, err := allocator.Solve(ctx, p, node, options)
	v := &Verdict{Solution: solution, id: ids.Add(1), from: originOf(node)}
	if err != nil && !errors.As(err, &v.Rejection) {
		return nil, err
	}
	if v.Rejection != nil && len(p.Claims) == 1 {
		v.text = reason.Node(p, v.Rejection)
	}
	v.checked.Store(uint64(attempt))
	t.size.Add(v.weight())
	if replaced, found := t.byNode.Swap(node.View.Name, v); found {
		t.size.Add(-replaced.(*Verdict).weight())
	}
	return v, nil
}

// Checked returns the verdict that Known or Solve has returned for a node in this
// attempt, or nil if that is not known any more.
func (t *Table) Checked(attempt Attempt, node string) *Verdict {
	v := t.get(node)
	if v == nil || attempt == 0 || v.checked.Load() != uint64(attempt) {
		return nil
	}
	return v
}

// WithID returns the verdict for a node if it has the number, else nil: it has
// been replaced, or is about another problem.
func (t *Table) WithID(id int64, node string) *Verdict {
	if v := t.get(node); v != nil && v.id == id {
		return v
	}
	return nil
}

func (t *Table) get(node string) *Verdict {
	found, ok := t.byNode.Load(node)
	if !ok {
		return nil
	}
	return found.(*Verdict)
}

func (t *Table) forget(node string) {
	if v, found := t.byNode.LoadAndDelete(node); found {
		t.size.Add(-v.(*Verdict).weight())
	}
}
