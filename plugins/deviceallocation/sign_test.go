package deviceallocation

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// generatedFor is a claim made from a template for a pod.
func generatedFor(pod string, requests ...builders.AnyRequest) *builders.ClaimBuilder {
	return builders.Claim("of-"+pod, requests...).With(func(c *resourceapi.ResourceClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("uid-of-" + pod), Controller: ptr.To(true),
		}}
	})
}

func templatePod(name string) *corev1.Pod {
	return builders.Pod(name).ClaimTemplate("gpu", "template", "of-"+name).Obj()
}

// TestSignPod compares the signatures of two pods.
func TestSignPod(t *testing.T) {
	gpu := func(class string) *builders.RequestBuilder { return builders.Request("gpu", class) }
	tests := map[string]struct {
		objects []any
		a, b    *corev1.Pod
		equal   bool
	}{
		"no devices":                       {a: builders.Pod("a").Obj(), b: builders.Pod("b").Obj(), equal: true},
		"one with devices":                 {objects: []any{generatedFor("a", gpu(class))}, a: templatePod("a"), b: builders.Pod("b").Obj()},
		"equal claims from templates":      {objects: []any{generatedFor("a", gpu(class)), generatedFor("b", gpu(class))}, a: templatePod("a"), b: templatePod("b"), equal: true},
		"different numbers of devices":     {objects: []any{generatedFor("a", gpu(class)), generatedFor("b", gpu(class).Count(2))}, a: templatePod("a"), b: templatePod("b")},
		"different selectors":              {objects: []any{generatedFor("a", gpu(class)), generatedFor("b", gpu(class).Select("true"))}, a: templatePod("a"), b: templatePod("b")},
		"equal claims of users":            {objects: []any{claimFor("a", 1), claimFor("b", 1)}, a: builders.Pod("a").Claim("a").Obj(), b: builders.Pod("b").Claim("b").Obj()},
		"one claim for both":               {objects: []any{claimFor("a", 1)}, a: builders.Pod("a").Claim("a").Obj(), b: builders.Pod("b").Claim("a").Obj(), equal: true},
		"one of two claims has devices":    {objects: []any{held("a", "node", "gpu-0"), claimFor("b", 1)}, a: builders.Pod("a").Claim("a").Obj(), b: builders.Pod("b").Claim("b").Obj()},
		"equal extended resources":         {a: extendedPod("a", "1"), b: extendedPod("b", "1"), equal: true},
		"different extended resources":     {a: extendedPod("a", "1"), b: extendedPod("b", "2")},
		"none of an extended resource":     {a: extendedPod("a", "0"), b: builders.Pod("b").Obj(), equal: true},
		"an extended resource or a claim":  {objects: []any{generatedFor("b", gpu(class))}, a: extendedPod("a", "1"), b: templatePod("b")},
		"devices from a claim in one case": {objects: []any{generatedFor("a", gpu(class))}, a: templatePod("a"), b: extendedPod("b", "1")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, objects(append([]any{extendedClass(), builders.Node("node"), gpus("node", 2)}, tc.objects...)...), func(h *harness) {
				a, b := h.signature(tc.a), h.signature(tc.b)
				if (a == b) != tc.equal {
					t.Errorf("equal: got %v, want %v: %s and %s", a == b, tc.equal, a, b)
				}
			})
		})
	}
}

// TestSignPodRefuses has pods of which nothing can be said yet.
func TestSignPodRefuses(t *testing.T) {
	tests := map[string]struct {
		objects []any
		pod     *corev1.Pod
		want    string
	}{
		"claim not made yet": {pod: builders.Pod("pod").ClaimTemplate("gpu", "template", "").Obj(), want: `Unschedulable: waiting for the claim "gpu" of the pod: `},
		"claim not seen yet": {pod: builders.Pod("pod").Claim("claim").Obj(), want: `Unschedulable: resourceclaim "claim" not found`},
		"class missing":      {objects: []any{builders.Claim("claim", builders.Request("gpu", "missing"))}, pod: builders.Pod("pod").Claim("claim").Obj(), want: `Unschedulable: claim claim, request "gpu": device class missing does not exist`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, objects(tc.objects...), func(h *harness) {
				fragments, status := h.plugin.SignPod(h.ctx, tc.pod)
				if got := text(status); !strings.HasPrefix(got, tc.want) {
					t.Errorf("status: got %q, want %q", got, tc.want)
				}
				expect(t, "number of fragments", len(fragments), 0)
			})
		})
	}
}

// signature is what the scheduler makes of the fragments.
func (h *harness) signature(pod *corev1.Pod) string {
	h.Helper()
	fragments, status := h.plugin.SignPod(h.ctx, pod)
	if !status.IsSuccess() {
		h.Fatalf("sign pod %s: %s", pod.Name, text(status))
	}
	values := make(map[string]any)
	for _, fragment := range fragments {
		values[fragment.Key] = fragment.Value
	}
	signature, err := json.Marshal(values)
	if err != nil {
		h.Fatal(err)
	}
	return string(signature)
}

// TestScoresOfABatch: with opportunistic batching NormalizeScore gets what Score
// has said in the attempt of an equal pod, about nodes that this attempt has not
// looked at and of which one has changed since.
func TestScoresOfABatch(t *testing.T) {
	cluster := objects(builders.Class(class),
		builders.Node("big"), builders.Node("middle"), builders.Node("small"), gpus("big", 4), gpus("middle", 3), gpus("small", 2),
		claimFor("first", 1), claimFor("second", 1), claimFor("third", 1), claimFor("other", 3))
	pod := func(name string) *corev1.Pod { return builders.Pod(name).Claim(name).Obj() }
	run(t, cluster, func(h *harness) {
		first := h.attempt(pod("first")).find("big", "middle", "small")
		raw := first.rawScores(h.nodes...)
		first.must(first.reserve("small"))
		other := h.attempt(pod("other")).find("big")
		other.must(other.reserve("big")) // the last one there is in use
		h.attempt(pod("third")).find("big")

		second := h.attempt(pod("second")).find("small")
		copy(raw[2:], second.rawScores(h.node("small")))
		got := second.normalize(raw)
		for i, want := range []int64{100, 0, 100} {
			expect(t, "score of "+got[i].Name, got[i].Score, want)
		}
	})
}
