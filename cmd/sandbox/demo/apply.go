package demo

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldManager is who the applied fields belong to.
const fieldManager = "sandbox-demo"

// applier brings objects of any kind into the cluster, as
// `kubectl apply --server-side` does, and takes them out again.
type applier struct {
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

func newApplier(config *rest.Config, client kubernetes.Interface) (*applier, error) {
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &applier{d, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))}, nil
}

// apply creates or updates the object. An object without a namespace goes into
// the given one, unless its kind has none.
func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured, namespace string) error {
	resource, err := a.resource(object, namespace)
	if err == nil {
		// The client may write into what it gets; the examples are applied more than once.
		_, err = resource.Apply(ctx, object.GetName(), object.DeepCopy(), metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// remove deletes the objects, last applied first, and what they own with them.
// Objects that are gone already are no error.
func (a *applier) remove(ctx context.Context, objects []*unstructured.Unstructured, namespace string) error {
	for _, object := range slices.Backward(objects) {
		resource, err := a.resource(object, namespace)
		if err == nil {
			err = resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (a *applier) resource(object *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	resource := a.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return resource, nil
	}
	if own := object.GetNamespace(); own != "" {
		namespace = own
	}
	return resource.Namespace(namespace), nil
}
