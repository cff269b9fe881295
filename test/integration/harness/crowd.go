package harness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
)

// RunExactly waits until of all pods of the test so many run, and the others
// have been told why they do not.
func (e *Env) RunExactly(running, all int) {
	e.t.Helper()
	e.Await(fmt.Sprintf("%d of %d pods to run", running, all), func(ctx context.Context) string {
		e.revive()
		pods, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		run, waiting := 0, 0
		for i := range pods.Items {
			pod := &pods.Items[i]
			switch {
			case pod.Status.Phase == corev1.PodRunning:
				run++
			case pod.Spec.NodeName == "" && message(pod) != "":
				waiting++
			}
		}
		if run != running || waiting != all-running {
			return fmt.Sprintf("%d of %d run, %d wait with a reason", run, len(pods.Items), waiting)
		}
		return ""
	})
}

// revive starts a scheduler that ended because it could not renew its lease, as
// the kubelet would.
func (e *Env) revive() {
	e.t.Helper()
	if s := e.Cluster.Scheduler; s.Ended() != "" {
		lost, err := s.Logged("eaderelection lost")
		e.check(err, "read log")
		if lost {
			e.check(s.Launch(), "start scheduler again")
		}
	}
}

// KillAPIServer kills the API server and starts it again.
func (e *Env) KillAPIServer() {
	e.t.Helper()
	server := e.Cluster.Component(controlplane.APIServer)
	e.restarted = true
	e.check(server.Kill(), "kill the API server")
	e.check(server.Start(e.t.Context()), "start the API server again")
}

// Elects waits until a scheduler is the leader, or checks that it is not.
func (e *Env) Elects(s *Scheduler, leads bool) {
	e.t.Helper()
	if leads {
		e.check(s.AwaitLog(e.t.Context(), becameLeader), "wait for the leader")
		return
	}
	found, err := s.Logged(becameLeader)
	e.check(err, "read log")
	if found {
		e.t.Error("two schedulers have the lease")
	}
}
