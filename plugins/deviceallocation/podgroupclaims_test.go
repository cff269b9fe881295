package deviceallocation

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestGroupConsumerLimit: a group is one consumer, however many pods it has.
func TestGroupConsumerLimit(t *testing.T) {
	full := held("full", "node", "gpu-0").With(func(c *resourceapi.ResourceClaim) {
		for i := range resourceapi.ResourceClaimReservedForMaxSize {
			c.Status.ReservedFor = append(c.Status.ReservedFor, consumer(builders.Pod(fmt.Sprint("pod-", i)).Obj()))
		}
	})
	almost := held("almost", "node", "gpu-1").With(func(c *resourceapi.ResourceClaim) {
		c.Status.ReservedFor = append(full.Obj().Status.ReservedFor[1:], *groupReference(gang()))
	})
	runGroups(t, oneNode(3, full, almost, claimFor("pending", 1), gang("full", "almost")), func(h *harness) {
		limit := "UnschedulableAndUnresolvable: resourceclaim default/%s has 256 consumers, which is the limit"
		expectAll(t, "reserved for the group", h.groupCycle().attempt(member("a", "almost")).search("node"), "Success")
		expectAll(t, "not reserved for the group", h.groupCycle().attempt(member("a", "full")).search("node"), fmt.Sprintf(limit, "full"))
		// Pods that share a claim without the group are consumers of their own.
		g := h.groupCycle()
		for i := range resourceapi.ResourceClaimReservedForMaxSize {
			g.try("node", member(fmt.Sprint("pod-", i), "pending"))
		}
		expectAll(t, "one pod too many", g.attempt(member("last", "pending")).search("node"), fmt.Sprintf(limit, "pending"))
		g.revert()
	})
}

// TestGroupClaimOwnership: whose claims a pod of a group may use, and what they
// get reserved for.
func TestGroupClaimOwnership(t *testing.T) {
	owned := func(kind, apiVersion, name string, uid types.UID) func(*resourceapi.ResourceClaim) {
		return func(c *resourceapi.ResourceClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
		}
	}
	group := gang()
	group.Spec.ResourceClaims = gangTemplate("rack", "template").Spec.ResourceClaims
	tests := map[string]struct {
		claim *builders.ClaimBuilder
		// generated is the name in the pod's status.
		generated string
		gatesOff  bool
		want      string // of PreEnqueue
		reserved  string
	}{
		"of the group": {
			claim: claimFor("claim", 1).With(owned("PodGroup", "scheduling.k8s.io/v1beta1", "gang", "uid-of-gang")), generated: "claim",
			want: "Success", reserved: "allocated node/gpu-0, for gang",
		},
		"of another group": {
			claim: claimFor("claim", 1).With(owned("PodGroup", "scheduling.k8s.io/v1beta1", "others", "uid")), generated: "claim",
			want: "UnschedulableAndUnresolvable: ResourceClaim default/claim was not created for Pod default/a (neither Pod nor PodGroup gang is the owner)",
		},
		"not made yet": {
			claim: claimFor("another", 1),
			want:  `UnschedulableAndUnresolvable: waiting for the claim "rack" of the pod: pod "default/a": ResourceClaim not created yet`,
		},
		"named, but missing": {
			claim: claimFor("another", 1), generated: "claim",
			want: `UnschedulableAndUnresolvable: resourceclaim "claim" not found`,
		},
		"of the group, gates off": {
			claim: claimFor("claim", 1).With(owned("PodGroup", "scheduling.k8s.io/v1beta1", "gang", "uid-of-gang")), generated: "claim", gatesOff: true,
			want: "UnschedulableAndUnresolvable: ResourceClaim default/claim was not created for Pod default/a (Pod is not owner)",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			start := runGroups
			if tc.gatesOff {
				start = func(t *testing.T, objects []runtime.Object, test func(*harness)) { run(t, objects, test) }
			}
			start(t, oneNode(1, tc.claim, group), func(h *harness) {
				pod := builders.Pod("a").ClaimTemplate("rack", "template", tc.generated).Obj()
				pod.Spec.SchedulingGroup = member("a").Spec.SchedulingGroup
				expect(t, "PreEnqueue", text(h.plugin.PreEnqueue(h.ctx, pod)), tc.want)
				if tc.reserved == "" {
					return
				}
				g := h.groupCycle().try("node", pod).revert()
				expectAll(t, "replay", g.replay(), "Success")
				expectAll(t, "PreBind", g.preBindAll(), "Success")
				expect(t, "claim", h.describe("claim"), tc.reserved)
			})
		})
	}
}

// TestGroupReservations: which reservations count for a pod of the group.
func TestGroupReservations(t *testing.T) {
	tests := map[string]struct {
		group    []string
		claim    *builders.ClaimBuilder
		gatesOff bool
		want     string
	}{
		"for the group":                         {group: []string{"shared"}, claim: held("shared", "node", "gpu-0").With(forGang), want: "allocated node/gpu-0, for gang"},
		"for the group, which does not list it": {claim: held("shared", "node", "gpu-0").With(forGang), want: "allocated node/gpu-0, for gang"},
		"for the pod, although the group lists": {group: []string{"shared"}, claim: held("shared", "node", "gpu-0", "a"), want: "allocated node/gpu-0, for a"},
		"for an earlier group of the name": {group: []string{"shared"}, claim: held("shared", "node", "gpu-0").With(func(c *resourceapi.ResourceClaim) {
			forGang(c)
			c.Status.ReservedFor[0].UID = "old"
		}), want: "allocated node/gpu-0, for gang, for gang"},
		"for the group, gates off": {gatesOff: true, group: []string{"shared"}, claim: held("shared", "node", "gpu-0").With(forGang), want: "allocated node/gpu-0, for gang, for a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			start := runGroups
			if tc.gatesOff {
				start = func(t *testing.T, objects []runtime.Object, test func(*harness)) { run(t, objects, test) }
			}
			start(t, oneNode(1, tc.claim, gang(tc.group...)), func(h *harness) {
				a := h.attempt(member("a", "shared")).bind("node")
				expect(t, "claim", a.describe("shared"), tc.want)
			})
		})
	}
}

// TestGroupConfirmsReservation: the informers still show what has been taken
// from the group. A pod must not rely on it.
func TestGroupConfirmsReservation(t *testing.T) {
	runGroups(t, oneNode(1, held("shared", "node", "gpu-0").With(forGang), gang("shared")), func(h *harness) {
		a := h.attempt(member("a", "shared")).find("node")
		a.must(a.reserve("node"))
		h.setStatus("shared", func(status *resourceapi.ResourceClaimStatus) { *status = resourceapi.ResourceClaimStatus{} })
		expect(t, "PreBind", text(a.preBind("node")),
			"Error: bind devices on node node: claim default/shared has changed since devices were looked for")
	})
}
