package deviceallocation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

const inUse = `UnschedulableAndUnresolvable: request "request": all matching devices in use`

// missed is what happens in the cluster, as the plugin's own handlers have not
// seen it yet: an informer has put it into its store, and the scheduler calls
// the hint.
type missed struct{ *harness }

// stored changes the store of an informer and calls none of its handlers.
func (m missed) stored(informer cache.SharedIndexInformer, obj runtime.Object) {
	m.Helper()
	m.mutex.Lock()
	m.stamp(obj)
	m.mutex.Unlock()
	if err := informer.GetStore().Update(obj); err != nil {
		m.Fatalf("update store: %v", err)
	}
}

func (m missed) gone(informer cache.SharedIndexInformer, obj any) {
	m.Helper()
	if err := informer.GetStore().Delete(obj); err != nil {
		m.Fatalf("delete from store: %v", err)
	}
}

// slice returns the slice of a node as the informer has it.
func (m missed) slice(node string) *resourceapi.ResourceSlice {
	m.Helper()
	slice, err := m.informers.Resource().V1().ResourceSlices().Lister().Get(driver + "-" + node)
	if err != nil {
		m.Fatalf("get slice: %v", err)
	}
	return slice
}

func taintRule(name string) *resourceapi.DeviceTaintRule {
	return &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(driver)},
			Taint:          resourceapi.DeviceTaint{Key: "maintenance", Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	}
}

// patched is the slice as the scheduler's tracker reports it under a rule.
func patched(slice *resourceapi.ResourceSlice, rule *resourceapi.DeviceTaintRule) *resourceapi.ResourceSlice {
	slice = slice.DeepCopy()
	for i := range slice.Spec.Devices {
		slice.Spec.Devices[i].Taints = append(slice.Spec.Devices[i].Taints, rule.Spec.Taint)
	}
	return slice
}

// TestHintBeforeHandler covers the race in the comment of feed: the hint is
// called before our handler has run. What it wakes must see the new state.
func TestHintBeforeHandler(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	tests := map[string]struct {
		objects []runtime.Object
		before  string
		// event happens, and calls the hint.
		event func(m missed) (fwk.QueueingHint, error)
		after string
	}{
		"claim deallocated": {
			objects: oneNode(1, held("holder", "node", "gpu-0")),
			before:  inUse,
			event: func(m missed) (fwk.QueueingHint, error) {
				holder := m.claim("holder")
				free := holder.DeepCopy()
				free.Status = resourceapi.ResourceClaimStatus{}
				m.stored(m.informers.Resource().V1().ResourceClaims().Informer(), free)
				return m.plugin.afterClaim(klog.Background(), pod, holder, free)
			},
			after: "Success",
		},
		"claim deleted": {
			objects: oneNode(1, held("holder", "node", "gpu-0")),
			before:  inUse,
			event: func(m missed) (fwk.QueueingHint, error) {
				holder := m.claim("holder")
				m.gone(m.informers.Resource().V1().ResourceClaims().Informer(), holder)
				return m.plugin.afterClaim(klog.Background(), pod, holder, nil)
			},
			after: "Success",
		},
		"claim deleted, last state unknown": {
			objects: oneNode(1, held("holder", "node", "gpu-0")),
			before:  inUse,
			event: func(m missed) (fwk.QueueingHint, error) {
				holder := m.claim("holder")
				m.gone(m.informers.Resource().V1().ResourceClaims().Informer(), holder)
				return m.plugin.afterClaim(klog.Background(), pod, cache.DeletedFinalStateUnknown{Obj: holder}, nil)
			},
			after: "Success",
		},
		"slice published": {
			objects: objects(builders.Class(class), builders.Node("node")),
			before:  `UnschedulableAndUnresolvable: 1 request "request": no devices on the node`,
			event: func(m missed) (fwk.QueueingHint, error) {
				slice := gpus("node", 1).Obj()
				m.stored(m.informers.Resource().V1().ResourceSlices().Informer(), slice)
				return m.plugin.afterSlice(klog.Background(), pod, nil, slice)
			},
			after: "Success",
		},
		"surplus slice deleted": {
			objects: oneNode(1, gpus("node", 0).Named("surplus")),
			before:  `UnschedulableAndUnresolvable: request "request": pool gpu.example.com/node has too many slices (2 instead of 1)`,
			event: func(m missed) (fwk.QueueingHint, error) {
				surplus, err := m.informers.Resource().V1().ResourceSlices().Lister().Get("surplus")
				if err != nil {
					return fwk.QueueSkip, err
				}
				m.gone(m.informers.Resource().V1().ResourceSlices().Informer(), surplus)
				return m.plugin.afterSlice(klog.Background(), pod, surplus, nil)
			},
			after: "Success",
		},
		"taint rule removed": {
			objects: oneNode(1, taintRule("rule")),
			before:  `UnschedulableAndUnresolvable: request "request": free devices have the untolerated taint maintenance:NoSchedule`,
			event: func(m missed) (fwk.QueueingHint, error) {
				rule, err := m.informers.Resource().V1().DeviceTaintRules().Lister().Get("rule")
				if err != nil {
					return fwk.QueueSkip, err
				}
				m.gone(m.informers.Resource().V1().DeviceTaintRules().Informer(), rule)
				slice := m.slice("node")
				return m.plugin.afterSlice(klog.Background(), pod, patched(slice, rule), slice)
			},
			after: "Success",
		},
		"taint rule added": {
			objects: oneNode(1),
			before:  "Success",
			event: func(m missed) (fwk.QueueingHint, error) {
				rule := taintRule("rule")
				m.stored(m.informers.Resource().V1().DeviceTaintRules().Informer(), rule)
				slice := m.slice("node")
				return m.plugin.afterSlice(klog.Background(), pod, slice, patched(slice, rule))
			},
			after: `UnschedulableAndUnresolvable: request "request": free devices have the untolerated taint maintenance:NoSchedule`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, objects(tc.objects, claimFor("claim", 1)), func(h *harness) {
				expectAll(t, "search before the event", h.attempt(pod).search("node"), tc.before)
				hint, err := tc.event(missed{h})
				if err != nil || hint != fwk.Queue {
					t.Errorf("hint: got %v, %v, want %v", hint, err, fwk.Queue)
				}
				expectAll(t, "search after the hint", h.attempt(pod).search("node"), tc.after)
			})
		})
	}
}

