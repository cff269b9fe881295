package reason_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/reason"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
)

var update = flag.Bool("update", false, "rewrite the expected decisions in testdata")

// TestGolden takes the objects of a cluster, as YAML, through the whole core:
// what is decided for the pending claims on each node, in the words that a user
// reads. The text on top of each file says why the case is there.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) != 2 || archive.Files[0].Name != "objects.yaml" || archive.Files[1].Name != "decision" {
				t.Fatalf("want the files objects.yaml and decision, got %d files", len(archive.Files))
			}
			if len(bytes.TrimSpace(archive.Comment)) == 0 {
				t.Error("the case does not say why it is there")
			}
			c := load(t, archive.Files[0].Data)
			got := c.decide(t)
			if again := load(t, archive.Files[0].Data).reversed().decide(t); again != got {
				t.Errorf("the order of events matters (-first +reversed):\n%s", cmp.Diff(got, again))
			}
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

// scenario has the objects of a case, sorted by kind in the order of the file.
type scenario struct {
	nodes   []*corev1.Node
	slices  []*resourceapi.ResourceSlice
	rules   []*resourceapi.DeviceTaintRule
	classes map[string]*resourceapi.DeviceClass
	held    []*resourceapi.ResourceClaim
	pending []*resourceapi.ResourceClaim
}

func load(t *testing.T, content []byte) *scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, resourceapi.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	c := &scenario{classes: make(map[string]*resourceapi.DeviceClass)}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("document %d: %v", n, err)
		}
		identify(object.(metav1.Object), n)
		c.add(t, object)
	}
}

// identify gives an object what the API server would.
func identify(object metav1.Object, n int) {
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", n)))
	object.SetResourceVersion(fmt.Sprint(n))
}

func (c *scenario) add(t *testing.T, object runtime.Object) {
	t.Helper()
	switch o := object.(type) {
	case *corev1.Node:
		c.nodes = append(c.nodes, o)
	case *resourceapi.ResourceSlice:
		c.slices = append(c.slices, o)
	case *resourceapi.DeviceTaintRule:
		c.rules = append(c.rules, o)
	case *resourceapi.DeviceClass:
		c.classes[o.Name] = o
	case *resourceapi.ResourceClaim:
		if o.Status.Allocation != nil {
			c.held = append(c.held, o)
		} else {
			c.pending = append(c.pending, o)
		}
	default:
		t.Fatalf("object of type %T", object)
	}
}

// reversed changes the order of events, not that of the pod's claims.
func (c *scenario) reversed() *scenario {
	slices.Reverse(c.slices)
	slices.Reverse(c.rules)
	slices.Reverse(c.held)
	return c
}

func (c *scenario) class(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c.classes[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("no class %s", name)
}

// features is everything that is supported, and the one feature that is refused.
var features = func() device.Features {
	features := device.AllFeatures()
	features.NodeAllocatableResources = true
	return features
}()

// decide words what happens on each node.
func (c *scenario) decide(t *testing.T) string {
	t.Helper()
	devices, holders := inventory.New(features), ledger.New()
	for _, rule := range c.rules {
		devices.SetTaintRule(rule)
	}
	for _, slice := range c.slices {
		devices.SetSlice(slice)
	}
	for _, claim := range c.held {
		holders.Observe(claim)
	}
	p, err := problem.Build(c.pending, problem.Source{
		Classes: c.class, Features: features,
		Compiler: selector.NewCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}),
	})
	var refused *problem.RefusedError
	if errors.As(err, &refused) {
		return "pod: " + reason.Refused(refused) + "\n"
	}
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	solutions := make([]*allocator.Solution, len(c.nodes))
	for i, node := range c.nodes {
		snapshot := devices.Snapshot()
		offer := allocator.Node{View: snapshot.Node(node), Usage: holders.Snapshot(snapshot)}
		solution, err := allocator.Solve(context.Background(), p, offer, allocator.Options{Objective: objective.BestFit{}, StepBudget: 1000})
		var rejection *allocator.Rejection
		switch {
		case errors.As(err, &rejection):
			fmt.Fprintf(&text, "%s: %s\n", node.Name, reason.Node(p, rejection))
			if failure := reason.Failure(p, rejection); failure != "" {
				fmt.Fprintf(&text, "  %s\n", failure)
			}
		case err != nil:
			t.Fatal(err)
		default:
			solutions[i] = solution
			c.allocation(t, &text, p, solution, node.Name)
		}
	}
	c.scores(&text, solutions)
	return text.String()
}

func (c *scenario) allocation(t *testing.T, text *strings.Builder, p *problem.Problem, solution *allocator.Solution, node string) {
	t.Helper()
	allocations, err := result.Build(p, solution, node, uuid.NewUUID)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(text, "%s:\n", node)
	for i, allocation := range allocations {
		fmt.Fprintf(text, "  claim %s\n", c.pending[i].Name)
		for _, d := range allocation.Devices.Results {
			fmt.Fprintf(text, "    %s: %s/%s/%s\n", d.Request, d.Driver, d.Pool, d.Device)
		}
		for _, config := range allocation.Devices.Config {
			fmt.Fprintf(text, "    config %s %v: %s\n", config.Source, config.Requests, config.Opaque.Parameters.Raw)
		}
	}
}

func (c *scenario) scores(text *strings.Builder, solutions []*allocator.Solution) {
	var names []string
	var feasible []*allocator.Solution
	for i, solution := range solutions {
		if solution != nil {
			names, feasible = append(names, c.nodes[i].Name), append(feasible, solution)
		}
	}
	if len(feasible) < 2 {
		return
	}
	text.WriteString("scores:")
	for i, score := range objective.Score(feasible, objective.Weights{BestFit: 3, Packing: 1}) {
		fmt.Fprintf(text, " %s %d", names[i], score)
	}
	text.WriteString("\n")
}
