package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

const (
	attached     = "example.com/attached"
	attachFailed = "example.com/attach-failed"
)

// fabric is a pool on a node whose devices must be attached before a pod can
// use them.
func fabric(e *harness.Env, node string, n int) *builders.SliceBuilder {
	return pool(e, node, builders.DevicesNamed("gpu", n, func(_ int, d *builders.DeviceBuilder) {
		d.Conditions([]string{attached}, []string{attachFailed})
	})...)
}

// report sets a condition of all devices of a claim, as their driver would.
func report(t *testing.T, e *harness.Env, claim, condition string) {
	t.Helper()
	claims := e.Client.ResourceV1().ResourceClaims(e.Namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := claims.Get(t.Context(), claim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Status.Devices = nil
		for _, result := range current.Status.Allocation.Devices.Results {
			current.Status.Devices = append(current.Status.Devices, resourceapi.AllocatedDeviceStatus{
				Driver: result.Driver, Pool: result.Pool, Device: result.Device,
				Conditions: []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Simulated", LastTransitionTime: metav1.Now()}},
			})
		}
		_, err = claims.UpdateStatus(t.Context(), current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("report %s for the devices of claim %s: %v", condition, claim, err)
	}
}

// awaitDevice waits until a claim has its device for a number of pods, and
// returns the device as pool/name. None of the pods may run.
func awaitDevice(t *testing.T, e *harness.Env, name string, pods ...string) string {
	t.Helper()
	device := ""
	e.Await("devices of claim "+name, func(ctx context.Context) string {
		claim, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) != len(pods) {
			return "not allocated, or not for all pods"
		}
		device = claim.Status.Allocation.Devices.Results[0].Pool + "/" + claim.Status.Allocation.Devices.Results[0].Device
		return ""
	})
	for _, pod := range pods {
		if node := e.Pod(pod).Spec.NodeName; node != "" {
			t.Errorf("pod %s was bound to %s before its devices were ready", pod, node)
		}
	}
	return device
}

// A pod holds its device, and runs as soon as that is attached.
func TestBindingConditions(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), fabric(e, "a", 1).Obj())
	claimAndPod(e, "pod")
	awaitDevice(t, e, "pod", "pod")
	want := e.Allocation("a", e.Device("r", "a", "gpu-0"))
	want.Devices.Results[0].BindingConditions = []string{attached}
	want.Devices.Results[0].BindingFailureConditions = []string{attachFailed}
	e.Holds("pod", want, "pod")
	if e.Claim("pod").Status.Allocation.AllocationTimestamp == nil {
		t.Error("the allocation has no time")
	}
	e.Await("the event about the wait", func(ctx context.Context) string {
		events, err := e.Client.CoreV1().Events(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, event := range events.Items {
			if event.Reason == "BindingConditionsPending" && event.InvolvedObject.Name == "pod" {
				return ""
			}
		}
		return "there is none"
	})
	// Nobody else gets the device meanwhile.
	claimAndPod(e, "next")
	e.Waits("next", unfit(1, `1 request "r": all matching devices in use`))

	report(t, e, "pod", attached)
	e.Runs("pod", "a")
	e.DeletePod("pod")
	e.Released("pod")
	awaitDevice(t, e, "next", "next")
	report(t, e, "next", attached)
	e.Runs("next", "a")
}

// A device that cannot be attached is given back, and the pod gets another one,
// on another node if need be.
func TestBindingFails(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), fabric(e, "a", 1).Obj(), fabric(e, "b", 1).Obj())
	claimAndPod(e, "pod")
	first := awaitDevice(t, e, "pod", "pod")
	other := map[string]string{"a/gpu-0": "b", "b/gpu-0": "a"}[first]
	report(t, e, "pod", attachFailed)
	e.Await("another device", func(ctx context.Context) string {
		claim, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Get(ctx, "pod", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if claim.Status.Allocation == nil || claim.Status.Allocation.Devices.Results[0].Pool != other {
			return "none yet"
		}
		return ""
	})
	report(t, e, "pod", attached)
	e.Runs("pod", other)
	e.Took("pod", "r="+other+"/gpu-0")
}

