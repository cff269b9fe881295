package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// What the checks after each test would find.
func TestHeldTwice(t *testing.T) {
	claim := func(name string, results ...resourceapi.DeviceRequestAllocationResult) resourceapi.ResourceClaim {
		return resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Status:     resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}},
		}
	}
	device := func(pool string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{Driver: "driver", Pool: pool, Device: "device"}
	}
	admin, share := device("a"), device("a")
	admin.AdminAccess, share.ShareID = ptr.To(true), ptr.To(types.UID("share"))
	tests := map[string]struct {
		claims []resourceapi.ResourceClaim
		want   []string
	}{
		"different pools":   {claims: []resourceapi.ResourceClaim{claim("one", device("a")), claim("two", device("b")), {}}},
		"admin and share":   {claims: []resourceapi.ResourceClaim{claim("one", device("a")), claim("two", admin, share)}},
		"two claims":        {claims: []resourceapi.ResourceClaim{claim("one", device("a")), claim("two", device("a"))}, want: []string{"device driver/a/device is allocated to claims ns/one and ns/two"}},
		"twice in one":      {claims: []resourceapi.ResourceClaim{claim("one", device("a"), device("a"))}, want: []string{"device driver/a/device is allocated to claims ns/one and ns/one"}},
		"nothing allocated": {claims: []resourceapi.ResourceClaim{{}, {}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, heldTwice(tc.claims)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutPod(t *testing.T) {
	claims := []resourceapi.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"},
		Status: resourceapi.ResourceClaimStatus{ReservedFor: []resourceapi.ResourceClaimConsumerReference{
			{Resource: "pods", Name: "here", UID: "1"},
			{Resource: "pods", Name: "here", UID: "2"}, // an earlier pod of that name
			{APIGroup: "example.com", Resource: "consumers", Name: "other", UID: "3"},
		}},
	}}
	pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "here", UID: "1"}}}
	want := []string{"claim ns/claim is reserved for pod here, which does not exist"}
	if diff := cmp.Diff(want, withoutPod(claims, pods)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestAlarming(t *testing.T) {
	log := []byte("fine\n" +
		`pods is forbidden: User "x" cannot list` + "\n" +
		`events "x" is forbidden: it cannot be created because it is being terminated` + "\n" +
		"panic: nil map\n" +
		"WARNING: DATA RACE\n")
	tests := map[string]struct {
		restarted bool
		want      []string
	}{
		"ordinary":  {want: []string{`pods is forbidden: User "x" cannot list`, "panic: nil map", "WARNING: DATA RACE"}},
		"restarted": {restarted: true, want: []string{"panic: nil map", "WARNING: DATA RACE"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Alarming(log, tc.restarted)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
