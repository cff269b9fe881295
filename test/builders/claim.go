package builders

import (
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Namespace is where claims and pods are.
const Namespace = "default"

// ClaimBuilder builds a ResourceClaim.
type ClaimBuilder struct{ claim resourceapi.ResourceClaim }

// Claim starts a claim that asks for nothing. Its UID is derived from the name.
func Claim(name string, requests ...AnyRequest) *ClaimBuilder {
	b := &ClaimBuilder{claim: resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-of-" + name)},
	}}
	return b.Requests(requests...)
}

// Requests adds requests.
func (b *ClaimBuilder) Requests(requests ...AnyRequest) *ClaimBuilder {
	for _, request := range requests {
		b.claim.Spec.Devices.Requests = append(b.claim.Spec.Devices.Requests, request.Obj())
	}
	return b
}

// MatchAttribute wants devices with the same value; without requests it covers
// all of them.
func (b *ClaimBuilder) MatchAttribute(attribute string, requests ...string) *ClaimBuilder {
	return b.constraint(resourceapi.DeviceConstraint{
		Requests: requests, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
}

// DistinctAttribute wants devices with different values; without requests it
// covers all of them.
func (b *ClaimBuilder) DistinctAttribute(attribute string, requests ...string) *ClaimBuilder {
	return b.constraint(resourceapi.DeviceConstraint{
		Requests: requests, DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
}

func (b *ClaimBuilder) constraint(constraint resourceapi.DeviceConstraint) *ClaimBuilder {
	b.claim.Spec.Devices.Constraints = append(b.claim.Spec.Devices.Constraints, constraint)
	return b
}

// Config adds a configuration for a driver; without requests it is for all of
// them.
func (b *ClaimBuilder) Config(driver, parameters string, requests ...string) *ClaimBuilder {
	b.claim.Spec.Devices.Config = append(b.claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{
		Requests: requests, DeviceConfiguration: Config(driver, parameters),
	})
	return b
}

// Holding makes the claim an allocated one that holds devices of a pool.
func (b *ClaimBuilder) Holding(driver, pool string, devices ...string) *ClaimBuilder {
	if b.claim.Status.Allocation == nil {
		b.claim.Status.Allocation = &resourceapi.AllocationResult{}
	}
	results := &b.claim.Status.Allocation.Devices.Results
	for _, name := range devices {
		*results = append(*results, resourceapi.DeviceRequestAllocationResult{
			Request: "request", Driver: driver, Pool: pool, Device: name,
		})
	}
	return b
}

// With changes the claim in a way that is too rare for a method of its own.
func (b *ClaimBuilder) With(change func(*resourceapi.ResourceClaim)) *ClaimBuilder {
	change(&b.claim)
	return b
}

// Obj returns the claim. Each call returns a new copy.
func (b *ClaimBuilder) Obj() *resourceapi.ResourceClaim { return b.claim.DeepCopy() }
