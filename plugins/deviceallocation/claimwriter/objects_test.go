package claimwriter_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

func newPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid")}}
}

func newClaim(name string, options ...func(*resourceapi.ResourceClaim)) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid")}}
	for _, option := range options {
		option(c)
	}
	return c
}

// allocated gives the claim a device, and the finalizer that comes with it.
func allocated(device string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		protected(c)
		c.Status.Allocation = newAllocation(device)
	}
}

func reserved(pods ...string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		for _, pod := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor,
				resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID(pod + "-uid")})
		}
	}
}

func protected(c *resourceapi.ResourceClaim) {
	if !slices.Contains(c.Finalizers, resourceapi.Finalizer) {
		c.Finalizers = append(c.Finalizers, resourceapi.Finalizer)
	}
}

func beingDeleted(c *resourceapi.ResourceClaim) {
	protected(c)
	c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
}

func replaced(c *resourceapi.ResourceClaim) {
	*c = resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: "another-uid"}}
}

// newAllocation holds what does not survive the wire unchanged: a time with a fraction of a second and parameters with
// white space.
func newAllocation(device string) *resourceapi.AllocationResult {
	return &resourceapi.AllocationResult{
		Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.example.com", Pool: "worker-1", Device: device}},
			Config: []resourceapi.DeviceAllocationConfiguration{{
				Source: resourceapi.AllocationConfigSourceClass,
				DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
					Driver: "gpu.example.com", Parameters: runtime.RawExtension{Raw: []byte(`{ "sharing": true }`)},
				}},
			}},
		},
		AllocationTimestamp: &metav1.Time{Time: time.Unix(2000, 123456789)},
	}
}

// state is what matters of a claim.
type state struct {
	Device      string
	ReservedFor []string
	Protected   bool
}

func stateOf(c *resourceapi.ResourceClaim) state {
	var s state
	if c.Status.Allocation != nil {
		s.Device = c.Status.Allocation.Devices.Results[0].Device
	}
	for _, consumer := range c.Status.ReservedFor {
		s.ReservedFor = append(s.ReservedFor, consumer.Resource+"/"+consumer.Name)
	}
	s.Protected = slices.Contains(c.Finalizers, resourceapi.Finalizer)
	return s
}

func checkStates(t *testing.T, api *faultyAPI, want map[string]state) {
	t.Helper()
	got := map[string]state{}
	for name := range api.claims {
		got[name] = stateOf(api.seen(name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func checkWrites(t *testing.T, api *faultyAPI, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, api.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// checkError checks that err has the cause and names operation and claim in its first *Error. No cause: no error.
func checkError(t *testing.T, err, cause error, op claimwriter.Operation, name string) {
	t.Helper()
	if cause == nil {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	if !errors.Is(err, cause) {
		t.Fatalf("got error %v, want one that is %v", err, cause)
	}
	var typed *claimwriter.Error
	if !errors.As(err, &typed) {
		t.Fatalf("got error %T, want a *claimwriter.Error in it", err)
	}
	want := types.NamespacedName{Namespace: "ns", Name: name}
	if typed.Operation != op || typed.Name != want {
		t.Errorf("error names %q of %s, want %q of %s", typed.Operation, typed.Name, op, want)
	}
}

// Answers of an API server, or none.
var (
	errTimeout   = apierrors.NewTimeoutError("the server did not finish in time", 1)
	errReset     = errors.New("read tcp: connection reset by peer")
	errForbidden = apierrors.NewForbidden(claimResource, "any", errors.New("not allowed"))
	errConflict  = apierrors.NewConflict(claimResource, "any", errors.New("changed"))
	errInternal  = apierrors.NewGenericServerResponse(http.StatusInternalServerError, "update", claimResource, "any", "etcd", 0, true)
)

// counts is an Observer.
type counts struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *counts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[what]++
}

func (c *counts) ClaimWritten(op claimwriter.Operation) { c.add(fmt.Sprintf("written: %s", op)) }
func (c *counts) Conflict()                             { c.add("conflict") }
func (c *counts) RolledBack()                           { c.add("rolled back") }
func (c *counts) WriteFailed(op claimwriter.Operation)  { c.add(fmt.Sprintf("failed: %s", op)) }
