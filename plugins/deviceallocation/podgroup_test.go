package deviceallocation

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

const beingAllocated = "UnschedulableAndUnresolvable: resourceclaim default/shared is being allocated for another pod"

// TestGroupCycle takes a gang through a cycle: each pod is tried, everything is
// reverted and reserved again, and all pods are bound at once. One allocation
// serves all of them. No write has a conflict.
func TestGroupCycle(t *testing.T) {
	tests := map[string]struct {
		group      []string // claims that the group lists
		want       string
		wantWrites []string
	}{
		"claim of the group": {
			group:      []string{"shared"},
			want:       "allocated node/gpu-0, for gang",
			wantWrites: []string{"update shared", "update/status shared"},
		},
		"claim of each pod": {
			want:       "allocated node/gpu-0, for a, for b, for c",
			wantWrites: append([]string{"update shared"}, times(3, "update/status shared")...),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			runGroups(t, oneNode(2, claimFor("shared", 1), gang(tc.group...)), func(h *harness) {
				g := h.groupCycle().try("node", member("a", "shared"), member("b", "shared"), member("c", "shared"))
				expectAll(t, "holders", h.holders("node", "gpu-0"), "shared (reserved)")
				expectAll(t, "in flight", h.inFlight("shared"), "node/gpu-0")
				g.revert()
				expectAll(t, "holders after the cycle", h.holders("node", "gpu-0"))
				expectAll(t, "in flight after the cycle", append(h.inFlight("shared"), h.inFlightNow()...))

				expectAll(t, "replay", g.replay(), times(3, "Success")...)
				expectAll(t, "PreBind", g.preBindAll(), times(3, "Success")...)
				h.settle()
				claim := h.claim("shared")
				if len(tc.group) == 0 {
					expect(t, "number of consumers", len(claim.Status.ReservedFor), 3)
				} else {
					expect(t, "claim", describeClaim(claim), tc.want)
					expect(t, "consumer", claim.Status.ReservedFor[0], resourceapi.ResourceClaimConsumerReference{
						APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang", UID: "uid-of-gang",
					})
				}
				expectAll(t, "writes", h.writes, tc.wantWrites...)
				expectAll(t, "holders in the end", h.holders("node", "gpu-0"), "shared")
				expectAll(t, "in flight in the end", append(h.inFlight("shared"), h.inFlightNow()...))
			})
		})
	}
}

// TestGroupMixedClaims: a claim of the group beside one of each pod.
func TestGroupMixedClaims(t *testing.T) {
	runGroups(t, oneNode(3, claimFor("shared", 1), claimFor("one", 1), claimFor("two", 1), gang("shared")), func(h *harness) {
		g := h.groupCycle().try("node", member("a", "shared", "one"), member("b", "two", "shared")).revert()
		expectAll(t, "replay", g.replay(), "Success", "Success")
		expectAll(t, "PreBind", g.preBindAll(), "Success", "Success")
		expect(t, "claim of the group", h.describe("shared"), "allocated node/gpu-0, for gang")
		expect(t, "claim of a", h.describe("one"), "allocated node/gpu-1, for a")
		expect(t, "claim of b", h.describe("two"), "allocated node/gpu-2, for b")
	})
}

// TestGroupFollowsAllocation: the first pod's devices decide where the others
// can go.
func TestGroupFollowsAllocation(t *testing.T) {
	tests := map[string]struct {
		slice *builders.SliceBuilder
		want  string
	}{
		"local devices":    {slice: gpus("node", 1), want: "UnschedulableAndUnresolvable: devices of resourceclaim default/shared cannot be reached"},
		"reached from all": {slice: everywhere(1), want: "Success"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			runGroups(t, objects(builders.Class(class), builders.Node("node"), builders.Node("other"), tc.slice, claimFor("shared", 1), gang("shared")), func(h *harness) {
				g := h.groupCycle().try("node", member("a", "shared"))
				expectAll(t, "search", g.attempt(member("b", "shared")).search("other", "node"), tc.want, "Success")
			})
		})
	}
}

