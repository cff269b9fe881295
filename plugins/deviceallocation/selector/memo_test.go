package selector_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestMemoisedVerdicts compares verdicts from memory with fresh evaluations:
// the analysis of what an expression reads must never find too little.
// PROPERTY_SEED chooses where to start.
func TestMemoisedVerdicts(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("PROPERTY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(120) {
		g := &generator{rand.New(rand.NewPCG(seed+i, 0))}
		text := g.boolean(3)
		expression := selector.NewCompiler(features).Compile(text)
		if err := expression.Err(); err != nil {
			t.Fatalf("PROPERTY_SEED=%d: %s does not compile: %v", seed+i, text, err)
		}
		// Fresh evaluations use the stock package directly.
		program := cel.GetCompiler(features).CompileCELExpression(text, cel.Options{DisableCostEstimation: true})
		for range 60 {
			d := g.device()
			want, _, wantErr := program.DeviceMatches(context.Background(), cel.Device{
				Driver: d.ID.Driver.Value(), Attributes: d.Spec.Attributes, Capacity: d.Spec.Capacity})
			got, err := expression.Matches(context.Background(), d)
			if got != want || (err == nil) != (wantErr == nil) || err != nil && !strings.Contains(err.Error(), wantErr.Error()) {
				t.Fatalf("PROPERTY_SEED=%d: %s\nverdict %t, %v\nfresh   %t, %v\nfor %v", seed+i, text, got, err, want, wantErr, d.Spec)
			}
		}
	}
}

type generator struct{ *rand.Rand }

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// device has few names and values, so that many devices look alike.
func (g *generator) device() *device.Device {
	b := builders.Device("d")
	for _, name := range []string{"a", "b", "x.example.com/a", "y.example.com/b"} {
		switch g.IntN(4) {
		case 0:
			b.Attribute(name, g.IntN(2))
		case 1:
			b.Attribute(name, g.pick("0", "1"))
		}
	}
	for _, name := range []string{"c", "x.example.com/c"} {
		if g.IntN(2) == 0 {
			b.Capacity(name, g.pick("1", "1Ki", "1024"))
		}
	}
	// A bare name and the same name in full would be two values of one thing.
	return deviceOf(g.pick("z.example.com", "w.example.com"), b)
}

func (g *generator) domain() string {
	return g.pick("x.example.com", "y.example.com", "z.example.com", "w.example.com")
}

// boolean makes up an expression that compiles; it may fail for some devices.
func (g *generator) boolean(depth int) string {
	if depth == 0 {
		return g.leaf()
	}
	sub := func() string { return g.boolean(depth - 1) }
	switch g.IntN(8) {
	case 0:
		return fmt.Sprintf("(%s && %s)", sub(), sub())
	case 1:
		return fmt.Sprintf("(%s || %s)", sub(), sub())
	case 2:
		return fmt.Sprintf("!(%s)", sub())
	case 3:
		return fmt.Sprintf("(%s ? %s : %s)", sub(), sub(), sub())
	case 4:
		return fmt.Sprintf("cel.bind(m%d, %s, %s && m%d.size() >= 0)", depth, g.mapping(), g.onMap(fmt.Sprintf("m%d", depth)), depth)
	case 5:
		return fmt.Sprintf("cel.bind(v%d, %s, v%d || %s)", depth, sub(), depth, sub())
	case 6:
		return fmt.Sprintf(`["a", "b"].%s(k%d, k%d in %s || %s)`, g.pick("all", "exists"), depth, depth, g.mapping(), sub())
	default:
		return g.leaf()
	}
}

// mapping denotes the attributes of a domain in several ways.
func (g *generator) mapping() string {
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf(`(device.driver == %q ? device.attributes[%q] : device.attributes[%q])`, g.domain(), g.domain(), g.domain())
	case 1:
		return fmt.Sprintf(`cel.bind(all, device.attributes, all[%q])`, g.domain())
	default:
		return fmt.Sprintf(`device.attributes[%q]`, g.domain())
	}
}

func (g *generator) onMap(m string) string {
	name := g.pick("a", "b")
	switch g.IntN(5) {
	case 0:
		return fmt.Sprintf("has(%s.%s)", m, name)
	case 1:
		return fmt.Sprintf("%s.?%s.orValue(0) == %d", m, name, g.IntN(2))
	case 2:
		return fmt.Sprintf("%q in %s", name, m)
	case 3:
		return fmt.Sprintf("%s.exists(k, k == %q)", m, name)
	default:
		return fmt.Sprintf("%s[%q] == %d", m, name, g.IntN(2))
	}
}

func (g *generator) leaf() string {
	switch g.IntN(8) {
	case 6:
		return fmt.Sprintf(`device.attributes[?%q].hasValue()`, g.domain())
	case 7:
		return fmt.Sprintf(`device.attributes[?%q].?%s.orValue(0) == 1`, g.domain(), g.pick("a", "b"))
	case 0:
		return fmt.Sprintf("device.driver == %q", g.domain())
	case 1:
		return fmt.Sprintf(`device.capacity[%q].c.compareTo(quantity("1Ki")) == 0`, g.domain())
	case 2:
		return fmt.Sprintf(`has(device.capacity[%q].c)`, g.domain())
	case 3:
		return fmt.Sprintf(`device.attributes[%q][?%q].hasValue()`, g.domain(), g.pick("a", "b"))
	default:
		return g.onMap(g.mapping())
	}
}

// FuzzCompile feeds hostile expressions: whatever they are, the answer is a
// verdict or an error, for a device with attributes and for one without.
func FuzzCompile(f *testing.F) {
	for seed := range uint64(20) {
		g := &generator{rand.New(rand.NewPCG(seed, 0))}
		f.Add(g.boolean(2))
	}
	for _, text := range []string{"", "device", "device.attributes", "device[0]", "device.attributes[1].a", "has(device.x)", "{}.a", "[][0]",
		"cel.bind(device, 1, device == 1)", "device.attributes.all(device, device.a)", `"` + strings.Repeat("(", 300), "\x00", "dyn(device).a.b.c"} {
		f.Add(text)
	}
	devices := []*device.Device{deviceOf("z.example.com", builders.Device("d")), deviceOf(driver, a100())}
	f.Fuzz(func(t *testing.T, text string) {
		expression := selector.NewCompiler(features).Compile(text)
		for _, d := range devices {
			first, err := expression.Matches(context.Background(), d)
			second, errAgain := expression.Matches(context.Background(), d)
			if first != second || (err == nil) != (errAgain == nil) {
				t.Errorf("%q: %t, %v and then %t, %v", text, first, err, second, errAgain)
			}
		}
	})
}
