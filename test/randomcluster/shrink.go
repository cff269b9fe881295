package randomcluster

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
)

// Shrink takes away from a cluster what is not needed for it to fail: claims,
// requests, devices, what they consume and so on, one after the other, until
// nothing more can go. fails must not change its argument.
func Shrink(s *allocationcheck.Situation, fails func(*allocationcheck.Situation) bool) *allocationcheck.Situation {
	for {
		smaller := false
		for i := 0; ; i++ {
			candidate := s.DeepCopy()
			if !removeNth(candidate, i) {
				break
			}
			if fails(candidate) {
				s, smaller = candidate, true
				i-- // what followed has taken the place of what was removed
			}
		}
		if !smaller {
			return s
		}
	}
}

// removal counts down to the part that is to go.
type removal struct{ left int }

// removeNth removes the n-th of all parts of a cluster; false means that there
// are not so many.
func removeNth(s *allocationcheck.Situation, n int) bool {
	r := &removal{n}
	if from(r, &s.Claims) || from(r, &s.Held) {
		return true
	}
	for _, claim := range s.Claims {
		if r.claim(claim) {
			return true
		}
	}
	for i, slice := range s.Slices {
		if r.take() {
			s.Slices = slices.Delete(s.Slices, i, i+1)
			for _, other := range s.Slices {
				if other.Spec.Driver == slice.Spec.Driver && other.Spec.Pool.Name == slice.Spec.Pool.Name {
					other.Spec.Pool.ResourceSliceCount--
				}
			}
			return true
		}
		if r.slice(slice) {
			return true
		}
	}
	return false
}

// take tells whether it is the turn of the next part.
func (r *removal) take() bool {
	r.left--
	return r.left == -1
}

func from[T any](r *removal, list *[]T) bool {
	for i := range *list {
		if r.take() {
			*list = slices.Delete(*list, i, i+1)
			return true
		}
	}
	return false
}

// clearField makes a field of a struct empty; one that is empty does not count.
func clearField[T any](r *removal, field **T) bool {
	if *field == nil || !r.take() {
		return false
	}
	*field = nil
	return true
}

func key[K ~string, V any](r *removal, entries map[K]V) bool {
	var names []K
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if r.take() {
			delete(entries, name)
			return true
		}
	}
	return false
}

func (r *removal) claim(claim *resourceapi.ResourceClaim) bool {
	devices := &claim.Spec.Devices
	if from(r, &devices.Config) || from(r, &devices.Constraints) || len(devices.Requests) > 1 && from(r, &devices.Requests) {
		return true
	}
	for i := range devices.Requests {
		request := &devices.Requests[i]
		if e := request.Exactly; e != nil {
			if clearField(r, &e.Capacity) || clearField(r, &e.AdminAccess) || from(r, &e.Selectors) || from(r, &e.Tolerations) ||
				from(r, &e.DerivedAttributes) || fewer(r, &e.Count) {
				return true
			}
		}
		if len(request.FirstAvailable) > 1 && from(r, &request.FirstAvailable) {
			return true
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			if clearField(r, &sub.Capacity) || from(r, &sub.Selectors) || from(r, &sub.Tolerations) ||
				from(r, &sub.DerivedAttributes) || fewer(r, &sub.Count) {
				return true
			}
		}
	}
	return false
}

func fewer(r *removal, count *int64) bool {
	if *count < 2 || !r.take() {
		return false
	}
	*count--
	return true
}

func (r *removal) slice(slice *resourceapi.ResourceSlice) bool {
	if from(r, &slice.Spec.Devices) || from(r, &slice.Spec.SkipNodeOperations) {
		return true
	}
	for i := range slice.Spec.Devices {
		d := &slice.Spec.Devices[i]
		if key(r, d.Attributes) || key(r, d.Capacity) || from(r, &d.Taints) || from(r, &d.ConsumesCounters) ||
			clearField(r, &d.AllowMultipleAllocations) || clearField(r, &d.BindsToNode) ||
			from(r, &d.BindingConditions) || from(r, &d.BindingFailureConditions) {
			return true
		}
		for j := range d.ConsumesCounters {
			if from(r, &d.ConsumesCounters[j].CompatibilityGroups) || key(r, d.ConsumesCounters[j].Counters) {
				return true
			}
		}
	}
	return false
}
