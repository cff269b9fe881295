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

const driver = "gpu.example.com"

var features = cel.Features{EnableConsumableCapacity: true}

func deviceOf(driver string, d *builders.DeviceBuilder) *device.Device {
	return device.New(builders.Slice(driver, "pool").Devices(d).Obj(), 0, nil, device.AllFeatures())
}

// a100 has attributes in bare and in full notation.
func a100() *builders.DeviceBuilder {
	return builders.Device("gpu-0").
		Attribute("model", "a100").Attribute("cores", 7).Attribute("ecc", true).
		Attribute("version", builders.Version("1.10.0")).
		Attribute("example.com/numa", 1).
		Capacity("memory", "80Gi").Capacity("example.com/bandwidth", "100M")
}

func TestMatches(t *testing.T) {
	cases := map[string]struct {
		expression string
		device     *builders.DeviceBuilder
		want       bool
		err        string
	}{
		"driver":                    {expression: `device.driver == "gpu.example.com"`, want: true},
		"bare attribute":            {expression: `device.attributes["gpu.example.com"].model == "a100"`, want: true},
		"attribute by index":        {expression: `device.attributes["gpu.example.com"]["model"] == "a100"`, want: true},
		"attribute in full":         {expression: `device.attributes["example.com"].numa == 1`, want: true},
		"other value":               {expression: `device.attributes["gpu.example.com"].cores > 7`, want: false},
		"boolean":                   {expression: `device.attributes["gpu.example.com"].ecc`, want: true},
		"has":                       {expression: `has(device.attributes["gpu.example.com"].model)`, want: true},
		"has not":                   {expression: `has(device.attributes["gpu.example.com"].speed)`, want: false},
		"has in an unknown domain":  {expression: `has(device.attributes["other.example.com"].model)`, want: false},
		"optional chaining":         {expression: `device.attributes["gpu.example.com"].?speed.orValue(3) == 3`, want: true},
		"optional index":            {expression: `device.attributes["gpu.example.com"][?"model"].orValue("") == "a100"`, want: true},
		"in a domain":               {expression: `"model" in device.attributes["gpu.example.com"]`, want: true},
		"not in a domain":           {expression: `"speed" in device.attributes["gpu.example.com"]`, want: false},
		"in a list":                 {expression: `device.attributes["gpu.example.com"].model in ["h100", "a100"]`, want: true},
		"bound attribute":           {expression: `cel.bind(m, device.attributes["gpu.example.com"].model, m == "a100" || m == "h100")`, want: true},
		"bound domain":              {expression: `cel.bind(a, device.attributes["gpu.example.com"], a.model == "a100" && a.cores == 7)`, want: true},
		"comprehension":             {expression: `device.attributes["gpu.example.com"].exists(name, name.startsWith("mod"))`, want: true},
		"comprehension over values": {expression: `["h100", "a100"].exists(m, device.attributes["gpu.example.com"].model == m)`, want: true},
		"computed key":              {expression: `device.attributes["gpu." + "example.com"].model == "a100"`, want: true},
		"capacity":                  {expression: `device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0`, want: true},
		"too little capacity":       {expression: `device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("80Gi"))`, want: false},
		"capacity in full":          {expression: `device.capacity["example.com"].bandwidth == quantity("100M")`, want: true},
		"newer version":             {expression: `device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.9.0"))`, want: true},
		"shared device":             {expression: `device.allowMultipleAllocations`, want: false},
		"missing attribute":         {expression: `device.attributes["gpu.example.com"].speed == 1`, err: "no such key: speed"},
		"attribute of another type": {expression: `device.attributes["gpu.example.com"].model > 1`, err: "no such overload"},
		"missing attribute that does not matter": {
			expression: `device.driver == "gpu.example.com" || device.attributes["gpu.example.com"].speed == 1`, want: true},
		"attribute without a value": {
			expression: "true", device: a100().With(func(d *resourceapi.Device) { d.Attributes["odd"] = resourceapi.DeviceAttribute{} }),
			err: "attribute odd: has no value of a known type"},
		"version that is none": {
			expression: "true", device: a100().Attribute("odd", builders.Version("v1")), err: `attribute odd: "v1" is not a semantic version`},
		"not CEL":            {expression: `device.`, err: "Syntax error"},
		"unknown variable":   {expression: `node.name == ""`, err: "undeclared reference"},
		"not a boolean":      {expression: `device.driver`, err: "must evaluate to bool"},
		"cost without limit": {expression: `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))`, err: "cost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.device == nil {
				tc.device = a100()
			}
			expression := selector.NewCompiler(features).Compile(tc.expression)
			for range 2 { // the second answer comes from memory
				got, err := expression.Matches(context.Background(), deviceOf(driver, tc.device))
				if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Errorf("verdict %t, error %v, want %t, %q", got, err, tc.want, tc.err)
				}
			}
		})
	}
}

