package deviceallocation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestExtendedResourceOfAnEmptyPlugin: a device plugin that has nothing to give
// any more leaves its resource on the node, with 0. The devices of the class
// serve the pod then.
func TestExtendedResourceOfAnEmptyPlugin(t *testing.T) {
	node := builders.Node("node")
	node.Status.Allocatable = corev1.ResourceList{"example.com/gpu": resource.MustParse("0")}
	pod := extendedPod("pod", "1")
	run(t, objects(extendedClass(), node, gpus("node", 1), pod), func(h *harness) {
		h.attempt(pod).bind("node")
		claims := h.made()
		if len(claims) != 1 {
			t.Fatalf("claims: got %v, want one", claims)
		}
		expect(t, "claim", describeClaim(&claims[0]), "allocated node/gpu-0, for pod")
	})
	// A resource that no class backs is up to other plugins, whatever it is worth.
	run(t, objects(builders.Class(class), node, gpus("node", 1), pod), func(h *harness) {
		expectAll(t, "search without a class", h.attempt(pod).search("node"), "Skip")
	})
}

// TestExtendedResourceUnreservedEarly: an attempt that ends before PreBind has
// made no claim, and leaves none.
func TestExtendedResourceUnreservedEarly(t *testing.T) {
	pod := extendedPod("pod", "2")
	run(t, extendedCluster(pod), func(h *harness) {
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		expectAll(t, "holders after Reserve", h.holders("node", "gpu-1"), "<extended-resources> (reserved)")
		a.unreserve("node")
		expectAll(t, "holders", append(h.holders("node", "gpu-0"), h.holders("node", "gpu-1")...))
		expectAll(t, "writes", h.writes)
		h.attempt(pod).bind("node")
		expect(t, "number of claims in the end", len(h.made()), 1)
	})
}
