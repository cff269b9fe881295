package deviceallocation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// declaring is a node whose kubelet declares features.
func declaring(name string, features ...string) *corev1.Node {
	node := builders.Node(name)
	node.Status.DeclaredFeatures = features
	return node
}

const skipFeature = "DRAOptionalNodeOperations"

// TestNodeOperations: the devices of all nodes, of which kubelet needs to know
// nothing, on a node that declares that it can leave them alone and on one that
// does not.
func TestNodeOperations(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DRAOptionalNodeOperations, true)
	skipped := builders.Slice(driver, "fabric").OnAllNodes().Devices(builders.DevicesNamed("gpu", 2, nil)...).SkipNodeOperations()
	allocated := func(skip ...resourceapi.SkipNodeOperation) *builders.ClaimBuilder {
		return claimFor("claim", 1).Holding(driver, "fabric", "gpu-0").With(func(c *resourceapi.ResourceClaim) {
			c.Finalizers = []string{resourceapi.Finalizer}
			c.Status.Allocation.Devices.Results[0].SkipNodeOperations = skip
		})
	}
	const lacking = `UnschedulableAndUnresolvable: request "request": matching devices need a node that declares the feature DRAOptionalNodeOperations`
	const lackingAllocated = "UnschedulableAndUnresolvable: devices of resourceclaim default/claim need a node that declares the feature DRAOptionalNodeOperations"
	tests := map[string]struct {
		claim *builders.ClaimBuilder
		want  []string
	}{
		"to be allocated":                  {claim: claimFor("claim", 1), want: []string{"Success", lacking}},
		"allocated":                        {claim: allocated(resourceapi.SkipNodeOperationAll), want: []string{"Success", lackingAllocated}},
		"allocated, with kubelet involved": {claim: allocated(), want: []string{"Success", "Success"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, objects(builders.Class(class), declaring("new", "Other", skipFeature), declaring("old", "Other"), skipped, tc.claim), func(h *harness) {
				a := h.attempt(builders.Pod("pod").Claim("claim").Obj())
				expectAll(t, "search", a.search("new", "old"), tc.want...)
				if tc.want[1] == "Success" {
					return
				}
				a.must(a.reserve("new")).must(a.preBind("new"))
				got := h.claim("claim").Status.Allocation.Devices.Results[0].SkipNodeOperations
				if len(got) != 1 || got[0] != resourceapi.SkipNodeOperationAll {
					t.Errorf("operations left out by kubelet: %v", got)
				}
			})
		})
	}
}

// TestNodeOperationsOfAnIdleClaim: no node can use what was allocated.
func TestNodeOperationsOfAnIdleClaim(t *testing.T) {
	claim := claimFor("claim", 1).Holding(driver, "node", "gpu-0").With(func(c *resourceapi.ResourceClaim) {
		c.Finalizers = []string{resourceapi.Finalizer}
		c.Status.Allocation.Devices.Results[0].SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
	})
	run(t, oneNode(1, claim), func(h *harness) {
		a := h.attempt(builders.Pod("pod").Claim("claim").Obj())
		a.search("node")
		expect(t, "PostFilter", text(a.postFilter()), deallocated)
		expect(t, "claim", h.describe("claim"), "free")
	})
}

func TestHintsAfterDeclaredFeatures(t *testing.T) {
	without, with := declaring("node", "Other"), declaring("node", "Other", skipFeature)
	testHints(t, fwk.Node, map[string]hintCase{
		"the feature appears":                            {pod: waiting(), before: without, after: with, want: fwk.Queue},
		"the feature goes away":                          {pod: waiting(), before: with, after: without, want: fwk.QueueSkip},
		"the feature stays, another one goes":            {pod: waiting(), before: with, after: declaring("node", skipFeature), want: fwk.QueueSkip},
		"another feature appears":                        {pod: waiting(), before: declaring("node"), after: without, want: fwk.QueueSkip},
		"the feature appears, but the pod lacks a claim": {pod: incomplete(), before: without, after: with, want: fwk.QueueSkip},
	})
}

// TestHintsAfterConditions: what a driver reports wakes the pods of the claim.
func TestHintsAfterConditions(t *testing.T) {
	before := conditional("claim", "node", "gpu-0", 0).Obj()
	before.ResourceVersion = "1000"
	after := before.DeepCopy()
	after.ResourceVersion = "1001"
	reports("node", "gpu-0", broken+"=True")(&after.Status)
	testHints(t, fwk.ResourceClaim, map[string]hintCase{
		"of the pod's claim":   {pod: waiting(), before: before, after: after, want: fwk.Queue},
		"of another pod's one": {pod: builders.Pod("other").Claim("allocated").Obj(), before: before, after: after, want: fwk.QueueSkip},
	})
}
