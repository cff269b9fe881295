package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// Whatever a pod waits for, it runs soon after that happens.
func TestWaitingPodsWakeUp(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	claim := func(name string) *resourceapi.ResourceClaim {
		return builders.Claim(name, builders.Request("r", e.In("gpu"))).Obj()
	}
	// A claim.
	e.Create(builders.Pod("one").Claim("one").Obj(), claim("one"))
	// A class.
	e.Waits("one", unfit(1, `claim one, request "r": device class `+e.In("gpu")+" does not exist"))
	e.Create(class(e, "gpu").Obj())
	// A slice.
	e.Waits("one", unfit(1, `1 request "r": no devices on the node`))
	e.Create(gpus(e, "a", 1).Obj())
	e.Runs("one", "a")

	// A device that comes free with a pod.
	e.Create(claim("two"), builders.Pod("two").Claim("two").Obj())
	inUse := unfit(1, `1 request "r": all matching devices in use`)
	e.Waits("two", inUse)
	e.DeletePod("one")
	e.Runs("two", "a")
	e.Took("two", "r=a/gpu-0")

	// One more device in a slice.
	e.Create(claim("three"), builders.Pod("three").Claim("three").Obj())
	e.Waits("three", inUse)
	e.UpdateSlice(e.Driver+"-a", func(s *resourceapi.ResourceSlice) {
		s.Spec.Devices = append(s.Spec.Devices, *builders.Device("added").Obj())
	})
	e.Runs("three", "a")
	e.Took("three", "r=a/added")

	// A claim that is deallocated while it is not in use.
	e.Create(claim("four"), builders.Pod("four").Claim("four").Obj())
	e.Waits("four", inUse)
	e.Nodes("b") // it has no devices yet, so that the pod need not be tried
	e.Create(gpus(e, "b", 1).Obj())
	e.Runs("four", "b")
}

// Many pods that wait for one device get it one after the other.
func TestManyPodsForOneDevice(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj())
	var waiting []string
	for i := range 5 {
		name := fmt.Sprint("pod-", i)
		waiting = append(waiting, name)
		e.Create(builders.Claim(name, builders.Request("r", e.In("gpu"))).Obj(), builders.Pod(name).Claim(name).Obj())
	}
	for len(waiting) > 0 {
		running := e.RunsOneOf(waiting...)
		e.Took(running, "r=a/gpu-0")
		e.DeletePod(running)
		waiting = without(waiting, running)
	}
}

func without(names []string, name string) []string {
	var rest []string
	for _, n := range names {
		if n != name {
			rest = append(rest, n)
		}
	}
	return rest
}

// A claim of a pod that was deleted while it waited does not hold anything up.
func TestPodDeletedWhileItWaits(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(),
		builders.Pod("gone").Claim("claim").Obj())
	e.Waits("gone", unfit(1, `1 request "r": no devices on the node`))
	e.DeletePod("gone")
	if err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Delete(t.Context(), "claim", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.Create(gpus(e, "a", 1).Obj(), builders.Claim("claim", builders.Request("other", e.In("gpu"))).Obj(),
		builders.Pod("next").Claim("claim").Obj())
	e.Runs("next", "a")
	e.Holds("claim", e.Allocation("a", e.Device("other", "a", "gpu-0")), "next")
}

// A pod that has done its work frees its devices, though it still exists.
func TestFinishedPodFreesItsDevices(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj())
	claimAndPod(e, "worker")
	e.Runs("worker", "a")
	claimAndPod(e, "next")
	e.Waits("next", unfit(1, `1 request "r": all matching devices in use`))
	done := e.Pod("worker")
	done.Status.Phase = corev1.PodSucceeded
	if _, err := e.Client.CoreV1().Pods(e.Namespace).UpdateStatus(t.Context(), done, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.Runs("next", "a")
	e.Took("next", "r=a/gpu-0")
	e.Released("worker")
}
