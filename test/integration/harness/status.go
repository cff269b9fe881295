package harness

import (
	"context"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Device is the result of one device of the test's own driver.
func (e *Env) Device(request, pool, device string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{Request: request, Driver: e.Driver, Pool: pool, Device: device}
}

// OnNode is the node selector of an allocation with devices of one node.
func (e *Env) OnNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{e.In(name)},
		}},
	}}}
}

// Allocation is an allocation of devices of one node.
func (e *Env) Allocation(node string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.AllocationResult {
	return &resourceapi.AllocationResult{
		Devices:      resourceapi.DeviceAllocationResult{Results: results},
		NodeSelector: e.OnNode(node),
	}
}

// Holds checks the whole status of a claim: its allocation, and that it is
// reserved for the given pods and nobody else.
func (e *Env) Holds(claim string, allocation *resourceapi.AllocationResult, pods ...string) {
	e.t.Helper()
	e.HasStatus(claim, resourceapi.ResourceClaimStatus{Allocation: allocation, ReservedFor: e.reservedFor(pods)})
}

func (e *Env) reservedFor(pods []string) []resourceapi.ResourceClaimConsumerReference {
	e.t.Helper()
	var consumers []resourceapi.ResourceClaimConsumerReference
	for _, name := range pods {
		consumers = append(consumers, resourceapi.ResourceClaimConsumerReference{
			Resource: "pods", Name: name, UID: e.Pod(name).UID,
		})
	}
	return consumers
}

// HasStatus checks the status of a claim as the API server has it. The order
// of consumers is that of their attempts and means nothing.
func (e *Env) HasStatus(claim string, want resourceapi.ResourceClaimStatus) {
	e.t.Helper()
	if diff := cmp.Diff(want, e.Claim(claim).Status, sameStatus...); diff != "" {
		e.t.Errorf("status of claim %s (-want +got):\n%s", claim, diff)
	}
}

var sameStatus = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b resourceapi.ResourceClaimConsumerReference) bool { return a.Name < b.Name }),
	// When it was allocated is the API server's affair.
	cmpopts.IgnoreFields(resourceapi.AllocationResult{}, "AllocationTimestamp"),
}

// Took checks which devices a claim got, as request=pool/device, in the order
// of its allocation.
func (e *Env) Took(claim string, want ...string) {
	e.t.Helper()
	if diff := cmp.Diff(want, results(e.Claim(claim)), cmpopts.EquateEmpty()); diff != "" {
		e.t.Errorf("devices of claim %s (-want +got):\n%s", claim, diff)
	}
}

func results(claim *resourceapi.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	var found []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		found = append(found, result.Request+"="+result.Pool+"/"+result.Device)
	}
	return found
}

// ClaimOf waits for the claim that a pod got for one of its entries, as the
// pod's status names it.
func (e *Env) ClaimOf(pod, entry string) string {
	e.t.Helper()
	name := ""
	e.Await("the claim of pod "+pod, func(ctx context.Context) string {
		p, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, status := range p.Status.ResourceClaimStatuses {
			if status.Name == entry && status.ResourceClaimName != nil {
				name = *status.ResourceClaimName
				return ""
			}
		}
		return "none yet"
	})
	return name
}
