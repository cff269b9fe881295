package deviceallocation

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestProfilesShareTheLedger: what one profile of a scheduler has reserved is
// not free for another one, long before any claim shows it.
func TestProfilesShareTheLedger(t *testing.T) {
	pod, other := builders.Pod("pod").Claim("claim").Obj(), builders.Pod("other").Claim("other").Obj()
	run(t, oneNode(1, claimFor("claim", 1), claimFor("other", 1)), func(h *harness) {
		second, err := h.factory(h.ctx, nil, h.handle)
		if err != nil {
			t.Fatalf("create the plugin of a second profile: %v", err)
		}
		first := h.attempt(pod).find("node")
		first.must(first.reserve("node"))

		h.plugin = second.(*Plugin)
		expectAll(t, "search in the second profile", h.attempt(other).search("node"), inUse)
		first.unreserve("node")
		expectAll(t, "search when it is free", h.attempt(other).search("node"), "Success")
	})
}
