package integration

import (
	"fmt"
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// The smallest device that is enough is taken, on a node and across nodes.
func TestBestFit(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	memory := func(name, size string) *builders.DeviceBuilder { return builders.Device(name).Capacity("memory", size) }
	e.Create(class(e, "gpu").Obj(),
		pool(e, "a", memory("large", "80Gi"), memory("medium", "16Gi")).Obj(),
		pool(e, "b", memory("huge", "160Gi"), memory("tiny", "4Gi"), memory("small", "12Gi")).Obj())
	for _, want := range []struct{ node, device string }{{"b", "small"}, {"a", "medium"}, {"a", "large"}, {"b", "huge"}} {
		claim := builders.Claim(want.device, builders.Request("r", e.In("gpu")).
			Select(own(e, "capacity")+`.memory.compareTo(quantity("8Gi")) >= 0`)).Obj()
		e.Create(claim, builders.Pod(want.device).Claim(want.device).Obj())
		e.Runs(want.device, want.node)
		e.Took(want.device, "r="+want.node+"/"+want.device)
	}
}

// fourPods runs four pods with one GPU each, one after the other, on two nodes
// with four GPUs each, and returns how many each node got.
func fourPods(t *testing.T, e *harness.Env, scheduler string) map[string]int {
	t.Helper()
	nodes := make(map[string]int)
	for i := range 4 {
		name := fmt.Sprintf("pod-%d", i)
		pod := builders.Pod(name).Claim(name).Obj()
		pod.Spec.SchedulerName = scheduler
		e.Create(builders.Claim(name, builders.Request("r", e.In("gpu"))).Obj(), pod)
		nodes[e.Runs(name, "").Spec.NodeName]++
	}
	return nodes
}

// The shipped strategy fills one node and keeps the other free.
func TestPackedFillsANode(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 4).Obj(), gpus(e, "b", 4).Obj())
	if nodes := fourPods(t, e, "device-scheduler"); len(nodes) != 1 {
		t.Errorf("four pods are spread over nodes %v, want them on one", nodes)
	}
}

// Other strategies do what they say, and None takes devices in the order of
// their slice.
func TestOtherStrategies(t *testing.T) {
	e := env(t)
	e.StartScheduler("strategies", harness.SchedulerOptions{Change: withStrategies("Spread", "None")})
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 4).Obj(), gpus(e, "b", 4).Obj())
	nodes := fourPods(t, e, "Spread")
	if nodes[e.In("a")] != 2 || nodes[e.In("b")] != 2 {
		t.Errorf("four pods are on nodes %v, want two on each", nodes)
	}

	e.Create(builders.Slice(e.Driver, "sizes").OnNode(e.In("a")).Devices(
		builders.Device("large").Attribute("kind", "sized").Capacity("memory", "80Gi"),
		builders.Device("small").Attribute("kind", "sized").Capacity("memory", "16Gi")).Obj(),
		class(e, "sized").Select(`"kind" in `+own(e, "attributes")).Obj())
	pod := builders.Pod("none").Claim("none").Obj()
	pod.Spec.SchedulerName = "None"
	e.Create(builders.Claim("none", builders.Request("r", e.In("sized"))).Obj(), pod)
	e.Runs("none", "a")
	e.Took("none", "r=sizes/large")
}

// withStrategies replaces the shipped profile by one for each strategy, with
// the strategy's name. Such a scheduler runs beside the other one, so that it
// cannot use its lease.
func withStrategies(strategies ...string) func(map[string]any) {
	return func(config map[string]any) {
		config["leaderElection"] = map[string]any{"leaderElect": false}
		shipped := config["profiles"].([]any)[0].(map[string]any)
		var profiles []any
		for _, strategy := range strategies {
			profiles = append(profiles, map[string]any{
				"schedulerName": strategy,
				"plugins":       shipped["plugins"],
				"pluginConfig": []any{map[string]any{
					"name": "DeviceAllocation",
					"args": map[string]any{"objective": map[string]any{"strategy": strategy}},
				}},
			})
		}
		config["profiles"] = profiles
	}
}
