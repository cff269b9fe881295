package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"sigs.k8s.io/yaml"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
	"github.com/device-scheduler/device-scheduler/test/randomcluster"
)

// TestSolveAgainstStockAllFeatures compares Solve with kube-scheduler's own
// allocator on random clusters that use everything that there is.
//
// In compatible mode the two must agree device for device. As shipped, Solve
// must find something whenever the stock allocator does. Whatever it finds must
// be sound, which a check decides that knows neither of them. So a cluster
// counts even if the stock allocator gives up, for lack of time or because of an
// error. DIFFERENTIAL_SEED and DIFFERENTIAL_CASES choose which.
func TestSolveAgainstStockAllFeatures(t *testing.T) {
	seed := fromEnvironment(t, "DIFFERENTIAL_SEED", 1)
	cases := fromEnvironment(t, "DIFFERENTIAL_CASES", 500)
	outcomes := make(map[string]int)
	for i := range cases {
		d := &duel{situation: randomcluster.New(seed + i)}
		outcomes[d.run()]++
		for _, problem := range d.problems {
			t.Error(problem)
		}
		if t.Failed() {
			d.situation = randomcluster.Shrink(d.situation, fails)
			t.Fatalf("replay with DIFFERENTIAL_SEED=%d DIFFERENTIAL_CASES=1; enough of it is:\n%s", seed+i, d.describe())
		}
	}
	t.Logf("%d clusters: %v", cases, outcomes)
	if cases >= 500 && (outcomes["allocated"] < int(cases)/5 || outcomes["rejected"] < int(cases)/5) {
		t.Errorf("the generator no longer makes enough feasible and infeasible clusters: %v", outcomes)
	}
}

// duel is one comparison.
type duel struct {
	situation *allocationcheck.Situation
	problems  []string
}

func (d *duel) problem(format string, arguments ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, arguments...))
}

// fails tells whether there are problems with a cluster.
func fails(s *allocationcheck.Situation) bool {
	d := &duel{situation: s}
	d.run()
	return len(d.problems) > 0
}

// answer is what Solve says.
type answer struct {
	refused     error
	rejection   *allocator.Rejection
	allocations []resourceapi.AllocationResult
}

func (a answer) String() string {
	switch {
	case a.refused != nil:
		return fmt.Sprintf("refused: %v", a.refused)
	case a.rejection != nil:
		return fmt.Sprintf("rejected: %v", a.rejection)
	}
	return fmt.Sprintf("allocated: %v", a.allocations)
}

// solve asks Solve, and checks what it finds.
func (d *duel) solve(options allocator.Options) answer {
	var a answer
	p, err := problem.Build(d.situation.Claims, problem.Source{Classes: d.class, Compiler: d.compiler(), Features: d.features()})
	if err != nil {
		a.refused = err
		return a
	}
	solution, err := remembered(p, d.view(), options)
	switch {
	case errors.As(err, &a.rejection):
		return a
	case err != nil:
		d.problem("unexpected error: %v", err)
		return a
	}
	a.allocations, err = result.Build(p, solution, d.situation.Node.Name, newShareIDs())
	if err != nil {
		d.problem("build the result: %v", err)
	}
	for _, problem := range allocationcheck.Check(d.situation, a.allocations) {
		d.problem("compatible mode %t: %s", options.Compatible, problem)
	}
	return a
}

// newShareIDs returns IDs that are unique in one allocation.
func newShareIDs() func() types.UID {
	shares := 0
	return func() types.UID {
		shares++
		return types.UID(fmt.Sprintf("new-share-%d", shares))
	}
}

func (d *duel) class(name string) (*resourceapi.DeviceClass, error) {
	if class := d.situation.Class(name); class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("class %s not found", name)
}

func (d *duel) features() device.Features {
	f := d.situation.Features
	return device.Features{
		AdminAccess: f.AdminAccess, BindingConditions: f.DeviceBindingAndStatus, CompatibilityGroups: f.CompatibilityGroups,
		ConsumableCapacity: f.ConsumableCapacity, DerivedAttributes: f.DerivedAttributes, DeviceTaints: f.DeviceTaints,
		FractionalCapacityRange: f.FractionalCapacityRange, ListTypeAttributes: f.ListTypeAttributes,
		OptionalNodeOperations: f.OptionalNodeOperations, PartitionableDevices: f.PartitionableDevices, PrioritizedList: f.PrioritizedList,
	}
}

// compilers are shared so that each expression is compiled once.
var compilers = make(map[cel.Features]*selector.Compiler)

func (d *duel) compiler() *selector.Compiler {
	features := cel.Features{
		EnableConsumableCapacity: d.situation.Features.ConsumableCapacity,
		EnableListTypeAttributes: d.situation.Features.ListTypeAttributes,
	}
	if compilers[features] == nil {
		compilers[features] = selector.NewCompiler(features)
	}
	return compilers[features]
}

