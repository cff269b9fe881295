package deviceallocation

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

func TestPreEnqueue(t *testing.T) {
	deleting := claimFor("deleting", 1).With(func(c *resourceapi.ResourceClaim) {
		c.Finalizers, c.DeletionTimestamp = []string{resourceapi.Finalizer}, &metav1.Time{}
	})
	tests := map[string]struct {
		pod  *builders.PodBuilder
		want string
	}{
		"no claims":        {pod: builders.Pod("pod"), want: "Success"},
		"claim exists":     {pod: builders.Pod("pod").Claim("claim"), want: "Success"},
		"claim is missing": {pod: builders.Pod("pod").Claim("missing"), want: `UnschedulableAndUnresolvable: resourceclaim "missing" not found`},
		"claim is going":   {pod: builders.Pod("pod").Claim("deleting"), want: `UnschedulableAndUnresolvable: resourceclaim "deleting" is being deleted`},
		"claim of another pod": {pod: builders.Pod("pod").ClaimTemplate("mine", "template", "claim"),
			want: `UnschedulableAndUnresolvable: ResourceClaim default/claim was not created for Pod default/pod (Pod is not owner)`},
		"claim not made yet": {pod: builders.Pod("pod").ClaimTemplate("mine", "template", ""),
			want: `UnschedulableAndUnresolvable: waiting for the claim "mine" of the pod: pod "default/pod": ResourceClaim not created yet`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, oneNode(1, claimFor("claim", 1), deleting), func(h *harness) {
				pod := tc.pod.Obj()
				expect(t, "PreEnqueue", text(h.plugin.PreEnqueue(h.ctx, pod)), tc.want)
				if tc.want != "Success" {
					_, status := h.attempt(pod).preFilter()
					expect(t, "PreFilter", text(status), tc.want)
				}
			})
		})
	}
}

func TestPreFilterNodes(t *testing.T) {
	twoNodes := objects(builders.Class(class), builders.Node("a"), builders.Node("b"), gpus("a", 1), gpus("b", 2))
	shared := builders.Slice(driver, "shared").OnAllNodes().Devices(builders.Device("gpu-0"))
	tests := map[string]struct {
		objects []runtime.Object
		claim   *builders.ClaimBuilder
		want    string
		// nodes are those of the result; nil means all.
		nodes []string
	}{
		"all nodes have devices":      {objects: twoNodes, claim: claimFor("claim", 1), want: "Success"},
		"a node with too few devices": {objects: twoNodes, claim: claimFor("claim", 2), want: "Success", nodes: []string{"b"}},
		"too few devices everywhere":  {objects: twoNodes, claim: claimFor("claim", 3), want: `UnschedulableAndUnresolvable: 2 request "request": fewer than 3 matching devices free`},
		"a node without devices":      {objects: objects(twoNodes, builders.Node("c")), claim: claimFor("claim", 1), want: "Success", nodes: []string{"a", "b"}},
		"devices that match nowhere":  {objects: twoNodes, claim: builders.Claim("claim", builders.Request("request", class).Select("false")), want: `UnschedulableAndUnresolvable: 2 request "request": no device matches selector 1 of the request`},
		"several reasons":             {objects: objects(twoNodes, builders.Node("c"), builders.Node("d"), builders.Node("e")), claim: builders.Claim("claim", builders.Request("request", class).Select("false")), want: `UnschedulableAndUnresolvable: 2 request "request": no device matches selector 1 of the request, 3 request "request": no devices on the node`},
		"devices of a shared pool":    {objects: objects(twoNodes, shared, builders.Node("c")), claim: claimFor("claim", 1), want: "Success"},
		"a faulty pool stays in view": {objects: objects(twoNodes, builders.Node("c"), gpus("c", 1).SliceCount(2)), claim: builders.Claim("claim", builders.Request("request", class).Select("false")), want: "Success", nodes: []string{"c"}},
		"no request at all":           {objects: twoNodes, claim: builders.Claim("claim"), want: "Success"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, objects(tc.objects, tc.claim), func(h *harness) {
				result, status := h.attempt(builders.Pod("pod").Claim("claim").Obj()).preFilter()
				expect(t, "PreFilter", text(status), tc.want)
				var nodes []string
				if result != nil {
					nodes = sets.List(result.NodeNames)
				}
				if !slices.Equal(nodes, tc.nodes) {
					t.Errorf("nodes: got %v, want %v", nodes, tc.nodes)
				}
			})
		})
	}
}

