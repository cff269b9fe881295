package capacity_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
)

const (
	plain  = resource.DecimalSI
	binary = resource.BinarySI
)

// TestRounding: what is taken of one capacity, on a device that can be shared.
func TestRounding(t *testing.T) {
	for name, tc := range map[string]struct {
		offered    resourceapi.DeviceCapacity
		request    string // empty for none
		fractional bool
		want       string
		format     resource.Format
		why        capacity.Why // of a Misfit
		invalid    capacity.Why // of an InvalidError
	}{
		"no policy, no request: everything":     {offered: unlimited("80Gi"), want: "80Gi", format: binary},
		"no policy: as requested":               {offered: unlimited("80Gi"), request: "1", want: "1", format: plain},
		"no policy: zero":                       {offered: unlimited("80Gi"), request: "0", want: "0", format: plain},
		"no policy: all there is":               {offered: unlimited("80Gi"), request: "80Gi", want: "80Gi", format: binary},
		"no policy: too much":                   {offered: unlimited("80Gi"), request: "81Gi", why: capacity.AboveValue},
		"no policy: a fraction":                 {offered: unlimited("1"), request: "1n", want: "1n", format: plain},
		"no policy: negative":                   {offered: unlimited("1"), request: "-1", invalid: capacity.Negative},
		"no policy: more than an int64":         {offered: unlimited("1e30"), request: "1e29", want: "100e27", format: resource.DecimalExponent},
		"no policy: an absurd request":          {offered: unlimited("1"), request: "1e1000000000", invalid: capacity.NotRepresentable},
		"no policy: an absurd zero":             {offered: unlimited("1"), request: "0e1000000000", invalid: capacity.NotRepresentable},
		"no policy: an absurd value":            {offered: unlimited("1e1000000000"), request: "1", why: capacity.Malformed},
		"no policy: a negative value":           {offered: unlimited("-1"), invalid: capacity.Negative},
		"default":                               {offered: ranged("80Gi", "4Gi", "1Gi", "", ""), want: "4Gi", format: binary},
		"default without range or values":       {offered: listed("80Gi", "4Gi"), want: "4Gi", format: binary},
		"default is above the value":            {offered: ranged("80Gi", "81Gi", "1Gi", "", ""), why: capacity.AboveValue},
		"default off the steps":                 {offered: ranged("10", "2", "1", "", "2"), want: "2", format: plain},
		"default off the steps, too long":       {offered: ranged("1e19", "1000000000000000002", "1", "", "2"), why: capacity.AgainstPolicy},
		"default above the maximum":             {offered: ranged("10", "9", "1", "8", ""), want: "9", format: plain},
		"request of such a default":             {offered: ranged("10", "9", "1", "8", ""), request: "9", want: "9", format: plain},
		"the same, written in another way":      {offered: ranged("10", "9", "1", "8", ""), request: "9e0", why: capacity.AgainstPolicy},
		"no default: everything":                {offered: ranged("10", "", "1", "", ""), want: "10", format: plain},
		"no default: everything is too much":    {offered: ranged("10", "", "1", "8", ""), why: capacity.AgainstPolicy},
		"neither range nor values":              {offered: listed("10", "5"), request: "3", want: "3", format: plain},
		"range: below the minimum":              {offered: ranged("10Gi", "1Gi", "1Gi", "", ""), request: "1", want: "1Gi", format: binary},
		"range: negative becomes the minimum":   {offered: ranged("10", "2", "2", "", ""), request: "-1", want: "2", format: plain},
		"range: negative minimum":               {offered: ranged("10", "2", "-2", "", ""), request: "-3", invalid: capacity.Negative},
		"range: above the minimum":              {offered: ranged("10Gi", "1Gi", "1Gi", "", ""), request: "1073741825", want: "1073741825", format: plain},
		"range: at the maximum":                 {offered: ranged("10", "1", "1", "8", ""), request: "8", want: "8", format: plain},
		"range: above the maximum":              {offered: ranged("10", "1", "1", "8", ""), request: "8001m", why: capacity.AgainstPolicy},
		"range: above the value, no maximum":    {offered: ranged("10", "1", "1", "", ""), request: "11", why: capacity.AboveValue},
		"range: maximum without a minimum":      {offered: ranged("10", "1", "", "8", ""), request: "9", why: capacity.AgainstPolicy},
		"steps: on one":                         {offered: ranged("10Gi", "2Gi", "2Gi", "", "2Gi"), request: "4Gi", want: "4Gi", format: binary},
		"steps: between two":                    {offered: ranged("10Gi", "2Gi", "2Gi", "", "2Gi"), request: "4294967297", want: "6Gi", format: binary},
		"steps: counted from the minimum":       {offered: ranged("20", "3", "3", "", "5"), request: "9", want: "13", format: plain},
		"steps: in the step's format":           {offered: ranged("10Gi", "1Gi", "1Gi", "", "1e9"), request: "2Gi", want: "3073741824", format: resource.DecimalExponent},
		"steps: rounded above the maximum":      {offered: ranged("10", "2", "2", "8", "4"), request: "7", why: capacity.AgainstPolicy},
		"steps: rounded above the value":        {offered: ranged("9", "2", "2", "", "4"), request: "7", why: capacity.AboveValue},
		"steps: whole numbers":                  {offered: ranged("10", "1", "1", "", "1"), request: "2500m", want: "3", format: plain},
		"steps: whole numbers, fractional":      {offered: ranged("10", "1", "1", "", "1"), request: "2500m", fractional: true, want: "3", format: plain},
		"steps: fractions round up":             {offered: ranged("10", "500m", "500m", "", "500m"), request: "1200m", want: "2", format: plain},
		"steps: fractions count":                {offered: ranged("10", "500m", "500m", "", "500m"), request: "1200m", fractional: true, want: "1500m", format: plain},
		"steps: fractions to a whole number":    {offered: ranged("10", "500m", "500m", "", "500m"), request: "1600m", fractional: true, want: "2", format: plain},
		"steps: a whole number is no default":   {offered: ranged("10", "9000m", "1", "8", "1"), request: "9", fractional: true, why: capacity.AgainstPolicy},
		"steps: finer than fractions":           {offered: ranged("10", "1", "1", "", "1"), request: "1500u", fractional: true, want: "1", format: plain},
		"steps: finer, above the minimum":       {offered: ranged("10", "1", "1", "", "1"), request: "1000500u", fractional: true, invalid: capacity.NotRepresentable},
		"steps: finer, whole numbers":           {offered: ranged("10", "1", "1", "", "1"), request: "1000500u", want: "2", format: plain},
		"steps: finer bounds count as whole":    {offered: ranged("10", "1500u", "1500u", "", "500m"), request: "1200m", fractional: true, want: "2", format: plain},
		"steps: the maximum decides too":        {offered: ranged("10", "500m", "500m", "9999999n", "500m"), request: "1200m", fractional: true, why: capacity.AgainstPolicy},
		"steps: largest request":                {offered: ranged("1e30", "1", "1", "", "1"), request: "9223372036854775807", want: "9223372036854775807", format: plain},
		"steps: one more":                       {offered: ranged("1e30", "1", "1", "", "1"), request: "9223372036854775808", invalid: capacity.NotRepresentable},
		"steps: a fraction more":                {offered: ranged("1e30", "1", "1", "", "1"), request: "9223372036854775807.5", invalid: capacity.NotRepresentable},
		"steps: rounded to one more":            {offered: ranged("1e30", "0", "0", "", "2"), request: "9223372036854775807", invalid: capacity.NotRepresentable},
		"steps: largest, fractional":            {offered: ranged("1e30", "1", "1", "", "1"), request: "9223372036854775", fractional: true, want: "9223372036854775", format: plain},
		"steps: one more, fractional":           {offered: ranged("1e30", "1", "1", "", "1"), request: "9223372036854776", fractional: true, invalid: capacity.NotRepresentable},
		"steps: rounded to more, fractional":    {offered: ranged("1e30", "1m", "1m", "", "1"), request: "9223372036854775500m", fractional: true, invalid: capacity.NotRepresentable},
		"steps: bounds too large for fractions": {offered: ranged("1e30", "1", "1", "1e18", "1"), request: "9223372036854776", fractional: true, want: "9223372036854776", format: plain},
		"steps: minimum beyond int64":           {offered: ranged("1e30", "1e20", "1e20", "", "1"), request: "1e20", invalid: capacity.NotRepresentable},
		"steps: from a negative minimum":        {offered: ranged("1e30", "1", "-1", "", "9223372036854775807"), request: "9223372036854775806", want: "9223372036854775806", format: plain},
		"steps: no minimum":                     {offered: ranged("10", "1", "", "", "1"), request: "2", why: capacity.Malformed},
		"steps: no minimum, nor needed":         {offered: ranged("10", "1", "", "", "1"), want: "1", format: plain},
		"steps: of zero":                        {offered: ranged("10", "1", "1", "", "0"), request: "2", why: capacity.Malformed},
		"steps: of zero, everything":            {offered: ranged("10", "", "1", "", "0"), why: capacity.Malformed},
		"steps: negative":                       {offered: ranged("10", "1", "1", "", "-1"), request: "2", why: capacity.Malformed},
		"steps: beyond int64":                   {offered: ranged("1e30", "1", "1", "", "1e20"), request: "2", why: capacity.Malformed},
		"steps: absurd":                         {offered: ranged("10", "1", "1", "", "1e1000000000"), request: "2", why: capacity.Malformed},
		"values: the next one":                  {offered: listed("80Gi", "10Gi", "10Gi", "20Gi", "40Gi"), request: "11Gi", want: "20Gi", format: binary},
		"values: one of them":                   {offered: listed("80Gi", "10Gi", "10Gi", "20Gi", "40Gi"), request: "21474836480", want: "20Gi", format: binary},
		"values: above all":                     {offered: listed("80Gi", "10Gi", "10Gi", "20Gi", "40Gi"), request: "41Gi", why: capacity.AgainstPolicy},
		"values: negative becomes the least":    {offered: listed("80Gi", "10Gi", "10Gi", "20Gi"), request: "-1", want: "10Gi", format: binary},
		"values: above the value":               {offered: listed("30", "10", "10", "40"), request: "20", why: capacity.AboveValue},
		"values: the default is none":           {offered: listed("30", "15", "10", "20"), want: "15", format: plain},
		"values: everything is none":            {offered: listed("30", "", "10", "20"), why: capacity.AgainstPolicy},
		"values: absurd":                        {offered: listed("30", "10", "10", "1e1000000000"), request: "10", why: capacity.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			var asked *resourceapi.CapacityRequirements
			if tc.request != "" {
				asked = requests(quantities{"c": tc.request})
			}
			device := shareable(capacities{"c": tc.offered})
			before := device.DeepCopy()
			got, err := capacity.Demand(device, asked, tc.fractional)
			if diff := cmp.Diff(before, device); diff != "" {
				t.Errorf("the device has changed:\n%s", diff)
			}
			checkError(t, err, tc.why, tc.invalid)
			if err != nil {
				return
			}
			want := map[resourceapi.QualifiedName]written{"c": {Text: tc.want, Format: tc.format}}
			if diff := cmp.Diff(want, writtenOf(got)); diff != "" {
				t.Errorf("amounts (-want +got):\n%s", diff)
			}
		})
	}
}

