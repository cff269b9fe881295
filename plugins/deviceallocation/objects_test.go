package deviceallocation

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	driver = "gpu.example.com"
	class  = "gpu"
)

// gpus is the pool of a node, named like it, with the devices gpu-0 and so on.
func gpus(node string, n int) *builders.SliceBuilder {
	return builders.Slice(driver, node).OnNode(node).Devices(builders.DevicesNamed("gpu", n, nil)...)
}

// claimFor is a claim with one request for so many GPUs.
func claimFor(name string, n int64) *builders.ClaimBuilder {
	return builders.Claim(name, builders.Request("request", class).Count(n))
}

// held is a claim that has devices of a node already, for the named pods.
func held(name, node, gpu string, pods ...string) *builders.ClaimBuilder {
	return claimFor(name, 1).Holding(driver, node, gpu).With(func(claim *resourceapi.ResourceClaim) {
		claim.Finalizers = []string{resourceapi.Finalizer}
		claim.Status.Allocation.NodeSelector = onNode(node)
		for _, pod := range pods {
			claim.Status.ReservedFor = append(claim.Status.ReservedFor, consumer(builders.Pod(pod).Obj()))
		}
	})
}

func consumer(pod *corev1.Pod) resourceapi.ResourceClaimConsumerReference {
	return resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID}
}

// onNode is the node selector of an allocation of local devices.
func onNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name},
		}},
	}}}
}

// objects collects API objects and what builders make of them.
func objects(items ...any) []runtime.Object {
	var result []runtime.Object
	for _, item := range items {
		switch typed := item.(type) {
		case runtime.Object:
			result = append(result, typed)
		case interface {
			Obj() *resourceapi.ResourceClaim
		}:
			result = append(result, typed.Obj())
		case interface {
			Obj() *resourceapi.ResourceSlice
		}:
			result = append(result, typed.Obj())
		case interface {
			Obj() *resourceapi.DeviceClass
		}:
			result = append(result, typed.Obj())
		case interface{ Obj() *corev1.Pod }:
			result = append(result, typed.Obj())
		case []runtime.Object:
			result = append(result, typed...)
		default:
			panic("neither an object nor a builder")
		}
	}
	return result
}

// oneNode is a cluster of the node "node" with n GPUs, and more objects.
func oneNode(n int, more ...any) []runtime.Object {
	return objects(append([]any{builders.Class(class), builders.Node("node"), gpus("node", n)}, more...)...)
}
