package deviceallocation

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/config"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const noSuchKey = "no such key: index"

// TestFilterOneNodesTrouble: what is wrong on one node rejects that node; the
// other one takes the pod.
func TestFilterOneNodesTrouble(t *testing.T) {
	indexed := func(i int, d *builders.DeviceBuilder) { d.Attribute("index", i) }
	good := builders.Slice(driver, "good").OnNode("good").Devices(builders.DevicesNamed("gpu", 2, indexed)...)
	tests := map[string]struct {
		bad   *builders.SliceBuilder
		claim *builders.ClaimBuilder
		want  string
	}{
		"selector fails": {
			bad:   gpus("bad", 1),
			claim: builders.Claim("claim", builders.Request("request", class).Select(`device.attributes["gpu.example.com"].index >= 0`)),
			want: `UnschedulableAndUnresolvable: request "request": no device matches selector 1 of the request` +
				` (` + noSuchKey + `)`,
		},
		"incomplete pool, all devices": {
			bad:   gpus("bad", 1).SliceCount(2),
			claim: builders.Claim("claim", builders.Request("request", class).All()),
			want:  `UnschedulableAndUnresolvable: request "request": asks for all devices, but pool gpu.example.com/bad incomplete (1 of 2 slices)`,
		},
		"incomplete pool": {
			bad:   gpus("bad", 1).SliceCount(2),
			claim: claimFor("claim", 1),
			want:  `UnschedulableAndUnresolvable: request "request": pool gpu.example.com/bad incomplete (1 of 2 slices)`,
		},
		"more devices than a claim can hold": {
			bad:   gpus("bad", 33),
			claim: builders.Claim("claim", builders.Request("request", class).All()),
			want:  `UnschedulableAndUnresolvable: request "request": more than the 32 devices that a claim can hold`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := objects(builders.Class(class), builders.Node("good"), builders.Node("bad"), good, tc.bad, tc.claim)
			run(t, cluster, func(h *harness) {
				a := h.attempt(builders.Pod("pod").Claim("claim").Obj())
				if _, status := a.preFilter(); !status.IsSuccess() {
					t.Fatalf("PreFilter: %s", text(status))
				}
				expect(t, "bad node", text(a.filter("bad")), tc.want)
				expect(t, "good node", text(a.filter("good")), "Success")
			})
		})
	}
}

func TestFilterSelectorErrorsFail(t *testing.T) {
	claim := builders.Claim("claim", builders.Request("request", class).Select(`device.attributes["gpu.example.com"].index >= 0`))
	run(t, oneNode(1, claim), func(h *harness) {
		args := config.Defaults()
		args.SelectorErrors = config.SelectorErrorsFail
		h.plugin.configure(&args)
		h.plugin.nodes = newCandidates(h.plugin.verdicts, h.plugin.profile, true)
		a := h.attempt(builders.Pod("pod").Claim("claim").Obj())
		expectAll(t, "search", a.search("node"),
			"Error: request \"request\": selector 1 of the request fails for device gpu.example.com/node/gpu-0: "+noSuchKey)
	})
}

// TestFilterEnds has the limits of a search: each rejects the node, with words
// that do not say that the pod does not fit.
func TestFilterEnds(t *testing.T) {
	cluster := oneNode(8, claimFor("claim", 4))
	pod := builders.Pod("pod").Claim("claim").Obj()
	t.Run("filterTimeout", func(t *testing.T) {
		run(t, cluster, func(h *harness) {
			a := h.attempt(pod).find()
			h.plugin.filterTimeout = time.Nanosecond
			ended, cancel := context.WithTimeoutCause(h.ctx, 0, errFilterTimeout)
			defer cancel()
			expect(t, "Filter", text(h.plugin.Filter(ended, a.cycle, pod, h.node("node"))),
				"UnschedulableAndUnresolvable: search for devices ended undecided after 1ns (see filterTimeout)")
			h.plugin.filterTimeout = 0
			expect(t, "Filter without a limit", text(a.filter("node")), "Success")
		})
	})
	t.Run("enough nodes", func(t *testing.T) {
		run(t, cluster, func(h *harness) {
			a := h.attempt(pod).find()
			ended, cancel := context.WithCancel(h.ctx)
			cancel()
			expect(t, "Filter", text(h.plugin.Filter(ended, a.cycle, pod, h.node("node"))),
				"UnschedulableAndUnresolvable: search for devices ended because enough nodes were found")
		})
	})
	t.Run("stepBudget", func(t *testing.T) {
		run(t, cluster, func(h *harness) {
			h.plugin.options.StepBudget = 1
			got := h.attempt(pod).search("node")[0]
			if !strings.HasPrefix(got, "UnschedulableAndUnresolvable: search for devices ended undecided after ") || !strings.HasSuffix(got, "(see stepBudget)") {
				t.Errorf("Filter: got %s, want an undecided search", got)
			}
		})
	})
}

