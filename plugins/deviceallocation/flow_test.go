package deviceallocation

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

func TestFlow(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(2, claimFor("claim", 1), claimFor("other", 1), pod), func(h *harness) {
		a := h.attempt(pod)
		expect(t, "PreEnqueue", text(h.plugin.PreEnqueue(h.ctx, pod)), "Success")
		a.find("node")
		expect(t, "score of the only node", a.scores(h.node("node"))[0].Score, 100)
		expectAll(t, "holders before Reserve", h.holders("node", "gpu-0"))

		a.must(a.reserve("node"))
		expectAll(t, "holders after Reserve", h.holders("node", "gpu-0"), "claim (reserved)")
		expectAll(t, "in flight after Reserve", h.inFlight("claim"), "node/gpu-0")
		expect(t, "claim before PreBind", h.describe("claim"), "free")

		a.must(a.preBind("node"))
		expectAll(t, "holders after PreBind", h.holders("node", "gpu-0"), "claim")
		expectAll(t, "in flight after PreBind", h.inFlight("claim"))
		expect(t, "claim after PreBind", h.describe("claim"), "allocated node/gpu-0, for pod")

		h.settle()
		expectAll(t, "holders in the end", h.holders("node", "gpu-0"), "claim")
		next := h.attempt(builders.Pod("next").Claim("other").Obj()).bind("node")
		next.settle()
		expect(t, "next claim", h.describe("other"), "allocated node/gpu-1, for next")
	})
}
