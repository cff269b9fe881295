package deviceallocationconformance

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// skipped says why a case does not apply, or returns "".
func (a *adapter) skipped(node *corev1.Node, claims []*resourceapi.ResourceClaim) string {
	if feature := a.outOfScope(claims); feature != "" {
		return fmt.Sprintf("uses %s, which device-scheduler refuses", feature)
	}
	if gate := a.switchedOff(claims); gate != "" {
		return fmt.Sprintf("switches %s off, which device-scheduler cannot", gate)
	}
	if pool := a.obsolete(node); pool != "" {
		return fmt.Sprintf("wants devices of an old generation of pool %s although the new one is published, which device-scheduler does not hand out", pool)
	}
	return ""
}

// obsolete names a pool that has moved to other nodes. kube-scheduler does not
// notice as long as the old generation is complete on the node; the suite
// states this as what it would rather not have.
func (a *adapter) obsolete(node *corev1.Node) string {
	for _, old := range a.slices {
		if ptr.Deref(old.Spec.NodeName, "") != node.Name {
			continue
		}
		here, newer, newerHere := int64(0), false, false
		for _, other := range a.slices {
			onNode := ptr.Deref(other.Spec.NodeName, "") == node.Name
			switch {
			case other.Spec.Driver != old.Spec.Driver || other.Spec.Pool.Name != old.Spec.Pool.Name:
			case other.Spec.Pool.Generation > old.Spec.Pool.Generation:
				newer, newerHere = true, newerHere || onNode
			case other.Spec.Pool.Generation == old.Spec.Pool.Generation && onNode:
				here++
			}
		}
		if newer && !newerHere && here == old.Spec.Pool.ResourceSliceCount {
			return old.Spec.Pool.Name
		}
	}
	return ""
}

// switchedOff names a feature gate that is off although the objects of the case
// use the feature: the case is about the error or the neglect that this brings.
func (a *adapter) switchedOff(claims []*resourceapi.ResourceClaim) string {
	for _, slice := range a.slices {
		if !a.features.PartitionableDevices && slice.Spec.PerDeviceNodeSelection != nil {
			return "DRAPartitionableDevices"
		}
		for i := range slice.Spec.Devices {
			if !a.features.DeviceTaints && len(slice.Spec.Devices[i].Taints) > 0 {
				return "DRADeviceTaints"
			}
		}
	}
	for _, claim := range claims {
		for _, request := range claim.Spec.Devices.Requests {
			if !a.features.PrioritizedList && len(request.FirstAvailable) > 0 {
				return "DRAPrioritizedList"
			}
			if !a.features.AdminAccess && request.Exactly != nil && request.Exactly.AdminAccess != nil {
				return "DRAAdminAccess"
			}
		}
	}
	return ""
}

// outOfScope names a feature that the objects of a case use and that this
// version refuses, or returns "". The suite itself only knows which feature
// gates a case needs: the gate for consumable capacity also brings
// distinctAttribute, and the one for partitionable devices the selection of
// nodes per device, which both are supported.
func (a *adapter) outOfScope(claims []*resourceapi.ResourceClaim) device.Feature {
	if len(a.state.AllocatedSharedDeviceIDs) > 0 || len(a.state.AggregatedCapacity) > 0 {
		return device.ConsumableCapacity
	}
	for _, slice := range a.slices {
		if len(slice.Spec.SharedCounters) > 0 {
			return device.PartitionableDevices
		}
		for i := range slice.Spec.Devices {
			if feature := device.New(slice, i, nil, device.Features{}).Unsupported; feature != "" {
				return feature
			}
			if d := &slice.Spec.Devices[i]; d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
				return device.ConsumableCapacity
			}
			for _, attribute := range slice.Spec.Devices[i].Attributes {
				if _, scalar := device.ValueOf(attribute); !scalar {
					return device.ListTypeAttributes
				}
			}
		}
	}
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			if feature := unsupported(&claim.Spec.Devices.Requests[i]); feature != "" {
				return feature
			}
		}
	}
	return ""
}

func unsupported(request *resourceapi.DeviceRequest) device.Feature {
	usesCapacity := request.Exactly != nil && request.Exactly.Capacity != nil ||
		slices.ContainsFunc(request.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool { return s.Capacity != nil })
	if usesCapacity {
		return device.ConsumableCapacity
	}
	derives := request.Exactly != nil && len(request.Exactly.DerivedAttributes) > 0 ||
		slices.ContainsFunc(request.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool { return len(s.DerivedAttributes) > 0 })
	if derives {
		return device.DerivedAttributes
	}
	return ""
}

// skip ends the running case. The suite does not hand its testing.T to the
// allocator, but logs to it.
func skip(ctx context.Context, reason string) {
	sink := klog.FromContext(ctx).GetSink().(ktesting.Underlier)
	sink.GetUnderlying().(interface{ Skipf(string, ...any) }).Skipf("SKIP: %s", reason)
}
