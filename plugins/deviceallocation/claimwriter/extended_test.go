package claimwriter_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

func ownedBy(pod string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		controller := true
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID(pod + "-uid"), Controller: &controller}}
	}
}

func TestCreateExtendedResourceClaim(t *testing.T) {
	tests := map[string]struct {
		faults     []*fault
		wantClaims int
		wantError  error
		wantFailed claimwriter.Operation
	}{
		"created":                    {wantClaims: 1},
		"answer lost, created":       {faults: []*fault{{request: create, times: 1, err: errTimeout, applied: true}}, wantClaims: 1},
		"answer lost, not created":   {faults: []*fault{{request: create, times: 1, err: errReset}}, wantClaims: 1},
		"answer and first look lost": {faults: []*fault{{request: create, times: 1, err: errReset, applied: true}, {request: get, times: 1, err: errReset}}, wantClaims: 1},
		"refused":                    {faults: []*fault{{request: create, times: 1, err: errForbidden}}, wantError: errForbidden, wantFailed: claimwriter.OperationCreate},
		"no answer ever":             {faults: []*fault{{request: create, times: 1000, err: errReset}}, wantError: errReset, wantFailed: claimwriter.OperationCreate},
		"name taken by another pod": {
			faults: []*fault{{request: create, times: 1, err: errReset, applied: true}, {request: get, times: 1, before: func(api *faultyAPI) {
				for _, c := range api.claims {
					ownedBy("other")(c)
				}
			}}},
			wantClaims: 1, wantError: claimwriter.ErrReplaced, wantFailed: claimwriter.OperationCreate,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, nil, tc.faults...)
				// As planned in memory: with the name and UID of a stand-in, and the allocation of the chosen node.
				planned := newClaim("<extended-resources>", ownedBy("web"), allocated("gpu-0"))
				planned.GenerateName, planned.Finalizers = "web-extended-resources-", nil
				before := planned.DeepCopy()

				got, err := claimwriter.New(api.client, nil, 0).CreateExtendedResourceClaim(t.Context(), planned)

				if diff := cmp.Diff(before, planned); diff != "" {
					t.Errorf("input changed (-before +after):\n%s", diff)
				}
				if len(api.claims) != tc.wantClaims {
					t.Errorf("%d claims exist, want %d", len(api.claims), tc.wantClaims)
				}
				if tc.wantError != nil {
					var typed *claimwriter.Error
					if !errors.As(err, &typed) || !errors.Is(err, tc.wantError) || typed.Operation != tc.wantFailed {
						t.Errorf("got error %v, want %v from %q", err, tc.wantError, tc.wantFailed)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if !regexp.MustCompile(`^web-extended-resources-[a-z0-9]{5}$`).MatchString(got.Name) {
					t.Errorf("name is %q", got.Name)
				}
				if diff := cmp.Diff(api.seen(got.Name), got); diff != "" {
					t.Errorf("returned claim (-stored +returned):\n%s", diff)
				}
			})
		})
	}
}

func TestCreateExtendedResourceClaimCutsLongNames(t *testing.T) {
	api := newFaultyAPI(t, nil)
	planned := newClaim("", ownedBy("web"))
	planned.GenerateName = strings.Repeat("x", 200) + "-"
	got, err := claimwriter.New(api.client, nil, 0).CreateExtendedResourceClaim(t.Context(), planned)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Name) != 63 {
		t.Errorf("name has %d characters, want 63", len(got.Name))
	}
}

