package decision

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecisions: what is compared does the same work. Both plugins fill the
// cluster to the last GPU, and leave the pods waiting that cannot run.
func TestDecisions(t *testing.T) {
	cases := map[string]struct {
		cluster Cluster
		pods    int // that get a node
	}{
		"all pods fit":              {cluster: Cluster{Nodes: 5, Pods: 20}, pods: 20},
		"more pods than GPUs":       {cluster: Cluster{Nodes: 5, Pods: 45}, pods: 40},
		"some GPUs are held":        {cluster: Cluster{Nodes: 5, Held: 30, Pods: 15}, pods: 10},
		"few nodes have GPUs":       {cluster: Cluster{Nodes: 20, Equipped: 2, NICs: 2, Pods: 20}, pods: 16},
		"pods of many kinds":        {cluster: Cluster{Nodes: 5, Pods: 45, Kinds: 3}, pods: 40},
		"pods that no node can run": {cluster: Cluster{Nodes: 5, Pods: 10, Blocked: 10}, pods: 10},
	}
	for name, tc := range cases {
		for _, plugin := range []string{Ours, Stock} {
			t.Run(name+"/"+plugin, func(t *testing.T) {
				objects := tc.cluster.objects()
				s := startFor(t, plugin, objects)
				if diff := cmp.Diff([]string{plugin}, reservers(s)); diff != "" {
					t.Fatalf("plugins that reserve (-want +got):\n%s", diff)
				}
				if got := fill(t, s, objects); got != tc.pods {
					t.Errorf("%d pods got a node, want %d", got, tc.pods)
				}
				// Everything was taken back, so that it can be done again.
				if got := fill(t, s, objects); got != tc.pods {
					t.Errorf("second time: %d pods got a node, want %d", got, tc.pods)
				}
			})
		}
	}
}

func reservers(s *Scheduler) []string {
	var names []string
	for _, plugin := range s.profile.ListPlugins().Reserve.Enabled {
		names = append(names, plugin.Name)
	}
	return names
}

// fill decides about all pods, takes the decisions back, and returns how many
// of them got a node.
func fill(t *testing.T, s *Scheduler, objects *objects) int {
	t.Helper()
	ctx := context.Background()
	for _, pod := range objects.blocked {
		s.add(ctx, pod)
	}
	for _, pod := range objects.pods {
		s.add(ctx, pod)
	}
	var decisions []*decision
	placed := 0
	for range len(objects.blocked) + len(objects.pods) {
		d, err := s.decide(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if d.assumed != nil {
			placed++
		}
		decisions = append(decisions, d)
	}
	for _, d := range decisions {
		if err := s.undo(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	return placed
}
