package integration

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// Devices whose features this scheduler does not know are not handed out, and
// the feature is named.
func TestDevicesWithUnsupportedFeatures(t *testing.T) {
	tests := map[string]struct {
		device  *builders.DeviceBuilder
		counter bool
		want    string
	}{
		"partitionable": {
			device: builders.Device("part").With(func(d *resourceapi.Device) {
				d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{
					CounterSet: "set", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("1Gi")}},
				}}
			}),
			counter: true,
			want:    "partitionable devices",
		},
		"shareable": {
			device: builders.Device("share").Capacity("memory", "80Gi").With(func(d *resourceapi.Device) {
				d.AllowMultipleAllocations = ptr.To(true)
			}),
			want: "consumable capacity",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := env(t)
			e.Nodes("a")
			devices := pool(e, "a", tc.device)
			if tc.counter {
				// Counters are in a slice of their own.
				counters := builders.Slice(e.Driver, "a").Named(e.In("counters")).SliceCount(2).OnNode(e.In("a")).Obj()
				counters.Spec.SharedCounters = []resourceapi.CounterSet{{
					Name: "set", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("4Gi")}},
				}}
				e.Create(counters)
				devices.SliceCount(2)
			}
			e.Create(class(e, "gpu").Obj(), devices.Obj(),
				builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("pod").Claim("claim").Obj())
			e.Waits("pod", unfit(1, `1 request "r": matching devices need `+tc.want+", which this scheduler does not support"))
			// An ordinary device beside it is handed out.
			e.Create(builders.Slice(e.Driver, "other").OnNode(e.In("a")).Devices(builders.Device("whole")).Obj())
			e.Runs("pod", "a")
			e.Took("claim", "r=other/whole")
		})
	}
}

// A claim that needs a feature which this scheduler does not know waits.
func TestClaimWithUnsupportedFeature(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("gpu")).With(func(r *resourceapi.ExactDeviceRequest) {
			r.Capacity = &resourceapi.CapacityRequirements{
				Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")},
			}
		})).Obj(),
		builders.Pod("pod").Claim("claim").Obj())
	e.Waits("pod", unfit(1, `claim claim, request "r": needs consumable capacity, which this scheduler does not support`))
}

// A class that is missing, or whose selector fails everywhere, harms only the
// pods that ask for it.
func TestBadClassesHarmTheirPodsOnly(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), class(e, "wrong").Select(own(e, "attributes")+`.nonsense > 3`).Obj(), gpus(e, "a", 3).Obj())
	for _, name := range []string{"missing", "wrong", "gpu"} {
		e.Create(builders.Claim(name, builders.Request("r", e.In(name))).Obj(), builders.Pod(name).Claim(name).Obj())
	}
	e.Runs("gpu", "a")
	e.Waits("missing", unfit(1, `claim missing, request "r": device class `+e.In("missing")+" does not exist"))
	e.Waits("wrong", "0/1 nodes are available: "+`1 request "r": no device matches selector 2 of class `+e.In("wrong")+
		` (no such key: nonsense). request "r": a selector fails for device `+e.Driver+`/a/gpu-0: no such key: nonsense `+
		`(guard optional attributes with has() or .?), `+noPreemption(1))
	e.Create(class(e, "missing").Obj())
	e.Runs("missing", "a")
	e.Took("missing", "r=a/gpu-1")
}
