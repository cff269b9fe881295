package claimwriter_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

// afterBind is claim "a" once pod "web" has gpu-0 in it.
var afterBind = state{Device: "gpu-0", ReservedFor: []string{"pods/web"}, Protected: true}

func TestBindOneClaim(t *testing.T) {
	free := newClaim("a")
	const (
		finalizer = update + " a"
		status    = updateStatus + " a"
	)
	changeBefore := func(request string, change func(*resourceapi.ResourceClaim)) *fault {
		return &fault{request: request, times: 1, before: func(api *faultyAPI) { api.change("a", change) }}
	}
	tests := map[string]struct {
		claim *resourceapi.ResourceClaim
		// reserveOnly asks for no allocation.
		reserveOnly bool
		faults      []*fault
		want        state
		wantWrites  []string
		wantError   error
		wantFailed  claimwriter.Operation
	}{
		"fresh": {
			claim: free, want: afterBind, wantWrites: []string{finalizer, status},
		},
		"finalizer left by an earlier attempt": {
			claim: newClaim("a", protected), want: afterBind, wantWrites: []string{status},
		},
		"allocated, unused": {
			claim: newClaim("a", allocated("gpu-7")), reserveOnly: true,
			want: state{"gpu-7", []string{"pods/web"}, true}, wantWrites: []string{status},
		},
		"allocated, shared": {
			claim: newClaim("a", allocated("gpu-7"), reserved("other")), reserveOnly: true,
			want: state{"gpu-7", []string{"pods/other", "pods/web"}, true}, wantWrites: []string{status},
		},
		"reserved already": {
			claim: newClaim("a", allocated("gpu-7"), reserved("web")), reserveOnly: true,
			want: state{"gpu-7", []string{"pods/web"}, true},
		},
		"the same allocation already, by an earlier attempt": {
			claim: newClaim("a", allocated("gpu-0"), reserved("web")), want: afterBind,
		},
		"two conflicts at the finalizer": {
			claim: free, faults: []*fault{{request: update, times: 2, err: errConflict}},
			want: afterBind, wantWrites: []string{finalizer, finalizer, finalizer, status},
		},
		"two conflicts at the status": {
			claim: free, faults: []*fault{{request: updateStatus, times: 2, err: errConflict}},
			want: afterBind, wantWrites: []string{finalizer, status, status, status},
		},
		"changed by somebody meanwhile": {
			claim:  free,
			faults: []*fault{changeBefore(update, func(c *resourceapi.ResourceClaim) { c.Labels = map[string]string{"team": "x"} })},
			want:   afterBind, wantWrites: []string{finalizer, finalizer, status},
		},
		"conflicts for ever": {
			claim: free, faults: []*fault{{request: updateStatus, times: 1000, err: errConflict}},
			want: state{Protected: true}, wantWrites: []string{finalizer, status, status, status, status, status},
			wantError: errConflict, wantFailed: claimwriter.OperationWriteStatus,
		},
		"finalizer refused": {
			claim: free, faults: []*fault{{request: update, times: 1, err: errForbidden}},
			wantWrites: []string{finalizer}, wantError: errForbidden, wantFailed: claimwriter.OperationAddFinalizer,
		},
		"status refused": {
			claim: free, faults: []*fault{{request: updateStatus, times: 1, err: errForbidden}},
			want: state{Protected: true}, wantWrites: []string{finalizer, status},
			wantError: errForbidden, wantFailed: claimwriter.OperationWriteStatus,
		},
		"finalizer times out after it was written": {
			claim: free, faults: []*fault{{request: update, times: 1, err: errTimeout, applied: true}},
			want: afterBind, wantWrites: []string{finalizer, status},
		},
		"status times out after it was written": {
			claim: free, faults: []*fault{{request: updateStatus, times: 1, err: errTimeout, applied: true}},
			want: afterBind, wantWrites: []string{finalizer, status},
		},
		"connection lost after the status was written": {
			claim: free, faults: []*fault{{request: updateStatus, times: 1, err: errReset, applied: true}},
			want: afterBind, wantWrites: []string{finalizer, status},
		},
		"connection lost before the status was written": {
			claim: free, faults: []*fault{{request: updateStatus, times: 1, err: errReset}},
			want: afterBind, wantWrites: []string{finalizer, status, status},
		},
		"looking after a lost answer fails once": {
			claim:  free,
			faults: []*fault{{request: updateStatus, times: 1, err: errInternal, applied: true}, {request: get, times: 1, err: errReset}},
			want:   afterBind, wantWrites: []string{finalizer, status},
		},
		"looking after a conflict is refused": {
			claim:  free,
			faults: []*fault{{request: updateStatus, times: 1, err: errConflict}, {request: get, times: 1, err: errForbidden}},
			want:   state{Protected: true}, wantWrites: []string{finalizer, status},
			wantError: errForbidden, wantFailed: claimwriter.OperationRead,
		},
		"lost answers for ever": {
			claim: free, faults: []*fault{{request: updateStatus, times: 5, err: errTimeout}},
			want: state{Protected: true}, wantWrites: []string{finalizer, status, status, status, status, status},
			wantError: errTimeout, wantFailed: claimwriter.OperationWriteStatus,
		},
		"being deleted, seen before": {
			claim: newClaim("a", beingDeleted), want: state{Protected: true},
			wantError: claimwriter.ErrBeingDeleted, wantFailed: claimwriter.OperationBind,
		},
		"deletion starts meanwhile": {
			claim: free, faults: []*fault{changeBefore(updateStatus, beingDeleted)},
			want: state{Protected: true}, wantWrites: []string{finalizer, status},
			wantError: claimwriter.ErrBeingDeleted, wantFailed: claimwriter.OperationBind,
		},
		"gone meanwhile": {
			claim: free,
			faults: []*fault{{request: update, times: 1, err: errConflict}, {request: get, times: 1, before: func(api *faultyAPI) {
				api.claims = map[string]*resourceapi.ResourceClaim{}
			}}},
			wantWrites: []string{finalizer}, wantError: claimwriter.ErrGone, wantFailed: claimwriter.OperationBind,
		},
		"replaced meanwhile": {
			claim: free, faults: []*fault{changeBefore(update, replaced)},
			wantWrites: []string{finalizer}, wantError: claimwriter.ErrReplaced, wantFailed: claimwriter.OperationBind,
		},
		"allocated by another scheduler, seen before": {
			claim: newClaim("a", allocated("gpu-7")), want: state{Device: "gpu-7", Protected: true},
			wantError: claimwriter.ErrAllocatedElsewhere, wantFailed: claimwriter.OperationBind,
		},
		"allocated by another scheduler meanwhile": {
			claim: free, faults: []*fault{changeBefore(updateStatus, func(c *resourceapi.ResourceClaim) {
				allocated("gpu-7")(c)
				reserved("web")(c)
			})},
			want:       state{"gpu-7", []string{"pods/web"}, true},
			wantWrites: []string{finalizer, status}, wantError: claimwriter.ErrAllocatedElsewhere, wantFailed: claimwriter.OperationBind,
		},
		"allocated by another scheduler, shown by the finalizer's answer": {
			claim: free, faults: []*fault{{request: update, times: 1, before: func(api *faultyAPI) {
				allocated("gpu-7")(api.claims["a"])
				api.claims["a"].Finalizers = nil
			}}},
			want:       state{Device: "gpu-7", Protected: true},
			wantWrites: []string{finalizer}, wantError: claimwriter.ErrAllocatedElsewhere, wantFailed: claimwriter.OperationBind,
		},
		"deallocated meanwhile": {
			claim: newClaim("a", allocated("gpu-7")), reserveOnly: true,
			faults: []*fault{changeBefore(updateStatus, func(c *resourceapi.ResourceClaim) { c.Status.Allocation = nil })},
			want:   state{Protected: true}, wantWrites: []string{status},
			wantError: claimwriter.ErrDeallocated, wantFailed: claimwriter.OperationBind,
		},
		"allocated anew meanwhile": {
			claim: newClaim("a", allocated("gpu-7")), reserveOnly: true,
			faults: []*fault{changeBefore(updateStatus, allocated("gpu-8"))},
			want:   state{Device: "gpu-8", Protected: true}, wantWrites: []string{status},
			wantError: claimwriter.ErrAllocatedElsewhere, wantFailed: claimwriter.OperationBind,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, []*resourceapi.ResourceClaim{tc.claim}, tc.faults...)
				write := claimwriter.Write{Claim: api.seen("a")}
				if !tc.reserveOnly {
					write.Allocation = newAllocation("gpu-0")
				}
				before := claimwriter.Write{Claim: write.Claim.DeepCopy(), Allocation: write.Allocation.DeepCopy()}

				written, err := claimwriter.New(api.client, nil, 0).Bind(t.Context(), newPod("web"), []claimwriter.Write{write})

				checkError(t, err, tc.wantError, tc.wantFailed, "a")
				checkWrites(t, api, tc.wantWrites...)
				if diff := cmp.Diff(before, write); diff != "" {
					t.Errorf("input changed (-before +after):\n%s", diff)
				}
				if len(api.claims) > 0 {
					checkStates(t, api, map[string]state{"a": tc.want})
				}
				if tc.wantError != nil {
					if written != nil {
						t.Errorf("got claims with an error: %v", written)
					}
					return
				}
				if diff := cmp.Diff([]*resourceapi.ResourceClaim{api.seen("a")}, written); diff != "" {
					t.Errorf("returned claims (-stored +returned):\n%s", diff)
				}
				if written[0] == write.Claim {
					t.Error("the returned claim is the caller's input")
				}
			})
		})
	}
}

