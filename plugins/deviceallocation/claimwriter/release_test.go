package claimwriter_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

// withDeviceStatus is what a driver adds to an allocated claim.
func withDeviceStatus(c *resourceapi.ResourceClaim) {
	raw, _ := json.Marshal(map[string]string{"state": "ready"})
	c.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: "gpu.example.com", Pool: "worker-1", Device: "gpu-0", Data: &runtime.RawExtension{Raw: raw}}}
}

// web is the consumer that gives up its claims.
const web types.UID = "web-uid"

func TestRelease(t *testing.T) {
	ours := newClaim("a", allocated("gpu-0"), reserved("web"), withDeviceStatus)
	status := updateStatus + " a"
	changed := func(change func(*resourceapi.ResourceClaim)) []*fault {
		return []*fault{{request: get, times: 1, before: func(api *faultyAPI) { api.change("a", change) }}}
	}
	tests := map[string]struct {
		claim          *resourceapi.ResourceClaim
		withAllocation bool
		faults         []*fault
		want           state
		wantGone       bool
		wantWrites     []string
		wantError      error
	}{
		"reservation only":        {claim: ours, want: state{Device: "gpu-0", Protected: true}, wantWrites: []string{status}},
		"with allocation":         {claim: ours, withAllocation: true, want: state{Protected: true}, wantWrites: []string{status}},
		"others stay":             {claim: newClaim("a", allocated("gpu-0"), reserved("x", "web", "y")), withAllocation: true, want: state{"gpu-0", []string{"pods/x", "pods/y"}, true}, wantWrites: []string{status}},
		"not reserved":            {claim: newClaim("a", allocated("gpu-0")), withAllocation: true, want: state{Device: "gpu-0", Protected: true}},
		"reserved for others":     {claim: newClaim("a", allocated("gpu-0"), reserved("x")), withAllocation: true, want: state{"gpu-0", []string{"pods/x"}, true}},
		"never allocated":         {claim: newClaim("a"), withAllocation: true, want: state{}},
		"being deleted":           {claim: newClaim("a", allocated("gpu-0"), reserved("web"), beingDeleted), withAllocation: true, want: state{Protected: true}, wantWrites: []string{status}},
		"another one joined":      {claim: ours, withAllocation: true, faults: changed(reserved("x")), want: state{"gpu-0", []string{"pods/x"}, true}, wantWrites: []string{status}},
		"another allocation":      {claim: ours, withAllocation: true, faults: changed(allocated("gpu-8")), want: state{Device: "gpu-8", Protected: true}, wantWrites: []string{status}},
		"replaced":                {claim: ours, withAllocation: true, faults: changed(replaced), want: state{}},
		"gone":                    {claim: ours, withAllocation: true, faults: []*fault{{request: get, times: 1, before: func(api *faultyAPI) { delete(api.claims, "a") }}}, wantGone: true},
		"gone while written":      {claim: ours, withAllocation: true, faults: []*fault{{request: updateStatus, times: 1, err: errConflict, before: func(api *faultyAPI) { delete(api.claims, "a") }}}, wantGone: true, wantWrites: []string{status}},
		"conflicts":               {claim: ours, withAllocation: true, faults: []*fault{{request: updateStatus, times: 3, err: errConflict}}, want: state{Protected: true}, wantWrites: []string{status, status, status, status}},
		"lost answer":             {claim: ours, withAllocation: true, faults: []*fault{{request: updateStatus, times: 1, err: errReset, applied: true}}, want: state{Protected: true}, wantWrites: []string{status}},
		"short outage":            {claim: ours, withAllocation: true, faults: []*fault{{request: get, times: 5, err: errReset}}, want: state{Protected: true}, wantWrites: []string{status}},
		"refused":                 {claim: ours, withAllocation: true, faults: []*fault{{request: updateStatus, times: 1, err: errForbidden}}, want: state{"gpu-0", []string{"pods/web"}, true}, wantWrites: []string{status}, wantError: errForbidden},
		"somebody else's changes": {claim: ours, withAllocation: true, faults: changed(func(c *resourceapi.ResourceClaim) { c.Labels = map[string]string{"a": "b"} }), want: state{Protected: true}, wantWrites: []string{status}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, []*resourceapi.ResourceClaim{tc.claim}, tc.faults...)
				seen := api.seen("a")
				before := seen.DeepCopy()
				w := claimwriter.New(api.client, nil, 0)
				// Unreserve is called when things go wrong: the context may have ended.
				ctx, cancel := context.WithCancel(t.Context())
				cancel()

				err := w.Release(ctx, seen, web, tc.withAllocation)

				checkError(t, err, tc.wantError, claimwriter.OperationRelease, "a")
				checkWrites(t, api, tc.wantWrites...)
				if diff := cmp.Diff(before, seen); diff != "" {
					t.Errorf("input changed (-before +after):\n%s", diff)
				}
				if tc.wantGone {
					checkStates(t, api, map[string]state{})
					return
				}
				checkStates(t, api, map[string]state{"a": tc.want})
				if now := api.seen("a"); now.Status.Allocation == nil && now.Status.Devices != nil {
					t.Error("device statuses stayed without an allocation")
				}
				if tc.wantError != nil {
					return
				}
				version := api.seen("a").ResourceVersion
				if err := w.Release(ctx, seen, web, tc.withAllocation); err != nil {
					t.Errorf("second Release: %v", err)
				}
				if again := api.seen("a").ResourceVersion; again != version {
					t.Error("second Release wrote")
				}
			})
		})
	}
}

