package capacity_test

import (
	"errors"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
)

// FuzzDemand: whatever a driver and a user write, there is an answer at once:
// amounts that fit the unused device, or a typed error that can be printed.
func FuzzDemand(f *testing.F) {
	f.Add("10", "1", "1", "8", "1", "1 2 4", "3", true)
	f.Add("80Gi", "1Gi", "1Gi", "", "512Mi", "", "1500Mi", false)
	f.Add("1e1000000000", "1e1000000000", "1e1000000000", "1e1000000000", "1e1000000000", "1e1000000000", "1e1000000000", true)
	f.Add("0e1000000000", "", "0e1000000000", "", "0", "0e1000000000", "0e1000000000", true)
	f.Add("9223372036854775807", "", "-9223372036854775808", "", "9223372036854775807", "", "9223372036854775807", false)
	f.Add("9223372036854775807m", "", "-9223372036854775808m", "", "9223372036854775807m", "", "9223372036854775807m", true)
	f.Add("1n", "-1n", "", "-1", "-1", "-1", "-1n", true)
	f.Fuzz(func(t *testing.T, value, otherwise, least, most, step, valid, request string, fractional bool) {
		offered := resourceapi.DeviceCapacity{RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default:    parsed(otherwise),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: parsed(least), Max: parsed(most), Step: parsed(step)},
		}}
		if v := parsed(value); v != nil {
			offered.Value = *v
		}
		for text := range strings.FieldsSeq(valid) {
			if v := parsed(text); v != nil {
				offered.RequestPolicy.ValidValues = append(offered.RequestPolicy.ValidValues, *v)
			}
		}
		asked := &resourceapi.CapacityRequirements{}
		if r := parsed(request); r != nil {
			asked.Requests = map[resourceapi.QualifiedName]resource.Quantity{"c": *r}
			checkArithmetic(t, *r, offered.Value)
		}
		checkDemand(t, shareable(capacities{"c": offered}), asked, fractional)
		offered.RequestPolicy.ValidRange = nil
		checkDemand(t, shareable(capacities{"c": offered}), asked, fractional)
		offered.RequestPolicy = nil
		checkDemand(t, shareable(capacities{"c": offered}), asked, fractional)
	})
}

// parsed returns nil for what is no quantity. Parsing is the API's: it takes
// forever for 1.1e-1000000000, which never gets as far as a scheduler.
func parsed(text string) *resource.Quantity {
	if strings.Contains(text, "-") && strings.ContainsAny(text, "eE") {
		return nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	return &q
}

func checkDemand(t *testing.T, d *resourceapi.Device, asked *resourceapi.CapacityRequirements, fractional bool) {
	t.Helper()
	demand, err := capacity.Demand(d, asked, fractional)
	if err != nil {
		var misfit *capacity.Misfit
		var invalid *capacity.InvalidError
		if !errors.As(err, &misfit) && !errors.As(err, &invalid) || err.Error() == "" {
			t.Errorf("error without a type or text: %v", err)
		}
		return
	}
	if ok, short := capacity.Fits(d, nil, demand); !ok {
		t.Errorf("demand %v does not fit the unused device: short of %s", writtenOf(demand), short)
	}
	amount := demand["c"]
	if amount.Sign() < 0 {
		t.Errorf("negative demand %v", writtenOf(demand))
	}
	if table := capacity.TableOf(d); !table.Values().Covers(table.VectorOf(demand)) {
		t.Errorf("demand %v does not fit the unused device as a vector", writtenOf(demand))
	}
}

// checkArithmetic: sums and vectors of anything at all.
func checkArithmetic(t *testing.T, a, b resource.Quantity) {
	t.Helper()
	x, y := capacity.Amounts{"c": a}, capacity.Amounts{"c": b}
	if left := x.Add(y).Sub(y).Sub(x); len(left) != 0 {
		t.Errorf("%v is left", writtenOf(left))
	}
	device := shareable(capacities{"c": {Value: b}})
	fits, _ := capacity.Fits(device, nil, x)
	table := capacity.TableOf(device)
	if got := table.Values().Covers(table.VectorOf(x)); got != fits {
		t.Errorf("%v of %v: vectors %t, quantities %t", writtenOf(x), writtenOf(y), got, fits)
	}
}
