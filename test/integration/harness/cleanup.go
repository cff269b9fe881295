package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// remove deletes what the test created. It waits for the pods only: the
// namespace goes away by itself, and what is in it concerns no other test.
func (e *Env) remove(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	pods, claims := e.Client.CoreV1().Pods(e.Namespace), e.Client.ResourceV1().ResourceClaims(e.Namespace)
	errs := []error{
		pods.DeleteCollection(ctx, now, metav1.ListOptions{}),
		wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
			list, err := pods.List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 0, err
		}),
		claims.DeleteCollection(ctx, now, metav1.ListOptions{}),
	}
	for _, remove := range slices.Backward(e.created) {
		if err := remove(ctx); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// show prints what is needed to understand a failure.
func (e *Env) show(ctx context.Context) {
	pods, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Logf("list pods: %v", err)
		return
	}
	for i := range pods.Items {
		e.t.Logf("pod %s: %s", pods.Items[i].Name, describe(&pods.Items[i]))
		if i == shown {
			break
		}
	}
	claims, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Logf("list claims: %v", err)
		return
	}
	for i := range claims.Items {
		status, err := yaml.Marshal(claims.Items[i].Status)
		if err != nil {
			status = fmt.Append(nil, err)
		}
		e.t.Logf("claim %s at %s:\n%s", claims.Items[i].Name, time.Now().Format(time.TimeOnly), status)
		if i == shown {
			break
		}
	}
	events, err := e.Client.CoreV1().Events(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Logf("list events: %v", err)
		return
	}
	for i := range events.Items[:min(len(events.Items), shownEvents)] {
		event := &events.Items[i]
		e.t.Logf("event about %s %s from %s%s: %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name,
			event.Source.Component, event.ReportingController, event.Reason, event.Message)
	}
	for _, s := range e.schedulers {
		e.t.Logf("end of %s:\n%s", s.logFile, s.Tail(s.from))
	}
}

// shown bounds how many pods and claims are printed, shownEvents how many events.
const (
	shown       = 10
	shownEvents = 40
)
