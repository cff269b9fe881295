package capacity_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
)

const (
	driver, pool, node, class = "nic.example.com", "pool", "node", "nic"

	// What the stock allocator makes of a scenario.
	allocated, misfit, fatal, panicked, undefined = "allocated", "misfit", "fatal", "the stock allocator panics", "undefined"
)

// TestDemandAgainstStock asks kube-scheduler's own allocator for one device and
// compares: same feasibility, same consumed capacity down to the format, same
// errors. PROPERTY_SEED and PROPERTY_CASES choose which cases.
func TestDemandAgainstStock(t *testing.T) {
	seed := fromEnvironment(t, "PROPERTY_SEED", 1)
	cases := fromEnvironment(t, "PROPERTY_CASES", 8000)
	outcomes := make(map[string]int)
	for i := range cases {
		outcomes[compareWithStock(t, randomScenario(seed+i))]++
		if t.Failed() {
			t.Fatalf("replay with PROPERTY_SEED=%d PROPERTY_CASES=1", seed+i)
		}
	}
	t.Logf("%d scenarios: %v", cases, outcomes)
	for _, outcome := range []string{allocated, misfit, fatal} {
		if cases >= 5000 && outcomes[outcome] < int(cases)/50 {
			t.Errorf("the generator no longer makes enough that are %s: %v", outcome, outcomes)
		}
	}
}

func compareWithStock(t *testing.T, s scenario) string {
	t.Helper()
	before := s.describe()
	demand, err := capacity.Demand(s.device, s.requests, s.fractional)
	fits := err == nil
	if fits && capacity.Shareable(s.device) {
		fits, _ = capacity.Fits(s.device, s.used(), demand)
	}
	if after := s.describe(); before != after {
		t.Errorf("the arguments have changed:\n%s\n%s", before, after)
	}
	var invalid *capacity.InvalidError
	outcome, want := s.stock(t)
	switch {
	case outcome == panicked && err == nil:
		t.Errorf("%s, but got %v\n%s", outcome, writtenOf(demand), before)
	case outcome == panicked:
	case s.undefined():
		return undefined
	case outcome == allocated && !fits, outcome != allocated && fits:
		t.Errorf("stock: %s, got %t with %v, %v\n%s", outcome, fits, writtenOf(demand), err, before)
	case (outcome == fatal) != errors.As(err, &invalid):
		t.Errorf("stock: %s, got %v\n%s", outcome, err, before)
	case outcome == allocated:
		if diff := cmp.Diff(writtenOf(want), writtenOf(recorded(demand))); diff != "" {
			t.Errorf("consumed (-stock +ours):\n%s\n%s", diff, before)
		}
	}
	return outcome
}

// recorded is how amounts are written: nothing instead of an empty map.
func recorded(a capacity.Amounts) capacity.Amounts {
	if len(a) == 0 {
		return nil
	}
	return a
}

func (s scenario) used() capacity.Amounts {
	var used capacity.Amounts
	for _, share := range s.held {
		used = used.Add(share)
	}
	return used
}

// undefined: the stock allocator computes with numbers that have wrapped around
// in an int64. Validation refuses such policies.
func (s scenario) undefined() bool {
	for _, c := range s.device.Capacity {
		if c.RequestPolicy == nil || c.RequestPolicy.ValidRange == nil || c.RequestPolicy.ValidRange.Step == nil {
			continue
		}
		bounds, otherwise := c.RequestPolicy.ValidRange, c.Value
		if c.RequestPolicy.Default != nil {
			otherwise = *c.RequestPolicy.Default
		}
		if bounds.Step.Sign() <= 0 || bounds.Step.CmpInt64(math.MaxInt64) > 0 || otherwise.CmpInt64(math.MaxInt64) > 0 {
			return true
		}
		if bounds.Min != nil && (bounds.Min.Sign() < 0 || bounds.Min.CmpInt64(math.MaxInt64) > 0) {
			return true
		}
	}
	return false
}

// stock returns what the stock allocator makes of it.
func (s scenario) stock(t *testing.T) (outcome string, consumed capacity.Amounts) {
	t.Helper()
	defer func() {
		if recover() != nil {
			outcome = panicked
		}
	}()
	ctx := context.Background()
	features := structured.Features{ConsumableCapacity: true, FractionalCapacityRange: s.fractional}
	stock, err := structured.NewAllocator(ctx, features, s.state(), classes{}, []*resourceapi.ResourceSlice{s.slice()}, expressions)
	if err != nil {
		t.Fatalf("create the stock allocator: %v", err)
	}
	target := &corev1.Node{}
	target.Name = node
	results, err := stock.Allocate(ctx, target, []*resourceapi.ResourceClaim{s.claim()})
	switch {
	case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
		if text := err.Error(); !strings.Contains(text, "cannot be represented") && !strings.Contains(text, "is negative") {
			t.Errorf("unknown error of the stock allocator: %v", err)
		}
		return fatal, nil
	case err != nil || len(results) == 0:
		return misfit, nil
	}
	return allocated, results[0].Devices.Results[0].ConsumedCapacity
}

var expressions = cel.NewCache(1, cel.Features{EnableConsumableCapacity: true})

// classes has one class, which selects all devices.
type classes struct{}

func (classes) Get(name string) (*resourceapi.DeviceClass, error) {
	found := &resourceapi.DeviceClass{}
	found.Name = name
	return found, nil
}

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	found, err := c.Get(class)
	return []*resourceapi.DeviceClass{found}, err
}

func (s scenario) state() structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	id := structured.MakeDeviceID(driver, pool, s.device.Name)
	for i, share := range s.held {
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, ptr.To(types.UID(fmt.Sprint(i)))))
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, share))
	}
	return state
}

func (s scenario) slice() *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
		Driver:   driver,
		Pool:     resourceapi.ResourcePool{Name: pool, ResourceSliceCount: 1},
		NodeName: ptr.To(node),
		Devices:  []resourceapi.Device{*s.device.DeepCopy()},
	}}
	slice.Name = pool
	return slice
}

func (s scenario) claim() *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{{Name: "request", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: class,
			AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
			Count:           1,
			Capacity:        s.requests.DeepCopy(),
		}}},
	}}}
	claim.Name, claim.Namespace = "claim", "default"
	return claim
}

// describe shows everything that decides.
func (s scenario) describe() string {
	var text strings.Builder
	fmt.Fprintf(&text, "shareable %t, fractional %t\n", capacity.Shareable(s.device), s.fractional)
	for i := range len(s.device.Capacity) {
		c := s.device.DeepCopy().Capacity[capacityName(i)] // because printing changes a Quantity
		fmt.Fprintf(&text, "%s: %s", capacityName(i), c.Value.String())
		if p := c.RequestPolicy; p != nil {
			fmt.Fprintf(&text, ", default %s, values", p.Default)
			for i := range p.ValidValues {
				fmt.Fprintf(&text, " %s", &p.ValidValues[i])
			}
			if r := p.ValidRange; r != nil {
				fmt.Fprintf(&text, ", range %s to %s by %s", r.Min, r.Max, r.Step)
			}
		}
		text.WriteString("\n")
	}
	if s.requests != nil {
		fmt.Fprintf(&text, "requested %v\n", writtenOf(s.requests.Requests))
	}
	for _, share := range s.held {
		fmt.Fprintf(&text, "held %v\n", writtenOf(share))
	}
	return text.String()
}
