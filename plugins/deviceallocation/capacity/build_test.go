package capacity_test

import (
	"os"
	"strconv"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
)

// fromEnvironment reads a number that replays or extends a random test.
func fromEnvironment(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("environment variable %s: %v", variable, err)
	}
	return number
}

type (
	capacities = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
	quantities = map[resourceapi.QualifiedName]string
)

func shareable(offered capacities) *resourceapi.Device {
	return &resourceapi.Device{Name: "nic", AllowMultipleAllocations: ptr.To(true), Capacity: offered}
}

func exclusive(offered capacities) *resourceapi.Device {
	return &resourceapi.Device{Name: "nic", Capacity: offered}
}

func quantity(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

// optional returns nil for an empty text.
func optional(text string) *resource.Quantity {
	if text == "" {
		return nil
	}
	return quantity(text)
}

// unlimited is a capacity without a policy.
func unlimited(value string) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: resource.MustParse(value)}
}

// ranged is a capacity with a range; empty texts leave a bound out.
func ranged(value, otherwise, least, most, step string) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{
		Value: resource.MustParse(value),
		RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default:    optional(otherwise),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: optional(least), Max: optional(most), Step: optional(step)},
		},
	}
}

// listed is a capacity with a list of valid values.
func listed(value, otherwise string, valid ...string) resourceapi.DeviceCapacity {
	policy := &resourceapi.CapacityRequestPolicy{Default: optional(otherwise)}
	for _, v := range valid {
		policy.ValidValues = append(policy.ValidValues, resource.MustParse(v))
	}
	return resourceapi.DeviceCapacity{Value: resource.MustParse(value), RequestPolicy: policy}
}

func requests(amounts quantities) *resourceapi.CapacityRequirements {
	if amounts == nil {
		return nil
	}
	return &resourceapi.CapacityRequirements{Requests: amountsOf(amounts)}
}

func amountsOf(texts quantities) capacity.Amounts {
	if texts == nil {
		return nil
	}
	amounts := make(capacity.Amounts, len(texts))
	for name, text := range texts {
		amounts[name] = resource.MustParse(text)
	}
	return amounts
}

// written is an amount with the format in which it goes into a claim.
type written struct {
	Text   string
	Format resource.Format
}

func writtenOf(amounts map[resourceapi.QualifiedName]resource.Quantity) map[resourceapi.QualifiedName]written {
	if amounts == nil {
		return nil
	}
	texts := make(map[resourceapi.QualifiedName]written, len(amounts))
	for name, amount := range amounts {
		texts[name] = written{Text: amount.String(), Format: amount.Format}
	}
	return texts
}
