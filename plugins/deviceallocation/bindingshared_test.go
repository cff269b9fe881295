package deviceallocation

import (
	"errors"
	"testing"
	"time"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestBindingWaitOfTwoPods: two pods wait for the devices of one claim.
func TestBindingWaitOfTwoPods(t *testing.T) {
	tests := map[string]struct {
		happens func(h *harness, first, second *binding)
		// how the two end, and what the claim is after the first and in the end
		first, second    string
		between, finally string
	}{
		"ready": {
			happens: func(h *harness, _, _ *binding) {
				h.setStatus("claim", reports("node", "gpu-0", attached+"=True", powered+"=True"))
			},
			first: "Success", second: "Success",
			between: "allocated node/gpu-0, for one, for two", finally: "allocated node/gpu-0, for one, for two",
		},
		"failed": {
			happens: func(h *harness, _, _ *binding) { h.setStatus("claim", reports("node", "gpu-0", broken+"=True")) },
			first:   waitFailed, second: waitFailed, between: "allocated node/gpu-0, for two", finally: "free",
		},
		"too late": {
			happens: func(*harness, *binding, *binding) { time.Sleep(10 * time.Minute) },
			first:   waitTimeout + "attached is not true", second: waitTimeout + "attached is not true",
			between: "allocated node/gpu-0, for two", finally: "free",
		},
		"the first gives up for a reason of its own": {
			happens: func(h *harness, first, _ *binding) {
				first.cancel(errors.New("preempted"))
				first.waits()
				first.unreserve("node")
				h.setStatus("claim", reports("node", "gpu-0", attached+"=True", powered+"=True"))
			},
			first: preBind + "wait for devices to get ready: preempted", second: "Success",
			between: "allocated node/gpu-0, for two", finally: "allocated node/gpu-0, for two",
		},
	}
	one, two := builders.Pod("one").Claim("claim").Obj(), builders.Pod("two").Claim("claim").Obj()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 1), claimFor("claim", 1), one, two}
			}, func(h *harness) {
				a := h.attempt(one).find("node")
				first := a.must(a.reserve("node")).startPreBind("node")
				b := h.attempt(two).find("node")
				second := b.must(b.reserve("node")).startPreBind("node")
				if !first.waits() || !second.waits() {
					t.Fatal("PreBind does not wait")
				}
				tc.happens(h, first, second)
				expect(t, "first PreBind", first.end(), tc.first)
				expect(t, "claim after the first one", h.describe("claim"), tc.between)
				expect(t, "second PreBind", second.end(), tc.second)
				expect(t, "claim", h.describe("claim"), tc.finally)
				expect(t, "first attempt after the second", text(second.status), tc.second)
			})
		})
	}
}

// TestBindingWaitOfTwoClaims: one failure ends the wait for both, and what is
// late counts by its own time.
func TestBindingWaitOfTwoClaims(t *testing.T) {
	tests := map[string]struct {
		report []string
		want   string
		took   time.Duration
		shared string
	}{
		"the second one fails": {report: []string{broken + "=True"}, took: time.Second, shared: "allocated node/gpu-1, for other",
			want: preBind + "resourceclaim default/shared: device gpu.example.com/node/gpu-1 cannot be made ready: condition broken is true (Simulated: by the test)"},
		"the second one is late": {took: 2 * time.Minute, shared: "allocated node/gpu-1, for other",
			want: preBind + "resourceclaim default/shared: device gpu.example.com/node/gpu-1 is not ready after 10m0s (bindingTimeout): condition attached is not true"},
		"the second one gets ready, the first one does not": {report: []string{attached + "=True", powered + "=True"}, took: 10 * time.Minute,
			want: waitTimeout + "attached is not true", shared: "allocated node/gpu-1, for other"},
	}
	pod := builders.Pod("pod").Claim("claim").Claim("shared").Obj()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 2), claimFor("claim", 1), pod,
					conditional("shared", "node", "gpu-1", 8*time.Minute, "other")}
			}, func(h *harness) {
				a := h.attempt(pod).find("node")
				w := a.must(a.reserve("node")).startPreBind("node")
				if tc.report != nil {
					time.Sleep(time.Second)
					h.setStatus("shared", reports("node", "gpu-1", tc.report...))
				}
				expect(t, "PreBind", w.end(), tc.want)
				expect(t, "time waited", w.took, tc.took)
				expect(t, "claim", h.describe("claim"), "free")
				expect(t, "shared claim", h.describe("shared"), tc.shared)
			})
		})
	}
}
