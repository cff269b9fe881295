package inventory

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// target is a device.Reach, parsed once. At most one field is set. The zero
// target reaches no node: the slice uses a way of selecting nodes that this
// version does not know.
type target struct {
	nodeName   string
	everywhere bool
	selector   *nodeaffinity.NodeSelector
	// err says why the node selector cannot be used. The target then reaches
	// no node: which ones its driver meant is unknown.
	err error
}

func newTarget(reach device.Reach) target {
	switch {
	case reach.NodeName != "":
		return target{nodeName: reach.NodeName}
	case reach.AllNodes:
		return target{everywhere: true}
	case reach.NodeSelector != nil:
		selector, err := nodeaffinity.NewNodeSelector(reach.NodeSelector)
		if err != nil {
			return target{err: fmt.Errorf("parse node selector: %w", err)}
		}
		return target{selector: selector}
	default:
		return target{}
	}
}

func (t *target) matches(node *corev1.Node) bool {
	switch {
	case t.nodeName != "":
		return node.Name == t.nodeName
	case t.selector != nil:
		return t.selector.Match(node)
	default:
		return t.everywhere
	}
}

// shared reports whether it takes more than the node's name to tell whether
// the target reaches it.
func (t *target) shared() bool {
	return t.everywhere || t.selector != nil || t.err != nil
}

func perDevice(slice *resourceapi.ResourceSlice) bool {
	return slice.Spec.PerDeviceNodeSelection != nil && *slice.Spec.PerDeviceNodeSelection
}

// sliceReach is the reach of the slice itself, which it has even without
// devices: one with nothing but counters, or whose devices are all gone.
func sliceReach(slice *resourceapi.ResourceSlice) device.Reach {
	spec := &slice.Spec
	switch {
	case spec.NodeName != nil && *spec.NodeName != "":
		return device.Reach{NodeName: *spec.NodeName}
	case spec.AllNodes != nil && *spec.AllNodes:
		return device.Reach{AllNodes: true}
	default:
		return device.Reach{NodeSelector: spec.NodeSelector}
	}
}
