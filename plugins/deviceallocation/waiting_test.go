package deviceallocation

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestHintsForRememberedPods: a pod that has found no device is woken by what may
// serve it, and by nothing else. The cluster has a GPU and a NIC on the node
// "node", and both are in use.
func TestHintsForRememberedPods(t *testing.T) {
	nic := func(name string) *builders.DeviceBuilder { return builders.Device(name).Attribute("type", "nic") }
	gpu := func(name string) *builders.DeviceBuilder { return builders.Device(name).Attribute("type", "gpu") }
	pool := func(node string, version string, devices ...*builders.DeviceBuilder) *resourceapi.ResourceSlice {
		slice := builders.Slice(driver, node).OnNode(node).Devices(devices...).Obj()
		slice.ResourceVersion = version
		return slice
	}
	before := pool("node", "10", gpu("gpu-0"), nic("nic-0"))
	tainted := func(d *builders.DeviceBuilder) *builders.DeviceBuilder {
		return d.Taint("broken", resourceapi.DeviceTaintEffectNoSchedule)
	}
	freed := func(device string) (*resourceapi.ResourceClaim, *resourceapi.ResourceClaim) {
		was := held("holder-of-"+device, "node", device).Obj()
		is := was.DeepCopy()
		is.ResourceVersion, is.Status = "1000", resourceapi.ResourceClaimStatus{}
		return was, is
	}
	gpuWas, gpuIs := freed("gpu-0")
	nicWas, nicIs := freed("nic-0")
	oneGPU := builders.Claim("claim", builders.Request("gpu", class).Select(`device.attributes["gpu.example.com"].type == "gpu"`))
	allGPUs := builders.Claim("claim", builders.Request("gpu", class).All().Select(`device.attributes["gpu.example.com"].type == "gpu"`))
	labelled := builders.Node("node", "zone", "a")

	tests := map[string]struct {
		claim         *builders.ClaimBuilder
		before, after any
		// published is what the informers show when the event comes.
		published *resourceapi.ResourceSlice
		want      fwk.QueueingHint
	}{
		"the GPU comes free":                 {before: gpuWas, after: gpuIs, want: fwk.Queue},
		"the NIC comes free":                 {before: nicWas, after: nicIs, want: fwk.QueueSkip},
		"the claim of the GPU is deleted":    {before: gpuWas, want: fwk.Queue},
		"the claim of the NIC is deleted":    {before: nicWas, want: fwk.QueueSkip},
		"another GPU in the pool":            {before: before, published: pool("node", "11", gpu("gpu-0"), gpu("gpu-1"), nic("nic-0")), want: fwk.Queue},
		"another NIC in the pool":            {before: before, published: pool("node", "11", gpu("gpu-0"), nic("nic-0"), nic("nic-1")), want: fwk.QueueSkip},
		"a tainted GPU in the pool":          {before: before, published: pool("node", "11", gpu("gpu-0"), tainted(gpu("gpu-1"))), want: fwk.Queue},
		"the GPU in use changes":             {before: before, published: pool("node", "11", gpu("gpu-0").Attribute("health", "good"), nic("nic-0")), want: fwk.QueueSkip},
		"a pool of another node":             {published: pool("other", "11", gpu("gpu-0")), want: fwk.Queue},
		"a pool of NICs of another node":     {published: pool("other", "11", nic("nic-0")), want: fwk.QueueSkip},
		"the pool goes away":                 {before: before, want: fwk.Queue},
		"the GPU in use changes, for all":    {claim: allGPUs, before: before, published: pool("node", "11", gpu("gpu-0").Attribute("health", "good"), nic("nic-0")), want: fwk.Queue},
		"a node without pools":               {after: builders.Node("third"), want: fwk.QueueSkip},
		"the node itself appears again":      {after: builders.Node("node"), want: fwk.QueueSkip},
		"labels, with pools that name nodes": {before: builders.Node("node"), after: labelled, want: fwk.QueueSkip},
		"a claim deleted, nothing known":     {before: cache.DeletedFinalStateUnknown{Key: "default/i"}, want: fwk.Queue},
		"the pod's own claim gets reserved": {before: oneGPU.Obj(), after: oneGPU.With(func(c *resourceapi.ResourceClaim) {
			c.ResourceVersion = "1000"
			c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Name: "other"}}
		}).Obj(), want: fwk.Queue},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			claim := tc.claim
			if claim == nil {
				claim = oneGPU
			}
			cluster := objects(builders.Class(class), builders.Node("node"), before, gpuWas, nicWas, claim)
			run(t, cluster, func(h *harness) {
				pod := waiting()
				a := h.attempt(pod)
				for _, status := range a.search("node") {
					if status == "Success" {
						t.Fatal("the pod does not have to wait")
					}
				}
				a.postFilter()
				after := tc.after
				if tc.published != nil {
					after = tc.published
				}
				if _, known := h.plugin.waiting.needs(pod.UID); !known {
					t.Fatal("the pod is not remembered")
				}
				expect(t, "hint", h.hint(pod, tc.before, after), tc.want)
			})
		})
	}
}

