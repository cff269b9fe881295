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
	// SkipsNodeOperations says that the node can use devices for which kubelet
	// has something to leave out (KEP-5945).
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
}

// Options control a search. The zero value searches without a limit for the
// devices that the stock allocator would take.
type Options struct {
	// Objective is nil for kube-scheduler's order of devices.
	Objective Objective
	// StepBudget limits the number of devices tried; 0 means no limit.
	StepBudget int
	// FailOnSelectorError makes a selector that fails for a device an error, as
	// in kube-scheduler, instead of a device that does not match. As there, it
	// matters only if the device is looked at before the search has ended.
	FailOnSelectorError bool
}

// Solve finds the best solution for a node.
//
// The error is a *Rejection when the node cannot serve the Problem, a
// *SelectorError as described above, or the context's cause when ctx ended
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
	s := newSearch(ctx, field, options)
	s.run()
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.best, nil
}