// TestHandlerBeforeHint is the other order: the handlers have seen everything,
// and a hint comes late, with events that are old by now.
func TestHandlerBeforeHint(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(1, held("holder", "node", "gpu-0"), claimFor("claim", 1)), func(h *harness) {
		holding := h.claim("holder")
		free := h.setStatus("holder", func(status *resourceapi.ResourceClaimStatus) {
			*status = resourceapi.ResourceClaimStatus{}
		})
		h.settle()
		expectAll(t, "search after the handler", h.attempt(pod).search("node"), "Success")

		for what, event := range map[string][2]*resourceapi.ResourceClaim{
			"the same event":  {holding, free},
			"an older event":  {nil, holding},
			"a late creation": {nil, free},
		} {
			if _, err := h.plugin.afterClaim(klog.Background(), pod, optional(event[0]), event[1]); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			expectAll(t, "search after "+what, h.attempt(pod).search("node"), "Success")
		}
	})
}

// optional avoids an interface that holds a nil pointer, which no event has.
func optional(claim *resourceapi.ResourceClaim) any {
	if claim == nil {
		return nil
	}
	return claim
}

// TestStaleSlice gives an event about a slice that is gone, and one that has
// the taints of a rule that is gone: neither may come back.
func TestStaleSlice(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, oneNode(1, taintRule("rule"), claimFor("claim", 1)), func(h *harness) {
		m := missed{h}
		slice, rule := m.slice("node"), taintRule("rule")
		if err := h.client.ResourceV1().DeviceTaintRules().Delete(h.ctx, "rule", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.settle()
		hint(t, h, pod, slice, patched(slice, rule))
		expectAll(t, "search after a stale taint", h.attempt(pod).search("node"), "Success")

		if err := h.client.ResourceV1().ResourceSlices().Delete(h.ctx, slice.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.settle()
		hint(t, h, pod, nil, slice)
		expectAll(t, "search after a stale slice", h.attempt(pod).search("node"),
			`UnschedulableAndUnresolvable: 1 request "request": no devices on the node`)
	})
}

func hint(t *testing.T, h *harness, pod *corev1.Pod, before any, after *resourceapi.ResourceSlice) {
	t.Helper()
	if _, err := h.plugin.afterSlice(klog.Background(), pod, before, after); err != nil {
		t.Errorf("hint: %v", err)
	}
}

// TestPatchedSliceIsNotKept: a hint reports a new slice with the taints of a
// rule in it. They go with the rule, so they must not pass for the driver's.
func TestPatchedSliceIsNotKept(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, objects(builders.Class(class), builders.Node("node"), taintRule("rule"), claimFor("claim", 1)), func(h *harness) {
		slice := gpus("node", 1).Obj()
		missed{h}.stored(h.informers.Resource().V1().ResourceSlices().Informer(), slice)
		hint(t, h, pod, nil, patched(slice, taintRule("rule")))
		expectAll(t, "search under the rule", h.attempt(pod).search("node"),
			`UnschedulableAndUnresolvable: request "request": free devices have the untolerated taint maintenance:NoSchedule`)
		if err := h.client.ResourceV1().DeviceTaintRules().Delete(h.ctx, "rule", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.settle()
		expectAll(t, "search without the rule", h.attempt(pod).search("node"), "Success")
	})
}
