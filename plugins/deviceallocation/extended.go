package deviceallocation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	resourcehelper "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/extendedresource"
)

// extendedClaimName stands for the claim of extended resources until PreBind
// creates it. It is not a valid name, so no real claim has it; other parts of
// kube-scheduler know it.
const extendedClaimName = "<extended-resources>"

// extendedState is about the extended resources of a pod that device classes
// back. Whether a node provides such a resource through devices or through a
// device plugin shows in its allocatable resources.
type extendedState struct {
	pod *corev1.Pod
	// classes has the class of each resource that the pod requests, names the
	// resources in order.
	classes extendedresource.Classes
	names   []corev1.ResourceName
	// uid identifies the claim in ledger and tracker before it exists.
	uid types.UID
	// leftover is the claim of an attempt that failed after creating it.
	leftover *resourceapi.ResourceClaim
}

// extendedResources returns the class of each extended resource that the pod
// requests and that a class backs.
func (pl *Plugin) extendedResources(pod *corev1.Pod) extendedresource.Classes {
	if !pl.gates.EnableDRAExtendedResource {
		return nil
	}
	var classes extendedresource.Classes
	for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if quantity.IsZero() || !schedutil.IsDRAExtendedResourceName(name) {
			continue
		}
		if class := pl.resolver.GetDeviceClass(name); class != nil {
			if classes == nil {
				classes = make(extendedresource.Classes)
			}
			classes[name] = class.Name
		}
	}
	return classes
}

// extendedState returns nil if the pod has no extended resources that classes
// back. The claim of an earlier attempt counts even if its class is gone: the
// devices are held for a pod that cannot run with them.
func (pl *Plugin) extendedState(pod *corev1.Pod) *extendedState {
	if !pl.gates.EnableDRAExtendedResource {
		return nil
	}
	classes, leftover := pl.extendedResources(pod), pl.feed.extendedClaim(pod.UID)
	if len(classes) == 0 && leftover == nil {
		return nil
	}
	e := newExtendedState(pod, classes)
	e.uid, e.leftover = types.UID(uuid.NewUUID()), leftover
	return e
}

func newExtendedState(pod *corev1.Pod, classes extendedresource.Classes) *extendedState {
	return &extendedState{pod: pod, classes: classes, names: slices.Sorted(maps.Keys(classes))}
}

// throughDevices returns the resources that a node provides through devices:
// a device plugin that offers a resource goes first. The caller must not change
// the result.
func (e *extendedState) throughDevices(node fwk.NodeInfo) []corev1.ResourceName {
	allocatable := node.GetAllocatable().GetScalarResources()
	plugged := func(name corev1.ResourceName) bool { return allocatable[name] != 0 }
	if !slices.ContainsFunc(e.names, plugged) {
		return e.names
	}
	return slices.DeleteFunc(slices.Clone(e.names), plugged)
}

// claim makes the claim for some of the pod's extended resources, as PreBind
// will create it (KEP-5004).
func (e *extendedState) claim(names []corev1.ResourceName) (*resourceapi.ResourceClaim, []corev1.ContainerExtendedResourceRequest) {
	classes := make(extendedresource.Classes, len(names))
	for _, name := range names {
		classes[name] = e.classes[name]
	}
	requests, mappings := extendedresource.Requests(e.pod, classes)
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    e.pod.Namespace,
			Name:         extendedClaimName,
			UID:          e.uid,
			GenerateName: e.pod.Name + "-extended-resources-",
			Annotations:  map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1",
				Kind:       "Pod",
				Name:       e.pod.Name,
				UID:        e.pod.UID,
				Controller: ptr.To(true),
			}},
		},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}},
	}, mappings
}