func TestBindIsIdempotent(t *testing.T) {
	api := newFaultyAPI(t, []*resourceapi.ResourceClaim{newClaim("a")})
	w := claimwriter.New(api.client, nil, 0)
	stale := claimwriter.Write{Claim: api.seen("a"), Allocation: newAllocation("gpu-0")}
	if _, err := w.Bind(t.Context(), newPod("web"), []claimwriter.Write{stale}); err != nil {
		t.Fatal(err)
	}
	first := api.seen("a")
	// The second call works from the old version, as after a restart before the informer has caught up.
	written, err := w.Bind(t.Context(), newPod("web"), []claimwriter.Write{stale})
	if err != nil {
		t.Fatalf("second Bind: %v", err)
	}
	if diff := cmp.Diff(first, written[0]); diff != "" {
		t.Errorf("claim changed (-first +second):\n%s", diff)
	}
}

func TestBindConsumerLimit(t *testing.T) {
	var others []string
	for i := range resourceapi.ResourceClaimReservedForMaxSize {
		others = append(others, fmt.Sprintf("other-%d", i))
	}
	tests := map[string]struct {
		consumers []string
		want      error
		writes    []string
	}{
		"256th": {consumers: others[1:], writes: []string{updateStatus + " full", update + " fresh", updateStatus + " fresh"}},
		"257th": {consumers: others, want: claimwriter.ErrTooManyConsumers},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := newFaultyAPI(t, []*resourceapi.ResourceClaim{newClaim("fresh"), newClaim("full", allocated("gpu-7"), reserved(tc.consumers...))})
			_, err := claimwriter.New(api.client, nil, 0).Bind(t.Context(), newPod("web"), []claimwriter.Write{
				{Claim: api.seen("fresh"), Allocation: newAllocation("gpu-0")},
				{Claim: api.seen("full")},
			})
			checkError(t, err, tc.want, claimwriter.OperationBind, "full")
			if got := api.writes(); len(got) != len(tc.writes) {
				t.Errorf("got the writes %v, want %v in any order", got, tc.writes)
			}
		})
	}
}

