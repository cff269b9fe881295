package deviceallocation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// Score leaves the scores to NormalizeScore, which sees all nodes: what a
// solution is worth shows only beside the others.
func (pl *Plugin) Score(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return 0, nil
}

// ScoreExtensions returns the plugin itself.
func (pl *Plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore compares the solutions of the nodes. With opportunistic
// batching there are nodes that an attempt for an equal pod has found, and this
// one has not looked at yet.
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
		_, found, err := pl.verdict(ctx, s, scores[i].Name)
		if err != nil {
			return fwk.AsStatus(err)
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
func (pl *Plugin) verdict(ctx context.Context, s *state, node string) (*variant, *verdict.Verdict, error) {
	if v, found := s.checked(node); found != nil {
		return v, found, nil
	}
	info, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return nil, nil, err
	}
	v := pl.required(s, info)
	if v == nil {
		return nil, nil, nil
	}
	if v.err != nil {
		return nil, nil, v.err
	}
	found, err := pl.solve(ctx, s, v, info.Node())
	return v, found, err
}
