package allocationcheck

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ask is a request, or one of its subrequests.
type ask struct {
	// request is the name of the request, name that of the result: main, or
	// main/sub.
	request, name string
	class         string
	mode          resourceapi.DeviceAllocationMode
	count         int64
	selectors     []resourceapi.DeviceSelector
	tolerations   []resourceapi.DeviceToleration
	capacity      map[resourceapi.QualifiedName]resource.Quantity
	derived       []resourceapi.DeviceDerivedAttribute
	// adminSet tells that the field is there, whatever its value.
	admin, adminSet bool
}

func asksOf(request *resourceapi.DeviceRequest) []*ask {
	if e := request.Exactly; e != nil {
		return []*ask{{
			request: request.Name, name: request.Name, class: e.DeviceClassName, mode: e.AllocationMode, count: e.Count,
			selectors: e.Selectors, tolerations: e.Tolerations, capacity: amounts(e.Capacity), derived: e.DerivedAttributes,
			admin: e.AdminAccess != nil && *e.AdminAccess, adminSet: e.AdminAccess != nil,
		}}
	}
	var asks []*ask
	for _, sub := range request.FirstAvailable {
		asks = append(asks, &ask{
			request: request.Name, name: request.Name + "/" + sub.Name, class: sub.DeviceClassName, mode: sub.AllocationMode, count: sub.Count,
			selectors: sub.Selectors, tolerations: sub.Tolerations, capacity: amounts(sub.Capacity), derived: sub.DerivedAttributes,
		})
	}
	return asks
}

func amounts(capacity *resourceapi.CapacityRequirements) map[resourceapi.QualifiedName]resource.Quantity {
	if capacity == nil {
		return nil
	}
	return capacity.Requests
}

// coveredBy tells whether a list of requests in a constraint or configuration
// means the ask; an empty list means all.
func (a *ask) coveredBy(requests []string) bool {
	return len(requests) == 0 || slices.Contains(requests, a.request) || slices.Contains(requests, a.name)
}
