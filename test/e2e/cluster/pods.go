//go:build linux

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
)

// Pods waits until a controller has made so many pods, apart from those that are
// about to end, and returns their names in order. The pods are those with the
// label app.
func (e *Env) Pods(app string, count int) []string {
	e.t.Helper()
	return e.pods(app, count, func(*corev1.Pod) string { return "" })
}

// Replicas does as Pods and waits until all of them run.
func (e *Env) Replicas(app string, count int) []string {
	e.t.Helper()
	return e.pods(app, count, func(pod *corev1.Pod) string {
		if pod.Status.Phase != corev1.PodRunning {
			return e.describe(e.t.Context(), pod)
		}
		return ""
	})
}

func (e *Env) pods(app string, count int, look func(*corev1.Pod) string) []string {
	e.t.Helper()
	var names []string
	e.Await(fmt.Sprintf("%d pods of %s", count, app), func(ctx context.Context) string {
		list, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err.Error()
		}
		names = nil
		for i := range list.Items {
			pod := &list.Items[i]
			if pod.DeletionTimestamp != nil {
				continue
			}
			if missing := look(pod); missing != "" {
				return missing
			}
			names = append(names, pod.Name)
		}
		if len(names) != count {
			return fmt.Sprintf("there are %d", len(names))
		}
		return ""
	})
	slices.Sort(names)
	return names
}

// SamePrepared checks that a node's drivers have prepared the named claims of the
// test and nothing else, and that there is a CDI file for each of them.
func (e *Env) SamePrepared(node string, claims ...string) {
	e.t.Helper()
	var want []string
	for _, claim := range claims {
		want = append(want, string(e.Claim(claim).UID))
	}
	slices.Sort(want)
	var got []string
	for _, name := range drivers {
		got = append(got, e.Prepared(node, name)...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		e.t.Errorf("UIDs of the claims %v, and of those prepared on node %s (-want +got):\n%s", claims, node, diff)
	}
	files, err := e.Nodes[node].CDIFiles()
	e.Check(err, "list CDI files")
	if len(files) != len(claims) {
		e.t.Errorf("node %s has the CDI files %v for %d claims", node, files, len(claims))
	}
}

// Published waits until a driver's ResourceSlices of a node have, or no longer
// have, a device.
func (e *Env) Published(node, name, device string, want bool) {
	e.t.Helper()
	e.Await(fmt.Sprintf("device %s of node %s to be published: %t", device, node, want), func(ctx context.Context) string {
		list, err := e.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
			FieldSelector: "spec.nodeName=" + node + ",spec.driver=" + name,
		})
		if err != nil {
			return err.Error()
		}
		found := false
		for _, slice := range list.Items {
			for _, published := range slice.Spec.Devices {
				found = found || published.Name == device
			}
		}
		if found != want {
			return "it is not so yet"
		}
		return ""
	})
}

// Container is the ID of the only container of a pod: it tells whether a
// container has gone on running.
func (e *Env) Container(pod string) string {
	e.t.Helper()
	p := e.Runs(pod)
	if restarts := p.Status.ContainerStatuses[0].RestartCount; restarts != 0 {
		e.t.Errorf("the container of pod %s was started again %d times", pod, restarts)
	}
	return p.Status.ContainerStatuses[0].ContainerID
}

// Calls returns what the kubelet asked a driver of a node for since the driver was
// started, for the claims of the test.
func (e *Env) Calls(node, name string) []driver.Call {
	e.t.Helper()
	state, err := e.Nodes[node].Driver(name).State(e.t.Context())
	e.Check(err, "ask driver %s of node %s", name, node)
	var calls []driver.Call
	for _, call := range state.Calls {
		if strings.HasPrefix(call.Claim, e.Namespace+"/") {
			calls = append(calls, call)
		}
	}
	return calls
}