// hint asks the hint for an event of an object whose informer shows the new state
// already.
func (h *harness) hint(pod *corev1.Pod, before, after any) fwk.QueueingHint {
	h.Helper()
	object := after
	if object == nil {
		object = before
	}
	var hint fwk.QueueingHintFn
	switch object.(type) {
	case *resourceapi.ResourceSlice:
		hint = h.plugin.afterSlice
		store := h.informers.Resource().V1().ResourceSlices().Informer().GetStore()
		if after == nil {
			_ = store.Delete(before)
		} else {
			_ = store.Update(after)
		}
	case *corev1.Node:
		hint = h.plugin.afterNode
	default:
		hint = h.plugin.afterClaim
	}
	got, err := hint(klog.Background(), pod, before, after)
	if err != nil {
		h.Fatal(err)
	}
	return got
}

// manySelectors is a request that is too large to be remembered.
func manySelectors() builders.AnyRequest {
	return builders.Request("many", class).Select(slices.Repeat([]string{"true"}, maxSelectors)...)
}

// TestForgottenPods: only what kept the pod from running counts.
func TestForgottenPods(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Claim("other").Obj()
	busy := []any{held("first", "node", "gpu-0"), claimFor("claim", 1)}
	tests := map[string]struct {
		objects []any
		again   bool
		want    bool
	}{
		"two claims without devices":   {objects: append(busy, claimFor("other", 1)), want: true},
		"one claim has devices":        {objects: append(busy, held("other", "node", "gpu-1"))},
		"more than can be kept":        {objects: append(busy, claimFor("other", 1).Requests(manySelectors())), want: false},
		"the pod is being tried again": {objects: append(busy, claimFor("other", 1)), again: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, objects(builders.Class(class), builders.Node("node"), gpus("node", 2), objects(tc.objects...)), func(h *harness) {
				a := h.attempt(pod)
				a.search("node")
				a.postFilter()
				if tc.again {
					h.attempt(pod).preFilter()
				}
				_, known := h.plugin.waiting.needs(pod.UID)
				expect(t, "remembered", known, tc.want)
			})
		})
	}
}

// TestPodsForClaim: who is asked about an event of a claim, and that the ledger
// learns of it although no other hint may follow.
func TestPodsForClaim(t *testing.T) {
	shared := claimFor("claim", 1)
	user := func(name string) *corev1.Pod { return builders.Pod(name).Claim("claim").Obj() }
	generated := builders.Pod("generated").ClaimTemplate("gpu", "template", "of-generated").Obj()
	was := held("holder", "node", "gpu-0").Obj()
	is := was.DeepCopy()
	is.ResourceVersion, is.Status = "1000", resourceapi.ResourceClaimStatus{}
	tests := map[string]struct {
		before, after any
		all           bool
		want          []string
		err           bool
	}{
		"claim of two pods changes":        {before: shared.Obj(), after: shared.Obj(), want: []string{"a", "b"}},
		"claim of two pods appears":        {after: shared.Obj(), want: []string{"a", "b"}},
		"claim of two pods goes":           {before: shared.Obj(), want: []string{"a", "b"}},
		"claim of nobody":                  {after: claimFor("unused", 1).Obj()},
		"claim made for a pod":             {after: generatedFor("generated").Obj(), want: []string{"generated"}},
		"claim made for a pod that is new": {after: generatedFor("unseen").Obj(), want: []string{"unseen"}},
		"claim for extended resources":     {after: leftover(builders.Pod("extended").Obj()).Obj(), want: []string{"extended"}},
		"devices come free":                {before: was, after: is, all: true},
		"an allocated claim goes":          {before: was, all: true},
		"nobody knows what went":           {before: cache.DeletedFinalStateUnknown{Key: "default/gone"}, all: true},
		"an object of another type":        {before: "no claim", after: "no claim", err: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, oneNode(1, user("a"), user("b"), generated, was), func(h *harness) {
				got, err := h.plugin.podsForClaim(klog.Background(), tc.before, tc.after)
				expect(t, "failed", err != nil, tc.err)
				expect(t, "all pods", got.AllPods, tc.all)
				var pods []string
				for _, pod := range got.Pods {
					if pod.Namespace != builders.Namespace {
						t.Errorf("pod of another namespace: %v", pod)
					}
					pods = append(pods, pod.Name)
				}
				slices.Sort(pods)
				expectAll(t, "pods", slices.Compact(pods), tc.want...)
				if tc.before == any(was) {
					expectAll(t, "holders", h.holders("node", "gpu-0"))
				}
			})
		})
	}
}

// TestNames: names and podsIndex agree on which claims a pod uses.
func TestNames(t *testing.T) {
	pods := []*corev1.Pod{
		builders.Pod("none").Obj(),
		builders.Pod("one").Claim("claim").Obj(),
		builders.Pod("two").Claim("other").Claim("claim").Obj(),
		builders.Pod("generated").ClaimTemplate("gpu", "template", "claim").Obj(),
		builders.Pod("waiting").ClaimTemplate("gpu", "template", "").Obj(),
	}
	foreign := builders.Pod("foreign").Claim("claim").Obj()
	foreign.Namespace = "elsewhere"
	claim := claimFor("claim", 1).Obj()
	for _, pod := range append(pods, foreign) {
		keys, err := claimsOfPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}.String()
		expect(t, pod.Name+" names the claim", names(pod, claim), slices.Contains(keys, key))
	}
}
