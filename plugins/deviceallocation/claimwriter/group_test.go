package claimwriter_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
)

// gang is a PodGroup as a consumer.
var gang = &resourceapi.ResourceClaimConsumerReference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang", UID: "gang-uid"}

func reservedForGang(c *resourceapi.ResourceClaim) {
	c.Status.ReservedFor = append(c.Status.ReservedFor, *gang)
}

// TestBindForGroup writes claim "group" for a PodGroup and claim "own" for the pod.
func TestBindForGroup(t *testing.T) {
	others := make([]string, resourceapi.ResourceClaimReservedForMaxSize)
	for i := range others {
		others[i] = fmt.Sprintf("other-%d", i)
	}
	forGang := state{"gpu-0", []string{"podgroups/gang"}, true}
	own, free := state{"gpu-1", []string{"pods/web"}, true}, state{Protected: true}
	refuseOwn := func() []*fault { return []*fault{{request: updateStatus, name: "own", times: 1, err: errForbidden}} }
	// Another pod of the group is faster.
	faster := func(c *resourceapi.ResourceClaim) {
		allocated("gpu-0")(c)
		reservedForGang(c)
	}
	tests := map[string]struct {
		group *resourceapi.ResourceClaim
		// reserveOnly asks for no allocation of the group's claim.
		reserveOnly bool
		faults      []*fault
		want        map[string]state
		wantError   error
		wantClaim   string
	}{
		"fresh": {group: newClaim("group"), want: map[string]state{"group": forGang, "own": own}},
		"allocated, in use by a pod": {
			group: newClaim("group", allocated("gpu-0"), reserved("x")), reserveOnly: true,
			want: map[string]state{"group": {"gpu-0", []string{"pods/x", "podgroups/gang"}, true}, "own": own},
		},
		"reserved for the group": {
			group: newClaim("group", allocated("gpu-0"), reservedForGang), reserveOnly: true,
			want: map[string]state{"group": forGang, "own": own},
		},
		"reserved for the group, with as many consumers as there may be": {
			group: newClaim("group", allocated("gpu-0"), reservedForGang, reserved(others[1:]...)), reserveOnly: true,
			want: map[string]state{"group": {"gpu-0", append([]string{"podgroups/gang"}, pods(others[1:])...), true}, "own": own},
		},
		"as many consumers as there may be": {
			group: newClaim("group", allocated("gpu-0"), reserved(others...)), reserveOnly: true,
			want:      map[string]state{"group": {"gpu-0", pods(others), true}, "own": {}},
			wantError: claimwriter.ErrTooManyConsumers, wantClaim: "group",
		},
		"written by another pod of the group meanwhile": {
			group:  newClaim("group"),
			faults: []*fault{{request: update, name: "group", times: 1, before: func(api *faultyAPI) { api.change("group", faster) }}},
			want:   map[string]state{"group": forGang, "own": own},
		},
		"own claim refused": {
			group: newClaim("group"), faults: refuseOwn(),
			want:      map[string]state{"group": forGang, "own": free},
			wantError: errForbidden, wantClaim: "own",
		},
		"own claim refused, the group's was idle": {
			group: newClaim("group", allocated("gpu-0")), reserveOnly: true, faults: refuseOwn(),
			want:      map[string]state{"group": forGang, "own": free},
			wantError: errForbidden, wantClaim: "own",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFaultyAPI(t, []*resourceapi.ResourceClaim{tc.group, newClaim("own")}, tc.faults...)
				write := claimwriter.Write{Claim: api.seen("group"), Consumer: gang}
				if !tc.reserveOnly {
					write.Allocation = newAllocation("gpu-0")
				}
				_, err := claimwriter.New(api.client, nil, 0).Bind(t.Context(), newPod("web"), []claimwriter.Write{
					write, {Claim: api.seen("own"), Allocation: newAllocation("gpu-1")},
				})
				if !errors.Is(err, tc.wantError) {
					t.Errorf("got error %v, want %v", err, tc.wantError)
				}
				checkStates(t, api, tc.want)
				for _, consumer := range api.seen("group").Status.ReservedFor {
					if diff := cmp.Diff(*gang, consumer); consumer.Name == gang.Name && diff != "" {
						t.Errorf("reservation for the group (-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

func pods(names []string) []string {
	consumers := make([]string, len(names))
	for i, name := range names {
		consumers[i] = "pods/" + name
	}
	return consumers
}

// TestBindSharedAllocation: two pods share an allocation that one of them has written. Both fail at a claim of their
// own, one after the other. The last one to leave takes the allocation along although it did not write it.
func TestBindSharedAllocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFaultyAPI(t, []*resourceapi.ResourceClaim{newClaim("shared"), newClaim("own")})
		w := claimwriter.New(api.client, nil, 0)
		stale := api.seen("shared")
		write := claimwriter.Write{Claim: stale, Allocation: newAllocation("gpu-0")}
		if _, err := w.Bind(t.Context(), newPod("first"), []claimwriter.Write{write}); err != nil {
			t.Fatal(err)
		}
		leave := func(api *faultyAPI) {
			api.change("shared", func(c *resourceapi.ResourceClaim) { c.Status.ReservedFor = c.Status.ReservedFor[1:] })
		}
		api.faults = append(api.faults, &fault{request: updateStatus, name: "own", times: 1, err: errForbidden, before: leave})
		// It is tried again after the first pod's write has made its version an old one.
		_, err := w.Bind(t.Context(), newPod("second"), []claimwriter.Write{write, {Claim: api.seen("own"), Allocation: newAllocation("gpu-1")}})
		if !errors.Is(err, errForbidden) {
			t.Errorf("got error %v, want %v", err, errForbidden)
		}
		checkStates(t, api, map[string]state{"shared": {Protected: true}, "own": {Protected: true}})
	})
}
