package extendedresource

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

const (
	gpu = "example.com/gpu"
	nic = "example.com/nic"
	// implicit is the other name of what backs gpu.
	implicit = "deviceclass.resource.kubernetes.io/gpu"
)

// containerOf is a container with requests, given as name, quantity and so on.
func containerOf(name string, requests ...string) corev1.Container {
	c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	for i := 0; i < len(requests); i += 2 {
		c.Resources.Requests[corev1.ResourceName(requests[i])] = resource.MustParse(requests[i+1])
	}
	return c
}

func sidecar(name string, requests ...string) corev1.Container {
	c := containerOf(name, requests...)
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

func TestRequests(t *testing.T) {
	tests := map[string]struct {
		init, containers []corev1.Container
		// requests are "name class count", mappings "container resource request".
		requests, mappings []string
	}{
		"one container": {
			containers: []corev1.Container{containerOf("main", gpu, "2")},
			requests:   []string{"container-0-request-0 gpu 2"},
			mappings:   []string{"main example.com/gpu container-0-request-0"},
		},
		"the position counts all resources of the container, sorted": {
			containers: []corev1.Container{containerOf("main", gpu, "1", "cpu", "1", "memory", "1Gi")},
			requests:   []string{"container-0-request-1 gpu 1"},
			mappings:   []string{"main example.com/gpu container-0-request-1"},
		},
		"containers have requests of their own": {
			containers: []corev1.Container{containerOf("plain", "cpu", "1"), containerOf("one", gpu, "1"), containerOf("two", gpu, "2")},
			requests:   []string{"container-1-request-0 gpu 1", "container-2-request-0 gpu 2"},
			mappings:   []string{"one example.com/gpu container-1-request-0", "two example.com/gpu container-2-request-0"},
		},
		"two resources": {
			containers: []corev1.Container{containerOf("main", nic, "1", gpu, "1")},
			requests:   []string{"container-0-request-0 gpu 1", "container-0-request-1 nic 1"},
			mappings:   []string{"main example.com/gpu container-0-request-0", "main example.com/nic container-0-request-1"},
		},
		"a short-lived container uses what runs later": {
			init:       []corev1.Container{containerOf("init", gpu, "2")},
			containers: []corev1.Container{containerOf("one", gpu, "1"), containerOf("two", gpu, "1"), containerOf("three", gpu, "1")},
			requests:   []string{"container-1-request-0 gpu 1", "container-2-request-0 gpu 1", "container-3-request-0 gpu 1"},
			mappings: []string{
				"one example.com/gpu container-1-request-0", "two example.com/gpu container-2-request-0", "three example.com/gpu container-3-request-0",
				"init example.com/gpu container-1-request-0", "init example.com/gpu container-2-request-0",
			},
		},
		"a short-lived container needs more than what runs later": {
			init:       []corev1.Container{containerOf("init", gpu, "3")},
			containers: []corev1.Container{containerOf("main", gpu, "1")},
			requests:   []string{"container-0-request-0 gpu 2", "container-1-request-0 gpu 1"},
			mappings: []string{
				"main example.com/gpu container-1-request-0",
				"init example.com/gpu container-1-request-0", "init example.com/gpu container-0-request-0",
			},
		},
		"of the short-lived containers the hungriest counts": {
			init:       []corev1.Container{containerOf("small", gpu, "1"), containerOf("large", gpu, "4"), containerOf("medium", gpu, "2")},
			containers: []corev1.Container{containerOf("main", "cpu", "1")},
			requests:   []string{"container-1-request-0 gpu 4"},
			mappings: []string{
				"small example.com/gpu container-1-request-0", "large example.com/gpu container-1-request-0", "medium example.com/gpu container-1-request-0",
			},
		},
		"of equally hungry ones the first": {
			init:     []corev1.Container{containerOf("first", gpu, "2"), containerOf("second", gpu, "2")},
			requests: []string{"container-0-request-0 gpu 2"},
			mappings: []string{"first example.com/gpu container-0-request-0", "second example.com/gpu container-0-request-0"},
		},
		"a sidecar lives long": {
			init:       []corev1.Container{sidecar("side", gpu, "1")},
			containers: []corev1.Container{containerOf("main", gpu, "1")},
			requests:   []string{"container-0-request-0 gpu 1", "container-1-request-0 gpu 1"},
			mappings:   []string{"side example.com/gpu container-0-request-0", "main example.com/gpu container-1-request-0"},
		},
		"a sidecar's devices are for those before it only": {
			init:       []corev1.Container{containerOf("before", gpu, "1"), sidecar("side", gpu, "1"), containerOf("after", gpu, "1")},
			containers: []corev1.Container{containerOf("main", "cpu", "1")},
			requests:   []string{"container-1-request-0 gpu 1", "container-2-request-0 gpu 1"},
			mappings: []string{
				"side example.com/gpu container-1-request-0",
				"before example.com/gpu container-1-request-0", "after example.com/gpu container-2-request-0",
			},
		},
		"a later container needs more than the sidecar before it": {
			init:       []corev1.Container{containerOf("before", nic, "1"), sidecar("side", nic, "1"), containerOf("after", nic, "2")},
			containers: []corev1.Container{containerOf("main", gpu, "1")},
			requests:   []string{"container-1-request-0 nic 1", "container-2-request-0 nic 2", "container-3-request-0 gpu 1"},
			mappings: []string{
				"main example.com/gpu container-3-request-0", "side example.com/nic container-1-request-0",
				"before example.com/nic container-1-request-0", "after example.com/nic container-2-request-0",
			},
		},
		"the two names of a class": {
			init:       []corev1.Container{containerOf("init", gpu, "1", implicit, "2")},
			containers: []corev1.Container{containerOf("main", gpu, "1", implicit, "1")},
			requests: []string{
				"container-0-request-0 gpu 1", "container-1-request-0 gpu 1", "container-1-request-1 gpu 1",
			},
			mappings: []string{
				"main deviceclass.resource.kubernetes.io/gpu container-1-request-0",
				"init deviceclass.resource.kubernetes.io/gpu container-1-request-0", "init deviceclass.resource.kubernetes.io/gpu container-0-request-0",
				"main example.com/gpu container-1-request-1", "init example.com/gpu container-1-request-1",
			},
		},
		"none, fractions and other resources": {
			containers: []corev1.Container{containerOf("none", gpu, "0"), containerOf("half", gpu, "500m"), containerOf("other", "example.com/other", "1")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: tc.init, Containers: tc.containers}}
			before := pod.DeepCopy().String()
			requests, mappings := Requests(pod, Classes{gpu: "gpu", nic: "nic", implicit: "gpu"})
			var gotRequests, gotMappings []string
			for _, r := range requests {
				gotRequests = append(gotRequests, fmt.Sprintf("%s %s %d", r.Name, r.Exactly.DeviceClassName, r.Exactly.Count))
			}
			for _, m := range mappings {
				gotMappings = append(gotMappings, m.ContainerName+" "+m.ResourceName+" "+m.RequestName)
			}
			if !slices.Equal(gotRequests, tc.requests) {
				t.Errorf("requests: got %q, want %q", gotRequests, tc.requests)
			}
			if !slices.Equal(gotMappings, tc.mappings) {
				t.Errorf("mappings: got %q, want %q", gotMappings, tc.mappings)
			}
			if pod.String() != before {
				t.Error("the pod was changed")
			}
		})
	}
}
