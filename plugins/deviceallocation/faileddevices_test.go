package deviceallocation

import (
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestFailedDeviceIsAvoided: gpu-0 is the best choice, and fails.
func TestFailedDeviceIsAvoided(t *testing.T) {
	small := builders.Device("gpu-0").Capacity("memory", "1Gi").Conditions([]string{attached}, []string{broken})
	large := builders.Device("gpu-1").Capacity("memory", "80Gi").Conditions([]string{attached}, []string{broken})
	tests := map[string]struct {
		devices []*builders.DeviceBuilder
		// late: the device does not fail, it is not ready in time.
		late, stock bool
		// later is how much later the next attempt is.
		later time.Duration
		// ready is a pod for which the device gets ready before that.
		ready bool
		want  string
	}{
		"failed, there is another one": {devices: []*builders.DeviceBuilder{small, large}, want: "allocated node/gpu-1, for pod"},
		"late, there is another one":   {devices: []*builders.DeviceBuilder{small, large}, late: true, want: "allocated node/gpu-1, for pod"},
		"failed, there is no other":    {devices: []*builders.DeviceBuilder{small}, want: "allocated node/gpu-0, for pod"},
		"failed some time ago":         {devices: []*builders.DeviceBuilder{small, large}, later: 10 * time.Minute, want: "allocated node/gpu-0, for pod"},
		"just not forgotten":           {devices: []*builders.DeviceBuilder{small, large}, later: 10*time.Minute - time.Second, want: "allocated node/gpu-1, for pod"},
		"has got ready since":          {devices: []*builders.DeviceBuilder{small, large}, ready: true, want: "allocated node/gpu-0, for pod"},
		"kube-scheduler's order":       {devices: []*builders.DeviceBuilder{small, large}, stock: true, want: "allocated node/gpu-0, for pod"},
	}
	pod := builders.Pod("pod").Claim("claim").Obj()
	only := builders.Claim("only", builders.Request("request", class).Select(`device.capacity["`+driver+`"].memory.isLessThan(quantity("2Gi"))`))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), builders.Slice(driver, "node").OnNode("node").Devices(tc.devices...), claimFor("claim", 1), only, pod}
			}, func(h *harness) {
				if tc.stock {
					h.plugin.options = allocator.Options{}
				}
				a := h.attempt(pod).find("node")
				w := a.must(a.reserve("node")).startPreBind("node")
				expect(t, "claim at first", h.describe("claim"), "allocated node/gpu-0, for pod")
				if !tc.late {
					h.setStatus("claim", reports("node", "gpu-0", broken+"=True"))
				}
				w.end()
				expect(t, "claim after the failure", h.describe("claim"), "free")
				time.Sleep(tc.later)
				if tc.ready {
					b := h.attempt(builders.Pod("other").Claim("only").Obj()).find("node")
					w := b.must(b.reserve("node")).startPreBind("node")
					h.setStatus("only", reports("node", "gpu-0", attached+"=True"))
					expect(t, "PreBind of the other pod", w.end(), "Success")
					h.setStatus("only", func(s *resourceapi.ResourceClaimStatus) { *s = resourceapi.ResourceClaimStatus{} })
					h.settle()
				}
				c := h.attempt(pod).find("node")
				next := c.must(c.reserve("node")).startPreBind("node")
				expect(t, "claim in the end", h.describe("claim"), tc.want)
				next.cancel(nil)
				next.end()
			})
		})
	}
}

// TestFailedDeviceOnAnotherNode: of two nodes with one device each, the second
// attempt takes the other node, and so does one that finds the failure in the
// claim that a scheduler before has left.
func TestFailedDeviceOnAnotherNode(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	for name, tc := range map[string]struct{ found bool }{"after a wait": {}, "found failed": {found: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				claim := claimFor("claim", 1)
				if tc.found {
					claim = conditional("claim", "node", "gpu-0", time.Second, "pod").With(func(c *resourceapi.ResourceClaim) {
						reports("node", "gpu-0", broken+"=True")(&c.Status)
					})
				}
				return []any{conditionalClass(), builders.Node("other"), conditionalGPUs("node", 1), conditionalGPUs("other", 1), claim, pod}
			}, func(h *harness) {
				if tc.found {
					a := h.attempt(pod)
					expectAll(t, "search", a.search("node", "other"), cannotBe)
					expect(t, "PostFilter", text(a.postFilter()), deallocated)
				} else {
					a := h.attempt(pod).find("node")
					w := a.must(a.reserve("node")).startPreBind("node")
					h.setStatus("claim", reports("node", "gpu-0", broken+"=True"))
					w.end()
				}
				h.settle()
				a := h.attempt(pod).find("node", "other")
				expect(t, "best node", a.best(h.nodes), "other")
			})
		})
	}
}

// TestReadyDevicesFirst: of equal devices, those without conditions go first.
func TestReadyDevicesFirst(t *testing.T) {
	conditional := builders.Device("a").Conditions([]string{attached}, nil)
	run(t, objects(builders.Class(class), builders.Node("node"), claimFor("claim", 1),
		builders.Slice(driver, "node").OnNode("node").Devices(conditional, builders.Device("b"))), func(h *harness) {
		h.attempt(builders.Pod("pod").Claim("claim").Obj()).bind("node")
		expect(t, "claim", h.describe("claim"), "allocated node/b, for pod")
	})
}
