package allocator_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

func TestSolveRejects(t *testing.T) {
	gpu := builders.Request("gpu", "gpu")
	two := builders.Claim("claim", builders.Request("gpu", "gpu").Count(2))
	cases := map[string]struct {
		cluster     *cluster
		cause       allocator.Cause
		alternative int
		attribute   resourceapi.FullyQualifiedName
		tally       allocator.Tally
	}{
		"no device": {
			cluster: newCluster(nil, builders.Claim("claim", gpu)),
			cause:   allocator.NoDevice,
			tally:   allocator.Tally{Wanted: 1},
		},
		"a pool of another node": {
			cluster: newCluster(slicesOf(builders.Slice(gpuDriver, "p").OnNode("node-2").Devices(builders.Device("d"))), builders.Claim("claim", gpu)),
			cause:   allocator.NoDevice,
			tally:   allocator.Tally{Wanted: 1},
		},
		"no match": {
			cluster: newCluster(slicesOf(gpus(2, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").Select("true", noDevice))),
			cause:   allocator.NoMatch,
			tally:   allocator.Tally{Wanted: 1, Seen: 2, Selector: 2},
		},
		"in use": {
			cluster: newCluster(slicesOf(gpus(2, nil)), two).inUse(gpuDriver, "gpus", "gpu-0", "gpu-1"),
			cause:   allocator.InUse,
			tally:   allocator.Tally{Wanted: 2, Seen: 2, Matching: 2, InUse: 2},
		},
		"tainted": {
			cluster: newCluster(slicesOf(gpus(3, tainted(1, 2))), two).inUse(gpuDriver, "gpus", "gpu-0"),
			cause:   allocator.Tainted,
			tally: allocator.Tally{Wanted: 2, Seen: 3, Matching: 3, InUse: 1, Tainted: 2,
				Taint: &resourceapi.DeviceTaint{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}},
		},
		"refused": {
			cluster: newCluster(slicesOf(gpus(1, func(_ int, d *builders.DeviceBuilder) {
				d.With(func(d *resourceapi.Device) {
					d.NodeAllocatableResources = map[corev1.ResourceName]resourceapi.NodeAllocatableResource{corev1.ResourceMemory: {}}
				})
			})), builders.Claim("claim", gpu)),
			cause: allocator.Refused,
			tally: allocator.Tally{Wanted: 1, Seen: 1, Matching: 1, Refused: 1, Feature: device.NodeAllocatableResources},
		},
		"node without the feature": {
			cluster: newCluster(slicesOf(gpus(2, nil).SkipNodeOperations()), builders.Claim("claim", gpu)),
			cause:   allocator.NodeOperations,
			tally:   allocator.Tally{Wanted: 1, Seen: 2, Matching: 2, NodeOperations: 2},
		},
		"administrators need the feature as well": {
			cluster: newCluster(slicesOf(gpus(1, nil).SkipNodeOperations()), builders.Claim("claim", builders.Request("gpu", "gpu").Admin())),
			cause:   allocator.NodeOperations,
			tally:   allocator.Tally{Wanted: 1, Seen: 1, Matching: 1, NodeOperations: 1},
		},
		"some devices in use, the others need the feature": {
			cluster: newCluster(slicesOf(gpus(1, nil), nics(1, nil).SkipNodeOperations()),
				builders.Claim("claim", builders.Request("any", "any"))).inUse(gpuDriver, "gpus", "gpu-0"),
			cause: allocator.NodeOperations,
			tally: allocator.Tally{Wanted: 1, Seen: 2, Matching: 2, NodeOperations: 1, InUse: 1},
		},
		"attribute missing": {
			cluster:   newCluster(slicesOf(gpus(2, nil)), builders.Claim("claim", gpu).MatchAttribute(numaAttribute)),
			cause:     allocator.AttributeMissing,
			attribute: numaAttribute,
			tally:     allocator.Tally{Wanted: 1, Seen: 2, Matching: 2, WithoutAttribute: 2},
		},
		"too few": {
			cluster: newCluster(slicesOf(gpus(2, nil)), two).inUse(gpuDriver, "gpus", "gpu-0"),
			cause:   allocator.TooFew,
			tally:   allocator.Tally{Wanted: 2, Seen: 2, Matching: 2, InUse: 1},
		},
		"too many of all": {
			cluster: newCluster(slicesOf(gpus(33, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All())),
			cause:   allocator.TooMany,
			tally:   allocator.Tally{Wanted: 33, Seen: 33, Matching: 33},
		},
		"too many of all and one": {
			cluster: newCluster(slicesOf(gpus(32, nil), nics(1, nil)), builders.Claim("claim",
				builders.Request("gpu", "gpu").All(), builders.Request("nic", "nic"))),
			cause:       allocator.TooMany,
			alternative: -1,
		},
		"all without any": {
			cluster: newCluster(slicesOf(nics(1, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All())),
			cause:   allocator.NoMatch,
			tally:   allocator.Tally{Wanted: 1, Seen: 1},
		},
		"all with one in use": {
			cluster: newCluster(slicesOf(gpus(2, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All())).inUse(gpuDriver, "gpus", "gpu-0"),
			cause:   allocator.TooFew,
			tally:   allocator.Tally{Wanted: 2, Seen: 2, Matching: 2, InUse: 1},
		},
		"all while a pool is incomplete": {
			cluster: newCluster(slicesOf(gpus(2, nil), builders.Slice(nicDriver, "nics").OnNode(nodeName).SliceCount(2)),
				builders.Claim("claim", builders.Request("gpu", "gpu").All())),
			cause: allocator.PoolFault,
			tally: allocator.Tally{Seen: 2, Matching: 2},
		},
		"no common value": {
			cluster: newCluster(slicesOf(gpus(4, onNUMA(0, 0, 1, 1))), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(3)).MatchAttribute(numaAttribute)),
			cause:       allocator.NoCommonValue,
			alternative: -1,
			attribute:   numaAttribute,
		},
		"too few values": {
			cluster: newCluster(slicesOf(gpus(4, onNUMA(0, 0, 1, 1))), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(3)).DistinctAttribute(numaAttribute)),
			cause:       allocator.TooFewValues,
			alternative: -1,
			attribute:   numaAttribute,
		},
		"too few together": {
			cluster:     newCluster(slicesOf(gpus(2, nil)), two, builders.Claim("other", gpu)),
			cause:       allocator.TooFewTogether,
			alternative: -1,
		},
		"the same device twice in an administrator's claim": {
			cluster: newCluster(slicesOf(gpus(1, nil)), builders.Claim("claim",
				builders.Request("a", "gpu").Admin(), builders.Request("b", "gpu").Admin())),
			cause:       allocator.NoCombination,
			alternative: -1,
		},
		"an ordinary request after an administrator's for the same device": {
			cluster: newCluster(slicesOf(gpus(1, nil)),
				builders.Claim("a", builders.Request("gpu", "gpu").Admin()), builders.Claim("b", gpu)),
			cause:       allocator.NoCombination,
			alternative: -1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, s, err := tc.cluster.solve(t, allocator.Options{})
			var got *allocator.Rejection
			if !errors.As(err, &got) {
				t.Fatalf("solution %v, error %v, want a rejection", placement(p, s), err)
			}
			if got.Cause != tc.cause || got.Alternative != tc.alternative || got.Attribute != tc.attribute {
				t.Errorf("cause %d, alternative %d, attribute %q, want %d, %d, %q",
					got.Cause, got.Alternative, got.Attribute, tc.cause, tc.alternative, tc.attribute)
			}
			if diff := cmp.Diff(tc.tally, got.Tally); diff != "" {
				t.Errorf("tally (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSolveRejectsAllAlternatives(t *testing.T) {
	c := newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.FirstAvailable("gpu",
		builders.Request("large", "gpu").Select(isLarge), builders.Request("none", "gpu").Select(noDevice)))).inUse(gpuDriver, "gpus", "gpu-0")
	_, _, err := c.solve(t, allocator.Options{})
	var rejection *allocator.Rejection
	if !errors.As(err, &rejection) || rejection.Cause != allocator.NoAlternative {
		t.Fatalf("error %v, want a rejection because no alternative is possible", err)
	}
	var causes []allocator.Cause
	for _, r := range rejection.Alternatives {
		causes = append(causes, r.Cause)
	}
	if diff := cmp.Diff([]allocator.Cause{allocator.InUse, allocator.NoMatch}, causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}
