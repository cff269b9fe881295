package verdict

import (
	"errors"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	driver = "gpu.example.com"
	class  = "gpu"
)

// world is an inventory and a ledger, fed as the plugin does.
type world struct {
	inventory *inventory.Inventory
	ledger    *ledger.Ledger
	compiler  *selector.Compiler
	version   int
	attempt   Attempt
}

func newWorld() *world {
	return &world{
		inventory: inventory.New(device.AllFeatures()),
		ledger:    ledger.New(),
		compiler:  selector.NewCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}),
	}
}

// next is a resource version that is newer than all before.
func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *world) publish(slice *resourceapi.ResourceSlice) {
	slice.ResourceVersion = w.next()
	w.change(slice, w.inventory.SetSlice)
}

func (w *world) withdraw(slice *resourceapi.ResourceSlice) {
	w.change(slice, w.inventory.DeleteSlice)
}

func (w *world) change(slice *resourceapi.ResourceSlice, change func(*resourceapi.ResourceSlice)) {
	if !w.inventory.Displaces(slice) {
		change(slice)
		return
	}
	w.ledger.Join(w.inventory.Snapshot(), func() { change(slice) })
}

func (w *world) observe(claim *resourceapi.ResourceClaim) {
	claim.ResourceVersion = w.next()
	w.ledger.Observe(claim)
}

func (w *world) problem(t testing.TB, claims ...*builders.ClaimBuilder) *problem.Problem {
	t.Helper()
	objects := make([]*resourceapi.ResourceClaim, len(claims))
	for i, claim := range claims {
		objects[i] = claim.Obj()
	}
	p, err := problem.Build(objects, problem.Source{
		Classes:  func(name string) (*resourceapi.DeviceClass, error) { return builders.Class(name).Obj(), nil },
		Compiler: w.compiler,
		Features: device.AllFeatures(),
	})
	if err != nil {
		t.Fatalf("build problem: %v", err)
	}
	return p
}

var options = allocator.Options{Objective: objective.BestFit{}, StepBudget: 10000}

// offer is what a node has now.
func (w *world) offer(node *corev1.Node) allocator.Node {
	devices := w.inventory.Snapshot()
	return allocator.Node{View: devices.Node(node), Usage: w.ledger.Snapshot(devices)}
}

// ask does what the plugin does for a node: look it up, else search. known tells
// which it was.
func (w *world) ask(t *testing.T, table *Table, p *problem.Problem, offer allocator.Node) (v *Verdict, known bool) {
	t.Helper()
	w.attempt++
	if v := table.Known(w.attempt, offer); v != nil {
		return v, true
	}
	v, err := table.Solve(t.Context(), w.attempt, p, offer, options)
	if err != nil {
		t.Fatalf("solve: %v", err)
	}
	return v, false
}

// fresh searches without any memory.
func fresh(t *testing.T, p *problem.Problem, offer allocator.Node) (*allocator.Solution, *allocator.Rejection) {
	t.Helper()
	solution, err := allocator.Solve(t.Context(), p, offer, options)
	var rejection *allocator.Rejection
	if err != nil && !errors.As(err, &rejection) {
		t.Fatalf("solve: %v", err)
	}
	return solution, rejection
}
