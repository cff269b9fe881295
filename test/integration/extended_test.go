package integration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// asking makes a pod whose containers main and side ask for n and m of an
// extended resource.
func asking(name string, resourceName corev1.ResourceName, n, m int64) *corev1.Pod {
	pod := builders.Pod(name).Obj()
	for container, count := range map[string]int64{"main": n, "side": m} {
		if count == 0 {
			continue
		}
		list := corev1.ResourceList{resourceName: *resource.NewQuantity(count, resource.DecimalSI)}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: container, Resources: corev1.ResourceRequirements{Requests: list, Limits: list},
		})
	}
	if pod.Spec.Containers[0].Name != "main" {
		pod.Spec.Containers[0], pod.Spec.Containers[1] = pod.Spec.Containers[1], pod.Spec.Containers[0]
	}
	return pod
}

// extendedClaim returns the name of the claim that was made for a pod.
func extendedClaim(t *testing.T, e *harness.Env, pod string) string {
	t.Helper()
	status := e.Pod(pod).Status.ExtendedResourceClaimStatus
	if status == nil {
		t.Fatalf("pod %s has no status about a claim for its extended resources", pod)
	}
	return status.ResourceClaimName
}

// A pod that asks for an extended resource of a class gets its devices through
// a claim that the scheduler creates and that goes away with the pod.
func TestExtendedResource(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	gpu := class(e, "gpu").Obj()
	gpu.Spec.ExtendedResourceName = ptr.To(e.Driver + "/gpu")
	e.Create(gpu, gpus(e, "a", 3).Obj())
	e.Create(asking("pod", corev1.ResourceName(e.Driver+"/gpu"), 2, 1))
	pod := e.Runs("pod", "a")

	name := extendedClaim(t, e, "pod")
	want := &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: name,
		RequestMappings: []corev1.ContainerExtendedResourceRequest{
			{ContainerName: "main", ResourceName: e.Driver + "/gpu", RequestName: "container-0-request-0"},
			{ContainerName: "side", ResourceName: e.Driver + "/gpu", RequestName: "container-1-request-0"},
		},
	}
	if diff := cmp.Diff(want, pod.Status.ExtendedResourceClaimStatus); diff != "" {
		t.Errorf("status of the pod (-want +got):\n%s", diff)
	}
	e.Holds(name, e.Allocation("a", e.Device("container-0-request-0", "a", "gpu-0"),
		e.Device("container-0-request-0", "a", "gpu-1"), e.Device("container-1-request-0", "a", "gpu-2")), "pod")
	claim := e.Claim(name)
	if got := claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation]; got != "true" {
		t.Errorf("annotation %s of the claim is %q", resourceapi.ExtendedResourceClaimAnnotation, got)
	}
	if !metav1.IsControlledBy(claim, pod) {
		t.Errorf("the claim has owners %v, want the pod as controller", claim.OwnerReferences)
	}

	e.Create(asking("next", corev1.ResourceName(e.Driver+"/gpu"), 3, 0))
	e.Waits("next", unfit(1, `1 request "container-0-request-0": all matching devices in use`))
	e.DeletePod("pod")
	e.Runs("next", "a")
	e.OnlyClaims(extendedClaim(t, e, "next"))
	e.DeletePod("next")
	e.OnlyClaims()
}

// Every class has an extended resource by its own name.
func TestImplicitExtendedResource(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj())
	e.Create(asking("pod", corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix+e.In("gpu")), 1, 0))
	e.Runs("pod", "a")
	e.Holds(extendedClaim(t, e, "pod"), e.Allocation("a", e.Device("container-0-request-0", "a", "gpu-0")), "pod")
}

// A node whose device plugin offers the resource gives it out by itself, as
// long as it can; other nodes do it through devices.
func TestExtendedResourceOfADevicePlugin(t *testing.T) {
	e := env(t)
	name := corev1.ResourceName(e.Driver + "/gpu")
	node := builders.Node(e.In("plugin"))
	node.Status.Capacity = corev1.ResourceList{
		"cpu": resource.MustParse("32"), "memory": resource.MustParse("128Gi"), "pods": resource.MustParse("110"),
		name: resource.MustParse("1"),
	}
	node.Status.Allocatable = node.Status.Capacity
	e.Create(node)
	e.NodesReady("plugin")
	gpu := class(e, "gpu").Obj()
	gpu.Spec.ExtendedResourceName = ptr.To(string(name))
	e.Create(gpu, asking("plugin", name, 1, 0))
	if pod := e.Runs("plugin", "plugin"); pod.Status.ExtendedResourceClaimStatus != nil {
		t.Errorf("a claim was made although the node offers the resource: %v", pod.Status.ExtendedResourceClaimStatus)
	}
	e.OnlyClaims()

	e.Create(asking("devices", name, 1, 0))
	e.Waits("devices", "0/1 nodes are available: 1 Insufficient "+string(name)+". "+
		"preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.")
	e.Nodes("dra")
	e.Create(gpus(e, "dra", 1).Obj())
	e.Runs("devices", "dra")
	e.Holds(extendedClaim(t, e, "devices"), e.Allocation("dra", e.Device("container-0-request-0", "dra", "gpu-0")), "devices")
}

// The resource name of a class takes effect for pods that wait already.
func TestClassOfAnExtendedResourceComesLater(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	name := corev1.ResourceName(e.Driver + "/gpu")
	e.Create(gpus(e, "a", 1).Obj(), asking("pod", name, 1, 0))
	e.Waits("pod", unfit(1, "1 Insufficient "+string(name)))
	gpu := class(e, "gpu").Obj()
	gpu.Spec.ExtendedResourceName = ptr.To(string(name))
	e.Create(gpu)
	e.Runs("pod", "a")
	e.Await("the claim's consumers", func(context.Context) string {
		return cmp.Diff(1, len(e.Claim(extendedClaim(t, e, "pod")).Status.ReservedFor))
	})
}
