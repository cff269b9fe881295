package claimwriter_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

// threeClaims asks for an allocation in a and c, and for a reservation in the shared claim b.
func threeClaims(api *faultyAPI) []claimwriter.Write {
	return []claimwriter.Write{
		{Claim: api.seen("a"), Allocation: newAllocation("gpu-0")},
		{Claim: api.seen("b")},
		{Claim: api.seen("c"), Allocation: newAllocation("gpu-1")},
	}
}

func TestBindThreeClaims(t *testing.T) {
	shared := state{"gpu-7", []string{"pods/other"}, true}
	undone := map[string]state{"a": {Protected: true}, "b": shared, "c": {Protected: true}}
	tests := map[string]struct {
		faults     []*fault
		want       map[string]state
		wantError  error
		wantFailed claimwriter.Operation
		wantClaim  string
		wantCounts map[string]int
	}{
		"all written": {
			want: map[string]state{
				"a": {"gpu-0", []string{"pods/web"}, true},
				"b": {"gpu-7", []string{"pods/other", "pods/web"}, true},
				"c": {"gpu-1", []string{"pods/web"}, true},
			},
			wantCounts: map[string]int{"written: add finalizer to": 2, "written: write allocation and reservation to": 3},
		},
		"last one refused": {
			faults: []*fault{{request: updateStatus, name: "c", times: 1, err: errForbidden}},
			want:   undone, wantError: errForbidden, wantFailed: claimwriter.OperationWriteStatus, wantClaim: "c",
			wantCounts: map[string]int{
				"written: add finalizer to": 2, "written: write allocation and reservation to": 2,
				"failed: write allocation and reservation to": 1, "written: roll back": 2, "rolled back": 2,
			},
		},
		"shared one refused": {
			faults: []*fault{{request: updateStatus, name: "b", times: 1, err: errForbidden}},
			want:   undone, wantError: errForbidden, wantFailed: claimwriter.OperationWriteStatus, wantClaim: "b",
			wantCounts: map[string]int{
				"written: add finalizer to": 2, "written: write allocation and reservation to": 2,
				"failed: write allocation and reservation to": 1, "written: roll back": 2, "rolled back": 2,
			},
		},
		"conflict while rolling back": {
			faults: []*fault{
				{request: updateStatus, name: "c", times: 1, err: errForbidden},
				{request: get, name: "a", times: 1}, // the first read of the roll-back
				{request: updateStatus, name: "a", times: 1},
				{request: updateStatus, name: "a", times: 2, err: errConflict},
			},
			want: undone, wantError: errForbidden, wantFailed: claimwriter.OperationWriteStatus, wantClaim: "c",
			wantCounts: map[string]int{
				"written: add finalizer to": 2, "written: write allocation and reservation to": 2,
				"failed: write allocation and reservation to": 1, "conflict": 2, "written: roll back": 2, "rolled back": 2,
			},
		},
		"lost answer while rolling back": {
			faults: []*fault{
				{request: updateStatus, name: "c", times: 1, err: errForbidden},
				{request: updateStatus, name: "a", times: 1},
				{request: updateStatus, name: "a", times: 1, err: errReset, applied: true},
			},
			want: undone, wantError: errForbidden, wantFailed: claimwriter.OperationWriteStatus, wantClaim: "c",
			wantCounts: map[string]int{
				"written: add finalizer to": 2, "written: write allocation and reservation to": 2,
				"failed: write allocation and reservation to": 1, "failed: roll back": 1, "written: roll back": 1, "rolled back": 2,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, []*resourceapi.ResourceClaim{
					newClaim("a"), newClaim("b", allocated("gpu-7"), reserved("other")), newClaim("c"),
				}, tc.faults...)
				observer := &counts{}
				written, err := claimwriter.New(api.client, observer, 0).Bind(t.Context(), newPod("web"), threeClaims(api))
				checkError(t, err, tc.wantError, tc.wantFailed, tc.wantClaim)
				checkStates(t, api, tc.want)
				if diff := cmp.Diff(tc.wantCounts, observer.seen); diff != "" {
					t.Errorf("observed (-want +got):\n%s", diff)
				}
				if tc.wantError == nil {
					want := []*resourceapi.ResourceClaim{api.seen("a"), api.seen("b"), api.seen("c")}
					if diff := cmp.Diff(want, written); diff != "" {
						t.Errorf("returned claims (-stored +returned):\n%s", diff)
					}
				}
			})
		})
	}
}

