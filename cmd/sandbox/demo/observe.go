package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Pod is what there is of one pod.
type Pod struct {
	Name      string
	UID       types.UID
	Node      string // empty while it waits
	Running   bool
	Leaving   bool   // is being deleted
	Condition string // message of PodScheduled=False
	Devices   []Held // of its allocated claims
	// Unreserved names claims that the pod uses without a reservation.
	Unreserved []string
}

// Held is one device of a pod.
type Held struct {
	Claim   string
	Request string // with the alternative: gpu/two-turing
	ID      DeviceID
	Admin   bool // admin access: takes nothing
	// Consumes is what it has of the capacity of a shared device; nil means that
	// it has the device for itself.
	Consumes map[string]string
}

// observe reads the pods of a namespace and their devices, sorted by name.
func observe(ctx context.Context, client kubernetes.Interface, namespace string) ([]Pod, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods in %s: %w", namespace, err)
	}
	claims, err := client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims in %s: %w", namespace, err)
	}
	byName := map[string]*resourcev1.ResourceClaim{}
	for i := range claims.Items {
		byName[claims.Items[i].Name] = &claims.Items[i]
	}
	seen := make([]Pod, 0, len(pods.Items))
	for i := range pods.Items {
		seen = append(seen, observePod(&pods.Items[i], byName))
	}
	slices.SortFunc(seen, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return seen, nil
}

func observePod(pod *corev1.Pod, claims map[string]*resourcev1.ResourceClaim) Pod {
	seen := Pod{
		Name: pod.Name, UID: pod.UID, Node: pod.Spec.NodeName,
		Running: pod.Status.Phase == corev1.PodRunning,
		Leaving: pod.DeletionTimestamp != nil,
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			seen.Condition = condition.Message
		}
	}
	for _, name := range claimNames(pod) {
		claim := claims[name]
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			seen.Devices = append(seen.Devices, Held{
				Claim: name, Request: result.Request,
				ID:       DeviceID{result.Driver, result.Pool, result.Device},
				Admin:    result.AdminAccess != nil && *result.AdminAccess,
				Consumes: consumed(result),
			})
		}
		// For itself, or for its group.
		if !resourceclaim.IsReservedForPod(pod, claim, true) {
			seen.Unreserved = append(seen.Unreserved, name)
		}
	}
	return seen
}

// consumed returns the capacities that a share of a device has. Names in the
// domain of the driver are without domain, as drivers publish them.
func consumed(result resourcev1.DeviceRequestAllocationResult) map[string]string {
	var amounts map[string]string
	for name, amount := range result.ConsumedCapacity {
		if amounts == nil {
			amounts = map[string]string{}
		}
		amounts[strings.TrimPrefix(string(name), result.Driver+"/")] = amount.String()
	}
	return amounts
}

// claimNames returns the claims of a pod that have a name already: its own,
// those made from templates, and the one made for extended resources.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for _, reference := range pod.Spec.ResourceClaims {
		if reference.ResourceClaimName != nil {
			names = append(names, *reference.ResourceClaimName)
		}
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.ResourceClaimName != nil {
			names = append(names, *made.ResourceClaimName)
		}
	}
	if made := pod.Status.ExtendedResourceClaimStatus; made != nil {
		names = append(names, made.ResourceClaimName)
	}
	return names
}
