package problem

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// ask is the common part of exact requests and subrequests.
type ask struct {
	name        string
	class       string
	mode        resourceapi.DeviceAllocationMode
	count       int64
	admin       bool
	selectors   []resourceapi.DeviceSelector
	tolerations []resourceapi.DeviceToleration
	capacity    *resourceapi.CapacityRequirements
	derived     []resourceapi.DeviceDerivedAttribute
}

// asksOf lists what would satisfy a request, preferred first.
func asksOf(request *resourceapi.DeviceRequest) ([]ask, *RefusedError) {
	switch {
	case request.Exactly != nil:
		exact := request.Exactly
		return []ask{{
			name:        request.Name,
			class:       exact.DeviceClassName,
			mode:        exact.AllocationMode,
			count:       exact.Count,
			admin:       ptr.Deref(exact.AdminAccess, false),
			selectors:   exact.Selectors,
			tolerations: exact.Tolerations,
			capacity:    exact.Capacity,
			derived:     exact.DerivedAttributes,
		}}, nil
	case len(request.FirstAvailable) > 0:
		asks := make([]ask, len(request.FirstAvailable))
		for i := range request.FirstAvailable {
			sub := &request.FirstAvailable[i]
			asks[i] = ask{
				name:        request.Name + "/" + sub.Name,
				class:       sub.DeviceClassName,
				mode:        sub.AllocationMode,
				count:       sub.Count,
				selectors:   sub.Selectors,
				tolerations: sub.Tolerations,
				capacity:    sub.Capacity,
				derived:     sub.DerivedAttributes,
			}
		}
		return asks, nil
	default:
		return nil, &RefusedError{Cause: UnknownRequestType}
	}
}
