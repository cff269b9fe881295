package deviceallocation

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// api gives the fake clientset what the plugin relies on: UIDs, growing
// resourceVersions, optimistic locking, a status of its own for claims, and
// finalizers. Faults make single requests fail.
type api struct {
	client *fake.Clientset

	mutex   sync.Mutex
	version int
	faults  []*fault
	// onCreate is called with the name of each new object, with the lock.
	onCreate func(name string)
	// judge may give any request a fault, with the lock.
	judge func(request string) fault
	// writes lists the write requests for claims and pods, as "update claim".
	writes []string
}

// fault makes the next request of that text fail, such as "update/status
// claim-1". It is used once.
type fault struct {
	request string
	err     error
	// applied carries the request out although its answer is an error.
	applied bool
	// before runs before the request, without the lock.
	before func()
	used   bool
}

func newAPI(objects []runtime.Object) *api {
	a := &api{}
	stored := make([]runtime.Object, len(objects))
	for i, obj := range objects {
		stored[i] = obj.DeepCopyObject()
		a.stamp(stored[i])
	}
	a.client = fake.NewSimpleClientset(stored...)
	a.client.PrependReactor("*", "*", a.react)
	return a
}

// stamp gives an object its UID and the next resourceVersion.
func (a *api) stamp(obj runtime.Object) {
	a.version++
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	accessor.SetResourceVersion(strconv.Itoa(a.version))
	if accessor.GetUID() == "" {
		accessor.SetUID(types.UID(fmt.Sprintf("uid-%d-of-%s", a.version, accessor.GetName())))
	}
}

func (a *api) fail(faults ...*fault) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.faults = append(a.faults, faults...)
}

func (a *api) react(action clienttesting.Action) (bool, runtime.Object, error) {
	name := nameOf(action)
	if name == "" {
		return false, nil, nil
	}
	request := action.GetVerb() + " " + name
	if action.GetSubresource() != "" {
		request = action.GetVerb() + "/" + action.GetSubresource() + " " + name
	}
	f := a.fault(request)
	if f.before != nil {
		f.before()
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if action.GetVerb() != "get" {
		a.writes = append(a.writes, request)
	}
	if f.err != nil && !f.applied {
		return true, nil, f.err
	}
	handled, obj, err := a.carryOut(action)
	if f.err != nil {
		if !handled {
			clienttesting.ObjectReaction(a.client.Tracker())(action)
		}
		return true, nil, f.err
	}
	return handled, obj, err
}

func nameOf(action clienttesting.Action) string {
	switch typed := action.(type) {
	case clienttesting.CreateAction: // an UpdateAction as well
		accessor, err := meta.Accessor(typed.GetObject())
		if err != nil {
			panic(err)
		}
		return accessor.GetName()
	case interface{ GetName() string }:
		return typed.GetName()
	default: // list and watch
		return ""
	}
}

func (a *api) fault(request string) fault {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, f := range a.faults {
		if f.request == request && !f.used {
			f.used = true
			return *f
		}
	}
	if a.judge != nil {
		return a.judge(request)
	}
	return fault{}
}

func (a *api) carryOut(action clienttesting.Action) (bool, runtime.Object, error) {
	resource, namespace := action.GetResource(), action.GetNamespace()
	tracker := a.client.Tracker()
	switch typed := action.(type) {
	case clienttesting.CreateActionImpl:
		obj := typed.GetObject().DeepCopyObject()
		a.stamp(obj)
		if a.onCreate != nil {
			a.onCreate(nameOf(action))
		}
		return true, obj, tracker.Create(resource, obj, namespace)
	case clienttesting.UpdateActionImpl:
		obj, err := a.update(resource, typed.GetObject().DeepCopyObject(), typed.GetSubresource(), namespace)
		return true, obj, err
	case clienttesting.DeleteActionImpl:
		return a.deleteClaim(typed)
	default:
		return false, nil, nil
	}
}

func (a *api) update(resource schema.GroupVersionResource, next runtime.Object, subresource, namespace string) (runtime.Object, error) {
	accessor, err := meta.Accessor(next)
	if err != nil {
		return nil, err
	}
	stored, err := a.client.Tracker().Get(resource, namespace, accessor.GetName())
	if err != nil {
		return nil, err
	}
	before, err := meta.Accessor(stored)
	if err != nil {
		return nil, err
	}
	if accessor.GetResourceVersion() != before.GetResourceVersion() || accessor.GetUID() != before.GetUID() {
		return nil, apierrors.NewConflict(resource.GroupResource(), accessor.GetName(), fmt.Errorf("have version %s, want %s",
			before.GetResourceVersion(), accessor.GetResourceVersion()))
	}
	if claim, ok := next.(*resourceapi.ResourceClaim); ok {
		old := stored.(*resourceapi.ResourceClaim)
		if subresource != "status" {
			claim.Status = *old.Status.DeepCopy()
		} else if err := checkStatus(old, claim); err != nil {
			return nil, err
		} else {
			claim.ObjectMeta, claim.Spec = *old.ObjectMeta.DeepCopy(), old.Spec
		}
	}
	a.stamp(next)
	if accessor.GetDeletionTimestamp() != nil && len(accessor.GetFinalizers()) == 0 {
		return next, a.client.Tracker().Delete(resource, namespace, accessor.GetName())
	}
	return next, a.client.Tracker().Update(resource, next, namespace)
}

// checkStatus holds rules of the API server that the plugin must not run into.
func checkStatus(old, next *resourceapi.ResourceClaim) error {
	switch {
	case old.Status.Allocation != nil && next.Status.Allocation != nil && !equality.Semantic.DeepEqual(old.Status.Allocation, next.Status.Allocation):
		return apierrors.NewBadRequest("allocation is immutable")
	case next.Status.Allocation == nil && len(next.Status.ReservedFor) > 0:
		return apierrors.NewBadRequest("reservedFor without allocation")
	case next.Status.Allocation != nil && !slices.Contains(old.Finalizers, resourceapi.Finalizer):
		return apierrors.NewBadRequest("allocation without finalizer")
	}
	return nil
}

func (a *api) deleteClaim(action clienttesting.DeleteActionImpl) (bool, runtime.Object, error) {
	stored, err := a.client.Tracker().Get(action.GetResource(), action.GetNamespace(), action.Name)
	claim, ok := stored.(*resourceapi.ResourceClaim)
	if err != nil || !ok || len(claim.Finalizers) == 0 {
		return false, nil, nil
	}
	claim = claim.DeepCopy()
	claim.DeletionTimestamp = &metav1.Time{}
	a.stamp(claim)
	return true, nil, a.client.Tracker().Update(action.GetResource(), claim, action.GetNamespace())
}
