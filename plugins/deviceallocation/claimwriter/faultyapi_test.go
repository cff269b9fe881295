package claimwriter_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Requests, as faults and the log name them.
const (
	get          = "get"
	create       = "create"
	update       = "update"
	updateStatus = "update status"
	del          = "delete"
	patchPod     = "patch pod"
	getPod       = "get pod"
)

var claimResource = schema.GroupResource{Group: resourceapi.GroupName, Resource: "resourceclaims"}

// faultyAPI is an API server for claims that behaves like the real one where the writer depends on it: optimistic
// locking, status apart from the rest, the rules for allocation and reservedFor, finalizers, UID preconditions, and
// objects that went through JSON. Faults make single requests fail.
type faultyAPI struct {
	t      *testing.T
	client kubernetes.Interface

	mu      sync.Mutex
	version int
	claims  map[string]*resourceapi.ResourceClaim
	pod     *v1.Pod
	faults  []*fault
	log     []string
}

// fault is something that happens to the next times requests of one kind for one object; an empty name means any.
type fault struct {
	request, name string
	times         int
	// before changes the stored objects before the request arrives.
	before func(api *faultyAPI)
	// err is the answer, nil the regular one. With applied the request is carried out nevertheless.
	err     error
	applied bool
	// answered is called before the answer is given.
	answered func()
}

func newFaultyAPI(t *testing.T, claims []*resourceapi.ResourceClaim, faults ...*fault) *faultyAPI {
	api := &faultyAPI{t: t, claims: map[string]*resourceapi.ResourceClaim{}, faults: faults, version: 100}
	for _, c := range claims {
		c = overTheWire(t, c)
		c.ResourceVersion = api.nextVersion()
		api.claims[c.Name] = c
	}
	client := &fake.Clientset{}
	client.AddReactor("*", "resourceclaims", api.reactClaims)
	client.AddReactor("*", "pods", api.reactPods)
	api.client = client
	return api
}

// overTheWire returns a copy of obj as it is after it was encoded and decoded.
func overTheWire[T any](t *testing.T, obj *T) *T {
	encoded, err := json.Marshal(obj)
	if err != nil {
		t.Errorf("encode %T: %v", obj, err)
	}
	var decoded T
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Errorf("decode %T: %v", obj, err)
	}
	return &decoded
}

func (api *faultyAPI) nextVersion() string {
	api.version++
	return strconv.Itoa(api.version)
}

// seen returns what an informer would show of the claim now.
func (api *faultyAPI) seen(name string) *resourceapi.ResourceClaim {
	api.mu.Lock()
	defer api.mu.Unlock()
	return api.claims[name].DeepCopy()
}

// writes returns the log without reads, sorted if several claims were written at once.
func (api *faultyAPI) writes() []string {
	api.mu.Lock()
	defer api.mu.Unlock()
	var writes []string
	for _, entry := range api.log {
		if entry[:3] != "get" {
			writes = append(writes, entry)
		}
	}
	return writes
}

// change alters a stored claim as another client would. It must be called from a fault's before.
func (api *faultyAPI) change(name string, change func(*resourceapi.ResourceClaim)) {
	change(api.claims[name])
	api.claims[name].ResourceVersion = api.nextVersion()
}

func (api *faultyAPI) reactClaims(action clienttesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		c := a.GetObject().(*resourceapi.ResourceClaim)
		return api.serve(create, c.Name, func() (runtime.Object, error) { return api.create(c) })
	case clienttesting.UpdateActionImpl:
		c := a.GetObject().(*resourceapi.ResourceClaim)
		request := update
		if a.GetSubresource() == "status" {
			request = updateStatus
		}
		return api.serve(request, c.Name, func() (runtime.Object, error) { return api.update(c, request) })
	case clienttesting.DeleteActionImpl:
		return api.serve(del, a.Name, func() (runtime.Object, error) { return nil, api.delete(a) })
	case clienttesting.GetActionImpl:
		return api.serve(get, a.Name, func() (runtime.Object, error) { return api.stored(a.Name) })
	}
	return true, nil, fmt.Errorf("the test API does not serve %T", action)
}

// serve logs a request, lets its fault happen and answers it.
func (api *faultyAPI) serve(request, name string, carryOut func() (runtime.Object, error)) (bool, runtime.Object, error) {
	api.mu.Lock()
	defer api.mu.Unlock()
	api.log = append(api.log, request+" "+name)
	f := api.takeFault(request, name)
	if f.before != nil {
		f.before(api)
	}
	var obj runtime.Object
	err := f.err
	if f.err == nil || f.applied {
		var served error
		obj, served = carryOut()
		if f.err == nil {
			err = served
		}
	}
	if f.answered != nil {
		f.answered()
	}
	if err != nil {
		return true, nil, err
	}
	return true, obj, nil
}

func (api *faultyAPI) takeFault(request, name string) fault {
	for _, f := range api.faults {
		if f.request == request && (f.name == "" || f.name == name) && f.times > 0 {
			f.times--
			return *f
		}
	}
	return fault{}
}

func (api *faultyAPI) stored(name string) (*resourceapi.ResourceClaim, error) {
	c, ok := api.claims[name]
	if !ok {
		return nil, apierrors.NewNotFound(claimResource, name)
	}
	return overTheWire(api.t, c), nil
}

