package deviceallocation

import (
	"fmt"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Some devices have to be got ready after they were allocated, such as those
// that are attached to a node through a fabric (KEP-5007). Their drivers report
// in the status of the claim how far they are, in conditions that the device
// names: all binding conditions true means ready, one failure condition true
// means that it will not get ready.

// waitsForDevices tells whether the feature is on. Drivers report in the status
// of the claim's devices, so it takes two gates.
func (pl *Plugin) waitsForDevices() bool { return deviceFeatures(pl.gates).BindingConditions }

// unreadyDevice is an allocated device that no pod can use at present.
type unreadyDevice struct {
	id device.ID
	// failure is the failure condition that is true, or nil.
	failure *metav1.Condition
	// missing is the first binding condition that is not true.
	missing string
}

// hasBindingConditions tells whether pods with the allocation may have to wait.
func hasBindingConditions(allocation *resourceapi.AllocationResult) bool {
	return conditionalDevice(allocation) != nil
}

// conditionalDevice returns the first device that has binding conditions. Failure
// conditions alone are nothing to wait for.
func conditionalDevice(allocation *resourceapi.AllocationResult) *resourceapi.DeviceRequestAllocationResult {
	if allocation == nil {
		return nil
	}
	for i := range allocation.Devices.Results {
		if result := &allocation.Devices.Results[i]; len(result.BindingConditions) > 0 {
			return result
		}
	}
	return nil
}

// unreadyDevices lists the devices of a claim that are not ready, in the order
// of its allocation. A device that has failed counts even if others are just not
// ready yet: waiting for those would be in vain.
func unreadyDevices(claim *resourceapi.ResourceClaim) []unreadyDevice {
	if claim.Status.Allocation == nil {
		return nil
	}
	var unready []unreadyDevice
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if len(result.BindingConditions) == 0 {
			continue
		}
		d := unreadyDevice{id: device.NewID(result.Driver, result.Pool, result.Device)}
		conditions := conditionsOf(claim, result)
		d.failure = firstTrue(conditions, result.BindingFailureConditions)
		d.missing = firstNotTrue(conditions, result.BindingConditions)
		if d.failure != nil || d.missing != "" {
			unready = append(unready, d)
		}
	}
	return unready
}

// conditionsOf finds what the driver reports about a device. A device that is
// shared inside one claim has a status for each share.
func conditionsOf(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) []metav1.Condition {
	for i := range claim.Status.Devices {
		status := &claim.Status.Devices[i]
		if status.Device == result.Device && status.Driver == result.Driver && status.Pool == result.Pool && sameShare(status, result) {
			return status.Conditions
		}
	}
	return nil
}

func sameShare(status *resourceapi.AllocatedDeviceStatus, result *resourceapi.DeviceRequestAllocationResult) bool {
	if status.ShareID == nil || result.ShareID == nil {
		return status.ShareID == nil && result.ShareID == nil
	}
	return *status.ShareID == string(*result.ShareID)
}

func firstTrue(conditions []metav1.Condition, types []string) *metav1.Condition {
	for _, name := range types {
		if c := apimeta.FindStatusCondition(conditions, name); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

func firstNotTrue(conditions []metav1.Condition, types []string) string {
	for _, name := range types {
		if !apimeta.IsStatusConditionTrue(conditions, name) {
			return name
		}
	}
	return ""
}

// bindingError says that devices of a claim will not get ready, or did not in
// time. The pod needs other ones.
type bindingError struct {
	claim string
	// timeout is how long the devices had; 0: one of them has failed.
	timeout time.Duration
	// devices are those to blame, at least one.
	devices []unreadyDevice
}

// Error names the first device to blame, and what its driver says about it.
func (e *bindingError) Error() string {
	first := e.devices[0]
	text := fmt.Sprintf("resourceclaim %s: device %s ", e.claim, first.id)
	if e.timeout > 0 {
		return text + fmt.Sprintf("is not ready after %s (bindingTimeout): condition %s is not true", e.timeout, first.missing)
	}
	return text + fmt.Sprintf("cannot be made ready: condition %s is true (%s)", first.failure.Type, quoteCondition(first.failure))
}

// maxQuoted bounds what a driver can put into the condition of a pod.
const maxQuoted = 256

func quoteCondition(c *metav1.Condition) string {
	line, _, _ := strings.Cut(c.Reason+": "+c.Message, "\n")
	if runes := []rune(line); len(runes) > maxQuoted {
		line = string(runes[:maxQuoted]) + "..."
	}
	return line
}

// bindingTrouble returns an error if no pod should wait for the claim's devices
// any longer: one has failed, or they were not ready at the limit.
func (pl *Plugin) bindingTrouble(claim *resourceapi.ResourceClaim, limit, now time.Time) *bindingError {
	unready := unreadyDevices(claim)
	if len(unready) == 0 {
		return nil
	}
	e := &bindingError{claim: klog.KObj(claim).String()}
	for _, d := range unready {
		if d.failure != nil {
			e.devices = append(e.devices, d)
		}
	}
	if len(e.devices) == 0 {
		if limit.IsZero() || now.Before(limit) {
			return nil
		}
		e.devices, e.timeout = unready, pl.bindingTimeout
	}
	return e
}

// bindingLimit is when the claim's devices must be ready: bindingTimeout counts
// from their allocation, so that it survives the scheduler, and pods that share
// the claim agree about it. An allocation of a scheduler that does not know the
// feature has no time, and the API server allows none to be added: then it is
// zero.
func (pl *Plugin) bindingLimit(claim *resourceapi.ResourceClaim) time.Time {
	if claim.Status.Allocation == nil || claim.Status.Allocation.AllocationTimestamp == nil {
		return time.Time{}
	}
	return claim.Status.Allocation.AllocationTimestamp.Add(pl.bindingTimeout)
}

// checkBinding looks at a claim that has devices already. If they are not ready
// yet, the pod joins those that wait for them, in PreBind. If they will not get
// ready, no pod can use the allocation, and PostFilter takes it back. The error
// is a *claimError.
func (pl *Plugin) checkBinding(c *allocatedClaim) error {
	conditional := conditionalDevice(c.claim.Status.Allocation)
	if conditional == nil {
		return nil
	}
	if !pl.waitsForDevices() {
		return claimErrorf("resourceclaim %s: device %s/%s/%s has %s, and the feature gate DRADeviceBindingConditions is off",
			klog.KObj(c.claim), conditional.Driver, conditional.Pool, conditional.Device, device.BindingConditions)
	}
	now := time.Now()
	if trouble := pl.bindingTrouble(c.claim, pl.bindingLimit(c.claim), now); trouble != nil {
		c.blocked = trouble.Error()
		pl.failed.add(trouble, now.Add(pl.bindingTimeout))
	}
	return nil
}
