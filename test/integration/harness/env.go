package harness

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// schedulerName is that of the profile that pods use unless they name another.
const schedulerName = "device-scheduler"

// Env is what one test has of a cluster: a namespace, and a name of its own
// that is part of all its nodes, drivers and classes. At the end of the test
// the invariants are checked and everything is removed. Its methods fail the
// test on errors and must be called from the test's goroutine.
type Env struct {
	Cluster *Cluster
	Client  kubernetes.Interface
	// Name is unique to the test, Namespace is for its pods and claims.
	Name, Namespace string
	// Driver is the name of a DRA driver.
	Driver string

	t          *testing.T
	schedulers []watched
	// restarted says that the API server was; see KillAPIServer.
	restarted bool
	// created has what is not in the namespace, in the order of creation.
	created []func(context.Context) error
}

// watched is a scheduler and where its log was when the test began.
type watched struct {
	*Scheduler
	from int64
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// NewEnv prepares a cluster for a test.
func NewEnv(t *testing.T, c *Cluster) *Env {
	t.Helper()
	name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	name = strings.Trim(name[:min(len(name), 40)], "-")
	// Namespaces of earlier runs (-count) take a while to go away.
	if c.used[name]++; c.used[name] > 1 {
		name = fmt.Sprintf("%s-%d", name, c.used[name])
	}
	e := &Env{Cluster: c, Client: c.Client, Name: name, Namespace: name, Driver: name + ".example.com", t: t}
	e.Watch(c.Scheduler)
	t.Cleanup(e.close)
	e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}})
	e.Await("the namespace's ServiceAccount, without which pods are refused", func(ctx context.Context) string {
		if _, err := e.Client.CoreV1().ServiceAccounts(e.Namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	return e
}

// Watch includes the log of a scheduler in what is checked and shown.
func (e *Env) Watch(s *Scheduler) {
	e.t.Helper()
	from, err := s.logSize()
	e.check(err, "look at the scheduler's log")
	e.schedulers = append(e.schedulers, watched{s, from})
}

// In returns the name of a cluster-wide object of this test.
func (e *Env) In(name string) string { return e.Name + "-" + name }

// Nodes creates nodes with the given names (see In), and waits until pods can
// run on them.
func (e *Env) Nodes(names ...string) {
	e.t.Helper()
	for _, name := range names {
		e.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: e.In(name)}})
	}
	e.NodesReady(names...)
}

// Create creates objects, pods and claims in the namespace of the test. Pods
// get what makes them valid: a container, and the scheduler under test.
func (e *Env) Create(objects ...runtime.Object) {
	e.t.Helper()
	for _, object := range objects {
		e.check(e.create(e.t.Context(), object), "create %T", object)
	}
}

func (e *Env) create(ctx context.Context, object runtime.Object) (err error) {
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	core, devices := e.Client.CoreV1(), e.Client.ResourceV1()
	switch o := object.(type) {
	case *corev1.Pod:
		o = e.complete(o)
		_, err = core.Pods(o.Namespace).Create(ctx, o, options)
	case *resourceapi.ResourceClaim:
		o.Namespace = e.Namespace
		_, err = devices.ResourceClaims(o.Namespace).Create(ctx, o, options)
	case *resourceapi.ResourceClaimTemplate:
		o.Namespace = e.Namespace
		_, err = devices.ResourceClaimTemplates(o.Namespace).Create(ctx, o, options)
	case *schedulingapi.PodGroup:
		o.Namespace = e.Namespace
		_, err = e.Client.SchedulingV1beta1().PodGroups(o.Namespace).Create(ctx, o, options)
	case *corev1.Namespace:
		_, err = core.Namespaces().Create(ctx, o, options)
		e.removeLater(core.Namespaces().Delete, o.Name)
	case *corev1.Node:
		_, err = core.Nodes().Create(ctx, o, options)
		e.removeLater(core.Nodes().Delete, o.Name)
	case *resourceapi.ResourceSlice:
		_, err = devices.ResourceSlices().Create(ctx, o, options)
		e.removeLater(devices.ResourceSlices().Delete, o.Name)
	case *resourceapi.DeviceClass:
		_, err = devices.DeviceClasses().Create(ctx, o, options)
		e.removeLater(devices.DeviceClasses().Delete, o.Name)
	case *resourceapi.DeviceTaintRule:
		_, err = devices.DeviceTaintRules().Create(ctx, o, options)
		e.removeLater(devices.DeviceTaintRules().Delete, o.Name)
	default:
		err = fmt.Errorf("the harness does not know this type: teach it")
	}
	return err
}

func (e *Env) complete(pod *corev1.Pod) *corev1.Pod {
	pod.Namespace = e.Namespace
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = schedulerName
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Image == "" {
			pod.Spec.Containers[i].Image = "image" // nobody pulls it
		}
	}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(0))
	return pod
}

func (e *Env) removeLater(remove func(context.Context, string, metav1.DeleteOptions) error, name string) {
	e.created = append(e.created, func(ctx context.Context) error {
		return remove(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	})
}

// UpdateSlice changes a slice as its driver would.
func (e *Env) UpdateSlice(name string, change func(*resourceapi.ResourceSlice)) {
	e.t.Helper()
	slices := e.Client.ResourceV1().ResourceSlices()
	slice, err := slices.Get(e.t.Context(), name, metav1.GetOptions{})
	e.check(err, "read ResourceSlice %s", name)
	change(slice)
	_, err = slices.Update(e.t.Context(), slice, metav1.UpdateOptions{})
	e.check(err, "update ResourceSlice %s", name)
}

// DeleteSlice deletes a slice as its driver would.
func (e *Env) DeleteSlice(name string) {
	e.t.Helper()
	err := e.Client.ResourceV1().ResourceSlices().Delete(e.t.Context(), name, metav1.DeleteOptions{})
	e.check(err, "delete ResourceSlice %s", name)
}

// check ends the test on an error.
func (e *Env) check(err error, format string, args ...any) {
	e.t.Helper()
	if err != nil {
		e.t.Fatalf(format+": %v", append(args, err)...)
	}
}

// close checks what must hold after any test, shows the log if something did
// not, and removes the test's objects.
func (e *Env) close() {
	// The test's own context is over.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, fault := range Violations(ctx, e.Client) {
		e.t.Errorf("invariant broken: %s", fault)
	}
	for _, s := range e.schedulers {
		if state := s.Ended(); state != "" {
			e.t.Errorf("the scheduler ended unexpectedly: %s", state)
		}
		log, err := s.Log(s.from)
		if err != nil {
			e.t.Error(err)
		}
		for _, line := range Alarming(log, e.restarted) {
			e.t.Errorf("the scheduler logged: %s", line)
		}
	}
	if e.t.Failed() {
		e.show(ctx)
	}
	if err := e.remove(ctx); err != nil {
		e.t.Errorf("clean up: %v", err)
	}
}
