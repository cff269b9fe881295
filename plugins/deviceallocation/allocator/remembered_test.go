package allocator_test

import (
	"context"
	"errors"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// remembered is what the plugin does with a node: the answer is the one that is
// remembered for the next pod, so that oracles and comparisons look at it too.
func remembered(p *problem.Problem, node allocator.Node, options allocator.Options) (*allocator.Solution, error) {
	var table verdict.Table
	if _, err := table.Solve(context.Background(), 1, p, node, options); err != nil {
		return nil, err
	}
	known := table.Known(2, node)
	switch {
	case known == nil:
		return nil, errors.New("the verdict is not remembered")
	case known.Rejection != nil:
		return nil, known.Rejection
	default:
		return known.Solution, nil
	}
}
