package deviceallocation

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// feed keeps inventory and ledger up to date. Its handlers run as the
// informers deliver; the queueing hints call it as well, because a hint may
// come first:
//
//	informer store   updated
//	scheduler        hint(pod) -> Queue        our handler has not run yet
//	scheduler        PreFilter(pod)            old state: "does not fit"
//	our handler      updates the state         nobody wakes the pod again
//
// Both rooms ignore what is not newer than what they know, so that it does not
// matter who comes first, nor that an object comes twice.
type feed struct {
	inventory *inventory.Inventory
	ledger    *ledger.Ledger
	claims    *inFlight
	watch     claimWatch
	slices    resourcelisters.ResourceSliceLister
	rules     resourcelisters.DeviceTaintRuleLister
	// extended finds the claims that were made for the extended resources of a
	// pod, by the UID of the pod.
	extended cache.Indexer
	// pods finds pods by the claims that they use.
	pods cache.Indexer
	// loaded tell whether our handlers have seen all objects that existed when
	// the informers started.
	loaded []cache.InformerSynced

	// publishing is held while a slice is taken in.
	publishing sync.Mutex

	mutex sync.Mutex
	known map[string]*resourceapi.DeviceTaintRule // rules given to the inventory
}

// extendedIndex finds claims by the UID of the pod whose extended resources
// they are for.
const extendedIndex = "deviceAllocationExtendedResourceClaims"

// podsIndex finds pods by the claims that they use.
const podsIndex = "deviceAllocationPodsOfClaim"

func newFeed(handle fwk.Handle, devices *inventory.Inventory, claims *inFlight, verdicts *verdict.Cache) (*feed, error) {
	informers := handle.SharedInformerFactory().Resource().V1()
	f := &feed{
		inventory: devices,
		ledger:    claims.ledger,
		claims:    claims,
		slices:    informers.ResourceSlices().Lister(),
		rules:     informers.DeviceTaintRules().Lister(),
		extended:  informers.ResourceClaims().Informer().GetIndexer(),
		pods:      handle.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer(),
		known:     make(map[string]*resourceapi.DeviceTaintRule),
	}
	err := handle.SharedInformerFactory().Core().V1().Pods().Informer().AddIndexers(cache.Indexers{podsIndex: claimsOfPod})
	if err != nil {
		return nil, fmt.Errorf("add index %s: %w", podsIndex, err)
	}
	err = informers.ResourceClaims().Informer().AddIndexers(cache.Indexers{extendedIndex: extendedOwner})
	if err != nil {
		return nil, fmt.Errorf("add index %s: %w", extendedIndex, err)
	}
	handlers := map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		informers.ResourceClaims().Informer():   handler(f.claimSeen, f.claimGone),
		informers.ResourceSlices().Informer():   handler(f.setSlice, f.deleteSlice),
		informers.DeviceTaintRules().Informer(): handler(f.setRule, f.deleteRule),
		// What a node can reach is worked out when it is needed; only the end of
		// a node matters, so that nothing is kept for it.
		handle.SharedInformerFactory().Core().V1().Nodes().Informer(): handler(
			func(*corev1.Node) {},
			func(node *corev1.Node) {
				f.inventory.DeleteNode(node.Name)
				verdicts.ForgetNode(node.Name)
			},
		),
	}
	for informer, h := range handlers {
		registration, err := informer.AddEventHandler(h)
		if err != nil {
			return nil, fmt.Errorf("add event handler: %w", err)
		}
		f.loaded = append(f.loaded, registration.HasSynced)
	}
	return f, nil
}

// load waits until inventory and ledger know everything that existed when the
// scheduler started. The scheduler waits for its own handlers only, and a
// device whose claim has not been seen yet looks free.
func (f *feed) load(ctx context.Context) error {
	for _, loaded := range f.loaded {
		if !loaded() && !cache.WaitForCacheSync(ctx.Done(), loaded) {
			return fmt.Errorf("wait for claims and devices to be loaded: %w", context.Cause(ctx))
		}
	}
	return nil
}

// handler calls set for each new state of an object and gone for the last one.
func handler[T any](set, gone func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { ifType(obj, set) },
		UpdateFunc: func(_, obj any) { ifType(obj, set) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			ifType(obj, gone)
		},
	}
}

func (f *feed) claimSeen(claim *resourceapi.ResourceClaim) {
	f.claims.observe(claim)
	f.watch.seen(claim)
}

func (f *feed) claimGone(claim *resourceapi.ResourceClaim) {
	f.ledger.Forget(claim)
	f.watch.gone(claim)
}

func ifType[T any](obj any, f func(T)) {
	if typed, ok := obj.(T); ok {
		f(typed)
	}
}

func extendedOwner(obj any) ([]string, error) {
	claim, ok := obj.(*resourceapi.ResourceClaim)
	if !ok || claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" {
		return nil, nil
	}
	for _, owner := range claim.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return []string{string(owner.UID)}, nil
		}
	}
	return nil, nil
}

