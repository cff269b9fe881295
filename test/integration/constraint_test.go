package integration

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	pcieRoot = "resource.kubernetes.io/pcieRoot"
	numaNode = "example.com/numaNode"
)

// GPU and NIC come from one PCIe root, though the first ones of each do not.
func TestMatchAttribute(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	on := func(name, root string) *builders.DeviceBuilder {
		return builders.Device(name).Attribute(pcieRoot, root)
	}
	e.Create(
		class(e, "gpu").Select(own(e, "attributes")+`.kind == "gpu"`).Obj(),
		class(e, "nic").Select(own(e, "attributes")+`.kind == "nic"`).Obj(),
		pool(e, "a",
			on("gpu-0", "pci0000:00").Attribute("kind", "gpu"), on("gpu-1", "pci0000:10").Attribute("kind", "gpu"),
			on("nic-0", "pci0000:20").Attribute("kind", "nic"), on("nic-1", "pci0000:10").Attribute("kind", "nic")).Obj(),
		// No root is shared here.
		pool(e, "b",
			on("gpu-0", "pci0000:00").Attribute("kind", "gpu"), on("nic-0", "pci0000:20").Attribute("kind", "nic")).Obj(),
		builders.Claim("claim", builders.Request("gpu", e.In("gpu")), builders.Request("nic", e.In("nic"))).MatchAttribute(pcieRoot).Obj(),
		builders.Pod("pod").Claim("claim").Obj())
	e.Runs("pod", "a")
	e.Holds("claim", e.Allocation("a", e.Device("gpu", "a", "gpu-1"), e.Device("nic", "a", "nic-1")), "pod")

	e.Create(
		builders.Claim("second", builders.Request("gpu", e.In("gpu")), builders.Request("nic", e.In("nic"))).MatchAttribute(pcieRoot).Obj(),
		builders.Pod("second").Claim("second").Obj())
	e.Waits("second", unfit(2, "2 no value of attribute "+pcieRoot+" is common to enough free devices (matchAttribute)"))
}

// NICs whose driver does not say where they are cannot be aligned.
func TestMatchAttributeThatDevicesLack(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(
		class(e, "gpu").Select(own(e, "attributes")+`.kind == "gpu"`).Obj(),
		class(e, "nic").Select(own(e, "attributes")+`.kind == "nic"`).Obj(),
		pool(e, "a",
			builders.Device("gpu-0").Attribute("kind", "gpu").Attribute(pcieRoot, "pci0000:00"),
			builders.Device("nic-0").Attribute("kind", "nic"), builders.Device("nic-1").Attribute("kind", "nic")).Obj(),
		builders.Claim("claim", builders.Request("gpu", e.In("gpu")), builders.Request("nic", e.In("nic"))).MatchAttribute(pcieRoot).Obj(),
		builders.Pod("pod").Claim("claim").Obj())
	e.Waits("pod", unfit(1, `1 request "nic": free devices lack the attribute `+pcieRoot+" of a constraint"))
}

// Devices of a distinctAttribute constraint differ in the attribute.
func TestDistinctAttribute(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	numa := func(i int, d *builders.DeviceBuilder) { d.Attribute(numaNode, i/2) }
	e.Create(class(e, "cpu").Obj(),
		pool(e, "a", builders.DevicesNamed("cpu", 2, numa)...).Obj(), // all on NUMA node 0
		pool(e, "b", builders.DevicesNamed("cpu", 4, numa)...).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("cpu")).Count(2)).DistinctAttribute(numaNode).Obj(),
		builders.Pod("pod").Claim("claim").Obj())
	e.Runs("pod", "b")
	e.Holds("claim", e.Allocation("b", e.Device("r", "b", "cpu-0"), e.Device("r", "b", "cpu-2")), "pod")

	for _, name := range []string{"second", "third"} {
		e.Create(builders.Claim(name, builders.Request("r", e.In("cpu")).Count(2)).DistinctAttribute(numaNode).Obj(),
			builders.Pod(name).Claim(name).Obj())
		if name == "second" {
			e.Runs("second", "b")
			e.Took("second", "r=b/cpu-1", "r=b/cpu-3")
		}
	}
	e.Waits("third", unfit(2, `1 free devices have too few different values of attribute `+numaNode+` (distinctAttribute), `+
		`1 request "r": all matching devices in use`))
}
