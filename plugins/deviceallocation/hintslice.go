package deviceallocation

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// poolEvent is what an event of a slice or of a node means, whichever pod waits.
type poolEvent struct {
	// nothing is set if nothing has changed that matters.
	nothing bool
	offers  *offers
}

// afterSlice: devices appear, change or lose a taint. It wakes the pods that the
// pool may serve now: drivers that publish the same again, or that change devices
// which are in use, wake nobody.
func (pl *Plugin) afterSlice(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	if unknown, ok := oldObj.(cache.DeletedFinalStateUnknown); ok {
		oldObj = unknown.Obj
	}
	before, after, err := schedutil.As[*resourceapi.ResourceSlice](oldObj, newObj)
	if err != nil || after == nil {
		// It is rare that a slice goes away, and then the conditions of pods should
		// not go on naming what was wrong with its pool.
		if before != nil {
			pl.feed.refreshSlices(before)
		}
		_, missing := pl.podClaims(pod)
		return queueIf(missing == nil), nil
	}
	e := pl.lastSlice.get(before, after, func() *poolEvent { return pl.seeSlice(before, after) })
	return queueIf(!e.nothing && e.offers.help(pod)), nil
}

func (pl *Plugin) seeSlice(before, after *resourceapi.ResourceSlice) *poolEvent {
	if before != nil && equality.Semantic.DeepEqual(&before.Spec, &after.Spec) {
		return &poolEvent{nothing: true}
	}
	pools := []device.PoolID{inventory.PoolOf(after)}
	if before != nil {
		pools = append(pools, inventory.PoolOf(before))
	}
	pl.feed.refreshSlices(after)
	return &poolEvent{offers: pl.offersOf(pl.poolsNow(pools...))}
}

// afterNode: a new node, new labels, a device plugin that starts or stops to
// offer a resource, or a kubelet that knows more than its predecessor.
func (pl *Plugin) afterNode(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := schedutil.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	e := pl.lastNode.get(before, after, func() *poolEvent { return pl.seeNode(before, after) })
	if !e.nothing && e.offers.help(pod) {
		return fwk.Queue, nil
	}
	if len(pl.extendedResources(pod)) == 0 {
		return fwk.QueueSkip, nil
	}
	_, err = pl.podClaims(pod)
	return queueIf(err == nil), nil
}

// seeNode: a new node has the pools that name it, labels decide about the others,
// and the kubelet about whatever the node can reach.
func (pl *Plugin) seeNode(before, after *corev1.Node) *poolEvent {
	if after == nil {
		return &poolEvent{nothing: true}
	}
	relabelled := before != nil && !equality.Semantic.DeepEqual(before.Labels, after.Labels)
	upgraded := before != nil && skipsNodeOperations(after) && !skipsNodeOperations(before)
	if before != nil && !relabelled && !upgraded {
		return &poolEvent{nothing: true}
	}
	devices := pl.inventory.Snapshot()
	var pools []*inventory.Pool
	if local := devices.LocalNode(after.Name); local != nil && (before == nil || upgraded) {
		for _, pool := range local.Pools {
			pools = append(pools, devices.Pool(pool.ID))
		}
	}
	return &poolEvent{offers: pl.offersOf(append(pools, devices.SharedPools()...))}
}
