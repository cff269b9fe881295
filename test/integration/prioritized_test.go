package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// Of a prioritized list the first possible entry is taken, and the node that
// can give it wins over a node that cannot, however full that is.
func TestPrioritizedList(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	model := func(name string) *builders.DeviceBuilder { return builders.Device(name).Attribute("model", name) }
	is := func(name string) string { return own(e, "attributes") + `.model == "` + name + `"` }
	e.Create(class(e, "large").Select(is("large")).Obj(), class(e, "small").Select(is("small")).Obj(),
		pool(e, "a", model("small")).Obj(),
		pool(e, "b", model("small"), model("large"), builders.Device("other").Attribute("model", "other")).Obj())
	claim := func(name string) *builders.ClaimBuilder {
		return builders.Claim(name, builders.FirstAvailable("gpu",
			builders.Request("two", e.In("large")).Count(2), // nowhere
			builders.Request("large", e.In("large")),
			builders.Request("small", e.In("small"))))
	}
	e.Create(claim("first").Obj(), builders.Pod("first").Claim("first").Obj())
	e.Runs("first", "b")
	e.Holds("first", e.Allocation("b", e.Device("gpu/large", "b", "large")), "first")

	for _, name := range []string{"second", "third"} {
		e.Create(claim(name).Obj(), builders.Pod(name).Claim(name).Obj())
		node := e.Runs(name, "").Spec.NodeName
		short := node[len(node)-1:]
		e.Holds(name, e.Allocation(short, e.Device("gpu/small", short, "small")), name)
	}
	e.Create(claim("fourth").Obj(), builders.Pod("fourth").Claim("fourth").Obj())
	class := e.In("large")
	e.Waits("fourth", unfit(2, `1 request "gpu": no alternative possible (gpu/two: all matching devices in use; `+
		`gpu/large: all matching devices in use; gpu/small: all matching devices in use), `+
		`1 request "gpu": no alternative possible (gpu/two: no device matches selector 2 of class `+class+`; `+
		`gpu/large: no device matches selector 2 of class `+class+`; gpu/small: all matching devices in use)`))
}

// nodesWithClasses makes nodes with a class of devices each, which only that
// node has.
func nodesWithClasses(e *harness.Env, devices int, nodes ...string) {
	e.Nodes(nodes...)
	for _, node := range nodes {
		e.Create(class(e, node).Select(own(e, "attributes")+`.kind == "`+node+`"`).Obj(),
			pool(e, node, builders.DevicesNamed("device", devices, func(_ int, d *builders.DeviceBuilder) { d.Attribute("kind", node) })...).Obj())
	}
}

// oneOf asks for the first available of classes, which name the subrequests.
func oneOf(e *harness.Env, name string, classes ...string) *builders.ClaimBuilder {
	var subrequests []*builders.RequestBuilder
	for _, name := range classes {
		subrequests = append(subrequests, builders.Request("of-"+name, e.In(name)))
	}
	return builders.Claim(name, builders.FirstAvailable("r", subrequests...))
}

// Of eight nodes, each of which has one entry of the list, that with the first
// one wins, in whatever order they are listed.
func TestPrioritizedListOverEightNodes(t *testing.T) {
	e := env(t)
	nodes := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	nodesWithClasses(e, 2, nodes...)
	for i, first := range []string{"e", "a", "h"} {
		at := slices.Index(nodes, first)
		list := slices.Concat(nodes[at:], nodes[:at])
		name := fmt.Sprint("list-", i)
		e.Create(oneOf(e, name, list...).Obj(), builders.Pod(name).Claim(name).Obj())
		e.Runs(name, first)
		e.Holds(name, e.Allocation(first, e.Device("r/of-"+first, first, "device-0")), name)
	}
}

// What several claims prefer adds up: a node with a first and a second choice
// beats one with a first and a third.
func TestPrioritizedListAcrossClaims(t *testing.T) {
	e := env(t)
	nodesWithClasses(e, 2, "a", "b", "c")
	e.Create(oneOf(e, "one", "a", "b", "c").Obj(), oneOf(e, "two", "b", "c", "a").Obj(), builders.Pod("pod").Claim("one").Claim("two").Obj())
	e.Runs("pod", "b")
	e.Took("one", "r/of-b=b/device-0")
	e.Took("two", "r/of-b=b/device-1")
}