func TestDeallocate(t *testing.T) {
	idle := newClaim("a", allocated("gpu-0"), withDeviceStatus)
	status := updateStatus + " a"
	meanwhile := func(change func(*resourceapi.ResourceClaim)) []*fault {
		return []*fault{{request: updateStatus, times: 1, before: func(api *faultyAPI) { api.change("a", change) }}}
	}
	tests := map[string]struct {
		claim      *resourceapi.ResourceClaim
		consumer   types.UID
		faults     []*fault
		want       state
		wantWrites []string
		wantError  error
		wantFailed claimwriter.Operation
	}{
		"idle":                   {claim: idle, consumer: web, want: state{Protected: true}, wantWrites: []string{status}},
		"idle, for nobody":       {claim: idle, want: state{Protected: true}, wantWrites: []string{status}},
		"reserved for the pod":   {claim: newClaim("a", allocated("gpu-0"), reserved("web")), consumer: web, want: state{Protected: true}, wantWrites: []string{status}},
		"reserved for another":   {claim: newClaim("a", allocated("gpu-0"), reserved("x")), consumer: web, want: state{"gpu-0", []string{"pods/x"}, true}, wantError: claimwriter.ErrInUse},
		"reserved for both":      {claim: newClaim("a", allocated("gpu-0"), reserved("web", "x")), consumer: web, want: state{"gpu-0", []string{"pods/web", "pods/x"}, true}, wantError: claimwriter.ErrInUse},
		"reserved, for nobody":   {claim: newClaim("a", allocated("gpu-0"), reserved("x")), want: state{"gpu-0", []string{"pods/x"}, true}, wantError: claimwriter.ErrInUse},
		"not allocated":          {claim: newClaim("a"), consumer: web, want: state{}},
		"reserved meanwhile":     {claim: idle, consumer: web, faults: meanwhile(reserved("x")), want: state{"gpu-0", []string{"pods/x"}, true}, wantWrites: []string{status}, wantError: claimwriter.ErrInUse},
		"allocated anew":         {claim: idle, consumer: web, faults: meanwhile(allocated("gpu-8")), want: state{Device: "gpu-8", Protected: true}, wantWrites: []string{status}, wantError: claimwriter.ErrAllocatedElsewhere},
		"deallocated meanwhile":  {claim: idle, consumer: web, faults: meanwhile(func(c *resourceapi.ResourceClaim) { c.Status = resourceapi.ResourceClaimStatus{} }), want: state{Protected: true}, wantWrites: []string{status}},
		"replaced meanwhile":     {claim: idle, consumer: web, faults: meanwhile(replaced), want: state{}, wantWrites: []string{status}, wantError: claimwriter.ErrReplaced},
		"other change meanwhile": {claim: idle, consumer: web, faults: meanwhile(func(c *resourceapi.ResourceClaim) { c.Labels = map[string]string{"a": "b"} }), want: state{Protected: true}, wantWrites: []string{status, status}},
		"lost answer, written":   {claim: idle, consumer: web, faults: []*fault{{request: updateStatus, times: 1, err: errTimeout, applied: true}}, want: state{Protected: true}, wantWrites: []string{status}},
		"lost answer, unwritten": {claim: idle, consumer: web, faults: []*fault{{request: updateStatus, times: 1, err: errReset}}, want: state{Protected: true}, wantWrites: []string{status, status}},
		"refused":                {claim: idle, consumer: web, faults: []*fault{{request: updateStatus, times: 1, err: errForbidden}}, want: state{Device: "gpu-0", Protected: true}, wantWrites: []string{status}, wantError: errForbidden},
		"refused after a conflict": {claim: idle, consumer: web, faults: []*fault{{request: updateStatus, times: 1, err: errConflict}, {request: get, times: 1, err: errForbidden}},
			want: state{Device: "gpu-0", Protected: true}, wantWrites: []string{status}, wantError: errForbidden, wantFailed: claimwriter.OperationRead},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, []*resourceapi.ResourceClaim{tc.claim}, tc.faults...)
				seen := api.seen("a")
				before := seen.DeepCopy()
				got, err := claimwriter.New(api.client, nil, 0).Deallocate(t.Context(), seen, tc.consumer)
				failed := tc.wantFailed
				if failed == "" {
					failed = claimwriter.OperationDeallocate
				}
				checkError(t, err, tc.wantError, failed, "a")
				checkWrites(t, api, tc.wantWrites...)
				checkStates(t, api, map[string]state{"a": tc.want})
				if diff := cmp.Diff(before, seen); diff != "" {
					t.Errorf("input changed (-before +after):\n%s", diff)
				}
				if tc.wantError != nil {
					return
				}
				if diff := cmp.Diff(api.seen("a"), got); diff != "" {
					t.Errorf("returned claim (-stored +returned):\n%s", diff)
				}
				if got.Status.Devices != nil {
					t.Error("device statuses stayed without an allocation")
				}
			})
		})
	}
}
