package result_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	driver   = "gpu.example.com"
	nodeName = "node-1"
)

func allocate(t *testing.T, classes []*builders.ClassBuilder, slices []*builders.SliceBuilder, claims ...*builders.ClaimBuilder) ([]resourceapi.AllocationResult, error) {
	t.Helper()
	p, solution := solve(t, classes, slices, claims...)
	return result.Build(p, solution, nodeName, uuid.NewUUID)
}

// solve allocates on a node with labels zone=a and rack=7.
func solve(t *testing.T, classes []*builders.ClassBuilder, slices []*builders.SliceBuilder, claims ...*builders.ClaimBuilder) (*problem.Problem, *allocator.Solution) {
	t.Helper()
	var objects []*resourceapi.ResourceClaim
	for _, claim := range claims {
		objects = append(objects, claim.Obj())
	}
	getter := func(name string) (*resourceapi.DeviceClass, error) {
		for _, class := range classes {
			if class.Obj().Name == name {
				return class.Obj(), nil
			}
		}
		return nil, fmt.Errorf("class %s not found", name)
	}
	p, err := problem.Build(objects, problem.Source{Classes: getter, Compiler: selector.NewCompiler(cel.Features{}), Features: device.AllFeatures()})
	if err != nil {
		t.Fatal(err)
	}
	pools := inventory.New(device.AllFeatures())
	for _, slice := range slices {
		pools.SetSlice(slice.Obj())
	}
	snapshot := pools.Snapshot()
	view := snapshot.Node(builders.Node(nodeName, "zone", "a", "rack", "7"))
	solution, err := allocator.Solve(context.Background(), p, allocator.Node{View: view, Usage: ledger.New().Snapshot(snapshot), SkipsNodeOperations: true}, allocator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p, solution
}

func local(devices int) []*builders.SliceBuilder {
	return []*builders.SliceBuilder{builders.Slice(driver, "pool").OnNode(nodeName).Devices(builders.DevicesNamed("gpu", devices, nil)...)}
}

func config(source resourceapi.AllocationConfigSource, parameters string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	return resourceapi.DeviceAllocationConfiguration{Source: source, Requests: requests, DeviceConfiguration: builders.Config(driver, parameters)}
}

func TestDevices(t *testing.T) {
	class := []*builders.ClassBuilder{builders.Class("gpu")}
	got, err := allocate(t, class, local(4),
		builders.Claim("a", builders.Request("two", "gpu").Count(2).Tolerate("broken"),
			builders.FirstAvailable("list", builders.Request("none", "gpu").Select("false"), builders.Request("one", "gpu").Tolerate("old"))),
		builders.Claim("b", builders.Request("admin", "gpu").Admin()),
		builders.Claim("c"))
	if err != nil {
		t.Fatal(err)
	}
	broken := []resourceapi.DeviceToleration{{Key: "broken", Operator: resourceapi.DeviceTolerationOpExists}}
	old := []resourceapi.DeviceToleration{{Key: "old", Operator: resourceapi.DeviceTolerationOpExists}}
	want := [][]resourceapi.DeviceRequestAllocationResult{
		{
			{Request: "two", Driver: driver, Pool: "pool", Device: "gpu-0", Tolerations: broken},
			{Request: "two", Driver: driver, Pool: "pool", Device: "gpu-1", Tolerations: broken},
			{Request: "list/one", Driver: driver, Pool: "pool", Device: "gpu-2", Tolerations: old},
		},
		{{Request: "admin", Driver: driver, Pool: "pool", Device: "gpu-0", AdminAccess: ptr.To(true)}},
		{},
	}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i].Devices.Results); diff != "" {
			t.Errorf("claim %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestConditionsAndOperations: what is waited for, and what kubelet leaves out,
// is copied from device and slice. The results share nothing with these.
func TestConditionsAndOperations(t *testing.T) {
	device := builders.Device("gpu").Conditions([]string{"attached", "ready"}, []string{"broken"})
	classes := []*builders.ClassBuilder{builders.Class("gpu")}
	claim := builders.Claim("claim", builders.Request("r", "gpu"))
	for name, slice := range map[string]*builders.SliceBuilder{
		"with kubelet":    builders.Slice(driver, "pool").OnNode(nodeName).Devices(device),
		"without kubelet": builders.Slice(driver, "pool").OnNode(nodeName).Devices(device).SkipNodeOperations(),
	} {
		t.Run(name, func(t *testing.T) {
			p, solution := solve(t, classes, []*builders.SliceBuilder{slice}, claim)
			for range 2 {
				got, err := result.Build(p, solution, nodeName, uuid.NewUUID)
				if err != nil {
					t.Fatal(err)
				}
				want := []resourceapi.DeviceRequestAllocationResult{{
					Request: "r", Driver: driver, Pool: "pool", Device: "gpu",
					BindingConditions: []string{"attached", "ready"}, BindingFailureConditions: []string{"broken"},
					SkipNodeOperations: slice.Obj().Spec.SkipNodeOperations,
				}}
				if diff := cmp.Diff(want, got[0].Devices.Results); diff != "" {
					t.Fatalf("results (-want +got):\n%s", diff)
				}
				r := &got[0].Devices.Results[0]
				r.BindingConditions[0], r.BindingFailureConditions[0] = "changed", "changed"
				if len(r.SkipNodeOperations) > 0 {
					r.SkipNodeOperations[0] = "changed"
				}
			}
		})
	}
}

func TestConfigs(t *testing.T) {
	const class, claim = resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim
	classes := []*builders.ClassBuilder{
		builders.Class("gpu").Config(driver, `"gpu 1"`).Config(driver, `"gpu 2"`),
		builders.Class("nic").Config(driver, `"nic"`),
		builders.Class("plain"),
	}
	request := builders.Request
	// list takes its second subrequest.
	list := builders.FirstAvailable("list", request("none", "nic").Select("false"), request("some", "gpu"))
	cases := map[string]struct {
		claim *builders.ClaimBuilder
		want  []resourceapi.DeviceAllocationConfiguration
	}{
		"none": {builders.Claim("c", request("a", "plain")), nil},
		"of a class for the only request": {
			builders.Claim("c", request("a", "nic")),
			[]resourceapi.DeviceAllocationConfiguration{config(class, `"nic"`)}},
		"of a class for one of two requests": {
			builders.Claim("c", request("a", "plain"), request("b", "nic")),
			[]resourceapi.DeviceAllocationConfiguration{config(class, `"nic"`, "b")}},
		"of a class once for several requests": {
			builders.Claim("c", request("a", "gpu"), request("b", "nic"), request("c", "gpu")),
			[]resourceapi.DeviceAllocationConfiguration{
				config(class, `"gpu 1"`, "a", "c"), config(class, `"gpu 2"`, "a", "c"), config(class, `"nic"`, "b")}},
		"of the class of the subrequest taken": {
			builders.Claim("c", request("a", "plain"), list),
			[]resourceapi.DeviceAllocationConfiguration{
				config(class, `"gpu 1"`, "list/some"), config(class, `"gpu 2"`, "list/some")}},
		"of a claim for all requests": {
			builders.Claim("c", request("a", "plain"), request("b", "plain")).Config(driver, `"all"`),
			[]resourceapi.DeviceAllocationConfiguration{config(claim, `"all"`)}},
		"of a claim for each request by name": {
			builders.Claim("c", request("a", "plain"), request("b", "plain")).Config(driver, `"all"`, "b", "a"),
			[]resourceapi.DeviceAllocationConfiguration{config(claim, `"all"`)}},
		"of a claim for one request": {
			builders.Claim("c", request("a", "plain"), request("b", "plain")).Config(driver, `"b"`, "b"),
			[]resourceapi.DeviceAllocationConfiguration{config(claim, `"b"`, "b")}},
		"of a claim for subrequests, as it lists them": {
			builders.Claim("c", request("a", "plain"), list).Config(driver, `"lists"`, "list/none", "list/some"),
			[]resourceapi.DeviceAllocationConfiguration{
				config(class, `"gpu 1"`, "list/some"), config(class, `"gpu 2"`, "list/some"), config(claim, `"lists"`, "list/none", "list/some")}},
		"of a claim for a subrequest that is not taken": {
			builders.Claim("c", request("a", "nic"), list).Config(driver, `"none"`, "list/none").Config(driver, `"main"`, "list"),
			[]resourceapi.DeviceAllocationConfiguration{config(class, `"nic"`, "a"),
				config(class, `"gpu 1"`, "list/some"), config(class, `"gpu 2"`, "list/some"), config(claim, `"main"`, "list")}},
		"of a claim for the subrequest taken and the rest": {
			builders.Claim("c", request("a", "plain"), builders.FirstAvailable("list", request("x", "plain"))).Config(driver, `"all"`, "list/x", "a"),
			[]resourceapi.DeviceAllocationConfiguration{config(claim, `"all"`)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := allocate(t, classes, local(4), tc.claim)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got[0].Devices.Config); diff != "" {
				t.Errorf("configurations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTooManyConfigs(t *testing.T) {
	for configs, fits := range map[int]bool{64: true, 65: false} {
		var classes []*builders.ClassBuilder
		claim := builders.Claim("claim")
		for i := range 3 {
			name := fmt.Sprintf("class-%d", i)
			class := builders.Class(name)
			for j := i; j < configs; j += 3 {
				class.Config(driver, fmt.Sprint(j))
			}
			classes = append(classes, class)
			claim.Requests(builders.Request(fmt.Sprintf("request-%d", i), name))
		}
		_, err := allocate(t, classes, local(3), claim)
		var tooMany *result.TooManyConfigsError
		switch {
		case fits && err != nil:
			t.Errorf("%d configurations: %v", configs, err)
		case !fits && (!errors.As(err, &tooMany) || tooMany.Claim != "claim" || tooMany.Configs != configs):
			t.Errorf("%d configurations: error %v, want one that names claim and number", configs, err)
		}
	}
}

func TestNodeSelector(t *testing.T) {
	slice := func(pool string) *builders.SliceBuilder { return builders.Slice(driver, pool) }
	in := func(key, value string) corev1.NodeSelectorRequirement {
		return builders.NodesWith(key, value).NodeSelectorTerms[0].MatchExpressions[0]
	}
	terms := func(requirements ...corev1.NodeSelectorRequirement) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}}}
	}
	thisNode := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{nodeName}}}}}}
	device := func() *builders.DeviceBuilder { return builders.Device("d") }
	cases := map[string]struct {
		slices []*builders.SliceBuilder // one device of each is taken
		want   *corev1.NodeSelector
	}{
		"local":                 {[]*builders.SliceBuilder{slice("a").OnNode(nodeName).Devices(device())}, thisNode},
		"everywhere":            {[]*builders.SliceBuilder{slice("a").OnAllNodes().Devices(device())}, nil},
		"zone":                  {[]*builders.SliceBuilder{slice("a").OnNodesWith("zone", "a").Devices(device())}, terms(in("zone", "a"))},
		"zone and everywhere":   {[]*builders.SliceBuilder{slice("a").OnAllNodes().Devices(device()), slice("b").OnNodesWith("zone", "a").Devices(device())}, terms(in("zone", "a"))},
		"zone and rack":         {[]*builders.SliceBuilder{slice("a").OnNodesWith("zone", "a").Devices(device()), slice("b").OnNodesWith("rack", "7").Devices(device())}, terms(in("zone", "a"), in("rack", "7"))},
		"zone twice":            {[]*builders.SliceBuilder{slice("a").OnNodesWith("zone", "a").Devices(device()), slice("b").OnNodesWith("zone", "a").Devices(device())}, terms(in("zone", "a"))},
		"zone and local":        {[]*builders.SliceBuilder{slice("a").OnNodesWith("zone", "a").Devices(device()), slice("b").OnNode(nodeName).Devices(device())}, thisNode},
		"device with node":      {[]*builders.SliceBuilder{slice("a").PerDevice().Devices(device().OnNode(nodeName))}, thisNode},
		"device with all nodes": {[]*builders.SliceBuilder{slice("a").PerDevice().Devices(device().OnAllNodes())}, nil},
		"device with zone":      {[]*builders.SliceBuilder{slice("a").PerDevice().Devices(device().OnNodesWith("zone", "a"))}, terms(in("zone", "a"))},
		"device that binds to its node": {
			[]*builders.SliceBuilder{slice("a").OnAllNodes().Devices(device().With(func(d *resourceapi.Device) { d.BindsToNode = ptr.To(true) }))}, thisNode},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := allocate(t, []*builders.ClassBuilder{builders.Class("any")}, tc.slices,
				builders.Claim("claim", builders.Request("r", "any").Count(int64(len(tc.slices)))))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got[0].NodeSelector); diff != "" {
				t.Errorf("node selector (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("two terms", func(t *testing.T) {
		two := slice("a").PerDevice().Devices(device().With(func(d *resourceapi.Device) {
			d.NodeSelector = builders.NodesWith("zone", "a")
			d.NodeSelector.NodeSelectorTerms = append(d.NodeSelector.NodeSelectorTerms, builders.NodesWith("rack", "7").NodeSelectorTerms...)
		}))
		got, err := allocate(t, []*builders.ClassBuilder{builders.Class("any")}, []*builders.SliceBuilder{two}, builders.Claim("claim", builders.Request("r", "any")))
		if err == nil {
			t.Errorf("got %v, want an error", got)
		}
	})
}

