package result

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// configsOf lists the configurations for drivers: those of each class once, in
// the order in which requests name the classes, then those of the claim. taken
// has the alternative of each request.
//
// Which requests an entry is for is left out when it is for all of them.
func configsOf(claim *problem.Claim, taken []*problem.Alternative) []resourceapi.DeviceAllocationConfiguration {
	configs := fromClasses(taken)
	for i := range claim.Object.Spec.Devices.Config {
		config := &claim.Object.Spec.Devices.Config[i]
		if len(config.Requests) > 0 && !slices.ContainsFunc(taken, func(a *problem.Alternative) bool {
			return names(config.Requests, claim, a)
		}) {
			continue
		}
		configs = append(configs, resourceapi.DeviceAllocationConfiguration{
			Source:              resourceapi.AllocationConfigSourceClaim,
			Requests:            slices.Clone(config.Requests),
			DeviceConfiguration: config.DeviceConfiguration,
		})
	}
	for i := range configs {
		forAll := !slices.ContainsFunc(taken, func(a *problem.Alternative) bool {
			return !names(configs[i].Requests, claim, a)
		})
		if forAll {
			configs[i].Requests = nil
		}
	}
	return configs
}

// names tells whether a list of requests means the alternative, either by its
// own name or by that of the request that it belongs to.
func names(requests []string, claim *problem.Claim, a *problem.Alternative) bool {
	return slices.Contains(requests, a.Name) || slices.Contains(requests, claim.Requests[a.Request].Name)
}

func fromClasses(taken []*problem.Alternative) []resourceapi.DeviceAllocationConfiguration {
	var configs []resourceapi.DeviceAllocationConfiguration
	done := make(map[string]bool, len(taken))
	for _, a := range taken {
		if done[a.Class.Name] {
			continue
		}
		done[a.Class.Name] = true
		var requests []string
		for _, other := range taken {
			if other.Class.Name == a.Class.Name {
				requests = append(requests, other.Name)
			}
		}
		for i := range a.Class.Spec.Config {
			configs = append(configs, resourceapi.DeviceAllocationConfiguration{
				Source:              resourceapi.AllocationConfigSourceClass,
				Requests:            slices.Clone(requests),
				DeviceConfiguration: a.Class.Spec.Config[i].DeviceConfiguration,
			})
		}
	}
	return configs
}
