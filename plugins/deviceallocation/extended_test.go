package deviceallocation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// withPlugin is a node on which a device plugin offers example.com/gpu.
func withPlugin(name string) *corev1.Node {
	node := builders.Node(name)
	node.Status.Allocatable = corev1.ResourceList{"example.com/gpu": resource.MustParse("4")}
	return node
}

func extendedCluster(more ...any) []runtime.Object {
	return objects(append([]any{extendedClass(), builders.Node("node"), withPlugin("plugin"), builders.Node("bare"), gpus("node", 2)}, more...)...)
}

// made returns the claims that were made for extended resources.
func (h *harness) made() []resourceapi.ResourceClaim {
	h.Helper()
	claims, err := h.client.ResourceV1().ResourceClaims(builders.Namespace).List(h.ctx, metav1.ListOptions{})
	if err != nil {
		h.Fatalf("list claims: %v", err)
	}
	var made []resourceapi.ResourceClaim
	for _, claim := range claims.Items {
		if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" {
			made = append(made, claim)
		}
	}
	return made
}

// storedPod returns a pod as the API server has it.
func (h *harness) storedPod(name string) *corev1.Pod {
	h.Helper()
	pod, err := h.client.CoreV1().Pods(builders.Namespace).Get(h.ctx, name, metav1.GetOptions{})
	if err != nil {
		h.Fatalf("get pod: %v", err)
	}
	return pod
}

// TestExtendedResourceThroughDevices goes all the way and looks at what kubelet
// needs.
func TestExtendedResourceThroughDevices(t *testing.T) {
	pod := extendedPod("pod", "2")
	run(t, extendedCluster(pod), func(h *harness) {
		a := h.attempt(pod)
		expectAll(t, "search", a.search("node", "plugin", "bare"), "Success", "Success",
			`UnschedulableAndUnresolvable: request "container-0-request-0": no devices on the node`)
		a.must(a.reserve("node"))
		expectAll(t, "holders after Reserve", h.holders("node", "gpu-1"), "<extended-resources> (reserved)")
		expect(t, "number of claims before PreBind", len(h.made()), 0)
		a.must(a.preBind("node"))

		claims := h.made()
		if len(claims) != 1 {
			t.Fatalf("claims: got %v, want one", claims)
		}
		claim := claims[0]
		expect(t, "claim", describeClaim(&claim), "allocated node/gpu-0 node/gpu-1, for pod")
		if !strings.HasPrefix(claim.Name, "pod-extended-resources-") || !metav1.IsControlledBy(&claim, pod) {
			t.Errorf("claim: got %s of %v, want one that the pod controls", claim.Name, claim.OwnerReferences)
		}
		want := &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: claim.Name,
			RequestMappings: []corev1.ContainerExtendedResourceRequest{{
				ContainerName: "main", ResourceName: "example.com/gpu", RequestName: "container-0-request-0",
			}},
		}
		if diff := cmp.Diff(want, h.storedPod("pod").Status.ExtendedResourceClaimStatus); diff != "" {
			t.Errorf("status of the pod (-want +got):\n%s", diff)
		}
		expectAll(t, "holders after PreBind", h.holders("node", "gpu-1"), claim.Name)
		h.settle()
		expectAll(t, "search of the next pod", h.attempt(extendedPod("next", "1")).search("node"),
			`UnschedulableAndUnresolvable: request "container-0-request-0": all matching devices in use`)
	})
}

// TestExtendedResourceThroughPlugin: there the pod needs no claim.
func TestExtendedResourceThroughPlugin(t *testing.T) {
	pod := extendedPod("pod", "1")
	run(t, extendedCluster(pod), func(h *harness) {
		a := h.attempt(pod).find("node", "plugin")
		a.must(a.reserve("plugin")).must(a.preBind("plugin"))
		a.unreserve("plugin")
		expectAll(t, "writes", h.writes)
		expectAll(t, "holders", h.holders("node", "gpu-0"))
	})
}

