package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

const zone = "example.com/zone"

// Devices can be local to a node, reachable from all nodes, or from those with
// a label; the allocation says which nodes can reach them.
func TestReach(t *testing.T) {
	e := env(t)
	e.Create(builders.Node(e.In("a")), builders.Node(e.In("b"), zone, "east"))
	e.NodesReady("a", "b")
	kind := func(name string) string { return own(e, "attributes") + `.kind == "` + name + `"` }
	device := func(kind string) *builders.DeviceBuilder { return builders.Device(kind).Attribute("kind", kind) }
	e.Create(class(e, "local").Select(kind("local")).Obj(), class(e, "everywhere").Select(kind("everywhere")).Obj(),
		class(e, "zonal").Select(kind("zonal")).Obj(),
		builders.Slice(e.Driver, "local").OnNode(e.In("a")).Devices(device("local")).Obj(),
		builders.Slice(e.Driver, "everywhere").OnAllNodes().Devices(device("everywhere")).Obj(),
		builders.Slice(e.Driver, "zonal").OnNodesWith(zone, "east").Devices(device("zonal")).Obj())
	tests := []struct {
		class, node string
		nodes       *corev1.NodeSelector
	}{
		{"local", "a", e.OnNode("a")},
		{"everywhere", "", nil},
		{"zonal", "b", builders.NodesWith(zone, "east")},
	}
	for _, tc := range tests {
		e.Create(builders.Claim(tc.class, builders.Request("r", e.In(tc.class))).Obj(), builders.Pod(tc.class).Claim(tc.class).Obj())
		e.Runs(tc.class, tc.node)
		e.Holds(tc.class, &resourceapi.AllocationResult{
			Devices:      resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{e.Device("r", tc.class, tc.class)}},
			NodeSelector: tc.nodes,
		}, tc.class)
	}
	// No node reaches both.
	e.Create(builders.Claim("both", builders.Request("l", e.In("local")), builders.Request("z", e.In("zonal"))).Obj(),
		builders.Pod("both").Claim("both").Obj())
	e.Waits("both", unfitBeside(1, `1 request "l": no device matches selector 2 of class `+e.In("local"),
		`request "l": all matching devices in use`))
}

// The devices of one slice can each have nodes of their own.
func TestPerDeviceNodeSelection(t *testing.T) {
	e := env(t)
	e.Create(builders.Node(e.In("a")), builders.Node(e.In("b"), zone, "east"))
	e.NodesReady("a", "b")
	e.Create(class(e, "gpu").Obj(), builders.Slice(e.Driver, "pool").PerDevice().Devices(
		builders.Device("on-a").OnNode(e.In("a")),
		builders.Device("east").OnNodesWith(zone, "east"),
		builders.Device("anywhere").OnAllNodes()).Obj(),
		builders.Claim("three", builders.Request("r", e.In("gpu")).Count(3)).Obj(), builders.Pod("three").Claim("three").Obj(),
		builders.Claim("two", builders.Request("r", e.In("gpu")).Count(2).Select(`device.driver != "x"`)).Obj(),
		builders.Pod("two").Claim("two").Obj())
	e.Waits("three", unfit(2, `2 request "r": fewer than 3 matching devices free`))
	node := e.Runs("two", "").Spec.NodeName
	allocation := e.Allocation("a", e.Device("r", "pool", "on-a"), e.Device("r", "pool", "anywhere"))
	if node == e.In("b") {
		allocation.Devices.Results[0].Device = "east"
		allocation.NodeSelector = builders.NodesWith(zone, "east")
	}
	e.Holds("two", allocation, "two")
}

// A device that four nodes reach serves four pods that share its claim, each on
// a node of its own.
func TestDeviceOfSeveralNodes(t *testing.T) {
	e := env(t)
	names := []string{"a", "b", "c", "d", "e"}
	for i, name := range names {
		rack := "one"
		if i == 4 {
			rack = "two"
		}
		e.Create(builders.Node(e.In(name), zone, rack, "kubernetes.io/hostname", e.In(name)))
	}
	e.NodesReady(names...)
	e.Create(class(e, "gpu").Obj(), builders.Slice(e.Driver, "pool").PerDevice().Devices(
		builders.Device("multi").OnNodesWith(zone, "one")).Obj(),
		builders.Claim("shared", builders.Request("r", e.In("gpu"))).Obj())
	nodes := make(map[string]bool)
	pods := []string{"one", "two", "three", "four"}
	for _, name := range pods {
		e.Create(apart(builders.Pod(name).Claim("shared").Obj()))
	}
	for _, name := range pods {
		nodes[e.Runs(name, "").Spec.NodeName] = true
	}
	if len(nodes) != len(pods) || nodes[e.In("e")] {
		t.Errorf("the pods run on nodes %v, want those of rack one", nodes)
	}
	e.Holds("shared", &resourceapi.AllocationResult{
		Devices:      resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{e.Device("r", "pool", "multi")}},
		NodeSelector: builders.NodesWith(zone, "one"),
	}, pods...)
}

// apart keeps pods of the test from sharing a node.
func apart(pod *corev1.Pod) *corev1.Pod {
	pod.Labels = map[string]string{"apart": "yes"}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}, TopologyKey: "kubernetes.io/hostname",
		}},
	}}
	return pod
}
