package deviceallocation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// candidate is a device that a request may have.
type candidate struct {
	id     device.ID
	device *resourceapi.Device
}

// fits tries all devices for a pod that has one claim with one simple request
// for partitions or ports. It asks neither ledger nor inventory. It returns a
// node where the pod fits, or nothing.
func (s *simulation) fits(pod *corev1.Pod) string {
	claim := s.onlyClaim(pod)
	if claim == nil || len(claim.Spec.Devices.Requests) != 1 || len(claim.Spec.Devices.Constraints) > 0 {
		return ""
	}
	request := claim.Spec.Devices.Requests[0].Exactly
	if request == nil || request.AllocationMode != resourceapi.DeviceAllocationModeExactCount {
		return ""
	}
	class, err := s.client.ResourceV1().DeviceClasses().Get(s.T.Context(), request.DeviceClassName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	s.must(err)
	for _, node := range s.allNodes() {
		found := s.candidates(node.Name, class, request)
		if len(found) < int(request.Count) {
			continue
		}
		if request.AdminAccess != nil && *request.AdminAccess || s.anyFit(found, int(request.Count), request) {
			return node.Name
		}
	}
	return ""
}

// onlyClaim returns the claim of a pod that needs devices for just one.
func (s *simulation) onlyClaim(pod *corev1.Pod) *resourceapi.ResourceClaim {
	if len(pod.Spec.ResourceClaims) != 1 || len(pod.Spec.Containers) > 0 {
		return nil
	}
	name := pod.Spec.ResourceClaims[0].ResourceClaimName
	if name == nil {
		if len(pod.Status.ResourceClaimStatuses) == 0 {
			return nil
		}
		name = pod.Status.ResourceClaimStatuses[0].ResourceClaimName
	}
	claim := s.lookUp(*name)
	if claim == nil || claim.DeletionTimestamp != nil || claim.Status.Allocation != nil {
		return nil
	}
	return claim
}

// candidates are the devices on a node that suit a request, held or not.
func (s *simulation) candidates(node string, class *resourceapi.DeviceClass, request *resourceapi.ExactDeviceRequest) []candidate {
	wanted := classDrivers[class.Name]
	if wanted != partitionDriver && wanted != portDriver {
		return nil
	}
	rules, err := s.client.ResourceV1().DeviceTaintRules().List(s.T.Context(), metav1.ListOptions{})
	s.must(err)
	published := s.allSlices()
	var found []candidate
	for _, pool := range s.pools {
		if pool.driver != wanted || pool.local && pool.name != node || slices.ContainsFunc(rules.Items, func(r resourceapi.DeviceTaintRule) bool {
			return *r.Spec.DeviceSelector.Driver == pool.driver && *r.Spec.DeviceSelector.Pool == pool.name
		}) {
			continue
		}
		parts := newest(published, device.NewID(pool.driver, pool.name, "").PoolID())
		if len(parts) == 0 || len(parts) != int(parts[0].Spec.Pool.ResourceSliceCount) {
			continue
		}
		for _, slice := range parts {
			for i := range slice.Spec.Devices {
				if d := &slice.Spec.Devices[i]; suits(d, class, request) {
					found = append(found, candidate{device.NewID(pool.driver, pool.name, d.Name), d})
				}
			}
		}
	}
	return found
}

// suits evaluates the few selectors and the one toleration of the simulation.
func suits(d *resourceapi.Device, class *resourceapi.DeviceClass, request *resourceapi.ExactDeviceRequest) bool {
	if len(d.Taints) > 0 && len(request.Tolerations) == 0 || len(class.Spec.Selectors) > 1 && *d.Attributes["model"].StringValue != "a" {
		return false
	}
	for _, selector := range request.Selectors {
		size := d.Attributes["size"].StringValue
		if size == nil || selector.CEL.Expression != ofSize(*size) {
			return false
		}
	}
	return true
}

// anyFit tries all sets of n candidates. Two shares of a port for one request
// are not tried.
func (s *simulation) anyFit(found []candidate, n int, request *resourceapi.ExactDeviceRequest) bool {
	held := make(map[device.ID][]*resourceapi.DeviceRequestAllocationResult)
	for _, claim := range s.allClaims() {
		collect(held, claim.Status.Allocation)
	}
	found = slices.DeleteFunc(found, func(c candidate) bool { return !leaves(c.device, held[c.id], request) })
	charged := s.charged()
	published := s.allSlices()
	var choose func(from, left int) bool
	choose = func(from, left int) bool {
		if left == 0 {
			return s.within(charged, published)
		}
		for at := from; at < len(found); at++ {
			c := found[at]
			before, had := charged[c.id]
			charged[c.id] = consumed(c.device, c.id.PoolID())
			if choose(at+1, left-1) {
				return true
			}
			if delete(charged, c.id); had {
				charged[c.id] = before
			}
		}
		return false
	}
	return choose(0, n)
}

// leaves tells whether a device is free, or has a large enough share left.
func leaves(d *resourceapi.Device, held []*resourceapi.DeviceRequestAllocationResult, request *resourceapi.ExactDeviceRequest) bool {
	if !capacity.Shareable(d) {
		return len(held) == 0
	}
	used := shareOf(request.Capacity)
	for _, result := range held {
		if result.ShareID == nil {
			return false
		}
		quantity := result.ConsumedCapacity["bandwidth"]
		used += quantity.Value()
	}
	return used <= portBandwidth
}

// within tells whether nothing is overdrawn. If something is, because of another
// scheduler or of what was forgotten, no device of any pool counts as free: what
// is right then is up to tests of the allocator.
func (s *simulation) within(charged map[device.ID]amounts, published []*resourceapi.ResourceSlice) bool {
	sum := total(charged)
	pools := make(map[device.PoolID]bool)
	for key := range maps.Keys(sum) {
		pools[key.pool] = true
	}
	for id := range pools {
		available := totals(published, id)
		for key, amount := range sum {
			if key.pool == id && amount > available[key] {
				return false
			}
		}
	}
	return true
}
