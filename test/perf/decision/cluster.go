package decision

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	gpuDriver = "gpu.example.com"
	nicDriver = "nic.example.com"
	gpuClass  = "gpu"

	// gpusPerNode is the number of GPUs of a node that has some.
	gpusPerNode = 8
)

// Cluster says what decisions are made about. Each node has one pool of eight
// GPUs, published in one slice.
type Cluster struct {
	// Nodes is the number of nodes. Only the first Equipped of them have GPUs;
	// 0 means all.
	Nodes, Equipped int
	// NICs is the number of NICs that nodes have beside the GPUs, in a slice of
	// another driver. No pod asks for them.
	NICs int
	// Held is how many GPUs, picked at random, are held by claims that have
	// been allocated.
	Held int
	// Pods is the number of pods that wait for one GPU each, and Blocked the
	// number of those that no node can ever run.
	Pods, Blocked int
	// Kinds is the number of different claims that pods have in turn. 0 and 1
	// mean that all pods ask for the same.
	Kinds int
}

// objects are the cluster as the API server has it, and the pods, which are
// given to the scheduler one by one.
type objects struct {
	stored        []runtime.Object
	pods, blocked []*corev1.Pod
}

func (c Cluster) objects() *objects {
	o := &objects{stored: []runtime.Object{
		builders.Class(gpuClass).Select(`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].type == "gpu"`).Obj(),
	}}
	for i := range c.Nodes {
		name := nodeName(i)
		o.stored = append(o.stored, builders.Node(name, corev1.LabelHostname, name))
		if i < c.equipped() {
			o.stored = append(o.stored, gpuSlice(name))
			if c.NICs > 0 {
				o.stored = append(o.stored, nicSlice(name, c.NICs))
			}
		}
	}
	for i, place := range c.held() {
		claim := builders.Claim(fmt.Sprintf("held-%d", i), gpuRequest(memoryOfAll)).With(allocate(place)).Obj()
		o.stored = append(o.stored, claim)
	}
	for i := range c.Pods {
		memory := memoryOfAll
		if kind := i % max(1, c.Kinds); kind > 0 {
			memory = fmt.Sprintf("%dMi", 40*1024-kind) // all GPUs have as much
		}
		o.pods = append(o.pods, o.pod(fmt.Sprintf("pod-%d", i), memory))
	}
	for i := range c.Blocked {
		o.blocked = append(o.blocked, o.pod(fmt.Sprintf("blocked-%d", i), memoryOfNone))
	}
	return o
}

func (c Cluster) equipped() int {
	if c.Equipped == 0 {
		return c.Nodes
	}
	return c.Equipped
}

// GPUs is the number of GPUs that are not held from the start.
func (c Cluster) GPUs() int { return c.equipped()*gpusPerNode - c.Held }

// place is one GPU of the cluster.
type place struct{ node, gpu int }

// held picks the GPUs that are in use, the same ones each time.
func (c Cluster) held() []place {
	picked := rand.New(rand.NewPCG(1, 2)).Perm(c.equipped() * gpusPerNode)[:c.Held]
	places := make([]place, len(picked))
	for i, n := range picked {
		places[i] = place{node: n / gpusPerNode, gpu: n % gpusPerNode}
	}
	return places
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func gpuSlice(node string) *resourceapi.ResourceSlice {
	devices := builders.DevicesNamed("gpu", gpusPerNode, func(i int, d *builders.DeviceBuilder) {
		d.Attribute("type", "gpu").
			Attribute("model", "example-80").
			Attribute("uuid", fmt.Sprintf("gpu-%s-%d", node, i)).
			Attribute("driverVersion", builders.Version("550.54.15")).
			Attribute("index", i).
			Attribute("numaNode", i/4).
			Attribute("resource.kubernetes.io/pcieRoot", fmt.Sprintf("pci0000:%02x", i/2)).
			Capacity("memory", "80Gi").
			Capacity("cores", "132")
	})
	return builders.Slice(gpuDriver, node).OnNode(node).Devices(devices...).Obj()
}

func nicSlice(node string, n int) *resourceapi.ResourceSlice {
	devices := builders.DevicesNamed("nic", n, func(i int, d *builders.DeviceBuilder) {
		d.Attribute("type", "nic").
			Attribute("mac", fmt.Sprintf("%s-%d", node, i)).
			Attribute("numaNode", i%2).
			Attribute("resource.kubernetes.io/pcieRoot", fmt.Sprintf("pci0000:%02x", i)).
			Capacity("bandwidth", "400G")
	})
	return builders.Slice(nicDriver, node).OnNode(node).Devices(devices...).Obj()
}

// What pods ask for: as much memory as every GPU has, or more than any.
const (
	memoryOfAll  = "40Gi"
	memoryOfNone = "400Gi"
)

func gpuRequest(memory string) builders.AnyRequest {
	return builders.Request("gpu", gpuClass).Select(
		`device.attributes["gpu.example.com"].model == "example-80" && ` +
			`device.capacity["gpu.example.com"].memory.compareTo(quantity("` + memory + `")) >= 0`)
}

// pod returns a pod with a claim made from a template, and stores the claim.
func (o *objects) pod(name, memory string) *corev1.Pod {
	claimName := name + "-gpu-x7k2p"
	pod := builders.Pod(name).ClaimTemplate("gpu", "one-gpu-"+memory, claimName).Obj()
	pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	pod.Spec.Containers = []corev1.Container{{
		Name:      "main",
		Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
	}}
	o.stored = append(o.stored, builders.Claim(claimName, gpuRequest(memory)).With(func(claim *resourceapi.ResourceClaim) {
		claim.Annotations = map[string]string{resourceapi.PodResourceClaimAnnotation: "gpu"}
		claim.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}
	}).Obj())
	return pod
}

// allocate gives a claim its GPU, for a pod that the cluster does not show.
func allocate(at place) func(*resourceapi.ResourceClaim) {
	return func(claim *resourceapi.ResourceClaim) {
		node := nodeName(at.node)
		claim.Finalizers = []string{resourceapi.Finalizer}
		claim.Status.Allocation = &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{
				Request: "gpu", Driver: gpuDriver, Pool: node, Device: fmt.Sprintf("gpu-%d", at.gpu),
			}}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{
					Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}},
			}}},
		}
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{
			Resource: "pods", Name: "user-of-" + claim.Name, UID: types.UID("user-of-" + claim.Name),
		}}
	}
}
