package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// The driver reports each device with binding conditions once, and no other.
func TestAttach(t *testing.T) {
	claim := func(name string, results ...resourcev1.DeviceRequestAllocationResult) *resourcev1.ResourceClaim {
		return &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"},
			Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
				Devices: resourcev1.DeviceAllocationResult{Results: results},
			}},
		}
	}
	device := func(name string, conditions ...string) resourcev1.DeviceRequestAllocationResult {
		return resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: name, BindingConditions: conditions}
	}
	unallocated := claim("waits")
	unallocated.Status.Allocation = nil
	client := fake.NewClientset(unallocated, claim("ready", device("local")), claim("remote", device("local-2"), device("far", "a", "b")))
	stage := &Stage{client: client}

	attached, err := stage.attach(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]DeviceID{{"d", "p", "far"}}, attached); diff != "" {
		t.Errorf("attached (-want +got):\n%s", diff)
	}
	stored, err := client.ResourceV1().ResourceClaims("n").Get(t.Context(), "remote", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]metav1.ConditionStatus{}
	for _, device := range stored.Status.Devices {
		for _, condition := range device.Conditions {
			got[device.Device+" "+condition.Type] = condition.Status
		}
	}
	if diff := cmp.Diff(map[string]metav1.ConditionStatus{"far a": metav1.ConditionTrue, "far b": metav1.ConditionTrue}, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if again, err := stage.attach(t.Context(), "n"); err != nil || len(again) > 0 {
		t.Errorf("got %v and error %v the second time, want nothing", again, err)
	}
}