func (d *duel) view() allocator.Node {
	slices, claims := inventory.New(d.features()), ledger.New()
	for _, slice := range d.situation.Slices {
		slices.SetSlice(slice)
	}
	for _, claim := range d.situation.Held {
		claims.Observe(claim)
	}
	snapshot := slices.Snapshot()
	return allocator.Node{
		View: snapshot.Node(d.situation.Node), Usage: claims.Snapshot(snapshot),
		SkipsNodeOperations: len(d.situation.Node.Status.DeclaredFeatures) > 0,
	}
}

// run returns what the stock allocator says.
func (d *duel) run() string {
	ctx, cancel := context.WithTimeout(context.Background(), stockPatience)
	defer cancel()
	want, err := randomcluster.Stock(ctx, d.situation)
	compatible, shipped := d.solve(allocator.Options{Compatible: true}), d.solve(allocator.Options{})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		if compatible.allocations != nil && shipped.allocations == nil {
			d.problem("%v as shipped, %v in compatible mode", shipped, compatible)
		}
		return "timed out"
	case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
		return d.compareFatal(err, compatible)
	case want == nil:
		if compatible.allocations != nil {
			d.problem("%v, but the stock allocator finds nothing", compatible)
		}
		if shipped.allocations != nil {
			return "rejected, found as shipped"
		}
		return "rejected"
	}
	if shipped.allocations == nil {
		d.problem("%v as shipped, but the stock allocator answers %v", shipped, want)
	}
	if compatible.allocations == nil {
		d.problem("%v, but the stock allocator answers %v", compatible, want)
	} else if randomcluster.IsOrdered(d.situation.Features) {
		if diff := cmp.Diff(anonymous(want), anonymous(compatible.allocations), exactQuantities); diff != "" {
			d.problem("allocations differ (-stock +ours):\n%s", diff)
		}
	}
	return "allocated"
}

// exactQuantities compares how quantities are written, not only their values.
var exactQuantities = cmp.Comparer(func(a, b resource.Quantity) bool { return a.String() == b.String() })

// anonymous replaces the IDs of shares, which are random.
func anonymous(allocations []resourceapi.AllocationResult) []resourceapi.AllocationResult {
	var result []resourceapi.AllocationResult
	for _, a := range allocations {
		a := a.DeepCopy()
		for i := range a.Devices.Results {
			if id := a.Devices.Results[i].ShareID; id != nil {
				*id = "share"
			}
		}
		result = append(result, *a)
	}
	return result
}

// compareFatal checks what becomes of errors with which the stock allocator
// aborts the whole pod. Here they refuse the claim or reject one node, and some
// are overcome.
func (d *duel) compareFatal(stockErr error, a answer) string {
	text := stockErr.Error()
	switch {
	case strings.Contains(text, "feature is disabled"), strings.Contains(text, "could not retrieve device class"), strings.Contains(text, "unsupported constraint type"):
		if a.refused == nil {
			d.problem("%v: want the claim refused, as %q", a, text)
		}
		return "fatal: feature or class"
	case strings.Contains(text, "currently being updated"), strings.Contains(text, "currently invalid"):
		if a.refused == nil && (a.rejection == nil || a.rejection.Cause != allocator.PoolFault) {
			d.problem("%v: want a rejection because of the pool, as %q", a, text)
		}
		return "fatal: pool"
	case strings.Contains(text, "exceeds the claim limit"):
		if a.refused == nil && (a.rejection == nil || a.rejection.Cause == allocator.OutOfBudget) {
			d.problem("%v: want a rejection, as %q", a, text)
		}
		return "fatal: limit"
	case strings.Contains(text, "claim constraint would not be satisfied"):
		return fmt.Sprintf("fatal: constraint, solved here: %t", a.allocations != nil)
	case strings.Contains(text, "CEL runtime error"), strings.Contains(text, "evaluate derived attribute"):
		return fmt.Sprintf("fatal: expression, solved here: %t", a.allocations != nil)
	}
	d.problem("unknown error of the stock allocator: %v", stockErr)
	return "error"
}

// describe writes the cluster down for whoever looks into a failure.
func (d *duel) describe() string {
	var text strings.Builder
	fmt.Fprintf(&text, "features: %+v\n", d.situation.Features)
	for _, object := range []any{d.situation.Slices, d.situation.Held, d.situation.Claims} {
		written, err := yaml.Marshal(object)
		if err != nil {
			d.problem("write down the cluster: %v", err)
		}
		fmt.Fprintf(&text, "%s---\n", written)
	}
	return text.String()
}
