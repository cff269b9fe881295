package integration

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// halves publishes a GPU in halves that belong to compatibility groups.
func halves(e *harness.Env, node string, groups ...[]string) {
	devices := builders.DevicesNamed("half", len(groups), nil)
	for i, group := range groups {
		devices[i] = part(devices[i].Obj().Name, "gpu", "40Gi").With(func(d *resourceapi.Device) {
			d.ConsumesCounters[0].CompatibilityGroups = group
		})
	}
	e.Create(counters(e, node, "gpu"), parts(e, node, devices...).Obj())
}

// Devices that draw on the same counters are used together only if they have a
// group in common. This does not depend on shared devices.
func TestCompatibilityGroups(t *testing.T) {
	for name, gates := range map[string]map[string]bool{
		"with consumable capacity":    {"DRADeviceCompatibilityGroups": true},
		"without consumable capacity": {"DRADeviceCompatibilityGroups": true, "DRAConsumableCapacity": false},
	} {
		t.Run(name, func(t *testing.T) {
			e := env(t)
			e.ReplaceScheduler("groups", harness.SchedulerOptions{FeatureGates: gates})
			e.Nodes("a", "b", "c")
			e.Create(class(e, "gpu").Obj())
			halves(e, "a", []string{"mig"}, []string{"vgpu"})
			halves(e, "b", []string{"mig", "other"}, []string{"mig"})
			halves(e, "c", nil, []string{"mig"})
			both := func(name string) *builders.ClaimBuilder {
				return builders.Claim(name, builders.Request("r", e.In("gpu")).Count(2))
			}
			wants(e, both("first"))
			e.Runs("first", "b")
			e.Took("first", "r=b/half-0", "r=b/half-1")
			wants(e, both("second"))
			keepsWaiting(t, e, "second")
			// One half of each is possible, the other one then is not.
			for _, name := range []string{"single-0", "single-1"} {
				wants(e, builders.Claim(name, builders.Request("r", e.In("gpu"))))
				e.Runs(name, "")
			}
			wants(e, builders.Claim("single-2", builders.Request("r", e.In("gpu"))))
			keepsWaiting(t, e, "single-2")
		})
	}
}

// A scheduler that does not know the groups must not use such devices at all.
func TestCompatibilityGroupsWithoutTheGate(t *testing.T) {
	e := env(t)
	e.ReplaceScheduler("groups", harness.SchedulerOptions{FeatureGates: map[string]bool{"DRADeviceCompatibilityGroups": false}})
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj())
	halves(e, "a", []string{"mig"}, []string{"vgpu"})
	wants(e, builders.Claim("pod", builders.Request("r", e.In("gpu"))))
	keepsWaiting(t, e, "pod")
	halves(e, "b", nil, nil)
	e.Runs("pod", "b")
	e.Took("pod", "r=b/half-0")
}
