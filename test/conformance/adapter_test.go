package deviceallocationconformance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
)

// adapter gives the allocator the interface of kube-scheduler's.
type adapter struct {
	features allocatortesting.Features
	classes  allocatortesting.DeviceClassLister
	slices   []*resourceapi.ResourceSlice
	state    allocatortesting.AllocatedState
}

func newAdapter(_ context.Context, features allocatortesting.Features, state allocatortesting.AllocatedState,
	classes allocatortesting.DeviceClassLister, slices []*resourceapi.ResourceSlice, _ *cel.Cache,
) (allocatortesting.Allocator, error) {
	return &adapter{features: features, classes: classes, slices: slices, state: state}, nil
}

// Channel names none of the stock implementations.
func (a *adapter) Channel() internal.AllocatorChannel { return "device-scheduler" }

// Allocate solves one node in the mode that is compatible with kube-scheduler.
func (a *adapter) Allocate(ctx context.Context, node *corev1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if reason := a.skipped(node, claims); reason != "" {
		skip(ctx, reason)
	}
	compiler := selector.NewCompiler(cel.Features{
		EnableConsumableCapacity: a.features.ConsumableCapacity,
		EnableListTypeAttributes: a.features.ListTypeAttributes,
	})
	p, err := problem.Build(claims, a.classes.Get, compiler)
	if err != nil {
		return nil, stockRefusal(claims, err)
	}
	devices := a.inventory()
	offer := allocator.Node{View: devices.Node(node), Usage: a.ledger(devices)}
	solution, err := allocator.Solve(ctx, p, offer, allocator.Options{FailOnSelectorError: true})
	if err != nil {
		return nil, stockVerdict(p, offer, err)
	}
	return result.Build(p, solution, node.Name)
}

// coreFeatures are the gates of a case in the words of the core.
func coreFeatures(features allocatortesting.Features) device.Features {
	return device.Features{
		AdminAccess:             features.AdminAccess,
		BindingConditions:       features.DeviceBindingAndStatus,
		CompatibilityGroups:     features.CompatibilityGroups,
		ConsumableCapacity:      features.ConsumableCapacity,
		DerivedAttributes:       features.DerivedAttributes,
		DeviceTaints:            features.DeviceTaints,
		FractionalCapacityRange: features.FractionalCapacityRange,
		ListTypeAttributes:      features.ListTypeAttributes,
		OptionalNodeOperations:  features.OptionalNodeOperations,
		PartitionableDevices:    features.PartitionableDevices,
		PrioritizedList:         features.PrioritizedList,
	}
}

func (a *adapter) inventory() *inventory.Snapshot {
	pools := inventory.New(coreFeatures(a.features))
	names := make(map[string]int)
	for _, slice := range a.slices {
		// Some cases use a name for several slices, which the API server does
		// not allow. Slices with equal names stay in the order of the case.
		if n := names[slice.Name]; n > 0 {
			renamed := *slice
			renamed.Name = fmt.Sprintf("%s-%d", slice.Name, n)
			pools.SetSlice(&renamed)
		} else {
			pools.SetSlice(slice)
		}
		names[slice.Name]++
	}
	return pools.Snapshot()
}

func (a *adapter) ledger(devices *inventory.Snapshot) *ledger.Snapshot {
	holder := &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}}}
	holder.Name, holder.UID = "holder", types.UID("holder")
	for id := range a.state.AllocatedDevices {
		holder.Status.Allocation.Devices.Results = append(holder.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Driver: id.Driver.String(), Pool: id.Pool.String(), Device: id.Device.String()})
	}
	held := ledger.New()
	held.Observe(holder)
	return held.Snapshot(devices)
}
