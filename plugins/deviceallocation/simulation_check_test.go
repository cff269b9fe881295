package deviceallocation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
)

// checkRest compares the scheduler with one that has seen nothing but the
// present objects. That one cannot know what a held device drew whose driver has
// taken it away since, or says no more what it draws: only then may the running
// scheduler let a pod wait that the fresh one has devices for.
func (s *simulation) checkRest() {
	s.Helper()
	fresh := startPlugin(s.T, s.api, s.allNodes(), func(*harness) {})
	defer fresh.stop()
	nodes := s.allNodes()
	old := s.scheduler.plugin
	if diff := cmp.Diff(fresh.plugin.inventory.Snapshot().Dump(nodes...), old.inventory.Snapshot().Dump(nodes...)); diff != "" {
		s.failf("inventory (-fresh +running):\n%s", diff)
	}
	for id := range s.existed {
		if diff := cmp.Diff(fresh.plugin.ledger.Holders(id), old.ledger.Holders(id)); diff != "" {
			s.failf("holders of %s (-fresh +running):\n%s", id, diff)
		}
		if f, o := countHolders(fresh.plugin.ledger, id), countHolders(old.ledger, id); f != o {
			s.failf("snapshot of %s: held by %d claims, want %d", id, o, f)
		}
	}
	s.checkIdle()
	for _, q := range s.waiting() {
		if !fresh.plugin.PreEnqueue(s.T.Context(), q.pod).IsSuccess() {
			continue
		}
		a := fresh.attempt(q.pod)
		passed, status := a.look()
		for _, node := range passed {
			if !s.overdraws(a, node.Node().Name) {
				s.failf("%s waits, although it fits on %s", q.pod.Name, node.Node().Name)
			}
		}
		if node := s.fits(q.pod); node != "" {
			s.failf("%s waits (%s), although there are free devices on %s", q.pod.Name, status.Message(), node)
		}
		if outcome := a.postFilter(); strings.Contains(outcome.Message(), "completed") {
			s.failf("%s waits (%s), although: %s", q.pod.Name, status.Message(), outcome.Message())
		}
	}
}

func countHolders(l *ledger.Ledger, id device.ID) int {
	return l.Snapshot(nil).Pool(id.PoolID()).Holders(id.Device)
}

// checkIdle looks for allocations of pods that do not run.
func (s *simulation) checkIdle() {
	s.Helper()
	pods := make(map[types.UID]*corev1.Pod)
	for _, pod := range s.allPods() {
		pods[pod.UID] = pod
	}
	for _, claim := range s.allClaims() {
		if claim.Status.Allocation == nil {
			continue
		}
		if len(claim.Status.ReservedFor) == 0 {
			s.failf("claim %s is allocated for nobody", claim.Name)
		}
		for _, c := range claim.Status.ReservedFor {
			pod := pods[c.UID]
			if pod != nil && !s.scheduler.plugin.PreEnqueue(s.T.Context(), pod).IsSuccess() {
				// One of its claims was deleted after a scheduler had crashed
				// between PreBind and bind. PreEnqueue keeps the pod out of the
				// queue, so that the plugin is not asked again before somebody
				// deletes the pod.
				continue
			}
			if pod == nil || pod.Spec.NodeName == "" {
				s.failf("claim %s is allocated for %s, which does not run", claim.Name, c.Name)
			}
		}
	}
}

// placements says who has what in the end.
func (s *simulation) placements() []string {
	var lines []string
	for _, pod := range s.allPods() {
		lines = append(lines, fmt.Sprintf("%s on %q", pod.Name, pod.Spec.NodeName))
	}
	for _, claim := range s.allClaims() {
		lines = append(lines, stableName(claim.Name)+": "+describeClaim(claim))
	}
	return lines
}

func (s *simulation) apiNodes() []*corev1.Node { return s.allNodes() }

func (s *simulation) must(err error) {
	s.Helper()
	if err != nil {
		s.failf("simulated cluster: %v", err)
	}
}

// failf ends the test with what it takes to see the failure again.
func (s *simulation) failf(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s\nSIMULATION_SEED=%d, after the steps:\n%s\nclaims:\n%s", fmt.Sprintf(format, args...), s.seed,
		strings.Join(s.steps, "\n"), strings.Join(s.placements(), "\n"))
}
