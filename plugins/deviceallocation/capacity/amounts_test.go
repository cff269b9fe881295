package capacity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
)

func TestFits(t *testing.T) {
	offered := capacities{"a": unlimited("10"), "b": unlimited("1Gi"), "c": unlimited("0")}
	for name, tc := range map[string]struct {
		used, demand quantities
		short        resourceapi.QualifiedName
	}{
		"unused":                                {demand: quantities{"a": "10", "b": "1Gi", "c": "0"}},
		"next to others, exactly":               {used: quantities{"a": "9999m", "b": "1073741823"}, demand: quantities{"a": "1m", "b": "1"}},
		"a little too much":                     {used: quantities{"a": "9999m"}, demand: quantities{"a": "1000001n"}, short: "a"},
		"too much alone":                        {demand: quantities{"a": "11"}, short: "a"},
		"the first by name":                     {demand: quantities{"a": "10", "b": "2Gi", "c": "1"}, short: "b"},
		"nothing of nothing":                    {used: quantities{"c": "0"}, demand: quantities{"c": "0"}},
		"something of nothing":                  {demand: quantities{"c": "1n"}, short: "c"},
		"held of what the device has no longer": {used: quantities{"gone": "1e30"}, demand: quantities{"a": "10"}},
		"held from before it had the capacity":  {used: quantities{}, demand: quantities{"a": "10"}},
		"overdrawn, demand elsewhere":           {used: quantities{"a": "11"}, demand: quantities{"b": "1"}, short: "a"},
		"overdrawn, demand of zero":             {used: quantities{"a": "11"}, demand: quantities{"a": "0"}, short: "a"},
		"absurd":                                {used: quantities{"a": "1e1000000000"}, demand: quantities{"a": "0"}, short: "a"},
		"an absurd zero":                        {used: quantities{"a": "0e1000000000"}, demand: quantities{"a": "10"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // maps are ranged over in another order each time
				ok, short := capacity.Fits(shareable(offered), amountsOf(tc.used), amountsOf(tc.demand))
				if ok != (tc.short == "") || short != tc.short {
					t.Fatalf("got %t, short of %q, want %q", ok, short, tc.short)
				}
			}
		})
	}
	if ok, short := capacity.Fits(shareable(nil), nil, nil); !ok {
		t.Errorf("nothing does not fit a device without capacities, which is short of %q", short)
	}
}

func TestSums(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b, sum, difference quantities
	}{
		"nothing": {sum: quantities{}, difference: quantities{}},
		"names of one": {
			a: quantities{"a": "1", "b": "2"}, b: quantities{"b": "3", "c": "4"},
			sum: quantities{"a": "1", "b": "5", "c": "4"}, difference: quantities{"a": "1", "b": "-1", "c": "-4"},
		},
		"zero":     {a: quantities{"a": "1Gi"}, b: quantities{"a": "1073741824"}, sum: quantities{"a": "2Gi"}, difference: quantities{}},
		"no limit": {a: quantities{"a": "9223372036854775807"}, b: quantities{"a": "1n"}, sum: quantities{"a": "9223372036854775807000000001n"}, difference: quantities{"a": "9223372036854775806999999999n"}},
		"absurd":   {a: quantities{"a": "1"}, b: quantities{"a": "1e1000000000"}, sum: quantities{"a": "1" + zeros(99) + "1"}, difference: quantities{"a": "-" + nines(100)}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := amountsOf(tc.a), amountsOf(tc.b)
			if diff := cmp.Diff(amountsOf(tc.sum), a.Add(b)); diff != "" {
				t.Errorf("sum (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(amountsOf(tc.difference), a.Sub(b)); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(amountsOf(tc.a), a); diff != "" {
				t.Errorf("the first amounts have changed:\n%s", diff)
			}
			if diff := cmp.Diff(amountsOf(tc.b), b); diff != "" {
				t.Errorf("the second amounts have changed:\n%s", diff)
			}
			// What goes away leaves what was there before.
			if diff := cmp.Diff(a.Add(nil).Sub(nil), a.Add(b).Sub(b)); diff != "" {
				t.Errorf("added and subtracted (-want +got):\n%s", diff)
			}
		})
	}
}

func zeros(n int) string { return repeat('0', n) }

func nines(n int) string { return repeat('9', n) }

func repeat(digit byte, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = digit
	}
	return string(text)
}
