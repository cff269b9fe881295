package allocator

import (
	"context"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// Node is what one node offers.
type Node struct {
	View *inventory.NodeView
	// Usage tells which devices are held.
	Usage Usage
	// SkipsNodeOperations says that the kubelet can do without a plugin for
	// devices whose slice says so (KEP-5945).
	SkipsNodeOperations bool
}

// Usage looks up what is held in a pool; *ledger.Snapshot implements it.
type Usage interface {
	Pool(id device.PoolID) *ledger.PoolUsage
}

// Objective ranks solutions: the lower the cost, the better. Costs of the
// devices of a solution add up.
type Objective interface {
	// DeviceCost is what it costs to give the device to the alternative. It is
	// not negative, depends on nothing but its arguments, and is called once
	// per device and alternative of a search.
	DeviceCost(alternative *problem.Alternative, d *device.Device) int64
	// CellCost is what it costs to be the first to take something of a GPU with
	// partitions, or of a device with shares. freePart is what is left of it, in
	// thousandths; the cost is not negative and does not fall when it rises.
	CellCost(freePart int64) int64
}

// Options control a search. The zero value searches without a limit for the
// devices that the stock allocator would take.
type Options struct {
	// Objective is nil for kube-scheduler's order of devices.
	Objective Objective
	// StepBudget limits the number of devices tried; 0 means no limit.
	StepBudget int
	// FailOnSelectorError makes a selector, a derived attribute or a capacity
	// that cannot be computed for a device an error, as in kube-scheduler, instead
	// of a device that does not match. As there, it matters only if the device is
	// looked at before the search has ended.
	FailOnSelectorError bool
	// Compatible reproduces the verdicts of kube-scheduler also where they are
	// faults: administrators' access counts as use, an overdrawn counter spoils
	// its whole pool, and a device that is no longer shareable looks free although
	// shares of it are held. It is for comparisons.
	Compatible bool
}

// Solve finds the best solution for a node.
//
// The error is a *Rejection when the node cannot serve the Problem, a
// *SelectorError, *DerivationError or *CapacityError as described above, or the context's cause when ctx ended
// before the answer was known. Solve does not change its arguments and may be
// called from several goroutines.
func Solve(ctx context.Context, p *problem.Problem, node Node, options Options) (*Solution, error) {
	// The search itself looks at the context only every so often.
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	field, err := survey(ctx, p, node, options)
	if err != nil {
		return nil, err
	}
	if err := field.hopeless(); err != nil {
		return nil, err
	}
	s := newSearch(ctx, field)
	s.run()
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.best, nil
}
