package deviceallocation

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

var (
	claimsResource = resourceapi.Resource("resourceclaims")
	errForbidden   = apierrors.NewForbidden(claimsResource, "two", nil)
	errTimeout     = apierrors.NewTimeoutError("etcd is slow", 0)
)

// TestPreBindAllOrNothing: a pod with three claims. Whichever write fails, no
// claim stays allocated and every device is free.
func TestPreBindAllOrNothing(t *testing.T) {
	tests := map[string]struct {
		faults []*fault
		// want is "" if PreBind succeeds all the same.
		want string
	}{
		"finalizer refused": {
			faults: []*fault{{request: "update two", err: errForbidden}},
			want:   "Error: bind devices on node node: add finalizer to claim default/two:",
		},
		"status refused": {
			faults: []*fault{{request: "update/status two", err: errForbidden}},
			want:   "Error: bind devices on node node: write allocation and reservation to claim default/two:",
		},
		"status written, answer lost": {
			faults: []*fault{{request: "update/status two", err: errTimeout, applied: true}},
		},
		"one status written with its answer lost, one refused": {
			faults: []*fault{
				{request: "update/status one", err: errTimeout, applied: true},
				{request: "update/status two", err: errForbidden},
			},
			want: "Error: bind devices on node node: write allocation and reservation to claim default/two:",
		},
		"conflict": {
			faults: []*fault{{request: "update/status three", err: apierrors.NewConflict(claimsResource, "three", nil)}},
		},
		"roll-back refused at first": {
			faults: []*fault{
				{request: "update/status two", err: errForbidden},
				{request: "get one", err: errTimeout},
			},
			want: "Error: bind devices on node node: write allocation and reservation to claim default/two:",
		},
	}
	pod := builders.Pod("pod").Claim("one").Claim("two").Claim("three").Obj()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, oneNode(3, claimFor("one", 1), claimFor("two", 1), claimFor("three", 1), pod), func(h *harness) {
				h.fail(tc.faults...)
				a := h.attempt(pod).find("node")
				a.must(a.reserve("node"))
				status := text(a.preBind("node"))
				h.settle()
				if tc.want == "" {
					expect(t, "PreBind", status, "Success")
					expect(t, "claim two", h.describe("two"), "allocated node/gpu-1, for pod")
					return
				}
				if !strings.HasPrefix(status, tc.want) {
					t.Errorf("PreBind:\n got %s\nwant %s ...", status, tc.want)
				}
				a.unreserve("node")
				h.settle()
				for i, claim := range []string{"one", "two", "three"} {
					expect(t, "claim "+claim, h.describe(claim), "free")
					expectAll(t, "in flight", h.inFlight(claim))
					expectAll(t, "holders", h.holders("node", []string{"gpu-0", "gpu-1", "gpu-2"}[i]))
				}
				// The same pod can be bound at once.
				h.attempt(pod).bind("node")
			})
		})
	}
}

// TestPreBindSharedClaim: the second pod of an allocated claim only reserves
// it. If its other claim fails, only its reservation goes.
func TestPreBindSharedClaim(t *testing.T) {
	pod := builders.Pod("pod").Claim("shared").Claim("two").Obj()
	run(t, oneNode(2, held("shared", "node", "gpu-0", "neighbour"), claimFor("two", 1), pod), func(h *harness) {
		h.fail(&fault{request: "update/status two", err: errForbidden})
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		if status := a.preBind("node"); status.IsSuccess() {
			t.Error("PreBind succeeds")
		}
		a.unreserve("node")
		expect(t, "shared claim", h.describe("shared"), "allocated node/gpu-0, for neighbour")
		expect(t, "own claim", h.describe("two"), "free")
		h.attempt(pod).bind("node")
		expect(t, "shared claim in the end", h.describe("shared"), "allocated node/gpu-0, for neighbour, for pod")
	})
}

// TestPreBindAllocatedMeanwhile: another scheduler allocates the claim between
// Reserve and PreBind. Its allocation stays.
func TestPreBindAllocatedMeanwhile(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(2, claimFor("claim", 1).With(func(c *resourceapi.ResourceClaim) { c.Finalizers = []string{resourceapi.Finalizer} }), pod), func(h *harness) {
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		h.setStatus("claim", func(status *resourceapi.ResourceClaimStatus) {
			*status = held("claim", "node", "gpu-1", "foreign").Obj().Status
		})
		expect(t, "PreBind", text(a.preBind("node")), "Error: bind devices on node node: bind claim default/claim: allocated by another scheduler meanwhile")
		a.unreserve("node")
		h.settle()
		expect(t, "claim", h.describe("claim"), "allocated node/gpu-1, for foreign")
		expectAll(t, "holders of our choice", h.holders("node", "gpu-0"))
		expectAll(t, "holders of the other choice", h.holders("node", "gpu-1"), "claim")
	})
}

// TestPreBindOldReservation: the informers still show what the last attempt of
// the pod has taken back. What is not there any more must not be relied upon.
func TestPreBindOldReservation(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(1, claimFor("claim", 1), pod), func(h *harness) {
		first := h.attempt(pod).bind("node")
		h.settle()
		second := h.attempt(pod).find("node") // it sees the claim as the first attempt wrote it
		first.unreserve("node")
		second.must(second.reserve("node"))
		expect(t, "PreBind", text(second.preBind("node")),
			"Error: bind devices on node node: claim default/claim has changed since devices were looked for")
		second.unreserve("node")
		h.settle()
		h.attempt(pod).bind("node")
		expect(t, "claim", h.describe("claim"), "allocated node/gpu-0, for pod")
		// A reservation that is still there is enough.
		h.settle()
		writes := len(h.writes)
		h.attempt(pod).bind("node")
		expect(t, "number of writes", len(h.writes), writes)
	})
}

func TestPreBindPreFlight(t *testing.T) {
	run(t, oneNode(1, claimFor("claim", 1)), func(h *harness) {
		with, without := h.attempt(builders.Pod("pod").Claim("claim").Obj()), h.attempt(builders.Pod("plain").Obj())
		with.find("node")
		result, status := h.plugin.PreBindPreFlight(h.ctx, with.cycle, with.pod, "node")
		expect(t, "with claims", text(status), "Success")
		expect(t, "parallel", result.AllowParallel, true)
		_, status = h.plugin.PreBindPreFlight(h.ctx, without.cycle, without.pod, "node")
		expect(t, "without claims", status.Code(), fwk.Skip)
		// The other points do nothing for such a pod.
		without.must(without.filter("node")).must(without.reserve("node")).must(without.preBind("node"))
		without.unreserve("node")
		expect(t, "PostFilter", text(without.postFilter()), "Unschedulable")
		expectAll(t, "writes", h.writes)
	})
}
