package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
)

// stockPatience is how long kube-scheduler's allocator may search. It is not
// part of any verdict: cases in which it gives up are left out.
const stockPatience = 100 * time.Millisecond

var (
	large = shape{pools: 6, devicesPerSlice: 6, slicesPerPool: 3, claims: 2, requests: 3, count: 3}

	// stockFeatures select the implementation that Kubernetes 1.37 uses by
	// default.
	stockFeatures = structured.Features{
		AdminAccess: true, PrioritizedList: true, DeviceTaints: true, ConsumableCapacity: true,
		PartitionableDevices: true, DeviceBindingAndStatus: true,
	}
	stockExpressions = cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
)

// TestSolveAgainstStock compares Solve with kube-scheduler's own allocator on
// random clusters: same feasibility, same allocations.
// DIFFERENTIAL_SEED and DIFFERENTIAL_CASES choose which.
func TestSolveAgainstStock(t *testing.T) {
	seed := fromEnvironment(t, "DIFFERENTIAL_SEED", 1)
	cases := fromEnvironment(t, "DIFFERENTIAL_CASES", 500)
	outcomes := make(map[string]int)
	for i := range cases {
		outcomes[compareWithStock(t, randomCluster(seed+i, large))]++
		if t.Failed() {
			t.Fatalf("replay with DIFFERENTIAL_SEED=%d DIFFERENTIAL_CASES=1", seed+i)
		}
	}
	t.Logf("%d clusters: %v", cases, outcomes)
	decided := int(cases) - outcomes["left out"]
	if decided >= 400 && (outcomes["allocated"] < decided/10 || outcomes["rejected"] < decided/10) {
		t.Errorf("the generator no longer makes enough feasible and infeasible clusters: %v", outcomes)
	}
}

type classLister struct{ c *cluster }

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) { return l.c.class(name) }

func (l classLister) List() ([]*resourceapi.DeviceClass, error) { return l.c.classes, nil }

func (c *cluster) stock(t *testing.T) ([]resourceapi.AllocationResult, error) {
	t.Helper()
	allocated := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range c.allocated {
		for _, r := range claim.Status.Allocation.Devices.Results {
			allocated.AllocatedDevices.Insert(structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), stockPatience)
	defer cancel()
	stock, err := structured.NewAllocator(ctx, stockFeatures, allocated, classLister{c}, c.slices, stockExpressions)
	if err != nil {
		t.Fatalf("create the stock allocator: %v", err)
	}
	return stock.Allocate(ctx, c.node, c.claims)
}

// compareWithStock returns what the two have agreed upon.
func compareWithStock(t *testing.T, c *cluster) string {
	t.Helper()
	want, stockErr := c.stock(t)
	if errors.Is(stockErr, context.DeadlineExceeded) {
		return "left out"
	}
	p, refused := problem.Build(c.claims, problem.Source{Classes: c.class, Compiler: compiler, Features: features})
	if refused != nil {
		if stockErr == nil {
			t.Errorf("refused (%v), but the stock allocator answers %v", refused, want)
		}
		return "refused"
	}
	solution, err := remembered(p, c.view(), allocator.Options{Compatible: true})
	var rejection *allocator.Rejection
	if err != nil && !errors.As(err, &rejection) {
		t.Errorf("unexpected error: %v", err)
		return "error"
	}
	switch {
	case stockErr != nil && !errors.Is(stockErr, structured.ErrFailedAllocationOnNode):
		if solution != nil {
			checkReachable(t, c, p, solution)
		}
		return compareFatal(t, stockErr, solution, rejection)
	case want == nil || stockErr != nil:
		if solution != nil && len(c.claims) > 0 {
			t.Errorf("found %v, but the stock allocator finds nothing", placement(p, solution))
		}
		return "rejected"
	case solution == nil:
		t.Errorf("rejected (%v), but the stock allocator answers %v", err, want)
		return "rejected"
	}
	got, err := result.Build(p, solution, c.node.Name, uuid.NewUUID)
	if err != nil {
		t.Errorf("build the result: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("allocations differ (-stock +ours):\n%s", diff)
	}
	return "allocated"
}

// checkReachable checks a solution against the devices that the node reaches.
func checkReachable(t *testing.T, c *cluster, p *problem.Problem, s *allocator.Solution) {
	t.Helper()
	reachable := sets.New[device.ID]()
	for _, pool := range c.view().View.Pools {
		for _, d := range pool.Devices {
			reachable.Insert(d.ID)
		}
	}
	o := newOracle(c)
	o.offers = slices.DeleteFunc(o.offers, func(d offer) bool {
		return !reachable.Has(device.NewID(d.driver, d.pool, d.device.Name))
	})
	if problem := o.problemWith(o.grantsOf(p, s)); problem != "" {
		t.Errorf("%s: %v", problem, placement(p, s))
	}
}

// compareFatal checks what becomes of errors with which the stock allocator
// aborts the whole pod: here they reject one node, for the same reason.
func compareFatal(t *testing.T, stockErr error, solution *allocator.Solution, rejection *allocator.Rejection) string {
	t.Helper()
	text := stockErr.Error()
	switch {
	case strings.Contains(text, "currently being updated"), strings.Contains(text, "currently invalid"):
		if rejection == nil || rejection.Cause != allocator.PoolFault {
			t.Errorf("%v, %v: want a rejection because of the pool, as %q", solution, rejection, text)
		}
		return "fatal: pool"
	case strings.Contains(text, "exceeds the claim limit"):
		// There may be simpler reasons besides the number of devices.
		if rejection == nil || rejection.Cause == allocator.OutOfBudget {
			t.Errorf("%v, %v: want a rejection, as %q", solution, rejection, text)
		}
		return "fatal: limit"
	case strings.Contains(text, "claim constraint would not be satisfied"):
		// The stock allocator gives up where another choice for an earlier
		// request, or another subrequest, may still succeed.
		return fmt.Sprintf("fatal: constraint, solved here: %t", solution != nil)
	case strings.Contains(text, "CEL runtime error"):
		return fmt.Sprintf("fatal: expression, solved here: %t", solution != nil)
	default:
		t.Errorf("unknown error of the stock allocator: %v", stockErr)
		return "error"
	}
}