// TestGroupWhoMayJoin: an allocation in flight is for the pods of the group,
// also in a later cycle.
func TestGroupWhoMayJoin(t *testing.T) {
	stranger := builders.Pod("stranger").Claim("shared").Obj()
	neighbour := member("neighbour", "shared")
	neighbour.Spec.SchedulingGroup.PodGroupName = ptr.To("others")
	others := gang("shared")
	others.Name, others.UID = "others", "uid-of-others"
	runGroups(t, oneNode(1, claimFor("shared", 1), gang("shared"), others), func(h *harness) {
		first := h.groupCycle().try("node", member("a", "shared")).revert()
		expectAll(t, "replay", first.replay(), "Success")
		expectAll(t, "a pod without a group", h.attempt(stranger).search("node"), beingAllocated)
		expectAll(t, "a pod of another group", h.groupCycle().attempt(neighbour).search("node"), beingAllocated)

		second := h.groupCycle().try("node", member("b", "shared")).revert()
		expectAll(t, "in flight when the second cycle is over", h.inFlight("shared"), "node/gpu-0")
		expectAll(t, "second replay", second.replay(), "Success")
		expectAll(t, "second PreBind", second.preBindAll(), "Success")
		expectAll(t, "first PreBind", first.preBindAll(), "Success")
		h.settle()
		// Whoever had to wait is woken by the claim that was written.
		after := h.claim("shared")
		before := after.DeepCopy()
		before.Status = resourceapi.ResourceClaimStatus{}
		hint, err := h.plugin.afterClaim(klog.Background(), stranger, before, after)
		if err != nil || hint != fwk.Queue {
			t.Errorf("hint for the pod without a group: %v, %v, want Queue", hint, err)
		}
		h.attempt(stranger).bind("node")
		expect(t, "claim", h.describe("shared"), "allocated node/gpu-0, for gang, for stranger")
	})
}

// TestGroupUnreserve: one pod of a gang gives up. What the others need stays.
func TestGroupUnreserve(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			runGroups(t, oneNode(1, claimFor("shared", 1), gang("shared")), func(h *harness) {
				g := h.groupCycle().try("node", member("a", "shared"), member("b", "shared"), member("c", "shared"))
				for i, pod := range order {
					for range 2 { // it is idempotent
						g.attempts[pod].unreserve("node")
					}
					if i < 2 {
						expectAll(t, "holders", h.holders("node", "gpu-0"), "shared (reserved)")
						expectAll(t, "in flight", h.inFlight("shared"), "node/gpu-0")
					}
				}
				expectAll(t, "holders in the end", h.holders("node", "gpu-0"))
				expectAll(t, "in flight in the end", append(h.inFlight("shared"), h.inFlightNow()...))
				h.groupCycle().try("node", member("a", "shared"))
			})
		})
	}
}

// TestGroupReplayConflict: another scheduler takes the device between the cycle
// and the replay. No pod gets it, and nothing stays reserved.
func TestGroupReplayConflict(t *testing.T) {
	runGroups(t, oneNode(2, claimFor("shared", 1), claimFor("foreign", 1).With(func(c *resourceapi.ResourceClaim) { c.Finalizers = []string{resourceapi.Finalizer} }),
		gang("shared")), func(h *harness) {
		g := h.groupCycle().try("node", member("a", "shared"), member("b", "shared")).revert()
		h.setStatus("foreign", func(status *resourceapi.ResourceClaimStatus) {
			*status = held("foreign", "node", "gpu-0", "other").Obj().Status
		})
		h.settle()
		conflict := "Error: reserve devices on node node: reserve device gpu.example.com/node/gpu-0 for claim default/shared: " +
			"it is allocated to claim default/foreign (UID uid-of-foreign)"
		expectAll(t, "replay", g.replay(), conflict, conflict)
		expectAll(t, "holders", h.holders("node", "gpu-0"), "foreign")
		expectAll(t, "in flight", append(h.inFlight("shared"), h.inFlightNow()...))
		again := h.groupCycle().try("node", member("a", "shared"), member("b", "shared"))
		expectAll(t, "next try", h.inFlight("shared"), "node/gpu-1")
		again.revert()
	})
}

// TestGroupReplayWithoutTheFirst: the pod that chose the devices of the group
// loses a device of its own. The next one brings the group's allocation along.
func TestGroupReplayWithoutTheFirst(t *testing.T) {
	runGroups(t, oneNode(2, claimFor("shared", 1), claimFor("own", 1), claimFor("foreign", 1).With(func(c *resourceapi.ResourceClaim) { c.Finalizers = []string{resourceapi.Finalizer} }),
		gang("shared")), func(h *harness) {
		g := h.groupCycle().try("node", member("a", "shared", "own"), member("b", "shared")).revert()
		h.setStatus("foreign", func(status *resourceapi.ResourceClaimStatus) {
			*status = held("foreign", "node", "gpu-1", "other").Obj().Status
		})
		h.settle()
		texts := g.replay()
		expect(t, "second pod", texts[1], "Success")
		if texts[0] == "Success" {
			t.Error("the first pod gets a device that is taken")
		}
		expect(t, "PreBind of the second pod", text(g.attempts[1].preBind("node")), "Success")
		expect(t, "claim of the group", h.describe("shared"), "allocated node/gpu-0, for gang")
		expect(t, "claim of the first pod", h.describe("own"), "free")
		expectAll(t, "in flight", h.inFlightNow())
	})
}

