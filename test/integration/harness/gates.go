package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// gates are the feature gates of Kubernetes 1.37 that are off by default and
// whose fields API server and controller manager keep for the tests all the
// same. Schedulers have their defaults: a test of such a feature replaces the
// shared one by one with SchedulerOptions.FeatureGates.
var gates = map[string]bool{
	"DRADerivedAttributes":         true,
	"DRADeviceCompatibilityGroups": true,
	"DRAListTypeAttributes":        true,
	"DRAOptionalNodeOperations":    true,
	"DRAWorkloadResourceClaims":    true,
	"GenericWorkload":              true, // DRAWorkloadResourceClaims needs it
}

// gateFlag is the flag that sets gates, or nothing.
func gateFlag(gates map[string]bool) []string {
	if len(gates) == 0 {
		return nil
	}
	var set []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		set = append(set, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return []string{"--feature-gates=" + strings.Join(set, ",")}
}
