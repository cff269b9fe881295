//go:build linux

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// KillDriver kills a driver of a node. At the end of the test it runs again.
func (e *Env) KillDriver(node, name string) {
	e.t.Helper()
	e.Check(e.Nodes[node].DriverProcess(name).Kill(), "kill driver")
	e.t.Cleanup(func() {
		if e.Nodes[node].DriverProcess(name).Running() {
			return
		}
		// The test's own context is over.
		if err := e.Nodes[node].StartDriver(context.Background(), name); err != nil {
			e.t.Errorf("start driver again: %v", err)
		}
	})
}

// StartDriver starts a driver of a node again.
func (e *Env) StartDriver(node, name string) {
	e.t.Helper()
	e.Check(e.Nodes[node].StartDriver(e.t.Context(), name), "start driver")
}

// AwaitCrash does something of which a driver dies, and waits for that.
func (e *Env) AwaitCrash(node, name string, act func()) {
	e.t.Helper()
	process := e.Nodes[node].DriverProcess(name)
	process.Expect()
	act()
	e.Await("the crash of driver "+name, func(context.Context) string {
		if process.Running() {
			return "it runs"
		}
		return ""
	})
}

// RestartKubelet ends the kubelet of a node and starts it again.
func (e *Env) RestartKubelet(node string) {
	e.t.Helper()
	e.Check(e.Nodes[node].Kubelet.Stop(), "stop kubelet")
	e.Check(e.Nodes[node].Kubelet.Start(), "start kubelet")
}

// Off takes the power of a node away. At the end of the test it is on again.
func (e *Env) Off(node string) {
	e.t.Helper()
	e.Check(e.Nodes[node].Off(), "take the power away")
	e.t.Cleanup(func() {
		if e.Nodes[node].IsOn() {
			return
		}
		// The test's own context is over.
		if err := e.Nodes[node].On(context.Background()); err != nil {
			e.t.Errorf("switch node on again: %v", err)
		}
	})
}

// On switches a node on and waits until pods can run on it.
func (e *Env) On(node string) {
	e.t.Helper()
	e.Check(e.Nodes[node].On(e.t.Context()), "switch node on")
	e.Check(e.awaitNodes(e.t.Context(), node), "wait for node %s", node)
}

// Drain evicts the pods of a node as "kubectl drain" does. At the end of the test
// the node is in use again.
func (e *Env) Drain(node string) {
	e.t.Helper()
	e.t.Cleanup(func() { e.uncordon(node) })
	e.kubectl("drain", node, "--force")
}

// Cordon keeps new pods away from a node until the end of the test, or Uncordon.
func (e *Env) Cordon(node string) {
	e.t.Helper()
	e.t.Cleanup(func() { e.uncordon(node) })
	e.kubectl("cordon", node)
}

// Uncordon lets new pods run on a node again.
func (e *Env) Uncordon(node string) {
	e.t.Helper()
	e.kubectl("uncordon", node)
}

func (e *Env) kubectl(args ...string) {
	e.t.Helper()
	_, err := e.Kubectl(e.t.Context(), nil, args...)
	e.Check(err, "call kubectl")
}

// uncordon is for the end of a test, whose own context is over.
func (e *Env) uncordon(node string) {
	if _, err := e.Kubectl(context.Background(), nil, "uncordon", node); err != nil {
		e.t.Error(err)
	}
}

// StartDeletion deletes a pod and does not wait until it is gone.
func (e *Env) StartDeletion(name string) {
	e.t.Helper()
	e.Check(e.Client.CoreV1().Pods(e.Namespace).Delete(e.t.Context(), name, metav1.DeleteOptions{}), "delete pod")
}

// Ended waits until the container of a pod that is still there has ended.
func (e *Env) Ended(name string) {
	e.t.Helper()
	e.Await("the container of pod "+name+" to end", func(ctx context.Context) string {
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if statuses := pod.Status.ContainerStatuses; len(statuses) == 0 || statuses[0].State.Terminated == nil {
			return e.describe(ctx, pod)
		}
		return ""
	})
}

// Deleting waits until somebody has asked for a pod's deletion.
func (e *Env) Deleting(name string) {
	e.t.Helper()
	e.Await("the deletion of pod "+name, func(ctx context.Context) string {
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		case pod.DeletionTimestamp == nil:
			return e.describe(ctx, pod)
		}
		return ""
	})
}

// KillSchedulerAt puts a proxy between the scheduler and the API server, which
// kills the scheduler when it sends a certain request, in place of passing it on.
// The returned function waits for that.
func (e *Env) KillSchedulerAt(request func(*http.Request) bool) (wait func()) {
	e.t.Helper()
	proxy, err := harness.NewProxy(e.RESTConfig())
	e.Check(err, "start proxy")
	e.t.Cleanup(proxy.Close)
	e.Check(e.Scheduler.Stop(), "stop scheduler")
	e.t.Cleanup(func() {
		if e.Scheduler.Running() {
			return
		}
		if err := e.Scheduler.Start(); err != nil {
			e.t.Errorf("start the scheduler again: %v", err)
		}
	})
	killed := make(chan error, 1)
	var once sync.Once
	proxy.Intercept(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !request(r) {
			return false
		}
		once.Do(func() { killed <- e.Scheduler.Kill() })
		return true
	})
	e.Check(e.Scheduler.StartBehind(proxy), "start scheduler")
	return func() {
		e.t.Helper()
		e.Await("the end of the scheduler", func(context.Context) string {
			select {
			case err := <-killed:
				return text(err)
			default:
				return "it runs"
			}
		})
	}
}

// StartScheduler starts the scheduler again, as it was.
func (e *Env) StartScheduler() {
	e.t.Helper()
	e.Check(e.Scheduler.Start(), "start scheduler")
}

// Generation is that of a pool of the GPU driver's on a node.
func (e *Env) Generation(node, pool string) int64 {
	e.t.Helper()
	generation, err := e.generation(e.t.Context(), node, pool)
	e.Check(err, "read ResourceSlices")
	return generation
}

// AwaitGeneration waits until a pool has a later generation than before.
func (e *Env) AwaitGeneration(node, pool string, before int64) {
	e.t.Helper()
	e.Await("a new generation of pool "+pool, func(ctx context.Context) string {
		now, err := e.generation(ctx, node, pool)
		if err != nil {
			return err.Error()
		}
		if now <= before {
			return fmt.Sprintf("it is %d, and was %d", now, before)
		}
		return ""
	})
}

func (e *Env) generation(ctx context.Context, node, pool string) (int64, error) {
	list, err := e.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + node + ",spec.driver=gpu.example.com",
	})
	if err != nil {
		return 0, err
	}
	for _, slice := range list.Items {
		if slice.Spec.Pool.Name == pool {
			return slice.Spec.Pool.Generation, nil
		}
	}
	return 0, fmt.Errorf("node %s has no pool %s", node, pool)
}