func checkError(t *testing.T, err error, why, invalid capacity.Why) {
	t.Helper()
	var misfit *capacity.Misfit
	var fatal *capacity.InvalidError
	errors.As(err, &misfit)
	errors.As(err, &fatal)
	switch {
	case why != "" && (misfit == nil || misfit.Why != why):
		t.Errorf("got %v, want a misfit because it %s", err, why)
	case invalid != "" && (fatal == nil || fatal.Why != invalid):
		t.Errorf("got %v, want an invalid request because it %s", err, invalid)
	case why == "" && invalid == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	}
}

func TestDemand(t *testing.T) {
	offered := capacities{"a/memory": unlimited("80Gi"), "b/share": ranged("100", "10", "10", "50", "10")}
	for name, tc := range map[string]struct {
		device   *resourceapi.Device
		requests *resourceapi.CapacityRequirements
		want     map[resourceapi.QualifiedName]written
		err      error
	}{
		"shareable: every capacity has an entry": {
			device:   shareable(offered),
			requests: requests(quantities{"b/share": "11"}),
			want:     map[resourceapi.QualifiedName]written{"a/memory": {"80Gi", binary}, "b/share": {"20", plain}},
		},
		"shareable: empty requests": {
			device:   shareable(offered),
			requests: &resourceapi.CapacityRequirements{},
			want:     map[resourceapi.QualifiedName]written{"a/memory": {"80Gi", binary}, "b/share": {"10", plain}},
		},
		"shareable: no capacity": {device: shareable(nil), want: map[resourceapi.QualifiedName]written{}},
		"exclusive: enough":      {device: exclusive(capacities{"a": unlimited("10")}), requests: requests(quantities{"a": "10"})},
		"exclusive: explicitly": {
			device: &resourceapi.Device{AllowMultipleAllocations: ptr.To(false), Capacity: capacities{"a": unlimited("10")}},
		},
		"exclusive: no capacity": {device: exclusive(nil)},
		"exclusive: too little": {
			device:   exclusive(capacities{"a": unlimited("10"), "b": unlimited("1")}),
			requests: requests(quantities{"a": "11", "b": "1"}),
			err:      &capacity.Misfit{Capacity: "a", Needed: resource.MustParse("11"), Offered: resource.MustParse("10"), Why: capacity.AboveValue},
		},
		"exclusive: policies count too": {
			device:   exclusive(capacities{"a": ranged("100", "10", "10", "50", "10")}),
			requests: requests(quantities{"a": "51"}),
			err:      &capacity.Misfit{Capacity: "a", Needed: resource.MustParse("60"), Offered: resource.MustParse("100"), Why: capacity.AgainstPolicy},
		},
		"exclusive: negative": {
			device:   exclusive(capacities{"a": unlimited("10")}),
			requests: requests(quantities{"a": "-1"}),
			err:      &capacity.InvalidError{Capacity: "a", Amount: resource.MustParse("-1"), Why: capacity.Negative},
		},
		"exclusive: a negative value": {
			device: exclusive(capacities{"a": unlimited("-10")}),
			err:    &capacity.InvalidError{Capacity: "a", Amount: resource.MustParse("-10"), Why: capacity.Negative},
		},
		"a missing capacity comes before all": {
			device:   shareable(capacities{"a": unlimited("10"), "b": unlimited("-1")}),
			requests: requests(quantities{"a": "11", "y": "2", "x": "1"}),
			err:      &capacity.Misfit{Capacity: "x", Needed: resource.MustParse("1"), Why: capacity.NotOffered},
		},
		"names are compared as they are": {
			device:   shareable(capacities{"memory": unlimited("10")}),
			requests: requests(quantities{"gpu.example.com/memory": "1"}),
			err:      &capacity.Misfit{Capacity: "gpu.example.com/memory", Needed: resource.MustParse("1"), Why: capacity.NotOffered},
		},
		"what makes no sense comes before what does not suit": {
			device:   shareable(capacities{"a": unlimited("10"), "b": unlimited("10"), "c": unlimited("10"), "d": unlimited("10")}),
			requests: requests(quantities{"a": "11", "b": "12", "c": "-1", "d": "-2"}),
			err:      &capacity.InvalidError{Capacity: "c", Amount: resource.MustParse("-1"), Why: capacity.Negative},
		},
		"what makes no sense comes before what is malformed": {
			device:   shareable(capacities{"a": ranged("10", "", "", "", "1"), "b": unlimited("10")}),
			requests: requests(quantities{"b": "-1"}),
			err:      &capacity.InvalidError{Capacity: "b", Amount: resource.MustParse("-1"), Why: capacity.Negative},
		},
		"the first of several by name": {
			device:   shareable(capacities{"a": unlimited("10"), "b": ranged("10", "1", "1", "5", ""), "c": unlimited("10"), "d": unlimited("10")}),
			requests: requests(quantities{"b": "6", "c": "12", "d": "13"}),
			err:      &capacity.Misfit{Capacity: "b", Needed: resource.MustParse("6"), Offered: resource.MustParse("10"), Why: capacity.AgainstPolicy},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // maps are ranged over in another order each time
				got, err := capacity.Demand(tc.device, tc.requests, false)
				if diff := cmp.Diff(tc.err, err); diff != "" {
					t.Fatalf("error (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.want, writtenOf(got)); diff != "" {
					t.Fatalf("amounts (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestDemandOwnsItsResult: quantities with many digits are pointers inside.
func TestDemandOwnsItsResult(t *testing.T) {
	const long = "12345678901234567890"
	device := shareable(capacities{"a": unlimited(long), "b": ranged("1e30", long, "1", "", "")})
	asked := requests(quantities{"b": long})
	before, askedBefore := device.DeepCopy(), asked.DeepCopy()
	for _, r := range []*resourceapi.CapacityRequirements{nil, asked} {
		amounts, err := capacity.Demand(device, r, true)
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		for _, amount := range amounts {
			amount.Add(amount)
		}
	}
	if diff := cmp.Diff(before, device); diff != "" {
		t.Errorf("the device has changed:\n%s", diff)
	}
	if diff := cmp.Diff(askedBefore, asked); diff != "" {
		t.Errorf("the requests have changed:\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	for want, err := range map[string]error{
		"capacity a is smaller than what is requested: 11 of 10": &capacity.Misfit{
			Capacity: "a", Needed: resource.MustParse("11"), Offered: resource.MustParse("10"), Why: capacity.AboveValue,
		},
		"capacity a would be consumed in a negative amount: -1": &capacity.InvalidError{
			Capacity: "a", Amount: resource.MustParse("-1"), Why: capacity.Negative,
		},
		"capacity a is requested in an amount that cannot be represented: a number of more than 100 digits": &capacity.InvalidError{
			Capacity: "a", Amount: resource.MustParse("1e1000000000"), Why: capacity.NotRepresentable,
		},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
