package demo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mishapExample is the example that goes on to show what happens when devices
// and nodes fail. It runs last, because the others want all devices free.
const mishapExample = "deployment"

// play runs all examples, each on a cluster whose devices are free.
func (r *run) play(ctx context.Context, examples []*Example) error {
	var last *Example
	for _, example := range examples {
		if example.Name == mishapExample {
			last = example
			continue
		}
		if _, err := r.example(ctx, example); err != nil {
			return fmt.Errorf("run example %s: %w", example.Name, err)
		}
		if err := r.remove(ctx, example); err != nil {
			return fmt.Errorf("remove example %s: %w", example.Name, err)
		}
	}
	if last == nil {
		return nil
	}
	pods, err := r.example(ctx, last)
	if err == nil {
		err = r.mishaps(ctx, last, pods)
	}
	if err != nil {
		return fmt.Errorf("run example %s: %w", last.Name, err)
	}
	return nil
}

// example applies one example, waits until it has settled, and reports.
func (r *run) example(ctx context.Context, e *Example) ([]Pod, error) {
	r.printf("\n%s: %s\n", e.Name, e.Title)
	if err := r.apply(ctx, e); err != nil {
		return nil, err
	}
	pods, unsettled, err := r.settle(ctx, e.namespace(), e.Expect.pods(), func([]Pod) string { return "" })
	if err != nil {
		return nil, err
	}
	return pods, r.judge(ctx, e, pods, unsettled, nil)
}

// judge reports the pods of an example. forbidden says what else must not be
// true of a pod; nil forbids nothing.
func (r *run) judge(ctx context.Context, e *Example, pods []Pod, unsettled string, forbidden func(Pod) string) error {
	published, err := r.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ResourceSlices: %w", err)
	}
	devices := publishedDevices(published.Items)
	verdicts := Check(e.Expect, pods, devices)
	if forbidden != nil {
		for _, pod := range pods {
			if problem := forbidden(pod); problem != "" {
				addProblem(verdicts, pod.Name, problem)
			}
		}
	}
	asPromised := r.show(pods, devices, verdicts)
	switch {
	case unsettled == "":
	case asPromised: // but who knows for how long
		r.broken("example %s has not settled within %s: %s", e.Name, patience, unsettled)
	default:
		r.printf("  after waiting for %s: %s\n", patience, unsettled)
	}
	return nil
}

// apply makes the namespace and everything in it.
func (r *run) apply(ctx context.Context, e *Example) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace()}}
	_, err := r.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace: %w", err)
	}
	// Until the controller manager has made it, the API server refuses pods.
	err = await(ctx, "ServiceAccount default in namespace "+e.namespace(), func(ctx context.Context) (bool, error) {
		_, err := r.client.CoreV1().ServiceAccounts(e.namespace()).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	for _, object := range e.Objects {
		if err := r.applier.apply(ctx, object, e.namespace()); err != nil {
			return err
		}
	}
	return nil
}

// remove takes everything away again and waits until the devices are free. The
// namespace itself may take longer: nobody waits for it.
func (r *run) remove(ctx context.Context, e *Example) error {
	if err := r.applier.remove(ctx, e.Objects, e.namespace()); err != nil {
		return err
	}
	err := r.client.CoreV1().Namespaces().Delete(ctx, e.namespace(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // it may be on its way out
		return fmt.Errorf("delete namespace: %w", err)
	}
	return await(ctx, "pods and claims in namespace "+e.namespace()+" to go", func(ctx context.Context) (bool, error) {
		pods, err := r.client.CoreV1().Pods(e.namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		claims, err := r.client.ResourceV1().ResourceClaims(e.namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return len(pods.Items)+len(claims.Items) == 0, nil
	})
}
