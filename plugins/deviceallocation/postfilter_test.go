package deviceallocation

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

const deallocated = "Unschedulable: deallocation of ResourceClaim completed"

// TestPostFilter has pods with two claims on the nodes a, b and c. Filter says
// no everywhere.
func TestPostFilter(t *testing.T) {
	nodes := objects(builders.Class(class), builders.Node("a"), builders.Node("b"), builders.Node("c"), gpus("a", 1), gpus("b", 1))
	anywhere := func(c *resourceapi.ResourceClaim) { c.Status.Allocation.NodeSelector = nil }
	twoNodes := func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation.NodeSelector.NodeSelectorTerms = append(onNode("a").NodeSelectorTerms, onNode("b").NodeSelectorTerms...)
	}
	broken := builders.Slice(driver, "pool").OnNode("b").Devices(
		builders.Device("gpu-0").Taint("broken", resourceapi.DeviceTaintEffectNoSchedule))
	tests := map[string]struct {
		objects  []runtime.Object
		one, two *builders.ClaimBuilder
		fault    *fault
		// meanwhile another pod reserves the first claim.
		meanwhile bool
		want      string
		freed     string
	}{
		"the claim that rules out most nodes": {one: held("one", "b", "gpu-0").With(twoNodes), two: held("two", "a", "gpu-0"), want: deallocated, freed: "two"},
		"the first of equals":                 {one: held("one", "b", "gpu-0"), two: held("two", "a", "gpu-0"), want: deallocated, freed: "one"},
		"not one that others have reserved":   {one: held("one", "b", "gpu-0", "other"), two: held("two", "a", "gpu-0").With(twoNodes), want: deallocated, freed: "two"},
		"one that the pod has reserved":       {one: held("one", "b", "gpu-0", "pod"), two: held("two", "a", "gpu-0", "other"), want: deallocated, freed: "one"},
		"none, all reserved by others":        {one: held("one", "b", "gpu-0", "other"), two: held("two", "a", "gpu-0", "pod", "other"), want: "Unschedulable"},
		"none, they can be reached":           {one: held("one", "b", "gpu-0").With(anywhere), two: held("two", "a", "gpu-0").With(anywhere), want: "Unschedulable"},
		"one that only waits for the other":   {one: held("one", "b", "gpu-0", "pod").With(anywhere), two: claimFor("two", 9), want: deallocated, freed: "one"},
		"not one that the user allocated":     {one: held("one", "b", "gpu-0").With(anywhere), two: claimFor("two", 9), want: "Unschedulable"},
		"the tainted one":                     {objects: objects(broken), one: held("one", "a", "gpu-0"), two: held("two", "pool", "gpu-0"), want: deallocated, freed: "two"},
		"not a tainted one in use":            {objects: objects(broken), one: held("one", "a", "gpu-0"), two: held("two", "pool", "gpu-0", "other"), want: "Unschedulable"},
		"reserved by somebody meanwhile":      {one: held("one", "b", "gpu-0"), two: held("two", "a", "gpu-0", "other"), meanwhile: true, want: "Unschedulable"},
		"refused": {one: held("one", "b", "gpu-0"), two: held("two", "a", "gpu-0", "other"),
			fault: &fault{request: "update/status one", err: apierrors.NewForbidden(claimsResource, "one", nil)},
			want:  `Error: take back the allocation of claim default/one: deallocate claim default/one: resourceclaims.resource.k8s.io "one" is forbidden: <nil>`},
	}
	pod := builders.Pod("pod").Claim("one").Claim("two").Obj()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, objects(nodes, tc.objects, tc.one, tc.two), func(h *harness) {
				before := map[string]string{"one": h.describe("one"), "two": h.describe("two")}
				a := h.attempt(pod)
				a.search("a", "b", "c")
				if tc.fault != nil {
					h.fail(tc.fault)
				}
				if tc.meanwhile {
					h.setStatus("one", func(status *resourceapi.ResourceClaimStatus) {
						status.ReservedFor = append(status.ReservedFor, consumer(builders.Pod("faster").Obj()))
					})
					before["one"] = h.describe("one")
				}
				expect(t, "PostFilter", text(a.postFilter()), tc.want)
				if again := len(h.activated.pods) > 0; again != (tc.fault != nil) {
					t.Errorf("tried again at once: %v, want %v", again, tc.fault != nil)
				}
				if tc.freed != "" {
					before[tc.freed] = "free"
				}
				for claim, want := range before {
					expect(t, "claim "+claim, h.describe(claim), want)
				}
			})
		})
	}
}

// TestPostFilterFreesAtOnce: the device is free for the next attempt before
// any informer has shown it.
func TestPostFilterFreesAtOnce(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, objects(builders.Class(class), builders.Node("a"), gpus("gone", 1), held("claim", "gone", "gpu-0")), func(h *harness) {
		a := h.attempt(pod)
		a.search("a")
		expect(t, "PostFilter", text(a.postFilter()), deallocated)
		expectAll(t, "holders", h.holders("gone", "gpu-0"))
	})
}

// TestPostFilterNamesOmittedNodes: what PreFilter left out must not vanish.
func TestPostFilterNamesOmittedNodes(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(1, held("holder", "node", "gpu-0", "other"), claimFor("claim", 1), builders.Node("plain"), builders.Node("bare")), func(h *harness) {
		a := h.attempt(pod)
		expectAll(t, "search", a.search("node"), inUse)
		expect(t, "PostFilter", text(a.postFilter()),
			`Unschedulable: nodes without enough matching devices: 2 request "request": no devices on the node`)
	})
}

// TestPostFilterKeepsDevicesOfABoundPod: the answer to the binding was lost, so
// the scheduler tries a pod that runs already. Its devices are its own.
func TestPostFilterKeepsDevicesOfABoundPod(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	running := pod.DeepCopy()
	running.Spec.NodeName = "gone"
	run(t, objects(builders.Class(class), builders.Node("a"), gpus("gone", 1), held("claim", "gone", "gpu-0", "pod"), running), func(h *harness) {
		before := h.describe("claim")
		a := h.attempt(pod)
		a.search("a")
		expect(t, "PostFilter", text(a.postFilter()), "Unschedulable")
		expect(t, "claim", h.describe("claim"), before)
	})
}
