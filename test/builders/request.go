package builders

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// RequestBuilder builds an exact request or a subrequest, which can ask for
// almost the same.
type RequestBuilder struct {
	name string
	ask  resourceapi.ExactDeviceRequest
}

// Request starts a request, or a subrequest of FirstAvailable, for one device
// of a class.
func Request(name, class string) *RequestBuilder {
	return &RequestBuilder{name: name, ask: resourceapi.ExactDeviceRequest{
		DeviceClassName: class,
		AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
		Count:           1,
	}}
}

// Count sets the number of devices.
func (b *RequestBuilder) Count(count int64) *RequestBuilder {
	b.ask.Count = count
	return b
}

// All asks for all matching devices.
func (b *RequestBuilder) All() *RequestBuilder {
	b.ask.AllocationMode, b.ask.Count = resourceapi.DeviceAllocationModeAll, 0
	return b
}

// Admin asks for administrators' access. Subrequests cannot have it.
func (b *RequestBuilder) Admin() *RequestBuilder {
	b.ask.AdminAccess = ptr.To(true)
	return b
}

// Select adds CEL expressions.
func (b *RequestBuilder) Select(expressions ...string) *RequestBuilder {
	b.ask.Selectors = append(b.ask.Selectors, selectors(expressions)...)
	return b
}

// Tolerate tolerates all taints with a key, of any effect.
func (b *RequestBuilder) Tolerate(key string) *RequestBuilder {
	b.ask.Tolerations = append(b.ask.Tolerations,
		resourceapi.DeviceToleration{Key: key, Operator: resourceapi.DeviceTolerationOpExists})
	return b
}

// Capacity asks for an amount of a capacity of each device.
func (b *RequestBuilder) Capacity(name, quantity string) *RequestBuilder {
	if b.ask.Capacity == nil {
		b.ask.Capacity = &resourceapi.CapacityRequirements{Requests: make(map[resourceapi.QualifiedName]resource.Quantity)}
	}
	b.ask.Capacity.Requests[resourceapi.QualifiedName(name)] = resource.MustParse(quantity)
	return b
}

// Derive defines an attribute by a CEL expression.
func (b *RequestBuilder) Derive(name, expression string) *RequestBuilder {
	b.ask.DerivedAttributes = append(b.ask.DerivedAttributes,
		resourceapi.DeviceDerivedAttribute{Name: resourceapi.FullyQualifiedName(name), Expression: expression})
	return b
}

// With changes the request in a way that is too rare for a method of its own.
func (b *RequestBuilder) With(change func(*resourceapi.ExactDeviceRequest)) *RequestBuilder {
	change(&b.ask)
	return b
}

// Obj returns the request.
func (b *RequestBuilder) Obj() resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: b.name, Exactly: b.ask.DeepCopy()}
}

func (b *RequestBuilder) subrequest() resourceapi.DeviceSubRequest {
	if b.ask.AdminAccess != nil {
		panic("subrequest " + b.name + ": the API has no adminAccess for subrequests")
	}
	ask := b.ask.DeepCopy()
	return resourceapi.DeviceSubRequest{
		Name:              b.name,
		DeviceClassName:   ask.DeviceClassName,
		Selectors:         ask.Selectors,
		AllocationMode:    ask.AllocationMode,
		Count:             ask.Count,
		Tolerations:       ask.Tolerations,
		Capacity:          ask.Capacity,
		DerivedAttributes: ask.DerivedAttributes,
	}
}

// AnyRequest is what a claim can contain.
type AnyRequest interface {
	Obj() resourceapi.DeviceRequest
}

type prioritized resourceapi.DeviceRequest

func (p prioritized) Obj() resourceapi.DeviceRequest {
	request := resourceapi.DeviceRequest(p)
	return *request.DeepCopy()
}

// FirstAvailable returns a request for the first possible subrequest.
func FirstAvailable(name string, subrequests ...*RequestBuilder) AnyRequest {
	request := prioritized{Name: name}
	for _, b := range subrequests {
		request.FirstAvailable = append(request.FirstAvailable, b.subrequest())
	}
	return request
}