// TestExtendedResourceVariants: of two resources, each node has another one
// through devices.
func TestExtendedResourceVariants(t *testing.T) {
	nicClass := builders.Class("nic").Select(`device.driver == "nic.example.com"`).Obj()
	name := "example.com/nic"
	nicClass.Spec.ExtendedResourceName = &name
	nics := builders.Slice("nic.example.com", "plugin").OnNode("plugin").Devices(builders.Device("nic-0"))
	node := builders.Node("node")
	node.Status.Allocatable = corev1.ResourceList{"example.com/nic": resource.MustParse("1")}
	gpuClass := extendedClass()
	gpuClass.Spec.Selectors = builders.Class("").Select(`device.driver == "gpu.example.com"`).Obj().Spec.Selectors
	pod := extendedPod("pod", "1")
	pod.Spec.Containers[0].Resources.Requests["example.com/nic"] = resource.MustParse("1")
	cluster := objects(gpuClass, nicClass, node, withPlugin("plugin"), builders.Node("bare"), gpus("node", 1), nics, pod)
	for target, want := range map[string]string{"node": "allocated node/gpu-0, for pod", "plugin": "allocated plugin/nic-0, for pod"} {
		t.Run(target, func(t *testing.T) {
			run(t, cluster, func(h *harness) {
				a := h.attempt(pod)
				expectAll(t, "search", a.search("node", "plugin", "bare"), "Success", "Success",
					`UnschedulableAndUnresolvable: request "container-0-request-0": no devices on the node`)
				a.must(a.reserve(target)).must(a.preBind(target))
				claims := h.made()
				if len(claims) != 1 {
					t.Fatalf("claims: got %v, want one", claims)
				}
				expect(t, "claim", describeClaim(&claims[0]), want)
			})
		})
	}
}

// TestExtendedResourceFailures: the claim that was made goes, whatever fails.
func TestExtendedResourceFailures(t *testing.T) {
	tests := map[string]struct {
		// request is the one that fails: see failMade.
		request string
		want    string
	}{
		"creation":            {request: "create", want: "create claim default/pod-extended-resources-"},
		"status of the claim": {request: "update/status", want: "write allocation and reservation to claim"},
		"finalizer":           {request: "update", want: "add finalizer to claim"},
		"status of the pod":   {request: "patch/status pod", want: "patch extended resource status of pod default/pod"},
		"binding":             {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := extendedPod("pod", "1")
			pod.Spec.ResourceClaims = builders.Pod("pod").Claim("own").Obj().Spec.ResourceClaims
			run(t, extendedCluster(pod, claimFor("own", 1)), func(h *harness) {
				if tc.request != "" {
					h.failMade(tc.request)
				}
				a := h.attempt(pod).find("node")
				a.must(a.reserve("node"))
				status := text(a.preBind("node"))
				if want := "Error: bind devices on node node: " + tc.want; tc.want != "" && !strings.HasPrefix(status, want) {
					t.Errorf("PreBind:\n got %s\nwant %s ...", status, want)
				}
				if tc.want == "" {
					expect(t, "PreBind", status, "Success")
				}
				for range 2 {
					a.unreserve("node")
					h.settle()
					expect(t, "number of claims", len(h.made()), 0)
					expect(t, "own claim", h.describe("own"), "free")
					expectAll(t, "holders", append(h.holders("node", "gpu-0"), h.holders("node", "gpu-1")...))
				}
				h.attempt(h.storedPod("pod")).bind("node")
				expect(t, "number of claims in the end", len(h.made()), 1)
				expect(t, "claim in the pod's status", h.storedPod("pod").Status.ExtendedResourceClaimStatus.ResourceClaimName, h.made()[0].Name)
			})
		})
	}
}