// TestFilterAllocatedClaims is about claims that have their devices already.
func TestFilterAllocatedClaims(t *testing.T) {
	many := held("claim", "a", "gpu-0").With(func(c *resourceapi.ResourceClaim) {
		for range resourceapi.ResourceClaimReservedForMaxSize {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "other", UID: "other"})
		}
	})
	own := many.Obj()
	own.Status.ReservedFor[0] = consumer(builders.Pod("pod").Obj())
	tainted := gpus("a", 0).Devices(builders.Device("gpu-0").Taint("broken", resourceapi.DeviceTaintEffectNoSchedule), builders.Device("gpu-1"))
	tests := map[string]struct {
		slice *builders.SliceBuilder
		claim any
		want  []string
	}{
		"local devices": {claim: held("claim", "a", "gpu-0"),
			want: []string{"Success", "UnschedulableAndUnresolvable: devices of resourceclaim default/claim cannot be reached"}},
		"devices for everybody": {claim: held("claim", "a", "gpu-0").With(func(c *resourceapi.ResourceClaim) { c.Status.Allocation.NodeSelector = nil }),
			want: []string{"Success", "Success"}},
		"node selector that nobody can read": {claim: held("claim", "a", "gpu-0").With(func(c *resourceapi.ResourceClaim) {
			c.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "near", Values: []string{"a"}}}}}}
		}), want: []string{`UnschedulableAndUnresolvable: resourceclaim default/claim: node selector of its allocation: ` +
			`nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"`}},
		"256 consumers": {claim: many,
			want: []string{"UnschedulableAndUnresolvable: resourceclaim default/claim has 256 consumers, which is the limit"}},
		"256 consumers, the pod among them": {claim: own,
			want: []string{"Success", "UnschedulableAndUnresolvable: devices of resourceclaim default/claim cannot be reached"}},
		"tainted device, new pod": {slice: tainted, claim: held("claim", "a", "gpu-0", "other"),
			want: []string{"UnschedulableAndUnresolvable: resourceclaim default/claim: its device gpu.example.com/a/gpu-0 has the untolerated taint broken:NoSchedule"}},
		"tainted device, pod with reservation": {slice: tainted, claim: held("claim", "a", "gpu-0", "pod"),
			want: []string{"Success", "UnschedulableAndUnresolvable: devices of resourceclaim default/claim cannot be reached"}},
		"tainted device, tolerated": {slice: tainted, claim: held("claim", "a", "gpu-0").With(func(c *resourceapi.ResourceClaim) {
			c.Status.Allocation.Devices.Results[0].Tolerations = []resourceapi.DeviceToleration{{Key: "broken", Operator: resourceapi.DeviceTolerationOpExists}}
		}), want: []string{"Success", "UnschedulableAndUnresolvable: devices of resourceclaim default/claim cannot be reached"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.slice == nil {
				tc.slice = gpus("a", 2)
			}
			run(t, objects(builders.Class(class), builders.Node("a"), builders.Node("b"), tc.slice, tc.claim), func(h *harness) {
				a := h.attempt(builders.Pod("pod").Claim("claim").Obj())
				expectAll(t, "search", a.search("a", "b"), tc.want...)
				expectAll(t, "writes", h.writes)
			})
		})
	}
}

// TestAdminAccess: a device in use is fine, nothing is taken, and the holder
// stays the only one.
func TestAdminAccess(t *testing.T) {
	admin := builders.Claim("admin", builders.Request("request", class).All().Admin())
	pod, other := builders.Pod("pod").Claim("admin").Obj(), builders.Pod("other").Claim("claim").Obj()
	cluster := oneNode(2, held("holder", "node", "gpu-0", "neighbour"), admin, claimFor("claim", 1))
	run(t, cluster, func(h *harness) {
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		expectAll(t, "holders after Reserve", h.holders("node", "gpu-0"), "holder")
		a.must(a.preBind("node"))
		h.settle()
		expect(t, "admin's claim", h.describe("admin"), "allocated node/gpu-0 node/gpu-1, for pod")
		expectAll(t, "holders after PreBind", h.holders("node", "gpu-0"), "holder")
		h.attempt(other).bind("node")
		expect(t, "claim", h.describe("claim"), "allocated node/gpu-1, for other")
	})
}