func TestRollBackFails(t *testing.T) {
	tests := map[string]struct {
		rollBack *fault
		want     error
	}{
		"refused":        {rollBack: &fault{request: updateStatus, name: "a", times: 1, err: errForbidden}, want: errForbidden},
		"no answer ever": {rollBack: &fault{request: updateStatus, name: "a", times: 1000, err: errTimeout}, want: errTimeout},
		"no read":        {rollBack: &fault{request: get, name: "a", times: 1000, err: errReset}, want: errReset},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, []*resourceapi.ResourceClaim{
					newClaim("a"), newClaim("b", allocated("gpu-7"), reserved("other")), newClaim("c"),
				}, &fault{request: updateStatus, name: "c", times: 1, err: errConflict}, &fault{request: get, name: "c", times: 1, err: errForbidden},
					&fault{request: updateStatus, name: "a", times: 1}, tc.rollBack)
				_, err := claimwriter.New(api.client, nil, 0).Bind(t.Context(), newPod("web"), threeClaims(api))
				checkError(t, err, errForbidden, claimwriter.OperationRead, "c")
				if !errors.Is(err, tc.want) {
					t.Errorf("got error %v, want one that is also %v", err, tc.want)
				}
				checkRollBackNamed(t, err, "a")
				// What can be rolled back is.
				if diff := cmp.Diff(state{"gpu-7", []string{"pods/other"}, true}, stateOf(api.seen("b"))); diff != "" {
					t.Errorf("claim b (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// checkRollBackNamed checks that err, the joined error of Bind, says which claim could not be rolled back.
func checkRollBackNamed(t *testing.T, err error, name string) {
	t.Helper()
	var found []string
	var visit func(error)
	visit = func(err error) {
		if e, ok := err.(*claimwriter.Error); ok {
			if e.Operation == claimwriter.OperationRollBack {
				found = append(found, e.Name.Name)
			}
			return
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				visit(e)
			}
		}
	}
	visit(err)
	if !slices.Equal(found, []string{name}) {
		t.Errorf("error names the roll-back of %v, want of %s: %v", found, name, err)
	}
}

func TestRollBackAfterLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		api := newFaultyAPI(t, []*resourceapi.ResourceClaim{newClaim("a")},
			&fault{request: updateStatus, times: 1, err: context.Canceled, applied: true, answered: cancel})
		_, err := claimwriter.New(api.client, nil, 0).Bind(ctx, newPod("web"), []claimwriter.Write{{Claim: api.seen("a"), Allocation: newAllocation("gpu-0")}})
		checkError(t, err, context.Canceled, claimwriter.OperationWriteStatus, "a")
		checkStates(t, api, map[string]state{"a": {Protected: true}})
		checkWrites(t, api, update+" a", updateStatus+" a", updateStatus+" a")
	})
}

// TestRollBackRespectsOthers lets a write go through without an answer, and others act before the roll-back looks.
func TestRollBackRespectsOthers(t *testing.T) {
	tests := map[string]struct {
		claim       *resourceapi.ResourceClaim
		reserveOnly bool
		meanwhile   func(*resourceapi.ResourceClaim)
		want        state
		wantUndone  bool
	}{
		"nothing happened":       {claim: newClaim("a"), meanwhile: func(*resourceapi.ResourceClaim) {}, want: state{Protected: true}, wantUndone: true},
		"another pod joined":     {claim: newClaim("a"), meanwhile: reserved("other"), want: state{"gpu-0", []string{"pods/other"}, true}, wantUndone: true},
		"replaced":               {claim: newClaim("a"), meanwhile: replaced, want: state{}},
		"released and reused":    {claim: newClaim("a"), meanwhile: reuse, want: state{"gpu-8", []string{"pods/other"}, true}},
		"allocated anew for us":  {claim: newClaim("a"), meanwhile: allocated("gpu-8"), want: state{Device: "gpu-8", Protected: true}, wantUndone: true},
		"idle claim, as found":   {claim: newClaim("a", allocated("gpu-7")), reserveOnly: true, meanwhile: func(*resourceapi.ResourceClaim) {}, want: state{Device: "gpu-7", Protected: true}, wantUndone: true},
		"shared claim":           {claim: newClaim("a", allocated("gpu-7"), reserved("other")), reserveOnly: true, meanwhile: func(*resourceapi.ResourceClaim) {}, want: state{"gpu-7", []string{"pods/other"}, true}, wantUndone: true},
		"shared claim, last one": {claim: newClaim("a", allocated("gpu-7"), reserved("other")), reserveOnly: true, meanwhile: leave("other"), want: state{Protected: true}, wantUndone: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				api := newFaultyAPI(t, []*resourceapi.ResourceClaim{tc.claim},
					&fault{request: updateStatus, times: 1, err: errReset, applied: true, answered: cancel},
					&fault{request: get, times: 1, before: func(api *faultyAPI) { api.change("a", tc.meanwhile) }})
				write := claimwriter.Write{Claim: api.seen("a")}
				if !tc.reserveOnly {
					write.Allocation = newAllocation("gpu-0")
				}
				observer := &counts{}
				_, err := claimwriter.New(api.client, observer, 0).Bind(ctx, newPod("web"), []claimwriter.Write{write})
				checkError(t, err, errReset, claimwriter.OperationWriteStatus, "a")
				checkStates(t, api, map[string]state{"a": tc.want})
				if undone := observer.seen["rolled back"] == 1; undone != tc.wantUndone {
					t.Errorf("roll-back observed: %v, want %v", undone, tc.wantUndone)
				}
			})
		})
	}
}

func leave(pod string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		c.Status.ReservedFor = slices.DeleteFunc(c.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool {
			return r.UID == types.UID(pod+"-uid")
		})
	}
}

func reuse(c *resourceapi.ResourceClaim) {
	c.Status = resourceapi.ResourceClaimStatus{}
	allocated("gpu-8")(c)
	reserved("other")(c)
}

// TestRollBackForestalled: between the roll-back's read and its write somebody else takes the reservation out, so that
// there is nothing left to roll back and nothing to report.
func TestRollBackForestalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		api := newFaultyAPI(t, []*resourceapi.ResourceClaim{newClaim("a")},
			&fault{request: updateStatus, times: 1, err: errReset, applied: true, answered: cancel},
			&fault{request: updateStatus, times: 1, before: func(api *faultyAPI) {
				api.change("a", func(c *resourceapi.ResourceClaim) { c.Status = resourceapi.ResourceClaimStatus{} })
			}})
		observer := &counts{}
		_, err := claimwriter.New(api.client, observer, 0).Bind(ctx, newPod("web"), []claimwriter.Write{{Claim: api.seen("a"), Allocation: newAllocation("gpu-0")}})
		checkError(t, err, errReset, claimwriter.OperationWriteStatus, "a")
		checkStates(t, api, map[string]state{"a": {Protected: true}})
		if n := observer.seen["rolled back"]; n != 0 {
			t.Errorf("%d roll-backs observed, want none", n)
		}
	})
}
