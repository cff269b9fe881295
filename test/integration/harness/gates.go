package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// gates are the feature gates of Kubernetes 1.37 that are off by default and on
// in the cluster of the tests: they add fields to the API, and change nothing for
// objects that do not use them. Schedulers have them as well, unless
// SchedulerOptions.FeatureGates says otherwise.
var gates = map[string]bool{
	"DRADerivedAttributes":            true,
	"DRADeviceCompatibilityGroups":    true,
	"DRAListTypeAttributes":           true,
	"DRAOptionalNodeOperations":       true,
	"DRAWorkloadResourceClaims":       true,
	"GenericWorkload":                 true, // DRAWorkloadResourceClaims needs it
	"TopologyAwareWorkloadScheduling": true,
}

// GateOn tells whether a feature gate that is off by default is on in the
// cluster of the tests.
func GateOn(name string) bool { return gates[name] }

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
