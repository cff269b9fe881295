package deviceallocation

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// extendedPod asks for GPUs as an extended resource.
func extendedPod(name string, n string) *corev1.Pod {
	pod := builders.Pod(name).Obj()
	quantities := corev1.ResourceList{"example.com/gpu": resource.MustParse(n)}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: quantities, Limits: quantities}}}
	return pod
}

// extendedClass backs example.com/gpu.
func extendedClass() *resourceapi.DeviceClass {
	c := builders.Class(class).Obj()
	c.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	return c
}

// leftover is a claim that an earlier attempt made for a pod.
func leftover(pod *corev1.Pod) *builders.ClaimBuilder {
	return builders.Claim("leftover").With(func(c *resourceapi.ResourceClaim) {
		c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}}
	})
}

// hintCase is one event for one waiting pod.
type hintCase struct {
	pod           *corev1.Pod
	before, after any
	want          fwk.QueueingHint
	// err says that the event makes no sense, which wakes the pod as well.
	err bool
}

func testHints(t *testing.T, resource fwk.EventResource, tests map[string]hintCase) {
	t.Helper()
	objects := oneNode(1, extendedClass(), claimFor("claim", 1), held("allocated", "node", "gpu-0"))
	objects = objects[1:] // the class is that for extended resources
	run(t, objects, func(h *harness) {
		registered, err := h.plugin.EventsToRegister(h.ctx)
		if err != nil {
			t.Fatal(err)
		}
		index := slices.IndexFunc(registered, func(e fwk.ClusterEventWithHint) bool { return e.Event.Resource == resource })
		if index < 0 {
			t.Fatalf("no event of %s is registered", resource)
		}
		for _, name := range slices.Sorted(maps.Keys(tests)) {
			tc := tests[name]
			hint, err := registered[index].QueueingHintFn(klog.Background(), tc.pod, tc.before, tc.after)
			if (err != nil) != tc.err || hint != tc.want {
				t.Errorf("%s: got %v, %v, want %v", name, hint, err, tc.want)
			}
		}
		if hint, err := registered[index].QueueingHintFn(klog.Background(), waiting(), "no object", "no object"); resource != fwk.ResourceSlice && (err == nil || hint != fwk.Queue) {
			t.Errorf("event of another type: got %v, %v, want an error and %v", hint, err, fwk.Queue)
		}
	})
}

func waiting() *corev1.Pod { return builders.Pod("pod").Claim("claim").Obj() }

func incomplete() *corev1.Pod { return builders.Pod("pod").Claim("claim").Claim("missing").Obj() }

func TestEventsToRegister(t *testing.T) {
	run(t, oneNode(1), func(h *harness) {
		registered, err := h.plugin.EventsToRegister(h.ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[fwk.EventResource]fwk.ActionType)
		for _, event := range registered {
			got[event.Event.Resource] |= event.Event.ActionType
		}
		want := map[fwk.EventResource]fwk.ActionType{
			fwk.Node:          fwk.Add | fwk.UpdateNodeLabel | fwk.UpdateNodeAllocatable | fwk.UpdateNodeDeclaredFeature,
			fwk.ResourceClaim: fwk.Add | fwk.Update | fwk.Delete,
			fwk.ResourceSlice: fwk.Add | fwk.Update | fwk.Delete,
			fwk.DeviceClass:   fwk.Add | fwk.Update,
			fwk.TargetPod:     fwk.UpdatePodGeneratedResourceClaim,
			fwk.AssignedPod:   fwk.Delete,
		}
		if !maps.Equal(got, want) {
			t.Errorf("events: got %v, want %v", got, want)
		}
	})
}

func TestHintsAfterClaim(t *testing.T) {
	// Each case has claims of its own: the ledger remembers what it has seen.
	seen := func(name string, version int, c *builders.ClaimBuilder) *resourceapi.ResourceClaim {
		return c.With(func(claim *resourceapi.ResourceClaim) {
			claim.Name, claim.UID, claim.ResourceVersion = name, "uid-of-"+claim.UID, resource.NewQuantity(int64(version), resource.DecimalSI).String()
		}).Obj()
	}
	own := func(version int, change func(*resourceapi.ResourceClaim)) *resourceapi.ResourceClaim {
		claim := claimFor("claim", 1).Obj()
		claim.ResourceVersion = resource.NewQuantity(int64(version), resource.DecimalSI).String()
		if change != nil {
			change(claim)
		}
		return claim
	}
	reserved := func(c *resourceapi.ResourceClaim) {
		c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Name: "other"}}
	}
	testHints(t, fwk.ResourceClaim, map[string]hintCase{
		"own claim created":                                    {pod: waiting(), after: own(100, nil), want: fwk.Queue},
		"own claim's status changes":                           {pod: waiting(), before: own(100, nil), after: own(101, reserved), want: fwk.Queue},
		"own claim's metadata changes":                         {pod: waiting(), before: own(101, nil), after: own(102, func(c *resourceapi.ResourceClaim) { c.Labels = map[string]string{"a": "b"} }), want: fwk.QueueSkip},
		"foreign claim created":                                {pod: waiting(), after: seen("a", 110, claimFor("a", 1)), want: fwk.QueueSkip},
		"foreign claim allocated":                              {pod: waiting(), before: seen("b", 111, claimFor("b", 1)), after: seen("b", 112, held("b", "node", "gpu-0")), want: fwk.QueueSkip},
		"foreign claim deallocated":                            {pod: waiting(), before: seen("c", 113, held("c", "node", "gpu-0")), after: seen("c", 114, claimFor("c", 1)), want: fwk.Queue},
		"foreign claim reallocated":                            {pod: waiting(), before: seen("d", 115, held("d", "node", "gpu-0")), after: seen("d", 116, held("d", "node", "gpu-1")), want: fwk.Queue},
		"foreign claim deallocated, but the pod lacks a claim": {pod: incomplete(), before: seen("e", 117, held("e", "node", "gpu-0")), after: seen("e", 118, claimFor("e", 1)), want: fwk.QueueSkip},
		"allocated claim deleted":                              {pod: waiting(), before: seen("f", 119, held("f", "node", "gpu-0")), want: fwk.Queue},
		"unallocated claim deleted":                            {pod: waiting(), before: seen("g", 120, claimFor("g", 1)), want: fwk.QueueSkip},
		"claim deleted, last state unknown":                    {pod: waiting(), before: cache.DeletedFinalStateUnknown{Obj: seen("h", 121, claimFor("h", 1))}, want: fwk.Queue},
		"old state of another type":                            {pod: waiting(), before: "no claim", after: own(103, nil), want: fwk.Queue, err: true},
		"claim deleted, nothing known":                         {pod: waiting(), before: cache.DeletedFinalStateUnknown{Key: "default/i"}, want: fwk.Queue},
		"claim of another owner":                               {pod: builders.Pod("pod").ClaimTemplate("gpu", "template", "j").Obj(), after: seen("j", 122, held("j", "node", "gpu-0")).DeepCopy(), want: fwk.QueueSkip},
		"unallocated leftover of the pod deleted":              {pod: extendedPod("pod", "1"), before: leftover(extendedPod("pod", "1")).Obj(), want: fwk.Queue},
		"unallocated leftover of another pod deleted":          {pod: extendedPod("pod", "1"), before: leftover(extendedPod("other", "1")).Obj(), want: fwk.QueueSkip},
		"claim for the pod's extended resources changes":       {pod: extendedPod("pod", "1"), after: leftover(extendedPod("pod", "1")).With(func(c *resourceapi.ResourceClaim) { c.UID = "another" }).Obj(), want: fwk.Queue},
	})
}