// TestPreFilterRefuses has what cannot be helped by any node.
func TestPreFilterRefuses(t *testing.T) {
	with := func(change func(*resourceapi.ExactDeviceRequest)) *builders.ClaimBuilder {
		return builders.Claim("claim", builders.Request("request", class).With(change))
	}
	tests := map[string]struct {
		claim *builders.ClaimBuilder
		want  string
	}{
		"class is missing": {claim: builders.Claim("claim", builders.Request("request", "missing")),
			want: `claim claim, request "request": device class missing does not exist`},
		"class of a subrequest is missing": {claim: builders.Claim("claim", builders.FirstAvailable("request", builders.Request("sub", "missing"))),
			want: `claim claim, request "request/sub": device class missing does not exist`},
		"derived attribute": {claim: with(func(r *resourceapi.ExactDeviceRequest) {
			r.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: "example.com/numa", Expression: "1"}}
		}), want: `claim claim, request "request": needs derived attributes, for which the feature gate of this scheduler is off`},
		"capacity that no device has": {claim: with(func(r *resourceapi.ExactDeviceRequest) {
			r.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}}
		}), want: `request "request": no matching device offers the requested capacity memory`},
		"selector that does not compile": {claim: builders.Claim("claim", builders.Request("request", class).Select("1")),
			want: `claim claim, request "request": selector 1 of the request does not compile: must evaluate to bool or the unknown type, not int`},
		"no devices": {claim: claimFor("claim", 0), want: `claim claim, request "request": count 0 is not positive`},
		"too many":   {claim: claimFor("claim", 33), want: `claim claim: asks for more than the 32 devices that a claim can hold`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, oneNode(1, tc.claim), func(h *harness) {
				expectAll(t, "search", h.attempt(builders.Pod("pod").Claim("claim").Obj()).search("node"), "UnschedulableAndUnresolvable: "+tc.want)
			})
		})
	}
}

func TestPreFilterSkips(t *testing.T) {
	run(t, oneNode(1, claimFor("claim", 1)), func(h *harness) {
		_, status := h.attempt(builders.Pod("plain").Obj()).preFilter()
		expect(t, "pod without claims", text(status), "Skip")

		resized := builders.Pod("pod").Claim("claim").OnNode("node").Obj()
		resized.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred,
		}}
		h.plugin.gates.EnableInPlacePodVerticalScalingSchedulerPreemption = true
		a := h.attempt(resized)
		_, status = a.preFilter()
		expect(t, "pod that waits for a resize", text(status), "Skip")
		expect(t, "its Filter", text(a.filter("node")), "Success")
		expect(t, "its PostFilter", text(a.postFilter()), "Unschedulable")

		h.plugin.gates.EnableInPlacePodVerticalScalingSchedulerPreemption = false
		_, status = h.attempt(resized).preFilter()
		expect(t, "the same without the gate", text(status), "Success")
	})
}

// TestPreFilterClaimInFlight is about a pod that shares a claim which is just
// being allocated (issue 137932).
func TestPreFilterClaimInFlight(t *testing.T) {
	first, second := builders.Pod("first").Claim("claim").Obj(), builders.Pod("second").Claim("claim").Obj()
	run(t, oneNode(1, claimFor("claim", 1)), func(h *harness) {
		a := h.attempt(first).find("node")
		a.must(a.reserve("node"))
		expectAll(t, "search meanwhile", h.attempt(second).search("node"),
			"UnschedulableAndUnresolvable: resourceclaim default/claim is being allocated for another pod")
		a.must(a.preBind("node"))
		h.attempt(second).bind("node")
		expect(t, "claim", h.describe("claim"), "allocated node/gpu-0, for first, for second")
	})
}

// TestClaimNamedTwice: a pod may list a claim under two names.
func TestClaimNamedTwice(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Claim("claim").Obj()
	pod.Spec.ResourceClaims[1].Name = "again"
	run(t, oneNode(1, claimFor("claim", 1)), func(h *harness) {
		h.attempt(pod).bind("node")
		expect(t, "claim", h.describe("claim"), "allocated node/gpu-0, for pod")
		h.settle()
		h.attempt(pod).bind("node")
	})
}

func TestScoreComparesNodes(t *testing.T) {
	cluster := objects(builders.Class(class), builders.Node("big"), builders.Node("small"), gpus("big", 4), gpus("small", 1), claimFor("claim", 1))
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, cluster, func(h *harness) {
		a := h.attempt(pod).find("big", "small")
		scores := a.scores(h.node("big"), h.node("small"))
		if scores[0].Score >= scores[1].Score || scores[1].Score > fwk.MaxNodeScore || scores[0].Score < 0 {
			t.Errorf("scores: got %v, want the small node first", scores)
		}
	})
}
