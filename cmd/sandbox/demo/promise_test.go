package demo

import (
	"strings"
	"testing"
)

// A promise that is not understood would never be checked.
func TestDecodeExpectationRefuses(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"nothing":             {"placements: []", "nothing is promised"},
		"unknown field":       {"placements:\n- pod: a\n  node: n1", `unknown field "node"`},
		"unknown inner field": {"placements:\n- pod: a\n  devices:\n  - requests: gpu", `unknown field "requests"`},
		"repeated field":      {"placements:\n- pod: a\n  pod: b", `"pod" already set`},
		"no pod":              {"placements:\n- pending: true", "placements[0] (pod \"\"): pod: is missing"},
		"count of one name":   {"placements:\n- {pod: a, count: 2}", "set prefix"},
		"negative count":      {"placements:\n- {pod: a, count: -1}", "count: -1 is negative"},
		"pending on a node":   {"placements:\n- {pod: a, pending: true, nodes: [n]}", "remove one or the other"},
		"pending, same":       {"placements:\n- {pod: a, pending: true, sameForAll: x}", "remove one or the other"},
		"pending, no text":    {"placements:\n- {pod: a, pending: true}", "conditionContains: is missing"},
		"text, not pending":   {"placements:\n- {pod: a, conditionContains: [x]}", "is for pods with pending: true"},
		"no devices":          {"placements:\n- {pod: a, nodes: [n]}", "both are needed"},
		"bad pattern":         {"placements:\n- {pod: a, nodes: ['['], devices: [{request: r, driver: d}]}", "syntax error in pattern"},
		"no driver":           {"placements:\n- {pod: a, nodes: [n], devices: [{request: r}]}", "devices[0]: request and driver are needed"},
		"half a sameAs":       {"placements:\n- {pod: a, nodes: [n], devices: [{request: r, driver: d, sameAs: {request: q}}]}", "devices[0].sameAs"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := decodeExpectation([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}
