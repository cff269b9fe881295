package integration

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// What the API server fails to do, or does without saying so, ends with one
// allocation for a pod that runs, and none for a pod that does not.
func TestAPIErrors(t *testing.T) {
	outer := env(t)
	proxy := outer.StartProxy()
	scheduler := outer.ReplaceScheduler("proxied", harness.SchedulerOptions{Proxy: proxy})
	tests := map[string]func(*testing.T, *harness.Env, *harness.Proxy){
		"status-500": func(t *testing.T, e *harness.Env, p *harness.Proxy) {
			lostAnswer(t, e, p, http.StatusInternalServerError)
		},
		"status-409":      func(t *testing.T, e *harness.Env, p *harness.Proxy) { lostAnswer(t, e, p, http.StatusConflict) },
		"status-504":      func(t *testing.T, e *harness.Env, p *harness.Proxy) { lostAnswer(t, e, p, http.StatusGatewayTimeout) },
		"status-cut":      func(t *testing.T, e *harness.Env, p *harness.Proxy) { lostAnswer(t, e, p, 0) },
		"binding-lost":    bindingLost,
		"binding-refused": bindingRefused,
		"second-claim":    secondClaimRefused,
		"deleted-early":   func(t *testing.T, e *harness.Env, p *harness.Proxy) { claimDeleted(t, e, p, writeFinalizer) },
		"deleted-late":    func(t *testing.T, e *harness.Env, p *harness.Proxy) { claimDeleted(t, e, p, writeStatus) },
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := env(t)
			e.Watch(scheduler)
			t.Cleanup(func() { proxy.Intercept(nil) })
			e.Nodes("a")
			e.Create(class(e, "gpu").Obj())
			test(t, e, proxy)
		})
	}
}

// claimAndPod creates a claim for one device and a pod of the same name.
func claimAndPod(e *harness.Env, name string) {
	e.Create(builders.Claim(name, builders.Request("r", e.In("gpu"))).Obj(), builders.Pod(name).Claim(name).Obj())
}

// lostAnswer: the status of a claim is written, and the answer says otherwise.
func lostAnswer(t *testing.T, e *harness.Env, proxy *harness.Proxy, code int) {
	hook, seen := lose(2, code, func(r *http.Request) bool { return writeStatus.of(e, "pod", r) })
	proxy.Intercept(hook)
	e.Create(gpus(e, "a", 2).Obj())
	claimAndPod(e, "pod")
	e.Runs("pod", "a")
	if seen.Load() == 0 {
		t.Error("no answer was lost: this test tests nothing")
	}
	claimAndPod(e, "next")
	e.Runs("next", "a")
	held := map[string]bool{}
	for _, name := range []string{"pod", "next"} {
		claim := e.Claim(name)
		held[claim.Status.Allocation.Devices.Results[0].Device] = true
		e.AwaitConsumers(name, name)
	}
	if len(held) != 2 {
		t.Errorf("two pods share the devices %v", held)
	}
	e.DeletePod("pod")
	e.Released("pod")
}

// bindingLost: the pod is bound, and the answer says otherwise. It runs, so it
// must keep its devices.
func bindingLost(t *testing.T, e *harness.Env, proxy *harness.Proxy) {
	hook, seen := lose(1, http.StatusInternalServerError, func(r *http.Request) bool { return bindPod.of(e, "pod", r) })
	proxy.Intercept(hook)
	e.Create(gpus(e, "a", 1).Obj())
	claimAndPod(e, "pod")
	e.Runs("pod", "a")
	claimAndPod(e, "next")
	e.Waits("next", unfit(1, `1 request "r": all matching devices in use`))
	e.Holds("pod", e.Allocation("a", e.Device("r", "a", "gpu-0")), "pod")
	if seen.Load() == 0 {
		t.Error("no answer was lost: this test tests nothing")
	}
}

