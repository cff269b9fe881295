package allocator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestShareableWithoutCapacity: a device that can be shared without limit looks
// like one that cannot be shared, except that two requests can have it.
func TestShareableWithoutCapacity(t *testing.T) {
	for name, tc := range map[string]struct {
		shareable int // which device
		want      []string
	}{
		"the last":  {shareable: 2, want: []string{"claim req-0: gpu-0 gpu-1 gpu-2", "claim req-1: gpu-2"}},
		"the first": {shareable: 0, want: []string{"claim req-0: gpu-0 gpu-1 gpu-2", "claim req-1: gpu-0"}},
		"none":      {shareable: -1},
	} {
		t.Run(name, func(t *testing.T) {
			slice := gpus(3, func(i int, d *builders.DeviceBuilder) {
				d.With(func(spec *resourceapi.Device) { spec.AllowMultipleAllocations = ptr.To(i == tc.shareable) })
			})
			c := newCluster([]*builders.SliceBuilder{slice},
				builders.Claim("claim", builders.Request("req-0", "gpu").Count(3), builders.Request("req-1", "gpu")))
			p, solution, _ := c.solve(t, allocator.Options{})
			if diff := cmp.Diff(tc.want, placement(p, solution)); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
		})
	}
}
