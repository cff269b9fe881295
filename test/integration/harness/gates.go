package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// alphaGates are on everywhere: they add fields to the API, and change nothing
// for objects that do not use them.
var alphaGates = map[string]bool{
	"DRADerivedAttributes":         true,
	"DRADeviceCompatibilityGroups": true,
	"DRAListTypeAttributes":        true,
	"DRAOptionalNodeOperations":    true,
}

// GateOn tells whether a feature gate that is off by default is on for all
// components.
func GateOn(name string) bool { return alphaGates[name] }

// gatesFlag is how a component is told about them.
func gatesFlag() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(alphaGates)) {
		texts = append(texts, fmt.Sprintf("%s=%t", name, alphaGates[name]))
	}
	return "--feature-gates=" + strings.Join(texts, ",")
}
