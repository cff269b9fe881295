//go:build linux

package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
)

// Env is what one test has of the cluster. Its methods fail the test on errors and
// must be called from the test's goroutine.
type Env struct {
	*Cluster
	// Namespace is for the test's pods and claims.
	Namespace string

	t        *testing.T
	title    string
	began    time.Time
	evidence []string
}

// NewEnv prepares the cluster for a test. The title says what the test shows. At
// the end it is checked that no device is lost, and the test's objects are removed.
func NewEnv(t *testing.T, c *Cluster, title string) *Env {
	t.Helper()
	namespace := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	e := &Env{Cluster: c, Namespace: namespace, t: t, title: title, began: time.Now()}
	t.Cleanup(e.close)
	_, err := c.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	e.Check(err, "create namespace")
	e.Await("the namespace's ServiceAccount", func(ctx context.Context) string {
		_, err := c.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return text(err)
	})
	return e
}

// Check ends the test on an error.
func (e *Env) Check(err error, format string, args ...any) {
	e.t.Helper()
	if err != nil {
		e.t.Fatalf(format+": %v", append(args, err)...)
	}
}

// Say adds a line to what the test shows.
func (e *Env) Say(format string, args ...any) {
	e.evidence = append(e.evidence, fmt.Sprintf(format, args...))
}

// Await polls until look returns an empty text, which else says what is still
// missing. It fails at once when a program of the cluster has ended.
func (e *Env) Await(what string, look func(ctx context.Context) string) {
	e.t.Helper()
	missing := ""
	err := wait.PollUntilContextTimeout(e.t.Context(), interval, patience, true, func(ctx context.Context) (bool, error) {
		found := look(ctx)
		if ctx.Err() == nil { // an answer that came too late says nothing
			missing = found
		}
		return found == "", e.Failed()
	})
	if err != nil {
		e.t.Fatalf("wait for %s: %v: %s", what, err, missing)
	}
}

// NodeReady waits until pods can run on a node and its devices are published.
func (e *Env) NodeReady(name string) {
	e.t.Helper()
	e.Check(e.awaitNodes(e.t.Context(), name), "wait for node %s", name)
}

// Create creates objects in the test's namespace.
func (e *Env) Create(objects ...runtime.Object) {
	e.t.Helper()
	for _, object := range objects {
		e.Check(e.create(e.t.Context(), object), "create %T", object)
	}
}

func (e *Env) create(ctx context.Context, object runtime.Object) (err error) {
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	switch o := object.(type) {
	case *corev1.Pod:
		o.Namespace = e.Namespace
		_, err = e.Client.CoreV1().Pods(e.Namespace).Create(ctx, o, options)
	case *appsv1.Deployment:
		_, err = e.Client.AppsV1().Deployments(e.Namespace).Create(ctx, o, options)
	case *batchv1.Job:
		_, err = e.Client.BatchV1().Jobs(e.Namespace).Create(ctx, o, options)
	case *resourceapi.ResourceClaim:
		o.Namespace = e.Namespace
		_, err = e.Client.ResourceV1().ResourceClaims(e.Namespace).Create(ctx, o, options)
	case *resourceapi.ResourceClaimTemplate:
		_, err = e.Client.ResourceV1().ResourceClaimTemplates(e.Namespace).Create(ctx, o, options)
	default:
		err = fmt.Errorf("this type is not known here: teach it")
	}
	return err
}

// Order tells a driver of a node what to do. At the end of the test its devices
// are in order again.
func (e *Env) Order(node, name string, order driver.Order) {
	e.t.Helper()
	e.t.Cleanup(func() {
		// The test's own context is over.
		if err := e.Nodes[node].Driver(name).Give(context.Background(), driver.Order{Repair: true}); err != nil {
			e.t.Errorf("repair devices: %v", err)
		}
	})
	e.Check(e.Nodes[node].Driver(name).Give(e.t.Context(), order), "tell driver %s of node %s", name, node)
}

// Prepared returns the UIDs of the claims that a driver of a node has prepared.
func (e *Env) Prepared(node, name string) []string {
	e.t.Helper()
	state, err := e.Nodes[node].Driver(name).State(e.t.Context())
	e.Check(err, "ask driver %s of node %s", name, node)
	return state.Prepared
}

// Pod reads a pod.
func (e *Env) Pod(name string) *corev1.Pod {
	e.t.Helper()
	pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(e.t.Context(), name, metav1.GetOptions{})
	e.Check(err, "read pod")
	return pod
}

// Claim reads a claim.
func (e *Env) Claim(name string) *resourceapi.ResourceClaim {
	e.t.Helper()
	claim, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Get(e.t.Context(), name, metav1.GetOptions{})
	e.Check(err, "read claim")
	return claim
}

// Runs waits until a pod runs.
func (e *Env) Runs(name string) *corev1.Pod {
	e.t.Helper()
	var pod *corev1.Pod
	e.Await("pod "+name+" to run", func(ctx context.Context) string {
		var err error
		if pod, err = e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if pod.Status.Phase != corev1.PodRunning {
			return e.describe(ctx, pod)
		}
		return ""
	})
	return pod
}

// Waits waits until the condition of a pod, which has no node yet, contains a
// reason.
func (e *Env) Waits(name, reason string) {
	e.t.Helper()
	said := ""
	e.Await("the reason of pod "+name, func(ctx context.Context) string {
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if said = unscheduled(pod); !strings.Contains(said, reason) {
			return fmt.Sprintf("it says %q, which does not contain %q", said, reason)
		}
		return ""
	})
	e.Say("%s waits: %s", name, said)
}

// Stuck waits until an event says why the kubelet cannot run a pod.
func (e *Env) Stuck(pod, event string) {
	e.t.Helper()
	e.Await("an event of pod "+pod, func(ctx context.Context) string {
		events, err := e.eventsOf(ctx, pod)
		if err != nil {
			return err.Error()
		}
		for _, found := range events {
			if strings.Contains(found, event) {
				return ""
			}
		}
		return fmt.Sprintf("none contains %q: %q", event, events)
	})
	e.Say("pod %s does not start: ...%s...", pod, event)
}

// Delete deletes a pod and waits until it is gone.
func (e *Env) Delete(name string) {
	e.t.Helper()
	e.Check(e.Client.CoreV1().Pods(e.Namespace).Delete(e.t.Context(), name, metav1.DeleteOptions{}), "delete pod")
	e.Gone(name)
}

// Gone waits until a pod does not exist.
func (e *Env) Gone(name string) {
	e.t.Helper()
	e.Await("pod "+name+" to be gone", func(ctx context.Context) string {
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		return e.describe(ctx, pod)
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
		if claim.Status.Allocation != nil || len(claim.Status.ReservedFor) > 0 {
			return fmt.Sprintf("its status is %v", claim.Status)
		}
		return ""
	})
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
