package deviceallocation

import (
	"encoding/json"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// The tests of this file have objects that today's API server would not hand
// on, and that another version of it may.

// withFields returns an object as a client decodes it that gets more fields
// than its version of the API knows: each path ends in a field to set.
func withFields(t *testing.T, object runtime.Object, paths ...[]any) runtime.Object {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal(encoded, &content); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		var at any = content
		for _, step := range path[:len(path)-1] {
			switch key := step.(type) {
			case string:
				at = at.(map[string]any)[key]
			case int:
				at = at.([]any)[key]
			}
		}
		at.(map[string]any)[path[len(path)-1].(string)] = map[string]any{"someday": "this means something"}
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	if encoded, err = json.Marshal(content); err != nil {
		t.Fatal(err)
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(encoded, &kinds[0], nil)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return decoded
}

// TestUnknownFields: what our version of the API does not know is not there for
// us, and the rest counts.
func TestUnknownFields(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	slice := withFields(t, gpus("node", 2).Obj(), []any{"unknown"}, []any{"spec", "unknown"}, []any{"spec", "pool", "unknown"},
		[]any{"spec", "devices", 0, "unknown"}, []any{"spec", "devices", 1, "unknown"})
	class := withFields(t, builders.Class(class).Select("true").Obj(), []any{"spec", "unknown"}, []any{"spec", "selectors", 0, "cel", "unknown"})
	claim := withFields(t, claimFor("claim", 2).MatchAttribute("example.com/numa").With(func(c *resourceapi.ResourceClaim) {
		c.Spec.Devices.Constraints = nil
	}).Obj(), []any{"spec", "unknown"}, []any{"spec", "devices", "unknown"},
		[]any{"spec", "devices", "requests", 0, "unknown"}, []any{"spec", "devices", "requests", 0, "exactly", "unknown"}, []any{"status", "unknown"})
	run(t, objects(class, builders.Node("node"), slice, claim, pod), func(h *harness) {
		h.attempt(pod).bind("node")
		expect(t, "claim", h.describe("claim"), "allocated node/gpu-0 node/gpu-1, for pod")
	})
}

// TestOddClaimsHarmTheirPodsOnly: a claim that asks in a way which this version
// does not know must not get less than it asks for. It is refused by name, and
// other pods are not concerned.
func TestOddClaimsHarmTheirPodsOnly(t *testing.T) {
	request := func(change func(*resourceapi.ExactDeviceRequest)) *builders.ClaimBuilder {
		return builders.Claim("odd", builders.Request("request", class).With(change))
	}
	for name, tc := range map[string]struct {
		claim *builders.ClaimBuilder
		want  string
	}{
		"type of request": {
			claim: builders.Claim("odd").With(func(c *resourceapi.ResourceClaim) {
				c.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "request"}}
			}),
			want: `claim odd, request "request": has a type that this scheduler does not know`},
		"allocation mode": {
			claim: request(func(r *resourceapi.ExactDeviceRequest) { r.AllocationMode = "Most" }),
			want:  `claim odd, request "request": unknown allocation mode "Most"`},
		"allocation mode of a subrequest": {
			claim: builders.Claim("odd", builders.FirstAvailable("request",
				builders.Request("known", class), builders.Request("unknown", class).With(func(r *resourceapi.ExactDeviceRequest) { r.AllocationMode = "Most" }))),
			want: `claim odd, request "request/unknown": unknown allocation mode "Most"`},
		"selector": {
			claim: request(func(r *resourceapi.ExactDeviceRequest) { r.Selectors = []resourceapi.DeviceSelector{{}} }),
			want:  `claim odd, request "request": selector 1 of the request has a type that this scheduler does not know`},
		"constraint": {
			claim: claimFor("odd", 1).With(func(c *resourceapi.ResourceClaim) {
				c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{Requests: []string{"request"}}}
			}),
			want: "claim odd: constraint 1 has a type that this scheduler does not know"},
		"negative count": {
			claim: claimFor("odd", -1),
			want:  `claim odd, request "request": count -1 is not positive`},
	} {
		t.Run(name, func(t *testing.T) {
			odd, plain := builders.Pod("odd").Claim("odd").Obj(), builders.Pod("plain").Claim("plain").Obj()
			both := builders.Pod("both").Claim("plain").Claim("odd").Obj()
			run(t, oneNode(2, tc.claim, claimFor("plain", 1), odd, plain), func(h *harness) {
				expectAll(t, "odd pod", h.attempt(odd).search("node"), "UnschedulableAndUnresolvable: "+tc.want)
				expectAll(t, "pod with both claims", h.attempt(both).search("node"), "UnschedulableAndUnresolvable: "+tc.want)
				expectAll(t, "writes", h.writes)
				h.attempt(plain).bind("node")
				expect(t, "plain claim", h.describe("plain"), "allocated node/gpu-0, for plain")
			})
		})
	}
}