// bindingRefused: the claim is written, the pod cannot be bound. The device
// must serve another pod.
func bindingRefused(t *testing.T, e *harness.Env, proxy *harness.Proxy) {
	hook, seen := refuse(http.StatusInternalServerError, func(r *http.Request) bool { return bindPod.of(e, "unlucky", r) })
	proxy.Intercept(hook)
	e.Create(gpus(e, "a", 1).Obj())
	claimAndPod(e, "unlucky")
	e.Await("a binding to be refused", func(context.Context) string {
		if seen.Load() == 0 {
			return "none yet"
		}
		return ""
	})
	claimAndPod(e, "lucky")
	e.Runs("lucky", "a")
	e.Released("unlucky")
	proxy.Intercept(nil)
	e.Waits("unlucky", unfit(1, `1 request "r": all matching devices in use`))
	e.DeletePod("lucky")
	e.Runs("unlucky", "a")
	e.Took("unlucky", "r=a/gpu-0")
}

// secondClaimRefused: one claim of the pod is written, the other cannot be. The
// first one must not stay allocated.
func secondClaimRefused(t *testing.T, e *harness.Env, proxy *harness.Proxy) {
	hook, seen := refuse(http.StatusInternalServerError, func(r *http.Request) bool { return writeStatus.of(e, "bad", r) })
	proxy.Intercept(hook)
	e.Create(gpus(e, "a", 2).Obj(),
		builders.Claim("good", builders.Request("r", e.In("gpu"))).Obj(),
		builders.Claim("bad", builders.Request("r", e.In("gpu"))).Obj(),
		builders.Pod("pod").Claim("good").Claim("bad").Obj())
	e.Await("the write to be refused", func(context.Context) string {
		if seen.Load() == 0 {
			return "not yet"
		}
		return ""
	})
	claimAndPod(e, "one")
	claimAndPod(e, "two")
	e.Runs("one", "a")
	e.Runs("two", "a")
	e.Released("good")
	e.Released("bad")
	proxy.Intercept(nil)
	e.DeletePod("one")
	e.DeletePod("two")
	e.Runs("pod", "a")
	e.AwaitConsumers("good", "pod")
	e.AwaitConsumers("bad", "pod")
}

// claimDeleted: the claim is deleted while its pod is being scheduled. A claim
// of the same name that comes later serves the pod.
func claimDeleted(t *testing.T, e *harness.Env, proxy *harness.Proxy, at write) {
	deleted := make(chan error, 1)
	proxy.Intercept(once(false, func(r *http.Request) bool { return at.of(e, "pod", r) }, func() {
		deleted <- e.Client.ResourceV1().ResourceClaims(e.Namespace).Delete(context.Background(), "pod", metav1.DeleteOptions{})
	}))
	e.Create(gpus(e, "a", 1).Obj())
	claimAndPod(e, "pod")
	e.Receive(deleted)
	e.OnlyClaims()
	claimAndPod(e, "next")
	e.Runs("next", "a")
	e.DeletePod("next")
	e.Released("next")
	e.Create(builders.Claim("pod", builders.Request("other", e.In("gpu"))).Obj())
	e.Runs("pod", "a")
	e.Holds("pod", e.Allocation("a", e.Device("other", "a", "gpu-0")), "pod")
}

// The API server crashes while many pods wait. All that fit run in the end.
func TestAPIServerKilled(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b", "c")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 10).Obj(), gpus(e, "b", 10).Obj(), gpus(e, "c", 10).Obj())
	const pods, fit = 50, 30
	for i := range pods {
		claimAndPod(e, fmt.Sprint("pod-", i))
		if i == pods/2 {
			e.KillAPIServer()
		}
	}
	e.RunExactly(fit, pods)
}

// A pool is replaced by a new generation while pods wait for it.
func TestPoolReplacedWhilePodsWait(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 5).Named(e.In("one")).Obj())
	const pods = 20
	for i := range pods {
		claimAndPod(e, fmt.Sprint("pod-", i))
		switch i {
		case 3:
			e.Create(gpus(e, "a", 9).Generation(2).SliceCount(2).Named(e.In("two")).Obj())
		case 12:
			e.Create(pool(e, "a", builders.DevicesNamed("nic", 3, nil)...).Generation(2).SliceCount(2).Named(e.In("three")).Obj())
		}
	}
	e.RunExactly(12, pods)
}