func TestHintsAfterSlice(t *testing.T) {
	slice := gpus("node", 2).Obj()
	testHints(t, fwk.ResourceSlice, map[string]hintCase{
		"published":              {pod: waiting(), after: slice, want: fwk.Queue},
		"changed":                {pod: waiting(), before: gpus("node", 1).Obj(), after: slice, want: fwk.Queue},
		"published again":        {pod: waiting(), before: slice.DeepCopy(), after: slice, want: fwk.QueueSkip},
		"deleted":                {pod: waiting(), before: slice, want: fwk.Queue},
		"deleted, state unknown": {pod: waiting(), before: cache.DeletedFinalStateUnknown{Obj: slice}, want: fwk.Queue},
		"the pod lacks a claim":  {pod: incomplete(), after: slice, want: fwk.QueueSkip},
	})
}

func TestHintsAfterNode(t *testing.T) {
	node, labelled := builders.Node("node"), builders.Node("node", "zone", "a")
	testHints(t, fwk.Node, map[string]hintCase{
		"added":                           {pod: waiting(), after: node, want: fwk.Queue},
		"labelled":                        {pod: waiting(), before: node, after: labelled, want: fwk.Queue},
		"other resources":                 {pod: waiting(), before: node, after: node, want: fwk.QueueSkip},
		"other resources, which matter":   {pod: extendedPod("pod", "1"), before: node, after: node, want: fwk.Queue},
		"added, but the pod lacks claims": {pod: incomplete(), after: node, want: fwk.QueueSkip},
	})
}

func TestHintsAfterClass(t *testing.T) {
	other := builders.Class("other").Obj()
	testHints(t, fwk.DeviceClass, map[string]hintCase{
		"asked for":                         {pod: waiting(), after: extendedClass(), want: fwk.Queue},
		"not asked for":                     {pod: waiting(), after: other, want: fwk.QueueSkip},
		"asked for by an allocated claim":   {pod: builders.Pod("pod").Claim("allocated").Obj(), after: extendedClass(), want: fwk.QueueSkip},
		"any, with extended resources":      {pod: extendedPod("pod", "1"), after: other, want: fwk.Queue},
		"deleted":                           {pod: waiting(), before: extendedClass(), want: fwk.QueueSkip},
		"asked for, but a claim is missing": {pod: incomplete(), after: extendedClass(), want: fwk.QueueSkip},
	})
}

func TestHintsAfterPods(t *testing.T) {
	gone := builders.Pod("gone").Claim("claim").OnNode("node").Obj()
	deleted := gone.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{}
	testHints(t, fwk.AssignedPod, map[string]hintCase{
		"binding failed, with claims":             {pod: waiting(), before: gone, want: fwk.Queue},
		"binding failed, with extended resources": {pod: waiting(), before: extendedPod("gone", "1"), want: fwk.Queue},
		"binding failed, without devices":         {pod: waiting(), before: builders.Pod("plain").Obj(), want: fwk.QueueSkip},
		"deleted":                                 {pod: waiting(), before: deleted, want: fwk.QueueSkip},
	})
	testHints(t, fwk.TargetPod, map[string]hintCase{
		"claims generated":          {pod: incomplete(), before: incomplete(), after: waiting(), want: fwk.Queue},
		"claim named, but not seen": {pod: builders.Pod("pod").ClaimTemplate("gpu", "template", "").Obj(), after: builders.Pod("pod").ClaimTemplate("gpu", "template", "unseen").Obj(), want: fwk.QueueSkip},
		"not all of them made":      {pod: incomplete(), before: incomplete(), after: incomplete(), want: fwk.QueueSkip},
	})
}