func (api *faultyAPI) create(c *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	if _, ok := api.claims[c.Name]; ok {
		return nil, apierrors.NewAlreadyExists(claimResource, c.Name)
	}
	if c.Name == "" || c.ResourceVersion != "" || c.UID != "" {
		return nil, apierrors.NewBadRequest("a new claim needs a name, and has no UID and no resourceVersion")
	}
	c = overTheWire(api.t, c)
	c.Status = resourceapi.ResourceClaimStatus{}
	c.ResourceVersion = api.nextVersion()
	c.UID = types.UID(c.Name + "-created-uid")
	api.claims[c.Name] = c
	return c.DeepCopy(), nil
}

func (api *faultyAPI) update(c *resourceapi.ResourceClaim, request string) (*resourceapi.ResourceClaim, error) {
	old, err := api.stored(c.Name)
	if err != nil {
		return nil, err
	}
	if c.UID != old.UID || c.ResourceVersion != old.ResourceVersion {
		return nil, apierrors.NewConflict(claimResource, c.Name, fmt.Errorf("at resourceVersion %s, not %s", old.ResourceVersion, c.ResourceVersion))
	}
	next := overTheWire(api.t, c)
	if request == updateStatus {
		next.ObjectMeta, next.Spec = old.ObjectMeta, old.Spec
		if problem := statusProblem(old, next); problem != "" {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: resourceapi.GroupName, Kind: "ResourceClaim"}, c.Name, nil)
		}
	} else {
		next.Status = old.Status
	}
	if equality.Semantic.DeepEqual(old, next) {
		api.t.Errorf("%s of claim %s changes nothing", request, c.Name)
	}
	next.ResourceVersion = api.nextVersion()
	if next.DeletionTimestamp != nil && len(next.Finalizers) == 0 {
		delete(api.claims, c.Name)
	} else {
		api.claims[c.Name] = next
	}
	return next.DeepCopy(), nil
}

// statusProblem holds the rules of the API server for a change of a claim's status.
func statusProblem(old, next *resourceapi.ResourceClaim) string {
	switch {
	case old.Status.Allocation != nil && next.Status.Allocation != nil && !equality.Semantic.DeepEqual(old.Status.Allocation, next.Status.Allocation):
		return "allocation is immutable"
	case next.Status.Allocation == nil && len(next.Status.ReservedFor) > 0:
		return "reservedFor without allocation"
	case len(next.Status.ReservedFor) > resourceapi.ResourceClaimReservedForMaxSize:
		return "too many consumers"
	case old.DeletionTimestamp != nil && len(next.Status.ReservedFor) > len(old.Status.ReservedFor):
		return "new consumer of a claim that is being deleted"
	}
	seen := map[types.UID]bool{}
	for _, consumer := range next.Status.ReservedFor {
		if seen[consumer.UID] {
			return "consumer listed twice"
		}
		seen[consumer.UID] = true
	}
	return ""
}

func (api *faultyAPI) delete(a clienttesting.DeleteActionImpl) error {
	c, ok := api.claims[a.Name]
	if !ok {
		return apierrors.NewNotFound(claimResource, a.Name)
	}
	if want := a.DeleteOptions.Preconditions; want != nil && want.UID != nil && *want.UID != c.UID {
		return apierrors.NewConflict(claimResource, a.Name, fmt.Errorf("UID is %s, not %s", c.UID, *want.UID))
	}
	if len(c.Finalizers) == 0 {
		delete(api.claims, a.Name)
		return nil
	}
	api.change(a.Name, func(c *resourceapi.ResourceClaim) { c.DeletionTimestamp = &metav1.Time{} })
	return nil
}

func (api *faultyAPI) reactPods(action clienttesting.Action) (bool, runtime.Object, error) {
	resource := schema.GroupResource{Resource: "pods"}
	missing := func(name string) error {
		if api.pod == nil || api.pod.Name != name {
			return apierrors.NewNotFound(resource, name)
		}
		return nil
	}
	switch a := action.(type) {
	case clienttesting.GetActionImpl:
		return api.serve(getPod, a.Name, func() (runtime.Object, error) { return api.pod.DeepCopy(), missing(a.Name) })
	case clienttesting.PatchActionImpl:
		return api.serve(patchPod, a.Name, func() (runtime.Object, error) {
			if err := missing(a.Name); err != nil {
				return nil, err
			}
			if a.PatchType != types.MergePatchType || a.Subresource != "status" {
				return nil, apierrors.NewBadRequest("want a merge patch of the status")
			}
			var patch struct {
				Metadata struct{ UID types.UID }
				Status   map[string]*v1.PodExtendedResourceClaimStatus
			}
			if err := json.Unmarshal(a.Patch, &patch); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			if patch.Metadata.UID != api.pod.UID {
				return nil, apierrors.NewConflict(resource, a.Name, fmt.Errorf("UID is %s, not %s", api.pod.UID, patch.Metadata.UID))
			}
			if len(patch.Status) != 1 {
				return nil, apierrors.NewBadRequest("want a patch of one field")
			}
			api.pod.Status.ExtendedResourceClaimStatus = patch.Status["extendedResourceClaimStatus"]
			return api.pod.DeepCopy(), nil
		})
	}
	return true, nil, fmt.Errorf("the test API does not serve %T", action)
}