func TestVerdictsBelongToTheDevice(t *testing.T) {
	// Each pair differs in nothing but what the expression reads indirectly.
	cases := map[string]struct {
		expression string
		yes, no    *device.Device
	}{
		"bare names belong to the driver": {
			`device.attributes["gpu.example.com"].?model.orValue("") == "a100"`,
			deviceOf(driver, builders.Device("d").Attribute("model", "a100")),
			deviceOf("nic.example.com", builders.Device("d").Attribute("model", "a100")),
		},
		"whole map": {
			`size(device.attributes["gpu.example.com"]) == 1`,
			deviceOf(driver, builders.Device("d").Attribute("a", 1)),
			deviceOf(driver, builders.Device("d").Attribute("a", 1).Attribute("b", 1)),
		},
		"type": {
			`type(device.attributes["gpu.example.com"].a) == int`,
			deviceOf(driver, builders.Device("d").Attribute("a", 1)),
			deviceOf(driver, builders.Device("d").Attribute("a", "1")),
		},
		"bound domains": {
			`cel.bind(d, device.attributes, d[?"example.com"].hasValue())`,
			deviceOf(driver, builders.Device("d").Attribute("example.com/numa", 1)),
			deviceOf(driver, builders.Device("d")),
		},
		"chosen domain": {
			`(device.driver == "x" ? device.attributes["a.example.com"] : device.attributes["b.example.com"]).?v.orValue(0) == 1`,
			deviceOf(driver, builders.Device("d").Attribute("b.example.com/v", 1)),
			deviceOf(driver, builders.Device("d").Attribute("b.example.com/v", 2)),
		},
		"optional map": {
			`device.attributes["example.com"].?numa.optMap(n, n == 1).orValue(false)`,
			deviceOf(driver, builders.Device("d").Attribute("example.com/numa", 1)),
			deviceOf(driver, builders.Device("d").Attribute("example.com/numa", 2)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, order := range [][]*device.Device{{tc.yes, tc.no}, {tc.no, tc.yes}} {
				expression := selector.NewCompiler(features).Compile(tc.expression)
				for _, d := range order {
					if got, err := expression.Matches(context.Background(), d); err != nil || got != (d == tc.yes) {
						t.Errorf("verdict %t, error %v for the device that gets %t", got, err, d == tc.yes)
					}
				}
			}
		})
	}
}

func TestOneMalformedListSpoilsNoOtherDevice(t *testing.T) {
	expression := selector.NewCompiler(features).Compile(`device.driver == "gpu.example.com"`)
	odd := deviceOf(driver, builders.Device("odd").With(func(d *resourceapi.Device) {
		d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"versions": {VersionValues: []string{"v1"}}}
	}))
	if _, err := expression.Matches(context.Background(), odd); err == nil {
		t.Error("no error for a version that is none")
	}
	if got, err := expression.Matches(context.Background(), deviceOf(driver, builders.Device("sound"))); err != nil || !got {
		t.Errorf("verdict %t, error %v for a sound device", got, err)
	}
}

func TestInterruptedEvaluationsAreForgotten(t *testing.T) {
	// Long enough for the evaluator to look at its context.
	expression := selector.NewCompiler(features).Compile(
		`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, a+b+c > 0)))`)
	stop := errors.New("enough nodes found")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	d := deviceOf(driver, a100())
	if got, err := expression.Matches(ctx, d); !errors.Is(err, stop) {
		t.Errorf("verdict %t, error %v, want the context's cause", got, err)
	}
	if got, err := expression.Matches(context.Background(), d); err != nil || !got {
		t.Errorf("verdict %t, error %v afterwards, want true", got, err)
	}
}

// TestVerdictsAreRemembered makes sure that the second device of a model costs
// a look-up: evaluating an expression allocates, remembering does not.
func TestVerdictsAreRemembered(t *testing.T) {
	expression := selector.NewCompiler(features).Compile(
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "a100"`)
	first, second := deviceOf(driver, a100()), deviceOf(driver, a100().Attribute("uuid", "another"))
	if got, err := expression.Matches(context.Background(), first); err != nil || !got {
		t.Fatalf("verdict %t, error %v, want true", got, err)
	}
	// The key may escape to the heap.
	if n := testing.AllocsPerRun(100, func() { _, _ = expression.Matches(context.Background(), second) }); n > 1 {
		t.Errorf("%v allocations for a verdict that is known", n)
	}
}