// TestGroupCrash: the scheduler ends after one pod of two has written the
// group's claim. Its successor gives the same devices to both.
func TestGroupCrash(t *testing.T) {
	runGroups(t, oneNode(2, claimFor("shared", 1), gang("shared"), member("a", "shared"), member("b", "shared")), func(h *harness) {
		g := h.groupCycle().try("node", member("a", "shared"), member("b", "shared")).revert()
		expectAll(t, "replay", g.replay(), "Success", "Success")
		expect(t, "PreBind", text(g.attempts[0].preBind("node")), "Success")
		h.stop()

		next := startPlugin(h.T, h.api, nil, func(*harness) {})
		next.addNode(builders.Node("node"))
		writes := len(next.writes)
		again := next.groupCycle().try("node", member("a", "shared"), member("b", "shared")).revert()
		expectAll(t, "replay by the successor", again.replay(), "Success", "Success")
		expectAll(t, "PreBind by the successor", again.preBindAll(), "Success", "Success")
		expect(t, "claim", next.describe("shared"), "allocated node/gpu-0, for gang")
		expect(t, "writes by the successor", len(next.writes)-writes, 0)
	})
}

// TestGroupFailsAfterWriting: the pod that wrote the claim cannot be bound. A
// claim of the group stays; from one of its own only its reservation goes while
// the other pod still needs the devices, and they are never free in between.
func TestGroupFailsAfterWriting(t *testing.T) {
	tests := map[string]struct {
		group []string
		// other says that the second pod has written its part already.
		other bool
		after string // when the first pod has failed
		want  string
	}{
		"claim of the group":                 {group: []string{"shared"}, after: "allocated node/gpu-0, for gang", want: "allocated node/gpu-0, for gang"},
		"claim of each pod":                  {after: "free", want: "allocated node/gpu-0, for b"},
		"claim of each pod, both have it":    {other: true, after: "allocated node/gpu-0, for b", want: "allocated node/gpu-0, for b"},
		"claim of the group, both have used": {group: []string{"shared"}, other: true, after: "allocated node/gpu-0, for gang", want: "allocated node/gpu-0, for gang"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			runGroups(t, oneNode(1, claimFor("shared", 1), claimFor("other", 1), gang(tc.group...)), func(h *harness) {
				g := h.groupCycle().try("node", member("a", "shared"), member("b", "shared")).revert()
				expectAll(t, "replay", g.replay(), "Success", "Success")
				g.attempts[0].must(g.attempts[0].preBind("node"))
				h.settle()
				if tc.other {
					g.attempts[1].must(g.attempts[1].preBind("node"))
				}
				g.attempts[0].unreserve("node")
				h.settle()
				expect(t, "claim after the failure", h.describe("shared"), tc.after)
				expectAll(t, "search of another pod", h.attempt(builders.Pod("pod").Claim("other").Obj()).search("node"), inUse)
				if !tc.other {
					g.attempts[1].must(g.attempts[1].preBind("node"))
				}
				expect(t, "claim in the end", h.describe("shared"), tc.want)
				expectAll(t, "in flight", h.inFlightNow())
			})
		})
	}
}

// TestGroupPreBindFails: a pod cannot write its own claim. The group's stays
// with the others, who need it; the roll-back takes the pod's own.
func TestGroupPreBindFails(t *testing.T) {
	runGroups(t, oneNode(2, claimFor("shared", 1), claimFor("two", 1), gang("shared")), func(h *harness) {
		g := h.groupCycle().try("node", member("a", "shared", "two"), member("b", "shared")).revert()
		expectAll(t, "replay", g.replay(), "Success", "Success")
		h.fail(&fault{request: "update/status two", err: errForbidden})
		if status := g.attempts[0].preBind("node"); status.IsSuccess() {
			t.Error("PreBind succeeds")
		}
		g.attempts[0].unreserve("node")
		expect(t, "PreBind of the other pod", text(g.attempts[1].preBind("node")), "Success")
		h.settle()
		expect(t, "claim of the group", h.describe("shared"), "allocated node/gpu-0, for gang")
		expect(t, "claim of the pod", h.describe("two"), "free")
		expectAll(t, "in flight", h.inFlightNow())
		retry := h.groupCycle().try("node", member("a", "shared", "two")).revert()
		expectAll(t, "replay of the pod", retry.replay(), "Success")
		expectAll(t, "PreBind of the pod", retry.preBindAll(), "Success")
		expect(t, "claim of the pod in the end", h.describe("two"), "allocated node/gpu-1, for a")
	})
}
