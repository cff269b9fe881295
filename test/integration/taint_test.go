package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// rule taints the devices of a pool.
func rule(e *harness.Env, name, pool string, effect resourceapi.DeviceTaintEffect) *resourceapi.DeviceTaintRule {
	return &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: e.In(name)},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(e.Driver), Pool: ptr.To(pool)},
			Taint:          resourceapi.DeviceTaint{Key: "example.com/repair", Value: "today", Effect: effect},
		},
	}
}

func deleteRule(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	if err := e.Client.ResourceV1().DeviceTaintRules().Delete(t.Context(), e.In(name), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Devices that their driver tainted are for requests that tolerate it, and the
// toleration is part of the result, or the pod would be evicted at once.
func TestDeviceTaints(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), pool(e, "a",
		builders.Device("none").Taint("example.com/hint", resourceapi.DeviceTaintEffectNone),
		builders.Device("noschedule").Taint("example.com/ns", resourceapi.DeviceTaintEffectNoSchedule),
		builders.Device("noexecute").Taint("example.com/ne", resourceapi.DeviceTaintEffectNoExecute)).Obj(),
		builders.Claim("plain", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("plain").Claim("plain").Obj())
	e.Runs("plain", "a")
	e.Holds("plain", e.Allocation("a", e.Device("r", "a", "none")), "plain")

	e.Create(builders.Claim("waiting", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("waiting").Claim("waiting").Obj())
	e.Waits("waiting", unfit(1, `1 request "r": free devices have the untolerated taint example.com/ns:NoSchedule`))

	// The eviction controller heeds no toleration that leaves the effect open.
	for device, toleration := range map[string]resourceapi.DeviceToleration{
		"noschedule": {Key: "example.com/ns", Operator: resourceapi.DeviceTolerationOpExists},
		"noexecute":  {Key: "example.com/ne", Operator: resourceapi.DeviceTolerationOpExists, Effect: resourceapi.DeviceTaintEffectNoExecute},
	} {
		e.Create(builders.Claim(device, builders.Request("r", e.In("gpu")).With(func(r *resourceapi.ExactDeviceRequest) {
			r.Tolerations = []resourceapi.DeviceToleration{toleration}
		})).Obj(), builders.Pod(device).Claim(device).Obj())
		e.Runs(device, "a")
		result := e.Device("r", "a", device)
		result.Tolerations = []resourceapi.DeviceToleration{toleration}
		e.Holds(device, e.Allocation("a", result), device)
	}
}

// A rule keeps pods away from devices until it is deleted, whether it came
// before them or while they waited.
func TestDeviceTaintRules(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(),
		builders.Claim("holder", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("holder").Claim("holder").Obj())
	e.Runs("holder", "a")
	e.Create(builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("pod").Claim("claim").Obj())
	e.Waits("pod", unfit(1, `1 request "r": all matching devices in use`))

	e.Create(rule(e, "repair", "a", resourceapi.DeviceTaintEffectNoSchedule))
	e.DeletePod("holder")
	tainted := unfit(1, `1 request "r": free devices have the untolerated taint example.com/repair=today:NoSchedule`)
	e.Waits("pod", tainted)
	e.Create(builders.Claim("later", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("later").Claim("later").Obj())
	e.Waits("later", tainted)
	e.Create(builders.Claim("brave", builders.Request("r", e.In("gpu")).Tolerate("example.com/repair")).Obj(),
		builders.Pod("brave").Claim("brave").Obj())
	e.Runs("brave", "a")
	e.DeletePod("brave")
	deleteRule(t, e, "repair")
	e.RunsOneOf("pod", "later")
}

// A rule with NoExecute ends pods, and their devices get no new ones.
func TestNoExecuteRule(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(),
		builders.Claim("claim", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("first").Claim("claim").Obj())
	e.Runs("first", "a")
	e.Create(rule(e, "broken", "a", resourceapi.DeviceTaintEffectNoExecute))
	e.PodGone("first")
	e.Released("claim")
	e.Create(builders.Pod("second").Claim("claim").Obj())
	e.Waits("second", unfitBeside(1, `1 request "r": no devices on the node`,
		`request "r": free devices have the untolerated taint example.com/repair=today:NoExecute`))
	e.Create(gpus(e, "b", 1).Obj())
	e.Runs("second", "b")
	e.Took("claim", "r=b/gpu-0")
}

// awaitRule waits until the scheduler has seen a rule, which shows in a pod that
// does not get a free device.
func awaitRule(e *harness.Env) {
	for i := 0; ; i++ {
		name := fmt.Sprint("probe-", i)
		e.Create(builders.Claim(name, builders.Request("r", e.In("gpu"))).Obj(), builders.Pod(name).Claim(name).Obj())
		bound := e.Decided(name).Spec.NodeName != ""
		e.DeletePod(name)
		if !bound {
			return
		}
	}
}

// A claim keeps its device when that is tainted, but no further pod gets it.
func TestTaintOnTheDeviceOfASharedClaim(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 2).Obj(),
		builders.Claim("shared", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("first").Claim("shared").Obj())
	e.Runs("first", "a")
	e.Create(rule(e, "repair", "a", resourceapi.DeviceTaintEffectNoSchedule))
	awaitRule(e)
	e.Create(builders.Pod("second").Claim("shared").Obj())
	e.Waits("second", unfit(1, "resourceclaim "+e.Namespace+"/shared: its device "+e.Driver+
		"/a/gpu-0 has the untolerated taint example.com/repair=today:NoSchedule"))
	e.Holds("shared", e.Allocation("a", e.Device("r", "a", "gpu-0")), "first")
	deleteRule(t, e, "repair")
	e.Runs("second", "a")
	e.Holds("shared", e.Allocation("a", e.Device("r", "a", "gpu-0")), "first", "second")
}

// A rule counts for slices that are published after it as well.
func TestRuleBeforeItsSlice(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(rule(e, "repair", "a", resourceapi.DeviceTaintEffectNoSchedule), class(e, "gpu").Obj(), gpus(e, "a", 1).Obj())
	claimAndPod(e, "pod")
	e.Waits("pod", unfit(1, `1 request "r": free devices have the untolerated taint example.com/repair=today:NoSchedule`))
	e.Create(builders.Claim("brave", builders.Request("r", e.In("gpu")).Tolerate("example.com/repair")).Obj(),
		builders.Pod("brave").Claim("brave").Obj())
	e.Runs("brave", "a")
	e.Took("brave", "r=a/gpu-0")
}

// A pod whose devices come from an extended resource goes like any other one
// when they must not be used any more, and so does its claim. Nothing in the pod
// can tolerate the taint.
func TestNoExecuteAndAnExtendedResource(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	gpu := class(e, "gpu").Obj()
	gpu.Spec.ExtendedResourceName = ptr.To(e.Driver + "/gpu")
	e.Create(gpu, gpus(e, "a", 1).Obj(), asking("pod", corev1.ResourceName(e.Driver+"/gpu"), 1, 0))
	e.Runs("pod", "a")
	e.Holds(extendedClaim(t, e, "pod"), e.Allocation("a", e.Device("container-0-request-0", "a", "gpu-0")), "pod")
	e.Create(rule(e, "broken", "a", resourceapi.DeviceTaintEffectNoExecute))
	e.PodGone("pod")
	e.OnlyClaims()
}
