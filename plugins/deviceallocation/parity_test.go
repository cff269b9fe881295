package deviceallocation

import (
	"context"
	"testing"
	"testing/synctest"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// The tests of this file are for what kube-scheduler's own tests check and no
// test named after our own concepts does: see test/integration/BEHAVIOURS.md.

// TestClaimFromTemplate: the pod's status names the claim, which belongs to the
// pod.
func TestClaimFromTemplate(t *testing.T) {
	pod := builders.Pod("pod").ClaimTemplate("gpu", "template", "made").Obj()
	for name, tc := range map[string]struct {
		claim *builders.ClaimBuilder
		want  string
	}{
		"without devices":   {claim: claimFor("made", 1), want: "allocated node/gpu-0, for pod"},
		"with devices":      {claim: held("made", "node", "gpu-1"), want: "allocated node/gpu-1, for pod"},
		"reserved for it":   {claim: held("made", "node", "gpu-1", "pod"), want: "allocated node/gpu-1, for pod"},
		"of an older clone": {claim: held("made", "node", "gpu-1", "old"), want: "allocated node/gpu-1, for old, for pod"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.claim.With(func(c *resourceapi.ResourceClaim) {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}}
			})
			run(t, oneNode(2, tc.claim, pod), func(h *harness) {
				expect(t, "PreEnqueue", text(h.plugin.PreEnqueue(h.ctx, pod)), "Success")
				h.attempt(pod).bind("node")
				expect(t, "claim", h.describe("made"), tc.want)
			})
		})
	}
}

// TestPreBindFinalizer: the API server takes an allocation only with the
// finalizer, which others may add and remove at any time.
func TestPreBindFinalizer(t *testing.T) {
	with := func(c *resourceapi.ResourceClaim) { c.Finalizers = []string{resourceapi.Finalizer} }
	without := func(c *resourceapi.ResourceClaim) { c.Finalizers = nil }
	for name, tc := range map[string]struct {
		claim     *builders.ClaimBuilder
		meanwhile func(*resourceapi.ResourceClaim)
		// finalizers is the number of times that it is written.
		finalizers int
	}{
		"not there":         {claim: claimFor("claim", 1), finalizers: 1},
		"there already":     {claim: claimFor("claim", 1).With(with)},
		"removed meanwhile": {claim: claimFor("claim", 1).With(with), meanwhile: without, finalizers: 1},
		"added meanwhile":   {claim: claimFor("claim", 1), meanwhile: with},
	} {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("pod").Claim("claim").Obj()
			run(t, oneNode(1, tc.claim, pod), func(h *harness) {
				a := h.attempt(pod).find("node")
				a.must(a.reserve("node"))
				if tc.meanwhile != nil {
					h.updateClaim("claim", tc.meanwhile)
				}
				before := len(h.writes)
				a.must(a.preBind("node"))
				expect(t, "claim", h.describe("claim"), "allocated node/gpu-0, for pod")
				expectAll(t, "finalizers", h.claim("claim").Finalizers, resourceapi.Finalizer)
				written := 0
				for _, request := range h.writes[before:] {
					if request == "update claim" {
						written++
					}
				}
				// A version that is out of date is refused once.
				if most := tc.finalizers + 1; written < tc.finalizers || written > most {
					t.Errorf("the finalizer was written %d times, want %d", written, tc.finalizers)
				}
				if tc.meanwhile == nil {
					expect(t, "writes of the finalizer", written, tc.finalizers)
				}
			})
		})
	}
}

// updateClaim changes a claim, but not its status, as another client would.
func (h *harness) updateClaim(name string, change func(*resourceapi.ResourceClaim)) {
	h.Helper()
	claim := h.claim(name)
	change(claim)
	if _, err := h.client.ResourceV1().ResourceClaims(builders.Namespace).Update(h.ctx, claim, metav1.UpdateOptions{}); err != nil {
		h.Fatalf("update claim %s: %v", name, err)
	}
}

