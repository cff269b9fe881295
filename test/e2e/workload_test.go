//go:build linux

package e2e

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
	"github.com/device-scheduler/device-scheduler/test/e2e/image"
)

// podBuilder builds a pod of the tests' image.
type podBuilder struct{ pod corev1.Pod }

// pod starts a pod. Without a call of container it has one, "main", with all
// claims of the pod.
func pod(name string) *podBuilder {
	return &podBuilder{corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName:                 "device-scheduler",
			HostNetwork:                   true, // nobody needs a pod network here
			AutomountServiceAccountToken:  ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To(int64(5)),
		},
	}}
}

// on lets the pod run on one node only.
func (b *podBuilder) on(node string) *podBuilder {
	b.pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return b
}

// claim lets the pod use existing claims, under their own names.
func (b *podBuilder) claim(names ...string) *podBuilder {
	for _, name := range names {
		b.pod.Spec.ResourceClaims = append(b.pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: ptr.To(name)})
	}
	return b
}

// template lets the pod use a claim that is made for it, under the name of the
// template.
func (b *podBuilder) template(name string) *podBuilder {
	b.pod.Spec.ResourceClaims = append(b.pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: ptr.To(name)})
	return b
}

// container adds a container with some of the pod's claims: "claim" for all of its
// devices, "claim/request" for those of a request.
func (b *podBuilder) container(name string, claims ...string) *podBuilder {
	container := corev1.Container{Name: name, Image: image.Workload, ImagePullPolicy: corev1.PullNever}
	for _, claim := range claims {
		claim, request, _ := strings.Cut(claim, "/")
		container.Resources.Claims = append(container.Resources.Claims, corev1.ResourceClaim{Name: claim, Request: request})
	}
	b.pod.Spec.Containers = append(b.pod.Spec.Containers, container)
	return b
}

// extended lets the only container of the pod ask for an extended resource.
func (b *podBuilder) extended(name corev1.ResourceName, quantity string) *podBuilder {
	b.container("main")
	resources := corev1.ResourceList{name: resource.MustParse(quantity)}
	b.pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources, Limits: resources}
	return b
}

// once lets the containers end as soon as they have printed their devices.
func (b *podBuilder) once() *podBuilder {
	b.pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	b.complete()
	for i := range b.pod.Spec.Containers {
		b.pod.Spec.Containers[i].Args = []string{"once"}
	}
	return b
}

func (b *podBuilder) complete() {
	if len(b.pod.Spec.Containers) > 0 {
		return
	}
	var claims []string
	for _, claim := range b.pod.Spec.ResourceClaims {
		claims = append(claims, claim.Name)
	}
	b.container("main", claims...)
}

// obj returns the pod.
func (b *podBuilder) obj() *corev1.Pod {
	b.complete()
	return b.pod.DeepCopy()
}

// podTemplate returns the pod as a template for a controller; its name becomes a
// label.
func (b *podBuilder) podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: appLabel(b.pod.Name)}, Spec: b.obj().Spec}
}

func appLabel(name string) map[string]string { return map[string]string{"app": name} }

// gpuClaim asks for one whole GPU, with the request "gpu".
func gpuClaim(name string) *resourceapi.ResourceClaim {
	return builders.Claim(name, builders.Request("gpu", cluster.GPU)).Obj()
}

// gpuOfModel asks for one whole GPU of a model, with a request of the given name.
func gpuOfModel(request, model string) *builders.RequestBuilder {
	return builders.Request(request, cluster.GPU).Select(`device.attributes["gpu.example.com"].model == "` + model + `"`)
}

// claimTemplate makes claims like the given one.
func claimTemplate(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: claim.Spec},
	}
}

// inUse is the reason of a pod that is bound to one node and finds all GPUs there
// in use.
const inUse = `1 request "gpu": all matching devices in use`
