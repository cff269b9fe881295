package allocator_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestSkippedNodeOperations: devices of two slices, one of which needs a node
// with the feature.
func TestSkippedNodeOperations(t *testing.T) {
	devices := slicesOf(gpus(1, nil).SkipNodeOperations(), nics(1, nil))
	for name, tc := range map[string]struct {
		skips bool
		count int64
		want  []string
	}{
		"the first device":                  {skips: true, count: 1, want: []string{"claim any: gpu-0"}},
		"both devices":                      {skips: true, count: 2, want: []string{"claim any: gpu-0 nic-0"}},
		"the first one without the feature": {count: 1, want: []string{"claim any: nic-0"}},
		"both without the feature":          {count: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(devices, builders.Claim("claim", builders.Request("any", "any").Count(tc.count)))
			p, node := c.problem(t), c.view()
			node.SkipsNodeOperations = tc.skips
			solution, err := allocator.Solve(context.Background(), p, node, allocator.Options{})
			if (err == nil) != (tc.want != nil) {
				t.Errorf("error: %v", err)
			}
			if diff := cmp.Diff(tc.want, placement(p, solution)); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
		})
	}
}
