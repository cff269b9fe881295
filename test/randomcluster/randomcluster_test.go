package randomcluster_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
	"github.com/device-scheduler/device-scheduler/test/randomcluster"
)

// TestNewIsRepeatable: a failure can be replayed only if its seed is enough.
func TestNewIsRepeatable(t *testing.T) {
	distinct := 0
	for seed := range uint64(300) {
		first, second := randomcluster.New(seed), randomcluster.New(seed)
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("seed %d (-first +second):\n%s", seed, cmp.Diff(first, second))
		}
		if !reflect.DeepEqual(first, randomcluster.New(seed+1)) {
			distinct++
		}
	}
	if distinct < 300 {
		t.Errorf("%d of 300 clusters differ from the next", distinct)
	}
}

// TestShrink looks for the smallest cluster with a tainted device and a claim
// for two.
func TestShrink(t *testing.T) {
	fails := func(s *allocationcheck.Situation) bool {
		tainted, two := false, false
		for _, slice := range s.Slices {
			for _, d := range slice.Spec.Devices {
				tainted = tainted || len(d.Taints) > 0
			}
		}
		for _, claim := range s.Claims {
			for _, request := range claim.Spec.Devices.Requests {
				two = two || request.Exactly != nil && request.Exactly.Count >= 2
			}
		}
		return tainted && two
	}
	tried := 0
	for seed := range uint64(200) {
		before := randomcluster.New(seed)
		if !fails(before) {
			continue
		}
		tried++
		s := randomcluster.Shrink(before, fails)
		if want := randomcluster.New(seed); !reflect.DeepEqual(want, before) {
			t.Fatalf("seed %d: the cluster has been changed (-want +got):\n%s", seed, cmp.Diff(want, before))
		}
		if !fails(s) || len(s.Slices) != 1 || len(s.Slices[0].Spec.Devices) != 1 || len(s.Held) > 0 || len(s.Claims) != 1 ||
			len(s.Claims[0].Spec.Devices.Requests) != 1 || s.Claims[0].Spec.Devices.Requests[0].Exactly.Count != 2 {
			t.Fatalf("seed %d: not the smallest cluster: %+v", seed, s)
		}
		if d := s.Slices[0].Spec.Devices[0]; len(d.Attributes)+len(d.Capacity)+len(d.ConsumesCounters)+len(d.BindingConditions) > 0 || len(d.Taints) != 1 {
			t.Fatalf("seed %d: not the smallest device: %+v", seed, d)
		}
	}
	if tried < 10 {
		t.Errorf("only %d clusters tried", tried)
	}
}
