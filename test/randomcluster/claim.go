package randomcluster

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// selectors of requests. The last one fails for devices without the attribute.
var selectors = []string{
	`device.attributes["gpu.example.com"].?model.orValue("") == "large"`,
	`device.attributes["gpu.example.com"].?model.orValue("") != "large"`,
	`!("ready" in device.attributes["example.com"]) || device.attributes["example.com"].ready`,
	`"serial" in device.attributes["example.com"]`,
	`device.driver.startsWith("gpu")`,
	`!("bandwidth" in device.capacity["gpu.example.com"]) || device.capacity["gpu.example.com"].bandwidth.compareTo(quantity("5")) >= 0`,
	`device.attributes["example.com"].ready`,
}

// derivations compute an attribute. The last one fails for devices without the
// attribute, the one before needs list-type attributes.
var derivations = []string{
	`device.driver`,
	`"serial" in device.attributes["example.com"] ? "numbered" : "plain"`,
	`device.attributes["gpu.example.com"].?model.orValue("none") == "large" ? 1 : 2`,
	`device.attributes["gpu.example.com"].?model.orValue("none")`,
	`"serial" in device.attributes["example.com"] ? ["x", "y"] : ["y", "z"]`,
	`device.attributes["example.com"].numa`,
}

func (g *generator) claim(name string) *resourceapi.ResourceClaim {
	claim := builders.Claim(name)
	g.deriving = g.uses.derived && g.chance(85)
	g.derivation = oneOf(g, g.derivations()...)
	var names []string
	if g.chance(1) {
		return claim.Obj() // valid, and satisfied by nothing
	}
	requests := oneOf(g, 1, 1, 1, 2, 2, 3)
	if g.uses.constraints {
		requests = oneOf(g, 1, 2, 2, 2, 3) // one device alone satisfies most constraints
	}
	for i := range requests {
		claim.Requests(g.request(fmt.Sprintf("req-%d", i), &names))
	}
	for g.uses.constraints && g.chance(40) || g.deriving && g.chance(30) {
		covered := g.some(names)
		if g.chance(60) {
			claim.MatchAttribute(g.constrained(), covered...)
		} else {
			claim.DistinctAttribute(oneOf(g, g.constrained(), serialAttribute), covered...)
		}
	}
	for g.chance(25) {
		claim.Config(gpuDriver, fmt.Sprintf(`{"from":"claim","number":%d}`, g.IntN(3)), g.some(names)...)
	}
	return claim.Obj()
}

// some draws requests and subrequests; none means all.
func (g *generator) some(names []string) []string {
	var drawn []string
	for _, name := range names {
		if g.chance(45) {
			drawn = append(drawn, name)
		}
	}
	return drawn
}

func (g *generator) constrained() string {
	names := []string{numaAttribute, numaAttribute, modelAttribute, versionAttribute, readyAttribute}
	if g.uses.lists {
		names = append(names, linksAttribute, linksAttribute, linksAttribute, linksAttribute)
	}
	if g.deriving {
		names = append(names, derivedAttribute, derivedAttribute, derivedAttribute, derivedAttribute, derivedAttribute,
			derivedAttribute, derivedAttribute, derivedAttribute)
	}
	return oneOf(g, names...)
}

func (g *generator) request(name string, names *[]string) builders.AnyRequest {
	if !g.uses.prioritized || g.chance(40) {
		*names = append(*names, name)
		ask := g.ask(name)
		if g.uses.admin && g.chance(40) {
			ask.Admin()
		}
		return ask
	}
	var subrequests []*builders.RequestBuilder
	for i := range 1 + g.IntN(3) {
		sub := fmt.Sprintf("sub-%d", i)
		subrequests = append(subrequests, g.ask(sub))
		*names = append(*names, name+"/"+sub)
	}
	*names = append(*names, name)
	return builders.FirstAvailable(name, subrequests...)
}

// ask makes up what a request and a subrequest have in common.
func (g *generator) ask(name string) *builders.RequestBuilder {
	ask := builders.Request(name, oneOf(g, "any", "any", "any", "any", "any", "gpu", "gpu", "gpu", "nic", "large"))
	if g.uses.all && g.chance(35) {
		ask.All()
	} else {
		ask.Count(oneOf[int64](g, 1, 1, 1, 1, 2, 2, 3))
	}
	if g.chance(1) {
		ask.Count(resourceapi.AllocationResultsMaxSize + 1)
	}
	for g.chance(12) {
		usable := selectors[:len(selectors)-1]
		if g.uses.errors {
			usable = selectors
		}
		ask.Select(oneOf(g, usable...))
	}
	if g.uses.taints && g.chance(55) {
		ask.Tolerate(oneOf(g, "broken", "old"))
	}
	return ask.With(func(spec *resourceapi.ExactDeviceRequest) {
		if g.uses.taints && g.chance(20) {
			spec.Tolerations = append(spec.Tolerations, resourceapi.DeviceToleration{
				Key: oneOf(g, "broken", "old"), Operator: resourceapi.DeviceTolerationOpEqual, Value: "fan",
				Effect: oneOf(g, "", resourceapi.DeviceTaintEffectNoSchedule),
			})
		}
		if g.uses.errors && g.chance(5) {
			spec.DeviceClassName = "missing"
		}
		if g.uses.sharing && g.chance(40) {
			spec.Capacity = &resourceapi.CapacityRequirements{Requests: g.amounts()}
		}
		if g.deriving && g.chance(92) {
			spec.DerivedAttributes = g.derive()
		}
	})
}

func (g *generator) amounts() map[resourceapi.QualifiedName]resource.Quantity {
	amounts := make(map[resourceapi.QualifiedName]resource.Quantity)
	name := oneOf[resourceapi.QualifiedName](g, "bandwidth", "bandwidth", "example.com/memory", "example.com/memory", "missing")
	if name == "missing" && g.chance(80) {
		name = "bandwidth"
	}
	amounts[name] = resource.MustParse(oneOf(g, "1", "1", "2", "2", "3", "4", "6"))
	if g.uses.fractions && g.chance(50) {
		amounts[name] = resource.MustParse(oneOf(g, "250m", "700m", "1500m", "2600m"))
	}
	if g.chance(20) {
		amounts["bandwidth"] = resource.MustParse(oneOf(g, "1", "2", "9"))
	}
	return amounts
}

// derivations are the expressions that the cluster understands, or nearly so.
func (g *generator) derivations() []string {
	switch {
	case g.uses.errors:
		return derivations
	case g.cluster.Features.ListTypeAttributes:
		return derivations[:len(derivations)-1]
	}
	return derivations[:len(derivations)-2]
}

// derive defines one attribute of its own, or one that hides that of the
// driver. Requests of a claim mostly do it in the same way.
func (g *generator) derive() []resourceapi.DeviceDerivedAttribute {
	expression := g.derivation
	if g.chance(25) {
		expression = oneOf(g, g.derivations()...)
	}
	name := oneOf[resourceapi.FullyQualifiedName](g, derivedAttribute, derivedAttribute, derivedAttribute, derivedAttribute, numaAttribute)
	return []resourceapi.DeviceDerivedAttribute{{Name: name, Expression: expression}}
}
