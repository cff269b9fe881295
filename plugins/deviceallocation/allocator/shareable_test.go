package allocator_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
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

// TestSharesOfUnequalTotals: two devices have the same amount left, but not the
// same part. They are not equal: not for the sums of what is needed, nor for the
// cost of opening one.
func TestSharesOfUnequalTotals(t *testing.T) {
	for name, tc := range map[string]struct {
		totals, held [2]string
		count        int64
		options      allocator.Options
		want         []string
	}{
		"both, the smaller first": {totals: [2]string{"3", "8"}, held: [2]string{"1", "6"}, count: 2, want: []string{"claim req: gpu-0 gpu-1"}},
		"both, the larger first":  {totals: [2]string{"8", "3"}, held: [2]string{"6", "1"}, count: 2, want: []string{"claim req: gpu-0 gpu-1"}},
		"the fuller one": {totals: [2]string{"3", "8"}, held: [2]string{"1", "6"}, count: 1,
			options: allocator.Options{Objective: objective.Order{}}, want: []string{"claim req: gpu-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(slicesOf(gpus(2, func(i int, d *builders.DeviceBuilder) { d.Shared().Capacity("bandwidth", tc.totals[i]) })),
				builders.Claim("claim", builders.Request("req", "gpu").Count(tc.count).Capacity("bandwidth", "2")))
			for i, amount := range tc.held {
				c.allocated = append(c.allocated, shareOf(fmt.Sprintf("gpu-%d", i), "bandwidth", amount))
			}
			p, solution, err := c.solve(t, tc.options)
			if diff := cmp.Diff(tc.want, placement(p, solution)); diff != "" {
				t.Errorf("%v; placement (-want +got):\n%s", err, diff)
			}
		})
	}
}

// shareOf is a claim that holds a share of a GPU.
func shareOf(gpu, capacity, amount string) *resourceapi.ResourceClaim {
	return builders.Claim("share-of-"+gpu).Holding(gpuDriver, "gpus", gpu).With(func(claim *resourceapi.ResourceClaim) {
		r := &claim.Status.Allocation.Devices.Results[0]
		r.ShareID = ptr.To(types.UID("share-of-" + gpu))
		if capacity != "" {
			r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{resourceapi.QualifiedName(capacity): resource.MustParse(amount)}
		}
	}).Obj()
}
