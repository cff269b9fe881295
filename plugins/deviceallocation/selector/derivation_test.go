package selector_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// withLists is the language with list-type attributes.
var withLists = cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}

func TestDerivedAttribute(t *testing.T) {
	cases := map[string]struct {
		expression string
		device     *builders.DeviceBuilder
		want       string // the values
		err        string
	}{
		"a number":             {expression: `device.attributes["gpu.example.com"].cores / 2`, want: "3"},
		"a text":               {expression: `device.attributes["gpu.example.com"].model.upperAscii()`, want: "A100"},
		"a boolean":            {expression: `device.attributes["gpu.example.com"].cores > 3`, want: "true"},
		"a list":               {expression: `[1, 2, 1]`, want: "1 2"},
		"an attribute renamed": {expression: `device.attributes["example.com"].numa`, want: "1"},
		"a missing attribute":  {expression: `device.attributes["gpu.example.com"].speed`, err: "no such key: speed"},
		"a list of all sorts":  {expression: `[dyn(1), dyn("a")]`, err: "expected"},
		"a malformed device": {
			expression: "1", device: a100().With(func(d *resourceapi.Device) { d.Attributes["odd"] = resourceapi.DeviceAttribute{} }),
			err: "attribute odd: has no value of a known type"},
		"not CEL":        {expression: `device.`, err: "Syntax error"},
		"not a value":    {expression: `device`, err: "must evaluate to"},
		"without an end": {expression: `[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10].map(f, a+b+c+d+e+f)))))).size()`, err: "cost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.device == nil {
				tc.device = a100()
			}
			derivation := selector.NewCompiler(withLists).CompileDerivation(tc.expression)
			for range 2 { // the second answer comes from memory
				attribute, err := derivation.Attribute(context.Background(), deviceOf(driver, tc.device))
				if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				var got []string
				for _, value := range device.AppendValues(nil, attribute, true) {
					got = append(got, value.String())
				}
				if strings.Join(got, " ") != tc.want {
					t.Errorf("values %v, want %q", got, tc.want)
				}
			}
		})
	}
}

// TestDerivationsBelongToTheDevice: what is remembered for one device is not
// told of another that differs in what the expression reads.
func TestDerivationsBelongToTheDevice(t *testing.T) {
	derivation := selector.NewCompiler(withLists).CompileDerivation(`device.attributes["gpu.example.com"].cores * 2`)
	for _, cores := range []int{1, 2, 1, 3} {
		attribute, err := derivation.Attribute(context.Background(), deviceOf(driver, a100().Attribute("cores", cores)))
		if err != nil || attribute.IntValue == nil || *attribute.IntValue != int64(2*cores) {
			t.Errorf("%d cores: attribute %v, error %v, want %d", cores, attribute, err, 2*cores)
		}
	}
}

// TestOneTextTwoUses: a text that is a selector and a derived attribute is
// compiled for each of them.
func TestOneTextTwoUses(t *testing.T) {
	compiler := selector.NewCompiler(withLists)
	const text = `device.attributes["gpu.example.com"].cores`
	if err := compiler.CompileDerivation(text).Err(); err != nil {
		t.Errorf("as a derived attribute: %v", err)
	}
	if err := compiler.Compile(`device.driver`).Err(); err == nil {
		t.Error("a text is accepted as a selector")
	}
	if err := compiler.CompileDerivation(`device.driver`).Err(); err != nil {
		t.Errorf("a text is refused as a derived attribute: %v", err)
	}
}

func TestInterruptedDerivationsAreForgotten(t *testing.T) {
	derivation := selector.NewCompiler(withLists).CompileDerivation(
		`[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].all(c, a+b+c > 0)).size()).size()`)
	stop := errors.New("enough nodes found")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	d := deviceOf(driver, a100())
	if attribute, err := derivation.Attribute(ctx, d); !errors.Is(err, stop) {
		t.Errorf("attribute %v, error %v, want the context's cause", attribute, err)
	}
	if attribute, err := derivation.Attribute(context.Background(), d); err != nil || attribute.IntValue == nil || *attribute.IntValue != 10 {
		t.Errorf("attribute %v, error %v afterwards, want 10", attribute, err)
	}
}