func TestDeleteClaim(t *testing.T) {
	extended := newClaim("a", ownedBy("web"), allocated("gpu-0"), reserved("web"))
	finalizer, gone := update+" a", del+" a"
	before := func(request string, change func(*faultyAPI)) []*fault {
		return []*fault{{request: request, times: 1, before: change}}
	}
	remove := func(api *faultyAPI) { delete(api.claims, "a") }
	replace := func(api *faultyAPI) { api.change("a", replaced) }
	tests := map[string]struct {
		claim      *resourceapi.ResourceClaim
		faults     []*fault
		want       map[string]state
		wantWrites []string
		wantError  error
	}{
		"allocated":                {claim: extended, wantWrites: []string{finalizer, gone}},
		"never allocated":          {claim: newClaim("a", ownedBy("web")), wantWrites: []string{gone}},
		"being deleted already":    {claim: newClaim("a", ownedBy("web"), beingDeleted), wantWrites: []string{finalizer, gone}},
		"gone before":              {claim: extended, faults: before(get, remove)},
		"gone meanwhile":           {claim: extended, faults: before(del, remove), wantWrites: []string{finalizer, gone}},
		"replaced before":          {claim: extended, faults: before(get, replace), want: map[string]state{"a": {}}},
		"replaced meanwhile":       {claim: extended, faults: before(del, replace), want: map[string]state{"a": {}}, wantWrites: []string{finalizer, gone}},
		"used by another":          {claim: newClaim("a", ownedBy("web"), allocated("gpu-0"), reserved("x")), want: map[string]state{"a": {"gpu-0", []string{"pods/x"}, true}}, wantError: claimwriter.ErrInUse},
		"conflict":                 {claim: extended, faults: []*fault{{request: update, times: 2, err: errConflict}}, wantWrites: []string{finalizer, finalizer, finalizer, gone}},
		"finalizer's answer lost":  {claim: extended, faults: []*fault{{request: update, times: 1, err: errReset, applied: true}}, wantWrites: []string{finalizer, gone}},
		"deletion's answer lost":   {claim: extended, faults: []*fault{{request: del, times: 1, err: errTimeout, applied: true}}, wantWrites: []string{finalizer, gone}},
		"deletion not carried out": {claim: extended, faults: []*fault{{request: del, times: 1, err: errTimeout}}, wantWrites: []string{finalizer, gone, gone}},
		"refused":                  {claim: extended, faults: []*fault{{request: del, times: 1, err: errForbidden}}, want: map[string]state{"a": {"gpu-0", []string{"pods/web"}, false}}, wantWrites: []string{finalizer, gone}, wantError: errForbidden},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, []*resourceapi.ResourceClaim{tc.claim}, tc.faults...)
				ctx, cancel := context.WithCancel(t.Context())
				seen := api.seen("a")
				cancel()
				err := claimwriter.New(api.client, nil, 0).DeleteClaim(ctx, seen)
				checkError(t, err, tc.wantError, claimwriter.OperationDelete, "a")
				checkWrites(t, api, tc.wantWrites...)
				if tc.want == nil {
					tc.want = map[string]state{}
				}
				checkStates(t, api, tc.want)
			})
		})
	}
}

func TestPatchExtendedResourceStatus(t *testing.T) {
	status := &v1.PodExtendedResourceClaimStatus{
		ResourceClaimName: "web-extended-resources-abcde",
		RequestMappings:   []v1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "example.com/gpu", RequestName: "container-0-request-0"}},
	}
	patch := patchPod + " web"
	tests := map[string]struct {
		has, want  *v1.PodExtendedResourceClaimStatus
		stored     func(*v1.Pod) *v1.Pod
		faults     []*fault
		wantWrites []string
		wantError  error
	}{
		"set":             {want: status, wantWrites: []string{patch}},
		"set already":     {has: status, want: status},
		"taken out":       {has: status, want: nil, wantWrites: []string{patch}},
		"deleted":         {want: status, stored: func(*v1.Pod) *v1.Pod { return nil }, wantWrites: []string{patch}, wantError: claimwriter.ErrGone},
		"replaced":        {want: status, stored: func(p *v1.Pod) *v1.Pod { p.UID = "another"; return p }, wantWrites: []string{patch}, wantError: claimwriter.ErrReplaced},
		"changed":         {want: status, faults: []*fault{{request: patchPod, times: 2, err: errConflict}}, wantWrites: []string{patch, patch, patch}},
		"lost answer":     {want: status, faults: []*fault{{request: patchPod, times: 1, err: errReset, applied: true}}, wantWrites: []string{patch, patch}},
		"refused":         {want: status, faults: []*fault{{request: patchPod, times: 1, err: errForbidden}}, wantWrites: []string{patch}, wantError: errForbidden},
		"deleted in time": {want: status, faults: []*fault{{request: patchPod, times: 1, err: errConflict}, {request: getPod, times: 1, before: func(api *faultyAPI) { api.pod = nil }}}, wantWrites: []string{patch}, wantError: claimwriter.ErrGone},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, nil, tc.faults...)
				pod := newPod("web")
				pod.Status.ExtendedResourceClaimStatus = tc.has
				api.pod = pod.DeepCopy()
				if tc.stored != nil {
					api.pod = tc.stored(api.pod)
				}
				err := claimwriter.New(api.client, nil, 0).PatchExtendedResourceStatus(t.Context(), pod, tc.want)
				checkError(t, err, tc.wantError, claimwriter.OperationPatchPodStatus, "web")
				checkWrites(t, api, tc.wantWrites...)
				if tc.wantError != nil {
					if !strings.Contains(err.Error(), "pod ns/web") {
						t.Errorf("error does not name the pod: %v", err)
					}
					return
				}
				if diff := cmp.Diff(tc.want, api.pod.Status.ExtendedResourceClaimStatus); diff != "" {
					t.Errorf("stored status (-want +got):\n%s", diff)
				}
			})
		})
	}
}
