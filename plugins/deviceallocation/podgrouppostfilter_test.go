package deviceallocation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestPodGroupPostFilter has the pods a and b of a group, with the claims that
// both share and one of b. They may only use node "here", devices are elsewhere.
func TestPodGroupPostFilter(t *testing.T) {
	const (
		ofGroup    = "deallocation of PodGroup ResourceClaim completed"
		unreserved = "ResourceClaim unreserved for PodGroup"
		ofPod      = "deallocation of ResourceClaim completed"
		remark     = `nodes without enough matching devices: 1 request "request": no devices on the node`
	)
	idle := func(c *resourceapi.ResourceClaim) { c.Status.Allocation.NodeSelector = nil }
	constrained := gang("shared")
	constrained.Spec.SchedulingConstraints = &schedulingapi.PodGroupSchedulingConstraints{}
	tests := map[string]struct {
		group       *schedulingapi.PodGroup
		shared, own *builders.ClaimBuilder
		placed      int
		// running pods of the group are in the API server, with a node.
		running []string
		fault   *fault
		want    string
		// what becomes of the claims
		wantShared, wantOwn string
	}{
		"claim of the group, idle": {
			shared: held("shared", "away", "gpu-0"), own: claimFor("own", 1),
			want: "Unschedulable: " + ofPod, wantShared: "free", wantOwn: "free",
		},
		"claim of the group, reserved for it": {
			shared: held("shared", "away", "gpu-0").With(forGang), own: claimFor("own", 1),
			want: "Unschedulable: " + ofGroup, wantShared: "free", wantOwn: "free",
		},
		"claim of the group, in use by a pod as well": {
			shared: held("shared", "away", "gpu-0", "other").With(forGang), own: claimFor("own", 1),
			want: "Unschedulable: " + unreserved, wantShared: "allocated away/gpu-0, for other", wantOwn: "free",
		},
		"claim of the group, one of its pods has a place": {
			shared: held("shared", "away", "gpu-0").With(forGang), own: claimFor("own", 1), placed: 1,
			want: "Unschedulable: " + remark, wantShared: "allocated away/gpu-0, for gang", wantOwn: "free",
		},
		"claim of the group, one of its pods runs after all": {
			shared: held("shared", "away", "gpu-0").With(forGang), own: claimFor("own", 1), running: []string{"b"},
			want: "Unschedulable: " + remark, wantShared: "allocated away/gpu-0, for gang", wantOwn: "free",
		},
		"claim of the group that can be reached, while something else is missing": {
			shared: held("shared", "away", "gpu-0").With(idle).With(forGang), own: claimFor("own", 9),
			want: "Unschedulable: " + unreserved, wantShared: "free", wantOwn: "free",
		},
		"claim of a pod": {
			shared: held("shared", "away", "gpu-0").With(idle), own: held("own", "away", "gpu-1", "b"),
			want: "Unschedulable: " + ofPod, wantShared: "allocated away/gpu-0", wantOwn: "free",
		},
		"claims of a pod and of the group": {
			shared: held("shared", "away", "gpu-0").With(forGang), own: held("own", "away", "gpu-1", "b"),
			want: "Unschedulable: " + ofPod + ", " + ofGroup, wantShared: "free", wantOwn: "free",
		},
		"claim of another group": {
			shared: held("shared", "away", "gpu-0", "other"), own: claimFor("own", 1),
			want: "Unschedulable: " + remark, wantShared: "allocated away/gpu-0, for other", wantOwn: "free",
		},
		"the API server refuses": {
			shared: held("shared", "away", "gpu-0").With(forGang), own: claimFor("own", 1),
			fault: &fault{request: "update/status shared", err: errForbidden},
			want: `Error: take back the allocation of claim default/shared: deallocate claim default/shared: ` +
				`resourceclaims.resource.k8s.io "two" is forbidden: <nil>`,
			wantShared: "allocated away/gpu-0, for gang", wantOwn: "free",
		},
		"with constraints of topology": {
			group: constrained, shared: held("shared", "away", "gpu-0").With(forGang), own: held("own", "away", "gpu-1", "b"),
			want: "Unschedulable", wantShared: "allocated away/gpu-0, for gang", wantOwn: "allocated away/gpu-1, for b",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			group := tc.group
			if group == nil {
				group = gang("shared")
			}
			cluster := objects(builders.Class(class), builders.Node("here"), builders.Node("bare"), gpus("here", 1), gpus("away", 2), tc.shared, tc.own, group)
			for _, name := range tc.running {
				pod := member(name, "shared")
				pod.Spec.NodeName = "away"
				cluster = append(cluster, pod)
			}
			runGroups(t, cluster, func(h *harness) {
				h.plugin.gates.EnableTopologyAwareWorkloadScheduling = tc.group != nil
				h.placed["gang"] = tc.placed
				a, b := member("a", "shared"), member("b", "shared", "own")
				g := h.groupCycle()
				g.attempt(a).search("here")
				g.attempt(b).search("here")
				if tc.fault != nil {
					h.fail(tc.fault)
				}
				expect(t, "PodGroupPostFilter", g.postFilter(group, a, b), tc.want)
				expect(t, "shared claim", h.describe("shared"), tc.wantShared)
				expect(t, "own claim", h.describe("own"), tc.wantOwn)
				if again := len(h.activated.pods) > 0; again != (tc.fault != nil) {
					t.Errorf("tried again at once: %v, want %v", again, tc.fault != nil)
				}
			})
		})
	}
}

