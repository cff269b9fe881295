package deviceallocation

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestReserveReplay: a group cycle reserves, takes it back, and reserves again
// with the same state and without Filter. Twice in a row is harmless as well.
func TestReserveReplay(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(1, claimFor("claim", 1)), func(h *harness) {
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		a.unreserve("node")
		expectAll(t, "holders between", h.holders("node", "gpu-0"))
		expectAll(t, "in flight between", h.inFlight("claim"))
		a.must(a.reserve("node")).must(a.reserve("node"))
		expectAll(t, "holders", h.holders("node", "gpu-0"), "claim (reserved)")
		a.unreserve("node")
		expectAll(t, "holders after one Unreserve", h.holders("node", "gpu-0"))
		expectAll(t, "in flight after one Unreserve", h.inFlight("claim"))
		a.must(a.reserve("node")).must(a.preBind("node"))
		expect(t, "claim", h.describe("claim"), "allocated node/gpu-0, for pod")
	})
}

// TestReserveConflict: somebody takes a device between Filter and Reserve. The
// second of the pod's claims has the conflict; nothing is reserved for either.
func TestReserveConflict(t *testing.T) {
	pod := builders.Pod("pod").Claim("one").Claim("two").Obj()
	faster := builders.Pod("faster").Claim("three").Obj()
	cluster := oneNode(2, claimFor("one", 1), claimFor("two", 1), builders.Claim("three",
		builders.Request("request", class).Select(`device.attributes["gpu.example.com"].index == 1`)))
	slice := cluster[2].(*resourceapi.ResourceSlice)
	for i := range slice.Spec.Devices {
		index := int64(i)
		slice.Spec.Devices[i].Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: &index}}
	}
	run(t, cluster, func(h *harness) {
		a := h.attempt(pod).find("node")
		b := h.attempt(faster).find("node")
		b.must(b.reserve("node"))
		expect(t, "Reserve", text(a.reserve("node")), "Error: reserve devices on node node: reserve device gpu.example.com/node/gpu-1"+
			" for claim default/two: it is reserved for claim default/three (UID uid-of-three)")
		expectAll(t, "holders of gpu-0", h.holders("node", "gpu-0"))
		expectAll(t, "holders of gpu-1", h.holders("node", "gpu-1"), "three (reserved)")
		expectAll(t, "in flight", append(h.inFlight("one"), h.inFlight("two")...))
		a.unreserve("node") // as the framework does after a failed Reserve
		expectAll(t, "holders of gpu-1 after Unreserve", h.holders("node", "gpu-1"), "three (reserved)")
	})
}

// TestReserveUnknownClaim: the tracker refuses the second claim because it was
// deleted, so the first one is not reserved either.
func TestReserveUnknownClaim(t *testing.T) {
	pod := builders.Pod("pod").Claim("one").Claim("two").Obj()
	run(t, oneNode(2, claimFor("one", 1), claimFor("two", 1)), func(h *harness) {
		a := h.attempt(pod).find("node")
		if err := h.client.ResourceV1().ResourceClaims(builders.Namespace).Delete(h.ctx, "two", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.settle()
		if status := a.reserve("node"); status.IsSuccess() {
			t.Error("Reserve of a deleted claim succeeds")
		}
		expectAll(t, "holders", append(h.holders("node", "gpu-0"), h.holders("node", "gpu-1")...))
		expectAll(t, "in flight", append(h.inFlight("one"), h.inFlight("two")...))
	})
}

func TestReserveWithoutDevices(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(1, claimFor("claim", 1), held("other", "node", "gpu-0", "neighbour")), func(h *harness) {
		a := h.attempt(pod).find()
		expect(t, "Reserve", text(a.reserve("node")), "Error: reserve devices on node node: Filter found none")
		expect(t, "PreBind", text(a.preBind("node")), "Error: bind devices on node node: PreBind without Reserve")
	})
}

