package randomcluster

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
)

// Stock asks kube-scheduler's allocator, as kube-scheduler does: the feature
// gates decide which of its implementations answers.
//
// A nil result without an error means that the claims do not fit on the node.
// So does an error that wraps structured.ErrFailedAllocationOnNode. With any
// other error kube-scheduler gives up the whole pod. The search takes
// exponential time, hence the context.
func Stock(ctx context.Context, s *allocationcheck.Situation) ([]resourceapi.AllocationResult, error) {
	allocator, err := structured.NewAllocator(ctx, s.Features, stockState(s), classLister{s}, s.Slices, expressions[expressionFeatures(s)])
	if err != nil {
		return nil, fmt.Errorf("create the stock allocator: %w", err)
	}
	return allocator.Allocate(ctx, s.Node, s.Claims)
}

// IsOrdered tells whether the stock allocator's choice among several solutions
// is always the same. That is so unless the feature gates select its oldest
// implementation, which reads pools in the order of a map.
func IsOrdered(f structured.Features) bool {
	return isNewest(f) || f.ConsumableCapacity || f.DeviceBindingAndStatus || f.FractionalCapacityRange
}

// isNewest tells whether the feature gates select the newest implementation.
func isNewest(f structured.Features) bool {
	return f.CompatibilityGroups || f.DerivedAttributes || f.ListTypeAttributes || f.OptionalNodeOperations
}

func expressionFeatures(s *allocationcheck.Situation) cel.Features {
	return cel.Features{
		EnableConsumableCapacity: s.Features.ConsumableCapacity,
		EnableListTypeAttributes: s.Features.ListTypeAttributes,
	}
}

// expressions are compiled once for all clusters.
var expressions = func() map[cel.Features]*cel.Cache {
	caches := make(map[cel.Features]*cel.Cache)
	for i := range 4 {
		features := cel.Features{EnableConsumableCapacity: i&1 != 0, EnableListTypeAttributes: i&2 != 0}
		caches[features] = cel.NewCache(200, features)
	}
	return caches
}()

// stockState is what kube-scheduler's plugin finds out from allocated claims.
func stockState(s *allocationcheck.Situation) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range s.Held {
		for _, r := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			switch {
			case r.AdminAccess != nil && *r.AdminAccess:
			case r.ShareID != nil && s.Features.ConsumableCapacity:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
				if r.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
				}
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	return state
}

type classLister struct{ *allocationcheck.Situation }

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := l.Class(name); class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("class %s not found", name)
}

func (l classLister) List() ([]*resourceapi.DeviceClass, error) { return l.Classes, nil }