func TestResultsShareNothing(t *testing.T) {
	class := builders.Class("gpu").Config(driver, `"class 1"`).Config(driver, `"class 2"`)
	claim := builders.Claim("c", builders.Request("a", "gpu").Tolerate("x"), builders.Request("b", "other")).Config(driver, `"claim"`, "a")
	p, solution := solve(t, []*builders.ClassBuilder{class, builders.Class("other")}, local(2), claim)
	before, err := result.Build(p, solution, nodeName, uuid.NewUUID)
	if err != nil {
		t.Fatal(err)
	}
	spoiled, _ := result.Build(p, solution, nodeName, uuid.NewUUID)
	spoiled[0].Devices.Results[0].Tolerations[0].Key = "changed"
	spoiled[0].Devices.Config[0].Requests[0] = "changed"
	spoiled[0].Devices.Config[2].Requests[0] = "changed"
	if diff := cmp.Diff(before[0].Devices.Config[1], spoiled[0].Devices.Config[1]); diff != "" {
		t.Errorf("a change of one configuration has changed another (-before +after):\n%s", diff)
	}
	again, _ := result.Build(p, solution, nodeName, uuid.NewUUID)
	if diff := cmp.Diff(before, again); diff != "" {
		t.Errorf("a change of the result has changed its source (-before +after):\n%s", diff)
	}
}
