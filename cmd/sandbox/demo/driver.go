package demo

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// attach does for the simulated hardware what the driver of devices on a fabric
// does: once a claim has such a device, it attaches the device and reports the
// binding conditions of the device as true, in the status of the claim. It
// returns what it has attached. A claim that somebody else has written meanwhile
// has to wait for the next look.
func (s *Stage) attach(ctx context.Context, namespace string) ([]DeviceID, error) {
	claims, err := s.client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims in %s: %w", namespace, err)
	}
	var attached []DeviceID
	for i := range claims.Items {
		claim := &claims.Items[i]
		ready := reports(claim)
		if len(ready) == 0 {
			continue
		}
		claim.Status.Devices = append(claim.Status.Devices, ready...)
		_, err := s.client.ResourceV1().ResourceClaims(namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{FieldManager: fieldManager})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return attached, fmt.Errorf("report attached devices in claim %s: %w", claim.Name, err)
		}
		for _, device := range ready {
			attached = append(attached, DeviceID{device.Driver, device.Pool, device.Device})
		}
	}
	return attached, nil
}

// reports returns the status of the claim's devices with binding conditions of
// which nothing has been reported.
func reports(claim *resourcev1.ResourceClaim) []resourcev1.AllocatedDeviceStatus {
	if claim.Status.Allocation == nil {
		return nil
	}
	var ready []resourcev1.AllocatedDeviceStatus
	for _, result := range claim.Status.Allocation.Devices.Results {
		reported := slices.ContainsFunc(claim.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
			return d.Driver == result.Driver && d.Pool == result.Pool && d.Device == result.Device
		})
		if reported || len(result.BindingConditions) == 0 {
			continue
		}
		status := resourcev1.AllocatedDeviceStatus{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
		for _, condition := range result.BindingConditions {
			status.Conditions = append(status.Conditions, metav1.Condition{
				Type: condition, Status: metav1.ConditionTrue, Reason: "Attached", LastTransitionTime: metav1.Now(),
			})
		}
		ready = append(ready, status)
	}
	return ready
}
