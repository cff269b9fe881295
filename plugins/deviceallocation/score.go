package deviceallocation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
)

// Score leaves the scores to NormalizeScore, which sees all nodes: what a
// solution is worth shows only beside the others.
func (pl *Plugin) Score(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return 0, nil
}

// ScoreExtensions returns the plugin itself.
func (pl *Plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore compares the solutions of the nodes.
func (pl *Plugin) NormalizeScore(_ context.Context, cycle fwk.CycleState, _ *corev1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	s, err := readState(cycle)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s == nil || !s.needsDevices() {
		return nil
	}
	solutions := make([]*allocator.Solution, len(scores))
	for i := range scores {
		if f := s.solution(scores[i].Name); f != nil {
			solutions[i] = f.solution
		}
	}
	for i, score := range objective.Score(solutions, pl.weights) {
		scores[i].Score = score
	}
	return nil
}
