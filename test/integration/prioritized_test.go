package integration

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
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
