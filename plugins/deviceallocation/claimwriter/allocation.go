package claimwriter

import (
	"bytes"
	"encoding/json"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

// sameAllocation compares two allocations by what they are on the wire. A comparison in memory would tell an
// allocation apart from itself once it has been at the API server: times lose their fractions of a second there, and
// the opaque parameters of a driver their white space.
func sameAllocation(a, b *resourceapi.AllocationResult) (bool, error) {
	if a == nil || b == nil {
		return a == b, nil
	}
	wireA, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode allocation: %w", err)
	}
	wireB, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode allocation: %w", err)
	}
	return bytes.Equal(wireA, wireB), nil
}
