package deviceallocation

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestTwoHolders: another scheduler has given one device to two claims. It is
// free when both have let go.
func TestTwoHolders(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	release := func(status *resourceapi.ResourceClaimStatus) { *status = resourceapi.ResourceClaimStatus{} }
	run(t, oneNode(1, held("one", "node", "gpu-0"), held("two", "node", "gpu-0"), claimFor("claim", 1)), func(h *harness) {
		expectAll(t, "holders", h.holders("node", "gpu-0"), "one", "two")
		h.setStatus("one", release)
		h.settle()
		expectAll(t, "search while one holds it", h.attempt(pod).search("node"), inUse)
		h.setStatus("two", release)
		h.settle()
		expectAll(t, "search when nobody holds it", h.attempt(pod).search("node"), "Success")
	})
}

// TestObservedAndReserved: another scheduler takes the device that we have
// reserved. It stays held when either side lets go.
func TestObservedAndReserved(t *testing.T) {
	pod, next := builders.Pod("pod").Claim("claim").Obj(), builders.Pod("next").Claim("next").Obj()
	objects := oneNode(1, claimFor("claim", 1), claimFor("next", 1), claimFor("foreign", 1).With(func(c *resourceapi.ResourceClaim) {
		c.Finalizers = []string{resourceapi.Finalizer}
	}))
	allocate := func(status *resourceapi.ResourceClaimStatus) { *status = held("foreign", "node", "gpu-0").Obj().Status }
	release := func(status *resourceapi.ResourceClaimStatus) { *status = resourceapi.ResourceClaimStatus{} }

	t.Run("reservation ends first", func(t *testing.T) {
		run(t, objects, func(h *harness) {
			a := h.attempt(pod).find("node")
			a.must(a.reserve("node"))
			h.setStatus("foreign", allocate)
			h.settle()
			expectAll(t, "holders", h.holders("node", "gpu-0"), "claim (reserved)", "foreign")
			a.unreserve("node")
			expectAll(t, "search", h.attempt(next).search("node"), inUse)
		})
	})
	t.Run("allocation ends first", func(t *testing.T) {
		run(t, objects, func(h *harness) {
			a := h.attempt(pod).find("node")
			a.must(a.reserve("node"))
			h.setStatus("foreign", allocate)
			h.settle()
			h.setStatus("foreign", release)
			h.settle()
			expectAll(t, "search while reserved", h.attempt(next).search("node"), inUse)
			a.unreserve("node")
			expectAll(t, "search in the end", h.attempt(next).search("node"), "Success")
		})
	})
}

// TestReservationOutlivesOldNews: what shows the claim before our write does
// not end the reservation, the claim with our allocation does.
func TestReservationOutlivesOldNews(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(1, claimFor("claim", 1)), func(h *harness) {
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		h.setStatus("claim", func(status *resourceapi.ResourceClaimStatus) {}) // a new version, nothing else
		h.settle()
		expectAll(t, "holders after old news", h.holders("node", "gpu-0"), "claim (reserved)")
		a.must(a.preBind("node"))
		expectAll(t, "holders after PreBind", h.holders("node", "gpu-0"), "claim")
		a.unreserve("node")
		h.settle()
		expectAll(t, "holders in the end", h.holders("node", "gpu-0"))
	})
}

// TestNeverFreeDuringPreBind looks at the device whenever PreBind or an
// informer does something.
func TestNeverFreeDuringPreBind(t *testing.T) {
	pod, other := builders.Pod("pod").Claim("claim").Obj(), builders.Pod("other").Claim("other").Obj()
	run(t, oneNode(1, claimFor("claim", 1), claimFor("other", 1)), func(h *harness) {
		looks := 0
		look := func() {
			looks++
			h.settle()
			expectAll(t, "search of another pod", h.attempt(other).search("node"), inUse)
		}
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		conflict := apierrors.NewConflict(resourceapi.Resource("resourceclaims"), "claim", nil)
		h.fail(
			&fault{request: "update claim", before: look},
			&fault{request: "update/status claim", before: look, err: conflict},
			&fault{request: "get claim", before: look},
			&fault{request: "update/status claim", before: look},
		)
		a.must(a.preBind("node"))
		expectAll(t, "search right after PreBind", h.attempt(other).search("node"), inUse)
		look()
		expect(t, "number of looks", looks, 5)
		// The claim as it was before our write comes late.
		stale := claimFor("claim", 1).With(func(c *resourceapi.ResourceClaim) { c.ResourceVersion = "1" }).Obj()
		if _, err := h.plugin.afterClaim(klog.Background(), other, nil, stale); err != nil {
			t.Error(err)
		}
		look()
	})
}
