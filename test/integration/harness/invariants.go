package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Violations looks at all claims and pods of the API server and names what
// must never be: a device in two allocations, and a reservation for a pod that
// does not exist. The latter may last for a moment, until the controller has
// seen that the pod is gone; it is a violation if it lasts as long as ctx.
func Violations(ctx context.Context, client kubernetes.Interface) []string {
	var twice, lost []string
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		// Claims first: a pod that is gone in between is one that is gone.
		claims, err := client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		twice, lost = heldTwice(claims.Items), withoutPod(claims.Items, pods.Items)
		return len(twice) > 0 || len(lost) == 0, nil
	})
	if err != nil && len(lost) == 0 {
		return []string{fmt.Sprintf("check claims: %v", err)}
	}
	return append(twice, lost...)
}

// heldTwice names the devices that belong to one consumer only and have two.
func heldTwice(claims []resourceapi.ResourceClaim) []string {
	holders := make(map[string][]string)
	for i := range claims {
		claim := &claims[i]
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.ShareID != nil || result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			device := result.Driver + "/" + result.Pool + "/" + result.Device
			holders[device] = append(holders[device], claim.Namespace+"/"+claim.Name)
		}
	}
	var twice []string
	for device, claims := range holders {
		if len(claims) > 1 {
			twice = append(twice, fmt.Sprintf("device %s is allocated to claims %s", device, strings.Join(claims, " and ")))
		}
	}
	slices.Sort(twice)
	return twice
}

func withoutPod(claims []resourceapi.ResourceClaim, pods []corev1.Pod) []string {
	exists := make(map[types.UID]bool, len(pods))
	for i := range pods {
		exists[pods[i].UID] = true
	}
	var lost []string
	for i := range claims {
		for _, consumer := range claims[i].Status.ReservedFor {
			if consumer.Resource == "pods" && consumer.APIGroup == "" && !exists[consumer.UID] {
				lost = append(lost, fmt.Sprintf("claim %s/%s is reserved for pod %s, which does not exist",
					claims[i].Namespace, claims[i].Name, consumer.Name))
			}
		}
	}
	return lost
}
