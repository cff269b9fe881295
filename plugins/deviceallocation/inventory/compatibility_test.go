package inventory

import (
	"fmt"
	"testing"
)

// TestCompatibility adds devices in every order: what is admitted afterwards
// must not depend on it.
func TestCompatibility(t *testing.T) {
	for name, tc := range map[string]struct {
		devices [][]string
		// admits has the answers for no groups, then for a, b and c alone.
		admits [4]bool
	}{
		"no device":                    {admits: [4]bool{true, true, true, true}},
		"one without groups":           {devices: [][]string{nil}, admits: [4]bool{true, false, false, false}},
		"an empty list is none":        {devices: [][]string{{}, nil}, admits: [4]bool{true, false, false, false}},
		"one group":                    {devices: [][]string{{"a"}}, admits: [4]bool{false, true, false, false}},
		"two groups":                   {devices: [][]string{{"a", "b"}}, admits: [4]bool{false, true, true, false}},
		"common group":                 {devices: [][]string{{"a", "b"}, {"b", "c"}}, admits: [4]bool{false, false, true, false}},
		"the same twice":               {devices: [][]string{{"a", "b"}, {"b", "a"}}, admits: [4]bool{false, true, true, false}},
		"held against the rules":       {devices: [][]string{{"a"}, {"b"}}},
		"with and without":             {devices: [][]string{{"a"}, nil}},
		"pairwise but not all at once": {devices: [][]string{{"a", "b"}, {"b", "c"}, {"a", "c"}}},
		"against the rules, and more":  {devices: [][]string{{"a"}, {"b"}, {"a", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			numbers := make([]event, len(tc.devices))
			permutations(numbers, func(order []int, _ []event) {
				var c Compatibility
				for _, i := range order {
					c = c.Add(tc.devices[i])
				}
				got := [4]bool{c.Admits(nil), c.Admits([]string{"a"}), c.Admits([]string{"b"}), c.Admits([]string{"c"})}
				if got != tc.admits {
					t.Errorf("order %v: admits %v, want %v", order, got, tc.admits)
				}
				if c.Empty() != (len(tc.devices) == 0) {
					t.Errorf("empty: %v", c.Empty())
				}
			})
		})
	}
	// Several groups of one device are alternatives.
	if fmt.Sprint(Compatibility{}.Add([]string{"a"}).Admits([]string{"x", "a"})) != "true" {
		t.Error("a device with two groups is refused although one of them suits")
	}
}
