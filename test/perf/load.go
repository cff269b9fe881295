package perf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// load keeps a cluster in a steady state: a number of pods waits, and each one
// that gets a node is deleted and replaced. scheduler_perf can do that as well,
// but one pod after the other: two requests to the API server take longer than
// a good scheduler needs for a pod, and then that is all that is measured.
type load struct {
	client kubernetes.Interface
	pod    *corev1.Pod
	// bound has the pods that got a node.
	bound chan *corev1.Pod
}

// loadNamespace has the pods, and the template of their claims.
const loadNamespace = "measured"

func newLoad(client kubernetes.Interface, file string, backlog int) (*load, error) {
	pods, err := render[corev1.Pod](file, at{})
	if err != nil {
		return nil, err
	}
	if len(pods) != 1 {
		return nil, fmt.Errorf("read pod: %s has %d objects", file, len(pods))
	}
	return &load{client: client, pod: pods[0], bound: make(chan *corev1.Pod, 2*backlog)}, nil
}

// run creates the pods once the template of their claims is there, and replaces
// them until the context ends.
func (l *load) run(ctx context.Context, backlog int) error {
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		templates, err := l.client.ResourceV1().ResourceClaimTemplates(loadNamespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(templates.Items) > 0, err
	})
	if err == nil {
		err = each(ctx, backlog, func(ctx context.Context, _ int) error { return l.create(ctx) })
	}
	if err == nil {
		err = l.replace(ctx)
	}
	if ctx.Err() != nil {
		return nil // whatever failed was interrupted
	}
	return err
}

func (l *load) replace(ctx context.Context) error {
	var workers sync.WaitGroup
	var mutex sync.Mutex
	var errs []error
	for range parallel {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case pod := <-l.bound:
					if err := errors.Join(l.delete(ctx, pod), l.create(ctx)); err != nil && ctx.Err() == nil {
						mutex.Lock()
						errs = append(errs, err)
						mutex.Unlock()
						return
					}
				}
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

func (l *load) create(ctx context.Context) error {
	if _, err := l.client.CoreV1().Pods(loadNamespace).Create(ctx, l.pod.DeepCopy(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	return nil
}

func (l *load) delete(ctx context.Context, pod *corev1.Pod) error {
	err := l.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		PropagationPolicy:  ptr.To(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}
