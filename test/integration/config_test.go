package integration

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// Configurations of classes and claim are in the allocation, classes first,
// each for the requests that it is meant for.
func TestConfigs(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "tuned").Config(e.Driver, `{"from":"class"}`).Obj(), class(e, "plain").Obj(), gpus(e, "a", 2).Obj(),
		builders.Claim("claim", builders.Request("one", e.In("tuned")), builders.Request("two", e.In("plain"))).
			Config(e.Driver, `{"for":"all"}`).Config(e.Driver, `{"for":"two"}`, "two").
			Config(e.Driver, `{"for":"both"}`, "one", "two").Obj(),
		builders.Pod("pod").Claim("claim").Obj())
	e.Runs("pod", "a")
	config := func(source resourceapi.AllocationConfigSource, parameters string, requests ...string) resourceapi.DeviceAllocationConfiguration {
		return resourceapi.DeviceAllocationConfiguration{
			Source: source, Requests: requests, DeviceConfiguration: builders.Config(e.Driver, parameters),
		}
	}
	want := e.Allocation("a", e.Device("one", "a", "gpu-0"), e.Device("two", "a", "gpu-1"))
	want.Devices.Config = []resourceapi.DeviceAllocationConfiguration{
		config(resourceapi.AllocationConfigSourceClass, `{"from":"class"}`, "one"),
		config(resourceapi.AllocationConfigSourceClaim, `{"for":"all"}`),
		config(resourceapi.AllocationConfigSourceClaim, `{"for":"two"}`, "two"),
		config(resourceapi.AllocationConfigSourceClaim, `{"for":"both"}`),
	}
	e.Holds("claim", want, "pod")
}
