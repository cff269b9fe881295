package result

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// MaxConfigs is the number of configurations that the API server accepts in an
// allocation.
const MaxConfigs = 64

// TooManyConfigsError says that an allocation would hold more configurations
// than the API server accepts, counting those of classes and of the claim.
type TooManyConfigsError struct {
	Claim   string
	Configs int
}

// Error names the claim and the remedy.
func (e *TooManyConfigsError) Error() string {
	return fmt.Sprintf("claim %s: %d configurations of classes and claim together, at most %d are possible: use fewer classes or configurations",
		e.Claim, e.Configs, MaxConfigs)
}

// Build returns one allocation per claim of the problem, which a solution on
// the named node satisfies. The results share nothing with their sources that
// a caller could change by accident, except opaque parameters, which are
// read-only everywhere.
//
// newShareID makes a different ID with each call, for the devices that are
// shared; the API wants UUIDs.
func Build(p *problem.Problem, s *allocator.Solution, nodeName string, newShareID func() types.UID) ([]resourceapi.AllocationResult, error) {
	results := make([]resourceapi.AllocationResult, len(p.Claims))
	ranks := s.Ranks
	for c := range p.Claims {
		claim := &p.Claims[c]
		taken := make([]*problem.Alternative, len(claim.Requests))
		for r := range claim.Requests {
			taken[r] = claim.Requests[r].Alternatives[ranks[r]]
		}
		ranks = ranks[len(claim.Requests):]
		configs := configsOf(claim, taken)
		if len(configs) > MaxConfigs {
			return nil, &TooManyConfigsError{Claim: claim.Object.Name, Configs: len(configs)}
		}
		selector, err := nodeSelector(s.Claims[c], nodeName)
		if err != nil {
			return nil, fmt.Errorf("build allocation of claim %s: %w", claim.Object.Name, err)
		}
		devices, err := devices(p, s.Claims[c], newShareID)
		if err != nil {
			return nil, fmt.Errorf("build allocation of claim %s: %w", claim.Object.Name, err)
		}
		results[c] = resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{
				Results: devices,
				Config:  configs,
			},
			NodeSelector: selector,
		}
	}
	return results, nil
}

func devices(p *problem.Problem, picks []allocator.Pick, newShareID func() types.UID) ([]resourceapi.DeviceRequestAllocationResult, error) {
	results := make([]resourceapi.DeviceRequestAllocationResult, len(picks))
	for i, pick := range picks {
		alternative, spec := p.Alternatives[pick.Alternative], pick.Device.Spec
		results[i] = resourceapi.DeviceRequestAllocationResult{
			Request: alternative.Name,
			Driver:  pick.Device.ID.Driver.Value(),
			Pool:    pick.Device.ID.Pool.Value(),
			Device:  pick.Device.ID.Device.Value(),
			// Eviction decides by the tolerations in the result, not by those in
			// the request.
			Tolerations:        slices.Clone(alternative.Tolerations),
			SkipNodeOperations: slices.Clone(pick.Device.SkipNodeOperations),
		}
		if alternative.Admin {
			results[i].AdminAccess = ptr.To(true)
		}
		if p.Features.BindingConditions {
			results[i].BindingConditions = slices.Clone(spec.BindingConditions)
			results[i].BindingFailureConditions = slices.Clone(spec.BindingFailureConditions)
		}
		if !pick.Device.AllowMultiple {
			continue
		}
		consumed, err := capacity.Demand(spec, alternative.Capacity, p.Features.FractionalCapacityRange)
		if err != nil {
			return nil, fmt.Errorf("share of device %s: %w", pick.Device.ID, err)
		}
		results[i].ShareID = ptr.To(newShareID())
		if len(consumed) > 0 {
			results[i].ConsumedCapacity = consumed
		}
	}
	return results, nil
}