// TestOtherDeviceInFlight: what another pod has reserved stays its own, the
// rest is free, and neither attempt disturbs the other.
func TestOtherDeviceInFlight(t *testing.T) {
	first, second := builders.Pod("first").Claim("one").Obj(), builders.Pod("second").Claim("two").Obj()
	run(t, oneNode(2, claimFor("one", 1), claimFor("two", 1), first, second), func(h *harness) {
		a := h.attempt(first).find("node")
		a.must(a.reserve("node"))
		b := h.attempt(second).find("node")
		b.must(b.reserve("node"))
		expectAll(t, "in flight", append(h.inFlight("one"), h.inFlight("two")...), "node/gpu-0", "node/gpu-1")
		b.must(b.preBind("node"))
		expectAll(t, "in flight beside it", h.inFlight("one"), "node/gpu-0")
		expect(t, "second claim", h.describe("two"), "allocated node/gpu-1, for second")
		a.must(a.preBind("node"))
		expect(t, "first claim", h.describe("one"), "allocated node/gpu-0, for first")
	})
}

// TestHeldUntilUnreserve: after a PreBind that failed the devices are not free
// before the framework has called Unreserve.
func TestHeldUntilUnreserve(t *testing.T) {
	pod, other := builders.Pod("pod").Claim("two").Obj(), builders.Pod("other").Claim("other").Obj()
	run(t, oneNode(1, claimFor("two", 1), claimFor("other", 1), pod), func(h *harness) {
		h.fail(&fault{request: "update/status two", err: errForbidden})
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		if status := a.preBind("node"); status.IsSuccess() {
			t.Fatal("PreBind succeeds")
		}
		h.settle()
		expectAll(t, "holders before Unreserve", h.holders("node", "gpu-0"), "two (reserved)")
		expectAll(t, "in flight before Unreserve", h.inFlight("two"), "node/gpu-0")
		expectAll(t, "search of another pod before Unreserve", h.attempt(other).search("node"), inUse)
		a.unreserve("node")
		expectAll(t, "in flight", h.inFlight("two"))
		h.attempt(other).bind("node")
	})
}

// TestFilterTimeoutOfOneNode: a search that takes too long on one node does not
// keep the pod from another one (issue 137607).
func TestFilterTimeoutOfOneNode(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	cluster := objects(builders.Class(class), builders.Node("slow"), builders.Node("fast"), gpus("slow", 2), gpus("fast", 1), claimFor("claim", 1), pod)
	run(t, cluster, func(h *harness) {
		a := h.attempt(pod).find()
		ended, cancel := context.WithTimeoutCause(h.ctx, 0, errFilterTimeout)
		defer cancel()
		status := h.plugin.Filter(ended, a.cycle, pod, h.node("slow"))
		expect(t, "slow node", text(status), "UnschedulableAndUnresolvable: search for devices ended undecided after 10s (see filterTimeout)")
		a.must(a.filter("fast")).must(a.reserve("fast")).must(a.preBind("fast"))
		expect(t, "claim", h.describe("claim"), "allocated fast/gpu-0, for pod")
	})
}

// TestFilterTimeoutGate: kube-scheduler's gate switches the limit off.
func TestFilterTimeoutGate(t *testing.T) {
	for _, on := range []bool{true, false} {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DRASchedulerFilterTimeout, on)
		run(t, oneNode(1), func(h *harness) {
			expect(t, "there is a limit", h.plugin.filterTimeout > 0, on)
		})
	}
}

// TestFactoryNeedsDRA: without the framework's bookkeeping of devices there is
// nothing to work with, and the message says which gate to look at.
func TestFactoryNeedsDRA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewSimpleClientset()
		handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
			frameworkruntime.WithClientSet(client),
			frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)))
		if err != nil {
			t.Fatal(err)
		}
		defer frameworkruntime.WaitForShutdown(handle)
		defer cancel()
		_, err = Factory()(ctx, nil, handle)
		if want := "plugin DeviceAllocation needs the feature gate DynamicResourceAllocation"; err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	})
}