// failMade makes a request fail; without a name it is one for the claim that
// PreBind is going to make, whose name is known only then.
func (h *harness) failMade(request string) {
	refused := apierrors.NewForbidden(claimsResource, "", nil)
	if strings.Contains(request, " ") {
		h.fail(&fault{request: request, err: refused})
		return
	}
	if request == "create" {
		h.judge = func(request string) fault {
			if !strings.HasPrefix(request, "create ") {
				return fault{}
			}
			h.judge = nil // the next attempt succeeds
			return fault{err: refused}
		}
		return
	}
	h.onCreate = func(name string) {
		h.faults = append(h.faults, &fault{request: request + " " + name, err: refused})
		h.onCreate = nil
	}
}

// TestExtendedResourceLeftover: the claim of an attempt that could not clean up
// keeps the pod out until PostFilter has deleted it.
func TestExtendedResourceLeftover(t *testing.T) {
	pod := extendedPod("pod", "1")
	foreign := leftover(extendedPod("other", "1")).With(func(c *resourceapi.ResourceClaim) { c.Name, c.UID = "foreign", "foreign" })
	run(t, extendedCluster(pod, leftover(pod), foreign), func(h *harness) {
		a := h.attempt(pod)
		expectAll(t, "search", a.search(), "UnschedulableAndUnresolvable: resourceclaim default/leftover of an earlier attempt must be deleted first")
		expect(t, "PostFilter", text(a.postFilter()), "Unschedulable: deletion of ResourceClaim completed")
		h.settle()
		expect(t, "leftover", h.describe("leftover"), "gone")
		expect(t, "claim of another pod", h.describe("foreign"), "free")
		h.attempt(pod).bind("node")
	})
}

// TestExtendedResourceLeftoverRefused: nothing would wake the pod if the claim
// stays because the API server does not delete it.
func TestExtendedResourceLeftoverRefused(t *testing.T) {
	pod := extendedPod("pod", "1")
	run(t, extendedCluster(pod, leftover(pod)), func(h *harness) {
		h.fail(&fault{request: "delete leftover", err: apierrors.NewForbidden(claimsResource, "leftover", nil)})
		a := h.attempt(pod)
		a.search()
		expect(t, "PostFilter", a.postFilter().Code(), fwk.Error)
		expectAll(t, "tried again at once", h.activated.pods, "pod")
	})
}

// TestExtendedResourceLeftoverWithoutClass: a claim must not hold devices for a
// pod whose class has been deleted.
func TestExtendedResourceLeftoverWithoutClass(t *testing.T) {
	pod := extendedPod("pod", "1")
	run(t, objects(builders.Node("node"), gpus("node", 1), pod, leftover(pod)), func(h *harness) {
		a := h.attempt(pod)
		expectAll(t, "search", a.search(), "UnschedulableAndUnresolvable: resourceclaim default/leftover of an earlier attempt must be deleted first")
		expect(t, "PostFilter", text(a.postFilter()), "Unschedulable: deletion of ResourceClaim completed")
		expect(t, "leftover", h.describe("leftover"), "gone")
		h.settle()
		expectAll(t, "search without the leftover", h.attempt(pod).search(), "Skip")
	})
}

// TestExtendedResourceNames: a class backs its own name as well, and the gate
// switches all of it off.
func TestExtendedResourceNames(t *testing.T) {
	implicit := builders.Pod("pod").Obj()
	implicit.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix + class): resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("1")},
	}}}
	run(t, extendedCluster(implicit), func(h *harness) {
		unbacked := extendedPod("pod", "1")
		unbacked.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/other": resource.MustParse("1")}
		expectAll(t, "resource without a class", h.attempt(unbacked).search(), "Skip")
		h.attempt(implicit).bind("node")
		expect(t, "claim", describeClaim(&h.made()[0]), "allocated node/gpu-0, for pod")
		expect(t, "request", h.made()[0].Spec.Devices.Requests[0].Name, "container-0-request-1")
		h.plugin.gates.EnableDRAExtendedResource = false
		expectAll(t, "without the gate", h.attempt(implicit).search(), "Skip")
	})
}