// claimsOfPod lists the claims that a pod uses, as namespace/name. Claims for
// extended resources say themselves which pod they are for.
func claimsOfPod(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	var keys []string
	add := func(name *string) {
		if name != nil {
			keys = append(keys, pod.Namespace+"/"+*name)
		}
	}
	for i := range pod.Spec.ResourceClaims {
		add(pod.Spec.ResourceClaims[i].ResourceClaimName)
	}
	for i := range pod.Status.ResourceClaimStatuses {
		add(pod.Status.ResourceClaimStatuses[i].ResourceClaimName)
	}
	return keys, nil
}

// podsUsing returns the pods that use a claim or for which it was made.
func (f *feed) podsUsing(claim *resourceapi.ResourceClaim) ([]types.NamespacedName, error) {
	found, err := f.pods.ByIndex(podsIndex, claim.Namespace+"/"+claim.Name)
	if err != nil {
		return nil, fmt.Errorf("find pods of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	pods := make([]types.NamespacedName, 0, len(found)+1)
	for _, obj := range found {
		pod := obj.(*corev1.Pod)
		pods = append(pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" {
		pods = append(pods, types.NamespacedName{Namespace: claim.Namespace, Name: owner.Name})
	}
	return pods, nil
}

// extendedClaim returns the claim that an earlier attempt made for the
// extended resources of a pod, or nil.
func (f *feed) extendedClaim(pod types.UID) *resourceapi.ResourceClaim {
	found, err := f.extended.ByIndex(extendedIndex, string(pod))
	if err != nil || len(found) == 0 {
		return nil
	}
	return found[0].(*resourceapi.ResourceClaim)
}

// setSlice takes in a slice. Devices that draw from counters may go away with
// the slice as it was before, while claims hold them. What they draw stays
// charged only if the ledger has learned it from the inventory, which it does
// when the two are joined:
//
//	claim handler    ledger.Observe(claim)     gpu-0-half is held
//	slice handler    inventory.SetSlice(...)   without gpu-0-half
//	PreFilter        ledger.Snapshot(devices)  gpu-0-half is not there: draws nothing
//	Filter           gpu-0-whole               "fits": half of the GPU is handed out twice
//
// So the join comes first, and the ledger takes in no claim between the two:
//
//	slice handler    ledger.Snapshot(devices)  nothing is held
//	claim handler    ledger.Observe(claim)     gpu-0-half is held
//	slice handler    inventory.SetSlice(...)   as above
//
// The lock keeps another slice from being taken in after the snapshot for the
// join was made: its devices would be in no join.
func (f *feed) setSlice(slice *resourceapi.ResourceSlice) {
	f.publish(slice, f.inventory.SetSlice)
}

// deleteSlice takes in that a slice is gone, as setSlice does.
func (f *feed) deleteSlice(slice *resourceapi.ResourceSlice) {
	f.publish(slice, f.inventory.DeleteSlice)
}

func (f *feed) publish(slice *resourceapi.ResourceSlice, change func(*resourceapi.ResourceSlice)) {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	if !f.inventory.Displaces(slice) {
		change(slice)
		return
	}
	f.ledger.Join(f.inventory.Snapshot(), func() { change(slice) })
}

func (f *feed) setRule(rule *resourceapi.DeviceTaintRule) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.known[rule.Name] = rule
	f.inventory.SetTaintRule(rule)
}

func (f *feed) deleteRule(rule *resourceapi.DeviceTaintRule) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.known, rule.Name)
	f.inventory.DeleteTaintRule(rule)
}

// refreshSlices brings what the informers have into the inventory: the slice
// of that name and all taint rules. The event behind a hint may be about a
// rule: the scheduler's tracker reports the slices that a rule changes, with
// the rule's taints in them. Those copies are not what a driver published, so
// the stores are read instead; they are never behind the event.
func (f *feed) refreshSlices(event *resourceapi.ResourceSlice) {
	slice, err := f.slices.Get(event.Name)
	if err == nil {
		f.setSlice(slice)
	} else {
		f.deleteSlice(event)
	}
	f.refreshRules()
}

func (f *feed) refreshRules() {
	// The list is taken under the lock: a rule that our handler adds after an
	// older list was taken would look deleted, and deletions are final.
	f.mutex.Lock()
	defer f.mutex.Unlock()
	rules, err := f.rules.List(labels.Everything())
	if err != nil {
		return // a lister of an informer does not fail
	}
	present := make(map[string]bool, len(rules))
	for _, rule := range rules {
		present[rule.Name] = true
		if f.known[rule.Name] != rule {
			f.known[rule.Name] = rule
			f.inventory.SetTaintRule(rule)
		}
	}
	for name, rule := range f.known {
		if !present[name] {
			delete(f.known, name)
			f.inventory.DeleteTaintRule(rule)
		}
	}
}
