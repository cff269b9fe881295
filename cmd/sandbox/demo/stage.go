package demo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Stage is a cluster on which examples are played. Not safe for concurrent use.
type Stage struct {
	client  kubernetes.Interface
	applier *applier
}

// NewStage returns a stage on a running cluster with the hardware that the
// examples need. config must allow to create everything in them.
func NewStage(config *rest.Config, client kubernetes.Interface) (*Stage, error) {
	applier, err := newApplier(config, client)
	if err != nil {
		return nil, err
	}
	return &Stage{client, applier}, nil
}

// Apply makes the namespace of an example and everything in it.
func (s *Stage) Apply(ctx context.Context, e *Example) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace()}}
	_, err := s.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace: %w", err)
	}
	// Until the controller manager has made it, the API server refuses pods.
	err = await(ctx, "ServiceAccount default in namespace "+e.namespace(), func(ctx context.Context) (bool, error) {
		_, err := s.client.CoreV1().ServiceAccounts(e.namespace()).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	for _, object := range e.Objects {
		if err := s.applier.apply(ctx, object, e.namespace()); err != nil {
			return err
		}
	}
	return nil
}

// Look compares what there is at this moment with what the example promises.
// What is not there yet is a problem like any other.
func (s *Stage) Look(ctx context.Context, e *Example) ([]Verdict, error) {
	pods, err := observe(ctx, s.client, e.namespace())
	if err != nil {
		return nil, err
	}
	devices, err := s.devices(ctx)
	if err != nil {
		return nil, err
	}
	return Check(e.Expect, pods, devices), nil
}

func (s *Stage) devices(ctx context.Context) (Devices, error) {
	published, err := s.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list ResourceSlices: %w", err)
	}
	return publishedDevices(published.Items), nil
}

// Remove takes everything away again and waits until the devices are free. The
// namespace itself may take longer: nobody waits for it.
func (s *Stage) Remove(ctx context.Context, e *Example) error {
	if err := s.applier.remove(ctx, e.Objects, e.namespace()); err != nil {
		return err
	}
	err := s.client.CoreV1().Namespaces().Delete(ctx, e.namespace(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // it may be on its way out
		return fmt.Errorf("delete namespace: %w", err)
	}
	return await(ctx, "pods and claims in namespace "+e.namespace()+" to go", func(ctx context.Context) (bool, error) {
		pods, err := s.client.CoreV1().Pods(e.namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		claims, err := s.client.ResourceV1().ResourceClaims(e.namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return len(pods.Items)+len(claims.Items) == 0, nil
	})
}