// A device that nobody attaches is given back after bindingTimeout.
func TestBindingTimeout(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.ReplaceScheduler("impatient", harness.SchedulerOptions{Change: func(config map[string]any) {
		profile := config["profiles"].([]any)[0].(map[string]any)
		profile["pluginConfig"].([]any)[0].(map[string]any)["args"].(map[string]any)["bindingTimeout"] = "3s"
	}})
	e.Create(class(e, "gpu").Obj(), fabric(e, "a", 2).Obj())
	claimAndPod(e, "pod")
	if first := awaitDevice(t, e, "pod", "pod"); first != "a/gpu-0" {
		t.Errorf("got device %s at first, want a/gpu-0", first)
	}
	e.Await("the other device", func(ctx context.Context) string {
		claim, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Get(ctx, "pod", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if claim.Status.Allocation == nil || claim.Status.Allocation.Devices.Results[0].Device != "gpu-1" {
			return "none yet"
		}
		return ""
	})
	report(t, e, "pod", attached)
	e.Runs("pod", "a")
	e.Took("pod", "r=a/gpu-1")
}

// Pods that share a claim wait for its device side by side; one that goes away
// leaves it to the other.
func TestBindingConditionsOfASharedClaim(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), fabric(e, "a", 1).Obj(), builders.Claim("shared", builders.Request("r", e.In("gpu"))).Obj())
	pods := []string{"one", "two", "three"}
	for _, name := range pods {
		e.Create(builders.Pod(name).Claim("shared").Obj())
	}
	awaitDevice(t, e, "shared", pods...)
	e.DeletePod("one")
	e.AwaitConsumers("shared", "two", "three")
	report(t, e, "shared", attached)
	e.Runs("two", "a")
	e.Runs("three", "a")
}

// A pod that is deleted while it waits gives its device back.
func TestPodDeletedWhileItsDeviceIsAttached(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), fabric(e, "a", 1).Obj())
	claimAndPod(e, "pod")
	awaitDevice(t, e, "pod", "pod")
	e.DeletePod("pod")
	e.Released("pod")
	claimAndPod(e, "next")
	awaitDevice(t, e, "next", "next")
	report(t, e, "next", attached)
	e.Runs("next", "a")
}

// The scheduler ends while a pod waits, in order or not; the next one goes on.
func TestSchedulerEndsWhileADeviceIsAttached(t *testing.T) {
	for name, end := range map[string]func(*harness.Scheduler) error{"killed": (*harness.Scheduler).Kill, "stopped": (*harness.Scheduler).Stop} {
		t.Run(name, func(t *testing.T) {
			e := env(t)
			e.Nodes("a")
			e.Create(class(e, "gpu").Obj(), fabric(e, "a", 1).Obj())
			claimAndPod(e, "pod")
			awaitDevice(t, e, "pod", "pod")
			before := e.Claim("pod")
			if err := end(cluster.Scheduler); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Scheduler.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			report(t, e, "pod", attached)
			e.Runs("pod", "a")
			after := e.Claim("pod").Status.Allocation
			if !after.AllocationTimestamp.Equal(before.Status.Allocation.AllocationTimestamp) {
				t.Errorf("allocated at %v, want %v: it was allocated anew", after.AllocationTimestamp, before.Status.Allocation.AllocationTimestamp)
			}
		})
	}
}

// An allocation that has failed already, such as one that a kube-scheduler has
// left behind, is taken back.
func TestFailedAllocationIsTakenBack(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), fabric(e, "a", 1).Obj(), fabric(e, "b", 1).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj())
	claims := e.Client.ResourceV1().ResourceClaims(e.Namespace)
	claim := e.Claim("claim")
	claim.Finalizers = []string{resourceapi.Finalizer}
	claim, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Allocation = e.Allocation("a", e.Device("r", "a", "gpu-0"))
	claim.Status.Allocation.Devices.Results[0].BindingConditions = []string{attached}
	claim.Status.Allocation.Devices.Results[0].BindingFailureConditions = []string{attachFailed}
	claim.Status.Allocation.AllocationTimestamp = &metav1.Time{Time: metav1.Now().Time}
	if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	report(t, e, "claim", attachFailed)
	e.Create(builders.Pod("pod").Claim("claim").Obj())
	if device := awaitDevice(t, e, "claim", "pod"); device != "b/gpu-0" {
		t.Errorf("got device %s, want b/gpu-0", device)
	}
	report(t, e, "claim", attached)
	e.Runs("pod", "b")
}

// Devices that need no attaching go first.
func TestReadyDevicesFirst(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), pool(e, "a", builders.Device("gpu-0").Conditions([]string{attached}, []string{attachFailed}), builders.Device("gpu-1")).Obj())
	claimAndPod(e, "pod")
	e.Runs("pod", "a")
	e.Took("pod", "r=a/gpu-1")
	if phase := e.Pod("pod").Status.Phase; phase != corev1.PodRunning {
		t.Errorf("phase %s", phase)
	}
}
