package deviceallocation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// Score says with a number which verdict the plugin has about a node, 0 if
// nothing has to be allocated there. What a solution is worth shows only beside
// the others, so that NormalizeScore makes the scores. With opportunistic
// batching it gets numbers that Score has given in attempts for equal pods.
func (pl *Plugin) Score(ctx context.Context, cycle fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	s, err := readState(cycle)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	if s == nil || !s.needsDevices() {
		return 0, nil
	}
	_, found, err := pl.verdict(ctx, s, node)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	if found == nil {
		return 0, nil
	}
	return found.ID(), nil
}

// ScoreExtensions returns the plugin itself.
func (pl *Plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore compares the solutions of the nodes.
func (pl *Plugin) NormalizeScore(ctx context.Context, cycle fwk.CycleState, _ *corev1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	s, err := readState(cycle)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s == nil || !s.needsDevices() {
		return nil
	}
	solutions := make([]*allocator.Solution, len(scores))
	for i := range scores {
		if scores[i].Score == 0 {
			continue
		}
		found := s.withID(scores[i].Score, scores[i].Name)
		if found == nil {
			// The node has changed since the number was given.
			if _, found, err = pl.verdictByName(ctx, s, scores[i].Name); err != nil {
				return fwk.AsStatus(err)
			}
		}
		if found != nil {
			solutions[i] = found.Solution
		}
	}
	for i, score := range objective.Score(solutions, pl.weights) {
		scores[i].Score = score
	}
	return nil
}

// verdict returns what the allocator finds on a node and what has to be
// allocated there: as Filter has found it, if it was called in this attempt. Both
// are nil if nothing has to be allocated on the node.
func (pl *Plugin) verdict(ctx context.Context, s *state, node fwk.NodeInfo) (*variant, *verdict.Verdict, error) {
	if v, found := s.checked(node.Node().Name); found != nil {
		return v, found, nil
	}
	v := pl.required(s, node)
	if v == nil {
		return nil, nil, nil
	}
	if v.err != nil {
		return nil, nil, v.err
	}
	found, err := pl.solve(ctx, s, v, node.Node())
	return v, found, err
}

// verdictByName is verdict for a node of which only the name is known.
func (pl *Plugin) verdictByName(ctx context.Context, s *state, node string) (*variant, *verdict.Verdict, error) {
	if v, found := s.checked(node); found != nil {
		return v, found, nil
	}
	info, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return nil, nil, err
	}
	return pl.verdict(ctx, s, info)
}
