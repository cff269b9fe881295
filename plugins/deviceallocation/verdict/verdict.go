package verdict

import (
	"sync/atomic"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/reason"
)

// Verdict is what the allocator found for a problem on a node: a solution, or
// the reason why there is none. It is shared between the pods that ask for the
// same and must not be changed.
type Verdict struct {
	// Solution is nil if there is none.
	Solution *allocator.Solution
	// Rejection is nil if there is a solution. Its alternatives are those of any
	// problem with the signature of the Table.
	Rejection *allocator.Rejection

	// id is the number of the verdict, see ID.
	id int64
	// text words the rejection if it is the same for all pods, see Reason.
	text string
	from origin
	// checked is the last attempt that has compared the origin.
	checked atomic.Uint64
}

// weight is what the verdict counts in a Cache: 1 for nearly all of them, more for
// one that is large.
func (v *Verdict) weight() int64 {
	parts := 0
	if v.Solution != nil {
		parts = len(v.Solution.Ranks)
		for _, picks := range v.Solution.Claims {
			parts += 1 + len(picks)
		}
	} else {
		parts = 4 * len(v.Rejection.Alternatives)
	}
	return int64(1 + parts/16)
}

// ID returns a number above 0 that no other Verdict of the process has.
func (v *Verdict) ID() int64 { return v.id }

// Reason words the rejection. Only with several claims the words contain their
// names, which differ between pods.
func (v *Verdict) Reason(p *problem.Problem) string {
	if v.text != "" {
		return v.text
	}
	return reason.Node(p, v.Rejection)
}

// origin is all that a verdict depends on beside the Table.
type origin struct {
	view                uint64
	skipsNodeOperations bool
	// usage has the epoch of each of the view's pools; that of the first one
	// stands alone, because most views have no more.
	first uint64
	rest  []uint64
}

func originOf(node allocator.Node) origin {
	o := origin{view: node.View.Epoch, skipsNodeOperations: node.SkipsNodeOperations}
	for i, pool := range node.View.Pools {
		epoch := node.Usage.Pool(pool.ID).Epoch()
		switch {
		case i == 0:
			o.first = epoch
		case o.rest == nil:
			o.rest = append(make([]uint64, 0, len(node.View.Pools)-1), epoch)
		default:
			o.rest = append(o.rest, epoch)
		}
	}
	return o
}

// is tells whether a search on the node would begin with the same. It allocates
// nothing.
func (o *origin) is(node allocator.Node) bool {
	if o.view != node.View.Epoch || o.skipsNodeOperations != node.SkipsNodeOperations {
		return false
	}
	for i, pool := range node.View.Pools {
		epoch := node.Usage.Pool(pool.ID).Epoch()
		if i == 0 && epoch != o.first || i > 0 && epoch != o.rest[i-1] {
			return false
		}
	}
	return true
}