// TestPodGroupPostFilterWithoutState: nothing was tried, or nothing concerns
// devices.
func TestPodGroupPostFilterWithoutState(t *testing.T) {
	runGroups(t, oneNode(1, held("shared", "node", "gpu-0").With(forGang), gang("shared")), func(h *harness) {
		pod, plain := member("a", "shared"), member("plain")
		expect(t, "no pod was tried", h.groupCycle().postFilter(gang("shared"), pod), "Unschedulable")
		g := h.groupCycle()
		g.attempt(plain).search("node")
		expect(t, "a pod without claims", g.postFilter(gang(), plain), "Unschedulable")

		g = h.groupCycle()
		g.attempt(pod).find("node")
		_, status := h.plugin.PodGroupPostFilter(h.ctx, g.cycle, &framework.PodGroupInfo{
			Type: fwk.CompositePodGroupKeyType, Namespace: builders.Namespace, Name: "tree", UnscheduledPods: []*corev1.Pod{pod},
		}, nil)
		expect(t, "a composite group", text(status), "Unschedulable")
		expect(t, "claim", h.describe("shared"), "allocated node/gpu-0, for gang")

		// The gates are off: the group's reservation is somebody else's.
		h.plugin.gates.EnableDRAWorkloadResourceClaims = false
		expect(t, "without claims of groups", g.postFilter(gang("shared"), pod), "Unschedulable")
		expect(t, "claim", h.describe("shared"), "allocated node/gpu-0, for gang")
	})
}

// TestPodGroupPostFilterFreesAtOnce: the next cycle finds the devices free
// before any informer has shown it, and both pods of the group share new ones.
func TestPodGroupPostFilterFreesAtOnce(t *testing.T) {
	runGroups(t, objects(builders.Class(class), builders.Node("here"), gpus("here", 1), gpus("away", 1),
		held("shared", "away", "gpu-0").With(forGang), gang("shared")), func(h *harness) {
		a, b := member("a", "shared"), member("b", "shared")
		g := h.groupCycle()
		g.attempt(a).search("here")
		g.attempt(b).search("here")
		expect(t, "PodGroupPostFilter", g.postFilter(gang("shared"), a, b), "Unschedulable: deallocation of PodGroup ResourceClaim completed")
		expectAll(t, "holders", h.holders("away", "gpu-0"))
		h.settle()
		next := h.groupCycle().try("here", a, b).revert()
		expectAll(t, "replay", next.replay(), "Success", "Success")
		expectAll(t, "PreBind", next.preBindAll(), "Success", "Success")
		expect(t, "claim", h.describe("shared"), "allocated here/gpu-0, for gang")
	})
}
