package extendedresource

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// Classes has the name of the device class for each extended resource that is
// to be had through devices.
type Classes map[corev1.ResourceName]string

// Requests returns the requests that a claim needs for the extended resources
// of the pod that classes names, and which container uses which of them; both
// are sorted. Quantities that are no whole numbers count as absent: the API
// server does not accept them for extended resources.
//
// Init containers that end before the next one starts use the devices of the
// containers that run later, as far as these suffice; of what they need beyond
// that, only the largest number is asked for, since they run one by one.
func Requests(pod *corev1.Pod, classes Classes) ([]resourceapi.DeviceRequest, []corev1.ContainerExtendedResourceRequest) {
	var requests []resourceapi.DeviceRequest
	var mappings []corev1.ContainerExtendedResourceRequest
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		p := newPlan(pod, name, classes[name])
		p.longLived()
		p.shortLived()
		requests = append(requests, p.requests()...)
		mappings = append(mappings, p.mappings...)
	}
	slices.SortFunc(requests, func(a, b resourceapi.DeviceRequest) int { return strings.Compare(a.Name, b.Name) })
	return requests, mappings
}

// container is a container with its position among all containers of a pod,
// init containers first.
type container struct {
	*corev1.Container
	index int
	// short says that it ends before the next one starts.
	short bool
}

// plan is the share of one resource in the requests.
type plan struct {
	resource   corev1.ResourceName
	class      string
	containers []container
	// own has the request of each long-lived container that uses the resource.
	own []*resourceapi.DeviceRequest
	// extra is what short-lived containers need beyond that.
	extra    *resourceapi.DeviceRequest
	mappings []corev1.ContainerExtendedResourceRequest
}

func newPlan(pod *corev1.Pod, resource corev1.ResourceName, class string) *plan {
	p := &plan{resource: resource, class: class}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		p.containers = append(p.containers, container{Container: c, index: len(p.containers), short: !sidecar})
	}
	for i := range pod.Spec.Containers {
		p.containers = append(p.containers, container{Container: &pod.Spec.Containers[i], index: len(p.containers)})
	}
	p.own = make([]*resourceapi.DeviceRequest, len(p.containers))
	return p
}

func (p *plan) longLived() {
	for _, c := range p.containers {
		if n := p.wants(c); n > 0 && !c.short {
			p.own[c.index] = p.request(c, n)
			p.use(c, p.own[c.index].Name)
		}
	}
}

// shortLived lets init containers use what later containers will have.
func (p *plan) shortLived() {
	var own []int // mappings to requests of their own, to be renamed
	for _, c := range p.containers {
		wants := p.wants(c)
		if wants == 0 || !c.short {
			continue
		}
		for _, later := range p.own[c.index:] {
			if later != nil && wants > 0 {
				wants -= later.Exactly.Count
				p.use(c, later.Name)
			}
		}
		if wants <= 0 {
			continue
		}
		request := p.request(c, wants)
		if p.extra == nil || p.extra.Exactly.Count < wants {
			p.extra = request
		}
		own = append(own, len(p.mappings))
		p.use(c, request.Name)
	}
	for _, i := range own {
		p.mappings[i].RequestName = p.extra.Name
	}
}

func (p *plan) requests() []resourceapi.DeviceRequest {
	var requests []resourceapi.DeviceRequest
	if p.extra != nil {
		requests = append(requests, *p.extra)
	}
	for _, request := range p.own {
		if request != nil {
			requests = append(requests, *request)
		}
	}
	return requests
}

// wants is the number of devices that the container asks for.
func (p *plan) wants(c container) int64 {
	quantity := c.Resources.Requests[p.resource]
	n, whole := quantity.AsInt64()
	if !whole {
		return 0
	}
	return n
}

// request names the request as the kubelet and other tools know it from
// kube-scheduler: by the position of the container, and by that of the resource
// among the sorted names of all resources that the container requests.
func (p *plan) request(c container, count int64) *resourceapi.DeviceRequest {
	names := slices.Sorted(maps.Keys(c.Resources.Requests))
	position, _ := slices.BinarySearch(names, p.resource)
	return &resourceapi.DeviceRequest{
		Name: fmt.Sprintf("container-%d-request-%d", c.index, position),
		Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: p.class,
			AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
			Count:           count,
		},
	}
}

func (p *plan) use(c container, request string) {
	p.mappings = append(p.mappings, corev1.ContainerExtendedResourceRequest{
		ContainerName: c.Name,
		ResourceName:  string(p.resource),
		RequestName:   request,
	})
}
