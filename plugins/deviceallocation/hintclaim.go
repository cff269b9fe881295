package deviceallocation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// claimEvent is what an event of a claim means, whichever pod waits.
type claimEvent struct {
	// before and after are nil for a claim that is new or gone.
	before, after *resourceapi.ResourceClaim
	// statusChanged is set for a new claim as well.
	statusChanged bool
	// freed are the pools of the devices that the claim held and holds no more.
	freed  []device.PoolID
	offers *offers
}

// seeClaim works out an event, once for all pods, after inventory and ledger have
// seen it.
func (pl *Plugin) seeClaim(oldObj, newObj any) (*claimEvent, error) {
	before, after, err := schedutil.As[*resourceapi.ResourceClaim](oldObj, newObj)
	if err != nil {
		return nil, err
	}
	return pl.lastClaim.get(before, after, func() *claimEvent {
		e := &claimEvent{before: before, after: after}
		if after == nil {
			pl.ledger.Forget(before)
		} else {
			pl.inFlight.observe(after)
			e.statusChanged = before == nil || !equality.Semantic.DeepEqual(&before.Status, &after.Status)
		}
		e.freed = freedPools(before, after)
		e.offers = pl.offersOf(pl.poolsNow(e.freed...))
		return e
	}), nil
}

// freedPools returns the pools of the devices that come free, each once. With
// another allocation all devices of the former one count.
func freedPools(before, after *resourceapi.ResourceClaim) []device.PoolID {
	if before == nil || before.Status.Allocation == nil {
		return nil
	}
	if after != nil && equality.Semantic.DeepEqual(before.Status.Allocation, after.Status.Allocation) {
		return nil
	}
	var pools []device.PoolID
	for i := range before.Status.Allocation.Devices.Results {
		result := &before.Status.Allocation.Devices.Results[i]
		id := device.NewID(result.Driver, result.Pool, result.Device).PoolID()
		if !slices.Contains(pools, id) {
			pools = append(pools, id)
		}
	}
	return pools
}

// afterClaim: devices come free, or a claim of the pod changes.
func (pl *Plugin) afterClaim(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	if unknown, ok := oldObj.(cache.DeletedFinalStateUnknown); ok && newObj == nil {
		// The claim may have held anything.
		ifType(unknown.Obj, pl.ledger.Forget)
		return fwk.Queue, nil
	}
	e, err := pl.seeClaim(oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	switch {
	case e.after != nil && e.statusChanged && (names(pod, e.after) || madeFor(e.after, pod)):
		_, err := pl.podClaims(pod)
		return queueIf(err == nil), nil
	case len(e.freed) > 0:
		return queueIf(e.offers.help(pod)), nil
	default:
		// The pod may have waited for the end of a claim of an earlier attempt.
		return queueIf(e.after == nil && madeFor(e.before, pod)), nil
	}
}

// names tells whether a pod uses a claim of that name. It looks at nothing but
// the pod and allocates nothing: most events are about claims of other pods.
func names(pod *corev1.Pod, claim *resourceapi.ResourceClaim) bool {
	if pod.Namespace != claim.Namespace {
		return false
	}
	is := func(name *string) bool { return name != nil && *name == claim.Name }
	for i := range pod.Spec.ResourceClaims {
		if is(pod.Spec.ResourceClaims[i].ResourceClaimName) {
			return true
		}
	}
	for i := range pod.Status.ResourceClaimStatuses {
		if is(pod.Status.ResourceClaimStatuses[i].ResourceClaimName) {
			return true
		}
	}
	return false
}

// madeFor tells whether the claim is for extended resources of the pod.
func madeFor(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "" {
		return false
	}
	owners, _ := extendedOwner(claim)
	return len(owners) == 1 && types.UID(owners[0]) == pod.UID
}

// podsForClaim names the pods that afterClaim has to be asked about: those that
// use the claim, and all pods if devices come free (feature gate
// SchedulerPreQueueingHints). The ledger must learn of the event here, because
// afterClaim may not be called at all.
func (pl *Plugin) podsForClaim(_ klog.Logger, oldObj, newObj any) (fwk.PreQueueingHintResult, error) {
	all := fwk.PreQueueingHintResult{AllPods: true}
	if _, ok := oldObj.(cache.DeletedFinalStateUnknown); ok {
		return all, nil
	}
	e, err := pl.seeClaim(oldObj, newObj)
	if err != nil {
		return fwk.PreQueueingHintResult{}, err
	}
	if len(e.freed) > 0 {
		return all, nil
	}
	claim := e.after
	if claim == nil {
		claim = e.before
	}
	pods, err := pl.feed.podsUsing(claim)
	return fwk.PreQueueingHintResult{Pods: pods}, err
}
