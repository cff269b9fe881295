package integration

import (
	"context"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// declare lets a node declare features, as its kubelet would.
func declare(t *testing.T, e *harness.Env, node string, features ...string) {
	t.Helper()
	nodes := e.Client.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := nodes.Get(t.Context(), e.In(node), metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Status.DeclaredFeatures = features
		_, err = nodes.UpdateStatus(t.Context(), current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("declare features of node %s: %v", node, err)
	}
}

// Devices of which kubelet needs to know nothing go to a node whose kubelet
// knows that. A pod that waits for such a node runs when there is one.
func TestOptionalNodeOperations(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "net").Obj(),
		builders.Slice(e.Driver, "net").OnAllNodes().Devices(builders.Device("net-0")).SkipNodeOperations().Obj(),
		builders.Claim("claim", builders.Request("r", e.In("net"))).Obj(), builders.Pod("pod").Claim("claim").Obj())
	e.Waits("pod", unfit(2, `2 request "r": matching devices need a node that declares the feature DRAOptionalNodeOperations`))
	declare(t, e, "b", "DRAOptionalNodeOperations")
	e.Await("a node", func(ctx context.Context) string {
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, "pod", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if pod.Spec.NodeName == "" {
			return "none yet"
		}
		return ""
	})
	e.Runs("pod", "b")
	result := e.Device("r", "net", "net-0")
	result.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
	e.Holds("claim", &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}}}, "pod")
	// The allocation does not select nodes, yet only one can use it.
	e.Create(builders.Pod("next").Claim("claim").Obj())
	e.Runs("next", "b")
}
