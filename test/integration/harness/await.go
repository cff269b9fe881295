package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

const (
	// interval is the pause between two looks at an object.
	interval = 50 * time.Millisecond
	// patience is far more than anything should take, and far less than the
	// five minutes after which kube-scheduler tries forgotten pods again.
	patience = 30 * time.Second
)

// Await polls until look returns an empty text, which else says what is still
// missing.
func (e *Env) Await(what string, look func(ctx context.Context) string) {
	e.t.Helper()
	missing := ""
	err := wait.PollUntilContextTimeout(e.t.Context(), interval, patience, true, func(ctx context.Context) (bool, error) {
		found := look(ctx)
		if ctx.Err() == nil { // an answer that came too late says nothing
			missing = found
		}
		return found == "", nil
	})
	if err != nil {
		e.t.Fatalf("wait for %s: %v: %s", what, err, missing)
	}
}

// NodesReady waits until pods can run on the nodes.
func (e *Env) NodesReady(names ...string) {
	e.t.Helper()
	e.Await("ready nodes", func(ctx context.Context) string {
		for _, name := range names {
			node, err := e.Client.CoreV1().Nodes().Get(ctx, e.In(name), metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if len(node.Spec.Taints) > 0 || len(node.Status.Allocatable) == 0 {
				return fmt.Sprintf("node %s has taints %v and allocatable %v", node.Name, node.Spec.Taints, node.Status.Allocatable)
			}
		}
		return ""
	})
}

// Pod reads a pod.
func (e *Env) Pod(name string) *corev1.Pod {
	e.t.Helper()
	pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(e.t.Context(), name, metav1.GetOptions{})
	e.check(err, "read pod")
	return pod
}

// Claim reads a claim.
func (e *Env) Claim(name string) *resourceapi.ResourceClaim {
	e.t.Helper()
	claim, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Get(e.t.Context(), name, metav1.GetOptions{})
	e.check(err, "read claim")
	return claim
}

// Runs waits until a pod runs and checks on which node; an empty node means
// that any is right.
func (e *Env) Runs(name, node string) *corev1.Pod {
	e.t.Helper()
	var pod *corev1.Pod
	e.Await("pod "+name+" to run", func(ctx context.Context) string {
		var err error
		pod, err = e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if pod.Status.Phase != corev1.PodRunning {
			return describe(pod)
		}
		return ""
	})
	if node != "" && pod.Spec.NodeName != e.In(node) {
		e.t.Errorf("pod %s runs on node %s, want %s", name, pod.Spec.NodeName, e.In(node))
	}
	return pod
}

// Waits waits until the condition of a pod says exactly why it waits.
func (e *Env) Waits(name, reason string) {
	e.t.Helper()
	if reason == "" {
		e.t.Fatalf("pod %s: say for which reason it should wait", name)
	}
	e.Await("the reason of pod "+name, func(ctx context.Context) string {
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if pod.Spec.NodeName != "" {
			return "it was bound to " + pod.Spec.NodeName
		}
		return cmp.Diff(reason, message(pod))
	})
}

func describe(pod *corev1.Pod) string {
	return fmt.Sprintf("phase %s, node %q, condition %q", pod.Status.Phase, pod.Spec.NodeName, message(pod))
}

// message is what the scheduler says about a pod that waits.
func message(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

// DeletePod deletes a pod and waits until it is gone.
func (e *Env) DeletePod(name string) {
	e.t.Helper()
	pods := e.Client.CoreV1().Pods(e.Namespace)
	e.check(pods.Delete(e.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}), "delete pod")
	e.PodGone(name)
}

// PodGone waits until a pod does not exist.
func (e *Env) PodGone(name string) {
	e.t.Helper()
	e.Await("pod "+name+" to be gone", func(ctx context.Context) string {
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		return describe(pod)
	})
}

// Released waits until a claim has neither allocation nor consumer.
func (e *Env) Released(name string) {
	e.t.Helper()
	e.Await("claim "+name+" to be released", func(ctx context.Context) string {
		claim, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(resourceapi.ResourceClaimStatus{}, claim.Status)
	})
}

// OnlyClaims waits until the only claims of the namespace have the given names.
func (e *Env) OnlyClaims(names ...string) {
	e.t.Helper()
	e.Await(fmt.Sprintf("no claims but %v", names), func(ctx context.Context) string {
		claims, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var found []string
		for i := range claims.Items {
			found = append(found, claims.Items[i].Name)
		}
		slices.Sort(found)
		slices.Sort(names)
		return cmp.Diff(names, found)
	})
}

// AwaitConsumers waits until a claim is reserved for the given pods only.
func (e *Env) AwaitConsumers(claim string, pods ...string) {
	e.t.Helper()
	want := e.reservedFor(pods)
	e.Await("the consumers of claim "+claim, func(ctx context.Context) string {
		c, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(want, c.Status.ReservedFor, sameStatus...)
	})
}

// Decided waits until the scheduler has either bound a pod or said why not.
func (e *Env) Decided(name string) *corev1.Pod {
	e.t.Helper()
	var pod *corev1.Pod
	e.Await("a decision about pod "+name, func(ctx context.Context) string {
		var err error
		if pod, err = e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if pod.Spec.NodeName == "" && message(pod) == "" {
			return describe(pod)
		}
		return ""
	})
	return pod
}

// RunsOneOf waits until one of the pods runs and the others do not, and returns
// its name.
func (e *Env) RunsOneOf(names ...string) string {
	e.t.Helper()
	running := ""
	e.Await("one of several pods to run", func(ctx context.Context) string {
		for _, name := range names {
			pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if pod.Status.Phase == corev1.PodRunning {
				running = name
				return ""
			}
		}
		return "none does"
	})
	for _, name := range names {
		if pod := e.Pod(name); name != running && pod.Spec.NodeName != "" {
			e.t.Errorf("pods %s and %s are both bound", running, name)
		}
	}
	return running
}

// Receive waits for something that happens once.
func (e *Env) Receive(happened <-chan error) {
	e.t.Helper()
	select {
	case err := <-happened:
		e.check(err, "injected fault")
	case <-time.After(patience):
		e.t.Fatal("the fault was never injected")
	}
}
