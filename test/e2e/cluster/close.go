//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// tally counts the tests.
type tally struct{ passed, failed int }

// Tally says how many tests have passed and failed, and Passed whether that is a
// success.
func (c *Cluster) Tally() (summary string, success bool) {
	return fmt.Sprintf("e2e: %d passed, %d failed", c.tally.passed, c.tally.failed), c.tally.passed > 0 && c.tally.failed == 0
}

// close checks what must hold after any test, removes the test's objects, checks
// that no device is lost, and reports.
func (e *Env) close() {
	// The test's own context is over.
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	e.checkInvariants(ctx)
	if e.t.Failed() {
		e.show(ctx)
	}
	if err := e.remove(ctx); err != nil {
		e.t.Errorf("remove the test's objects: %v", err)
	} else if lost := e.lost(ctx); lost != "" {
		e.t.Errorf("devices are not free again after the test: %s", lost)
	}
	if err := e.Failed(); err != nil {
		e.t.Error(err)
	}
	e.report()
}

// checkInvariants looks at all claims; see also package harness.
func (e *Env) checkInvariants(ctx context.Context) {
	for _, fault := range append(harness.Violations(ctx, e.Client), e.history.takeTwice()...) {
		e.t.Errorf("invariant broken: %s", fault)
	}
	alarms, err := e.Scheduler.Alarms()
	if err != nil {
		e.t.Error(err)
	}
	for _, line := range alarms {
		e.t.Errorf("the scheduler logged: %s", line)
	}
	missing := ""
	err = wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = e.withoutPod(ctx)
		return missing == "", err
	})
	if err != nil {
		e.t.Errorf("invariant broken: %v: %s", err, missing)
	}
}

// withoutPod names a claim that is allocated for no pod that runs or will run.
func (e *Env) withoutPod(ctx context.Context) (string, error) {
	claims, err := e.Client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	pods, err := e.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	alive := make(map[string]bool)
	for i := range pods.Items {
		pod := &pods.Items[i]
		alive[string(pod.UID)] = pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		users := 0
		for _, consumer := range claim.Status.ReservedFor {
			if alive[string(consumer.UID)] {
				users++
			}
		}
		if claim.Status.Allocation != nil && users == 0 {
			return fmt.Sprintf("claim %s/%s is allocated, and no pod runs or will run with it", claim.Namespace, claim.Name), nil
		}
	}
	return "", nil
}

// remove deletes the test's objects as a user does, and waits until the kubelets
// have ended the pods.
func (e *Env) remove(ctx context.Context) error {
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	all := metav1.ListOptions{}
	pods, claims := e.Client.CoreV1().Pods(e.Namespace), e.Client.ResourceV1().ResourceClaims(e.Namespace)
	err := errors.Join(
		e.Client.AppsV1().Deployments(e.Namespace).DeleteCollection(ctx, background, all),
		e.Client.BatchV1().Jobs(e.Namespace).DeleteCollection(ctx, background, all),
		pods.DeleteCollection(ctx, background, all),
		claims.DeleteCollection(ctx, background, all),
	)
	if err != nil {
		return err
	}
	missing := ""
	err = wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		podList, err := pods.List(ctx, all)
		if err != nil {
			return false, err
		}
		claimList, err := claims.List(ctx, all)
		if err != nil {
			return false, err
		}
		missing = fmt.Sprintf("%d pods and %d claims are left", len(podList.Items), len(claimList.Items))
		return len(podList.Items) == 0 && len(claimList.Items) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, missing)
	}
	return e.Client.CoreV1().Namespaces().Delete(ctx, e.Namespace, background)
}

// lost says which claim is still prepared on a node, although no test has any.
func (e *Env) lost(ctx context.Context) string {
	for name, node := range e.Nodes {
		for _, driver := range drivers {
			state, err := node.Driver(driver).State(ctx)
			if err != nil {
				return err.Error()
			}
			if len(state.Prepared) > 0 {
				return fmt.Sprintf("driver %s of node %s has prepared claims: %v", driver, name, state.Prepared)
			}
		}
	}
	return ""
}

// report prints what the test has shown.
func (e *Env) report() {
	result := "ok    "
	if e.t.Failed() {
		result = "FAILED"
		e.tally.failed++
	} else {
		e.tally.passed++
	}
	fmt.Printf("%s %s (%.1fs)\n", result, e.title, time.Since(e.began).Seconds())
	for _, line := range e.evidence {
		fmt.Printf("         %s\n", line)
	}
}

// shownLines is how much of each log a failed test shows.
const shownLines = 25

// show prints what is needed to understand a failure.
func (e *Env) show(ctx context.Context) {
	pods, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Logf("list pods: %v", err)
		return
	}
	for i := range pods.Items {
		e.t.Logf("pod %s: %s", pods.Items[i].Name, e.describe(ctx, &pods.Items[i]))
	}
	claims, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Logf("list claims: %v", err)
		return
	}
	for i := range claims.Items {
		status, err := yaml.Marshal(claims.Items[i].Status)
		e.t.Logf("claim %s: %s%s", claims.Items[i].Name, status, text(err))
	}
	e.t.Logf("end of the scheduler's log:\n%s", e.Scheduler.Tail(shownLines))
	for _, node := range e.Nodes {
		for _, p := range node.Processes() {
			e.t.Logf("end of the log of %s:\n%s", p.Name(), p.Tail(shownLines))
		}
	}
}

// describe says how far a pod has come and what was said about it.
func (e *Env) describe(ctx context.Context, pod *corev1.Pod) string {
	events, err := e.eventsOf(ctx, pod.Name)
	return fmt.Sprintf("phase %s, node %q, condition %q, events %q%s",
		pod.Status.Phase, pod.Spec.NodeName, unscheduled(pod), events, text(err))
}

// unscheduled is what the scheduler says about a pod that waits.
func unscheduled(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

// eventsOf are the events about a pod, as reason: message.
func (e *Env) eventsOf(ctx context.Context, pod string) ([]string, error) {
	list, err := e.Client.CoreV1().Events(e.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	if err != nil {
		return nil, err
	}
	var events []string
	for i := range list.Items {
		events = append(events, strings.TrimSpace(list.Items[i].Reason+": "+list.Items[i].Message))
	}
	return events, nil
}