// TestOddDevicesHarmTheirRequestsOnly: no expression can be evaluated for a
// device that has an attribute without a value of a known type, and no
// constraint is fulfilled by it. Who asks for neither may have it.
func TestOddDevicesHarmTheirRequestsOnly(t *testing.T) {
	const numa = "gpu.example.com/numa"
	odd := func(d *resourceapi.Device) {
		d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"numa": {}, "model": {StringValue: ptr.To("large")}}
	}
	slice := builders.Slice(driver, "node").OnNode("node").Devices(
		builders.Device("gpu-0").With(odd), builders.Device("gpu-1").Attribute("numa", 0).Attribute("model", "large"))
	large := builders.Request("request", class).Select(`device.attributes["gpu.example.com"].model == "large"`)
	for name, tc := range map[string]struct {
		claim *builders.ClaimBuilder
		want  string
	}{
		"neither":        {claim: claimFor("claim", 1), want: "allocated node/gpu-0, for pod"},
		"an expression":  {claim: builders.Claim("claim", large), want: "allocated node/gpu-1, for pod"},
		"a constraint":   {claim: claimFor("claim", 1).MatchAttribute(numa), want: "allocated node/gpu-1, for pod"},
		"its difference": {claim: claimFor("claim", 1).DistinctAttribute(numa), want: "allocated node/gpu-1, for pod"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("pod").Claim("claim").Obj()
			run(t, objects(builders.Class(class), builders.Node("node"), slice, tc.claim, pod), func(h *harness) {
				h.attempt(pod).bind("node")
				expect(t, "claim", h.describe("claim"), tc.want)
			})
		})
	}
	t.Run("no other device", func(t *testing.T) {
		pod := builders.Pod("pod").Claim("claim").Obj()
		lonely := builders.Slice(driver, "node").OnNode("node").Devices(builders.Device("gpu-0").With(odd))
		run(t, objects(builders.Class(class), builders.Node("node"), lonely, builders.Claim("claim", large), pod), func(h *harness) {
			expectAll(t, "search", h.attempt(pod).search("node"), `UnschedulableAndUnresolvable: 1 request "request": `+
				`no device matches selector 1 of the request (attribute numa: has no value of a known type)`)
		})
	})
}

// TestAllocationOfUnknownDevices: an allocation stands until somebody takes it
// back, whether its devices are published or not; and what it names is held.
func TestAllocationOfUnknownDevices(t *testing.T) {
	everywhere := func(c *resourceapi.ResourceClaim) { c.Status.Allocation.NodeSelector = nil }
	for name, tc := range map[string]struct {
		claim *builders.ClaimBuilder
		want  string
	}{
		"unknown device":  {claim: held("claim", "node", "gone").With(everywhere), want: "allocated node/gone, for pod"},
		"unknown pool":    {claim: held("claim", "nowhere", "gpu-0").With(everywhere), want: "allocated nowhere/gpu-0, for pod"},
		"unknown driver":  {claim: claimFor("claim", 1).Holding("unknown.example.com", "pool", "device").With(finalized), want: "allocated pool/device, for pod"},
		"unknown request": {claim: held("claim", "node", "gone").With(everywhere).With(func(c *resourceapi.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Request = "no/such" }), want: "allocated node/gone, for pod"},
		"no device":       {claim: claimFor("claim", 1).Holding(driver, "node").With(finalized), want: "allocated, for pod"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, other := builders.Pod("pod").Claim("claim").Obj(), builders.Pod("other").Claim("other").Obj()
			run(t, oneNode(1, tc.claim, claimFor("other", 1), pod, other), func(h *harness) {
				h.attempt(pod).bind("node")
				expect(t, "claim", h.describe("claim"), tc.want)
				h.attempt(other).bind("node")
				expect(t, "claim of another pod", h.describe("other"), "allocated node/gpu-0, for other")
			})
		})
	}
	// The device appears after all: it is in use.
	other := builders.Pod("other").Claim("other").Obj()
	late := held("claim", "node", "gpu-0")
	run(t, objects(builders.Class(class), builders.Node("node"), late, claimFor("other", 1), gpus("node", 1), other), func(h *harness) {
		expectAll(t, "search", h.attempt(other).search("node"), inUse)
	})
}

func finalized(c *resourceapi.ResourceClaim) { c.Finalizers = []string{resourceapi.Finalizer} }
