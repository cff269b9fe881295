package integration

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// own is a CEL term for the attributes or the capacity of the test's driver.
func own(e *harness.Env, what string) string { return `device.` + what + `["` + e.Driver + `"]` }

// Selectors of class and request read attributes of all types and capacity.
func TestSelectors(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	device := func(name, model, version, memory string, index int, healthy bool) *builders.DeviceBuilder {
		return builders.Device(name).Attribute("model", model).Attribute("driverVersion", builders.Version(version)).
			Attribute("index", index).Attribute("healthy", healthy).Capacity("memory", memory)
	}
	e.Create(class(e, "healthy").Select(own(e, "attributes")+".healthy").Obj(),
		pool(e, "a",
			device("sick", "large", "1.3.0", "80Gi", 1, false),
			device("old", "large", "1.1.9", "80Gi", 1, true),
			device("small", "large", "1.3.0", "40Gi", 1, true),
			device("even", "large", "1.3.0", "80Gi", 2, true)).Obj(),
		pool(e, "b",
			device("other", "tiny", "1.3.0", "80Gi", 1, true),
			device("right", "large", "1.3.0", "80Gi", 1, true)).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("healthy")).Select(
			own(e, "attributes")+`.model == "large" && `+own(e, "attributes")+`.index % 2 == 1`,
			own(e, "attributes")+`.driverVersion.isGreaterThan(semver("1.2.0"))`,
			own(e, "capacity")+`.memory.compareTo(quantity("64Gi")) >= 0`)).Obj(),
		builders.Pod("pod").Claim("claim").Obj())
	e.Runs("pod", "b")
	e.Holds("claim", e.Allocation("b", e.Device("r", "b", "right")), "pod")
}

// A device that lacks an attribute which a selector reads does not match.
// Other devices and nodes are used; when there are none, it is named.
func TestDeviceWithoutTheAttribute(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(),
		pool(e, "a", builders.Device("bare")).Obj(),
		pool(e, "b", builders.Device("bare"), builders.Device("full").Attribute("model", "large")).Obj())
	claim := func(name string) *builders.ClaimBuilder {
		return builders.Claim(name, builders.Request("r", e.In("gpu")).Select(own(e, "attributes")+`.model == "large"`))
	}
	e.Create(claim("claim").Obj(), builders.Pod("pod").Claim("claim").Obj())
	e.Runs("pod", "b")
	e.Took("claim", "r=b/full")

	e.Create(claim("next").Obj(), builders.Pod("next").Claim("next").Obj())
	e.Waits("next", unfitBeside(1, `1 request "r": no device matches selector 1 of the request `+
		`(no such key: model), request "r": a selector fails for device `+e.Driver+`/a/bare: no such key: model `+
		`(guard optional attributes with has() or .?)`,
		`request "r": all matching devices in use`))
}