func TestBindRefusesClaimListedTwice(t *testing.T) {
	api := newFaultyAPI(t, []*resourceapi.ResourceClaim{newClaim("a")})
	write := claimwriter.Write{Claim: api.seen("a"), Allocation: newAllocation("gpu-0")}
	_, err := claimwriter.New(api.client, nil, 0).Bind(t.Context(), newPod("web"), []claimwriter.Write{write, write})
	checkError(t, err, claimwriter.ErrListedTwice, claimwriter.OperationBind, "a")
	checkWrites(t, api)
}

func TestBindWithoutClaims(t *testing.T) {
	api := newFaultyAPI(t, nil)
	written, err := claimwriter.New(api.client, nil, 0).Bind(t.Context(), newPod("web"), nil)
	if err != nil || len(written) != 0 {
		t.Errorf("got %v, %v, want nothing", written, err)
	}
}

func TestBindAfterContextEnded(t *testing.T) {
	api := newFaultyAPI(t, []*resourceapi.ResourceClaim{newClaim("a")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := claimwriter.New(api.client, nil, 0).Bind(ctx, newPod("web"), []claimwriter.Write{{Claim: api.seen("a"), Allocation: newAllocation("gpu-0")}})
	checkError(t, err, context.Canceled, claimwriter.OperationBind, "a")
	checkWrites(t, api)
}
