package integration

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// Administrators get access to devices in use, and take nothing.
func TestAdminAccess(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 2).Obj(),
		builders.Claim("user", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("user").Claim("user").Obj())
	e.Runs("user", "a")

	monitor := builders.Claim("monitor", builders.Request("r", e.In("gpu")).All().Admin()).Obj()
	monitor.Namespace = e.Namespace
	_, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Create(t.Context(), monitor, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("without the label on the namespace got error %v, want a refusal", err)
	}
	namespace, err := e.Client.CoreV1().Namespaces().Get(t.Context(), e.Namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespace.Labels[resourceapi.DRAAdminNamespaceLabelKey] = "true"
	if _, err := e.Client.CoreV1().Namespaces().Update(t.Context(), namespace, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	e.Create(monitor, builders.Pod("monitor").Claim("monitor").Obj())
	e.Runs("monitor", "a")
	admin := func(device string) resourceapi.DeviceRequestAllocationResult {
		result := e.Device("r", "a", device)
		result.AdminAccess = ptr.To(true)
		return result
	}
	e.Holds("monitor", e.Allocation("a", admin("gpu-0"), admin("gpu-1")), "monitor")

	// The device that only the administrator uses is still free.
	e.Create(builders.Claim("next", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("next").Claim("next").Obj())
	e.Runs("next", "a")
	e.Took("next", "r=a/gpu-1")
	e.DeletePod("monitor")
	e.Released("monitor")
}