// TestUnreserve takes back an attempt at each point, twice.
func TestUnreserve(t *testing.T) {
	tests := map[string]struct {
		pod *builders.PodBuilder
		// upTo takes the attempt to some point.
		upTo func(a *attempt)
		want map[string]string
	}{
		"before PreFilter": {
			upTo: func(*attempt) {},
			want: map[string]string{"claim": "free", "shared": "allocated node/gpu-1, for neighbour"},
		},
		"before Reserve": {
			upTo: func(a *attempt) { a.find("node") },
			want: map[string]string{"claim": "free", "shared": "allocated node/gpu-1, for neighbour"},
		},
		"after Reserve": {
			upTo: func(a *attempt) { a.find("node").must(a.reserve("node")) },
			want: map[string]string{"claim": "free", "shared": "allocated node/gpu-1, for neighbour"},
		},
		"after failed PreBind": {
			upTo: func(a *attempt) {
				a.fail(&fault{request: "update claim", err: apierrors.NewForbidden(resourceapi.Resource("resourceclaims"), "claim", nil)})
				a.find("node").must(a.reserve("node"))
				if status := a.preBind("node"); status.IsSuccess() {
					a.Error("PreBind succeeds")
				}
			},
			want: map[string]string{"claim": "free", "shared": "allocated node/gpu-1, for neighbour"},
		},
		"after failed binding": {
			upTo: func(a *attempt) { a.bind("node") },
			want: map[string]string{"claim": "free", "shared": "allocated node/gpu-1, for neighbour"},
		},
		"after failed binding that the informers have seen": {
			upTo: func(a *attempt) { a.bind("node").settle() },
			want: map[string]string{"claim": "free", "shared": "allocated node/gpu-1, for neighbour"},
		},
		"after a binding whose answer was lost": {
			upTo: func(a *attempt) {
				a.bind("node")
				bound := a.pod.DeepCopy()
				bound.Spec.NodeName = "node"
				a.store(bound)
			},
			want: map[string]string{"claim": "allocated node/gpu-0, for pod", "shared": "allocated node/gpu-1, for neighbour, for pod"},
		},
		"after the pod was replaced": {
			upTo: func(a *attempt) {
				a.bind("node")
				other := builders.Pod("pod").OnNode("node").Obj()
				other.UID = "another"
				a.store(other)
			},
			want: map[string]string{"claim": "free", "shared": "allocated node/gpu-1, for neighbour"},
		},
		"after the pod was deleted": {
			upTo: func(a *attempt) {
				a.bind("node")
				if err := a.client.CoreV1().Pods(builders.Namespace).Delete(a.ctx, "pod", metav1.DeleteOptions{}); err != nil {
					a.Fatal(err)
				}
			},
			want: map[string]string{"claim": "free", "shared": "allocated node/gpu-1, for neighbour"},
		},
		"when nobody knows whether the pod was bound": {
			upTo: func(a *attempt) {
				a.bind("node").fail(&fault{request: "get pod", err: apierrors.NewInternalError(errNotReserved)})
			},
			want: map[string]string{"claim": "allocated node/gpu-0, for pod", "shared": "allocated node/gpu-1, for neighbour, for pod"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("pod").Claim("claim").Claim("shared").Obj()
			run(t, oneNode(2, claimFor("claim", 1), held("shared", "node", "gpu-1", "neighbour"), pod), func(h *harness) {
				a := h.attempt(pod)
				tc.upTo(a)
				for range 2 {
					a.unreserve("node")
					h.settle()
					for claim, want := range tc.want {
						expect(t, "claim "+claim, h.describe(claim), want)
					}
					expectAll(t, "in flight", h.inFlight("claim"))
					if tc.want["claim"] == "free" {
						expectAll(t, "holders of gpu-0", h.holders("node", "gpu-0"))
					}
				}
			})
		})
	}
}

// TestUnreserveReservedBefore: an attempt that found its claims reserved, as a
// scheduler that crashed has left them, fails. Allocations that were in use go
// with the last consumer, those that were found idle stay.
func TestUnreserveReservedBefore(t *testing.T) {
	tests := map[string]struct {
		claim *builders.ClaimBuilder
		// meanwhile is the pod that leaves the claim before the attempt fails.
		meanwhile string
		want      string
	}{
		"for the pod itself":            {claim: held("claim", "node", "gpu-0", "pod"), want: "free"},
		"for the pod and a neighbour":   {claim: held("claim", "node", "gpu-0", "pod", "neighbour"), want: "allocated node/gpu-0, for neighbour"},
		"for a neighbour who has left":  {claim: held("claim", "node", "gpu-0", "neighbour"), meanwhile: "neighbour", want: "free"},
		"for nobody, but was allocated": {claim: held("claim", "node", "gpu-0"), want: "allocated node/gpu-0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("pod").Claim("claim").Obj()
			run(t, oneNode(1, tc.claim), func(h *harness) {
				a := h.attempt(pod).bind("node") // the API server does not have the pod any more
				h.setStatus("claim", func(status *resourceapi.ResourceClaimStatus) {
					status.ReservedFor = slices.DeleteFunc(status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
						return c.Name == tc.meanwhile
					})
				})
				a.unreserve("node")
				expect(t, "claim", h.describe("claim"), tc.want)
			})
		})
	}
}

// store replaces a pod in the API server.
func (h *harness) store(pod *corev1.Pod) {
	h.Helper()
	if err := h.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace); err != nil {
		h.Fatalf("store pod: %v", err)
	}
}
