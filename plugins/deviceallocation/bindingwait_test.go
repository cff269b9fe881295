package deviceallocation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

func conditionalClass() *builders.ClassBuilder { return builders.Class(class) }

// bubble is run for objects that need the bubble's time. There is the node
// "node", and what was watched must be given up in the end.
func bubble(t *testing.T, make func() []any, test func(*harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newTestPlugin(t, objects(append([]any{builders.Node("node")}, make()...)...)...)
		test(h)
		expect(t, "claims that are still watched", len(h.plugin.feed.watch.watchers), 0)
	})
}

// binding is a PreBind that runs.
type binding struct {
	*attempt
	node    string
	started time.Time
	cancel  context.CancelCauseFunc
	done    chan *fwk.Status
	status  *fwk.Status
	ended   bool
	took    time.Duration
}

// startPreBind takes the attempt to where PreBind waits, if it does.
func (a *attempt) startPreBind(node string) *binding {
	a.Helper()
	ctx, cancel := context.WithCancelCause(a.ctx)
	w := &binding{attempt: a, node: node, started: time.Now(), cancel: cancel, done: make(chan *fwk.Status, 1)}
	a.Cleanup(func() { cancel(nil) })
	go func() {
		status := a.plugin.PreBind(ctx, a.cycle, a.pod, node)
		w.took = time.Since(w.started)
		w.done <- status
	}()
	a.settle()
	return w
}

func (w *binding) waits() bool {
	w.settle()
	select {
	case w.status = <-w.done:
		w.ended = true
	default:
	}
	return !w.ended
}

// end waits for the end of PreBind, however long that takes, and does what the
// framework does then.
func (w *binding) end() string {
	if w.waits() {
		w.status, w.ended = <-w.done, true
	}
	if !w.status.IsSuccess() {
		w.unreserve(w.node)
	}
	w.settle()
	return text(w.status)
}

const (
	preBind     = "Error: bind devices on node node: "
	waitFailed  = preBind + "resourceclaim default/claim: device gpu.example.com/node/gpu-0 cannot be made ready: condition broken is true (Simulated: by the test)"
	waitTimeout = preBind + "resourceclaim default/claim: device gpu.example.com/node/gpu-0 is not ready after 10m0s (bindingTimeout): condition "
)

// TestBindingWait: a driver reports, or does not, and other things happen.
func TestBindingWait(t *testing.T) {
	type step struct {
		after time.Duration
		do    func(*binding)
	}
	driver := func(after time.Duration, conditions ...string) step {
		return step{after, func(w *binding) { w.setStatus("claim", reports("node", "gpu-0", conditions...)) }}
	}
	all := []string{attached + "=True", powered + "=True"}
	tests := map[string]struct {
		steps []step
		want  string
		// took is exact: nothing is looked at every so often.
		took  time.Duration
		claim string
	}{
		"both conditions at once":            {steps: []step{driver(7*time.Second, all...)}, took: 7 * time.Second},
		"one condition after the other":      {steps: []step{driver(time.Second, attached+"=True"), driver(time.Minute, all...)}, took: time.Minute + time.Second},
		"a condition that comes and goes":    {steps: []step{driver(0, attached+"=True"), driver(0, attached+"=False"), driver(time.Second, powered+"=True"), driver(time.Second, all...)}, took: 2 * time.Second},
		"just in time":                       {steps: []step{driver(10*time.Minute-time.Nanosecond, all...)}, took: 10*time.Minute - time.Nanosecond},
		"failure":                            {steps: []step{driver(3*time.Second, broken+"=True")}, took: 3 * time.Second, want: waitFailed, claim: "free"},
		"failure on the way":                 {steps: []step{driver(3*time.Second, attached+"=True"), driver(time.Second, attached+"=True", broken+"=True")}, took: 4 * time.Second, want: waitFailed, claim: "free"},
		"no report":                          {took: 10 * time.Minute, want: waitTimeout + "attached is not true", claim: "free"},
		"half a report":                      {steps: []step{driver(9*time.Minute, attached+"=True")}, took: 10 * time.Minute, want: waitTimeout + "powered is not true", claim: "free"},
		"the scheduler gives the attempt up": {steps: []step{{time.Second, func(w *binding) { w.cancel(errors.New("preempted")) }}}, took: time.Second, want: preBind + "wait for devices to get ready: preempted", claim: "free"},
		"pod deleted, controller cleans up": {steps: []step{{time.Second, func(w *binding) {
			w.setStatus("claim", func(s *resourceapi.ResourceClaimStatus) { *s = resourceapi.ResourceClaimStatus{} })
		}}}, took: time.Second, want: preBind + "claim default/claim lost its devices while the pod waited for them", claim: "free"},
		"pod deleted, others use the claim": {steps: []step{{time.Second, func(w *binding) {
			w.setStatus("claim", func(s *resourceapi.ResourceClaimStatus) {
				s.ReservedFor = []resourceapi.ResourceClaimConsumerReference{consumer(builders.Pod("other").Obj())}
			})
		}}}, took: time.Second, want: preBind + "claim default/claim is no longer reserved for the pod, which waited for its devices", claim: "allocated node/gpu-0, for other"},
		"claim to be deleted": {steps: []step{{time.Second, func(w *binding) { w.deleteClaimNamed("claim") }}, driver(time.Second, all...)}, took: 2 * time.Second},
		"claim gone": {steps: []step{{time.Second, func(w *binding) { w.removeClaim("claim") }}},
			took: time.Second, want: preBind + "claim default/claim was deleted while the pod waited for its devices", claim: "gone"},
		"claim replaced": {steps: []step{{time.Second, func(w *binding) { w.replaceClaim("claim") }}},
			took: time.Second, want: preBind + "claim default/claim was deleted while the pod waited for its devices", claim: "free"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				tc.want, tc.claim = "Success", "allocated node/gpu-0, for pod"
			}
			pod := builders.Pod("pod").Claim("claim").Obj()
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 1), claimFor("claim", 1), pod}
			}, func(h *harness) {
				a := h.attempt(pod).find("node")
				w := a.must(a.reserve("node")).startPreBind("node")
				if !w.waits() {
					t.Fatalf("PreBind does not wait: %s", text(w.status))
				}
				expectAll(t, "holders of the device while the pod waits", h.holders("node", "gpu-0"), "claim")
				expectAll(t, "in flight while the pod waits", h.inFlight("claim"))
				for _, s := range tc.steps {
					time.Sleep(s.after)
					s.do(w)
					h.settle()
				}
				expect(t, "PreBind", w.end(), tc.want)
				expect(t, "time waited", w.took, tc.took)
				expect(t, "claim", h.describe("claim"), tc.claim)
				holders := []string{"claim"}
				if tc.claim == "free" || tc.claim == "gone" {
					holders = nil
				}
				expectAll(t, "holders in the end", h.holders("node", "gpu-0"), holders...)
				expect(t, "event", <-h.recorder.Events, "Normal BindingConditionsPending waiting for binding conditions for device on node node")
				expect(t, "more events", len(h.recorder.Events), 0)
			})
		})
	}
}

func (h *harness) deleteClaimNamed(name string) {
	h.Helper()
	if err := h.client.ResourceV1().ResourceClaims(builders.Namespace).Delete(h.ctx, name, metav1.DeleteOptions{}); err != nil {
		h.Fatalf("delete claim %s: %v", name, err)
	}
}

// removeClaim deletes a claim although it has a finalizer.
func (h *harness) removeClaim(name string) {
	h.Helper()
	if err := h.client.Tracker().Delete(resourceapi.SchemeGroupVersion.WithResource("resourceclaims"), builders.Namespace, name); err != nil {
		h.Fatalf("remove claim %s: %v", name, err)
	}
}

// replaceClaim is told to informers as an update.
func (h *harness) replaceClaim(name string) {
	h.Helper()
	next := claimFor(name, 1).Obj()
	next.UID = "another"
	h.stamp(next)
	if err := h.client.Tracker().Update(resourceapi.SchemeGroupVersion.WithResource("resourceclaims"), next, builders.Namespace); err != nil {
		h.Fatalf("replace claim %s: %v", name, err)
	}
}

// stored reads a claim when the scheduler's context is over.
func (h *harness) stored(name string) *resourceapi.ResourceClaim {
	h.Helper()
	claim, err := h.client.ResourceV1().ResourceClaims(builders.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		h.Fatalf("get claim: %v", err)
	}
	return claim
}

// TestBindingWaitIsNotNeeded: all devices are ready when the pod comes.
func TestBindingWaitIsNotNeeded(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	for name, pods := range map[string][]string{"for the pod": {"pod"}, "for another pod": {"other"}, "for nobody": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 1), pod,
					conditional("claim", "node", "gpu-0", time.Hour, pods...).With(func(c *resourceapi.ResourceClaim) {
						reports("node", "gpu-0", attached+"=True", powered+"=True")(&c.Status)
					})}
			}, func(h *harness) {
				h.attempt(pod).bind("node")
				expect(t, "events", len(h.recorder.Events), 0)
			})
		})
	}
}

// TestBindingWaitAfterRestart: the next scheduler waits for the rest of the time.
func TestBindingWaitAfterRestart(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	tests := map[string]struct {
		ready bool
		want  string
		claim string
	}{
		"the devices get ready": {ready: true, want: "Success", claim: "allocated node/gpu-0, for pod"},
		"they are not in time":  {want: waitTimeout + "attached is not true", claim: "free"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 1), claimFor("claim", 1), pod}
			}, func(h *harness) {
				a := h.attempt(pod).find("node")
				w := a.must(a.reserve("node")).startPreBind("node")
				time.Sleep(4 * time.Minute)
				h.stop()
				expect(t, "PreBind at the end of the scheduler", w.end(), preBind+"wait for devices to get ready: context canceled")
				expect(t, "claim between the schedulers", describeClaim(h.stored("claim")), "allocated node/gpu-0, for pod")

				time.Sleep(time.Minute)
				next := startPlugin(h.T, h.api, []*corev1.Node{builders.Node("node")}, func(*harness) {})
				b := next.attempt(pod).find("node")
				w = b.must(b.reserve("node")).startPreBind("node")
				if !w.waits() {
					t.Fatalf("PreBind does not wait: %s", text(w.status))
				}
				took := 5 * time.Minute
				if tc.ready {
					took = time.Minute
					time.Sleep(took)
					next.setStatus("claim", reports("node", "gpu-0", attached+"=True", powered+"=True"))
				}
				expect(t, "PreBind", w.end(), tc.want)
				expect(t, "time waited", w.took, took)
				expect(t, "claim", next.describe("claim"), tc.claim)
			})
		})
	}
}

// TestBindingWaitOfTwoPods: two pods wait for the devices of one claim.
func TestBindingWaitOfTwoPods(t *testing.T) {
	tests := map[string]struct {
		happens func(h *harness, first, second *binding)
		// how the two end, and what the claim is after the first and in the end
		first, second    string
		between, finally string
	}{
		"ready": {
			happens: func(h *harness, _, _ *binding) {
				h.setStatus("claim", reports("node", "gpu-0", attached+"=True", powered+"=True"))
			},
			first: "Success", second: "Success",
			between: "allocated node/gpu-0, for one, for two", finally: "allocated node/gpu-0, for one, for two",
		},
		"failed": {
			happens: func(h *harness, _, _ *binding) { h.setStatus("claim", reports("node", "gpu-0", broken+"=True")) },
			first:   waitFailed, second: waitFailed, between: "allocated node/gpu-0, for two", finally: "free",
		},
		"too late": {
			happens: func(*harness, *binding, *binding) { time.Sleep(10 * time.Minute) },
			first:   waitTimeout + "attached is not true", second: waitTimeout + "attached is not true",
			between: "allocated node/gpu-0, for two", finally: "free",
		},
		"the first gives up for a reason of its own": {
			happens: func(h *harness, first, _ *binding) {
				first.cancel(errors.New("preempted"))
				first.waits()
				first.unreserve("node")
				h.setStatus("claim", reports("node", "gpu-0", attached+"=True", powered+"=True"))
			},
			first: preBind + "wait for devices to get ready: preempted", second: "Success",
			between: "allocated node/gpu-0, for two", finally: "allocated node/gpu-0, for two",
		},
	}
	one, two := builders.Pod("one").Claim("claim").Obj(), builders.Pod("two").Claim("claim").Obj()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 1), claimFor("claim", 1), one, two}
			}, func(h *harness) {
				a := h.attempt(one).find("node")
				first := a.must(a.reserve("node")).startPreBind("node")
				b := h.attempt(two).find("node")
				second := b.must(b.reserve("node")).startPreBind("node")
				if !first.waits() || !second.waits() {
					t.Fatal("PreBind does not wait")
				}
				tc.happens(h, first, second)
				expect(t, "first PreBind", first.end(), tc.first)
				expect(t, "claim after the first one", h.describe("claim"), tc.between)
				expect(t, "second PreBind", second.end(), tc.second)
				expect(t, "claim", h.describe("claim"), tc.finally)
				expect(t, "first attempt after the second", text(second.status), tc.second)
			})
		})
	}
}

// TestBindingWaitOfTwoClaims: one failure ends the wait for both, and what is
// late counts by its own time.
func TestBindingWaitOfTwoClaims(t *testing.T) {
	tests := map[string]struct {
		report []string
		want   string
		took   time.Duration
		shared string
	}{
		"the second one fails": {report: []string{broken + "=True"}, took: time.Second, shared: "allocated node/gpu-1, for other",
			want: preBind + "resourceclaim default/shared: device gpu.example.com/node/gpu-1 cannot be made ready: condition broken is true (Simulated: by the test)"},
		"the second one is late": {took: 2 * time.Minute, shared: "allocated node/gpu-1, for other",
			want: preBind + "resourceclaim default/shared: device gpu.example.com/node/gpu-1 is not ready after 10m0s (bindingTimeout): condition attached is not true"},
		"the second one gets ready, the first one does not": {report: []string{attached + "=True", powered + "=True"}, took: 10 * time.Minute,
			want: waitTimeout + "attached is not true", shared: "allocated node/gpu-1, for other"},
	}
	pod := builders.Pod("pod").Claim("claim").Claim("shared").Obj()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 2), claimFor("claim", 1), pod,
					conditional("shared", "node", "gpu-1", 8*time.Minute, "other")}
			}, func(h *harness) {
				a := h.attempt(pod).find("node")
				w := a.must(a.reserve("node")).startPreBind("node")
				if tc.report != nil {
					time.Sleep(time.Second)
					h.setStatus("shared", reports("node", "gpu-1", tc.report...))
				}
				expect(t, "PreBind", w.end(), tc.want)
				expect(t, "time waited", w.took, tc.took)
				expect(t, "claim", h.describe("claim"), "free")
				expect(t, "shared claim", h.describe("shared"), tc.shared)
			})
		})
	}
}

// TestBindingWaitWithoutATime: an allocation of a scheduler that does not know
// the feature, and one from the future.
func TestBindingWaitWithoutATime(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	for name, change := range map[string]func(*resourceapi.AllocationResult){
		"no time": func(a *resourceapi.AllocationResult) { a.AllocationTimestamp = nil },
		"in the future": func(a *resourceapi.AllocationResult) {
			a.AllocationTimestamp = &metav1.Time{Time: time.Now().Add(time.Hour)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 1), pod,
					conditional("claim", "node", "gpu-0", 0).With(func(c *resourceapi.ResourceClaim) { change(c.Status.Allocation) })}
			}, func(h *harness) {
				a := h.attempt(pod).find("node")
				w := a.must(a.reserve("node")).startPreBind("node")
				expect(t, "PreBind", w.end(), waitTimeout+"attached is not true")
				expect(t, "time waited", w.took, 10*time.Minute)
				// It was idle when the pod came, and is left so.
				expect(t, "claim", h.describe("claim"), "allocated node/gpu-0")
			})
		})
	}
}

// TestBindingMetrics: the wait shows in kube-scheduler's own metrics.
func TestBindingMetrics(t *testing.T) {
	pod := builders.Pod("pod").Claim("claim").Obj()
	for name, tc := range map[string]struct {
		report []string
		status string
	}{
		"success": {[]string{attached + "=True", powered + "=True"}, "success"},
		"failure": {[]string{broken + "=True"}, "failure"},
		"timeout": {nil, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any {
				return []any{conditionalClass(), conditionalGPUs("node", 1), claimFor("claim", 1), pod}
			}, func(h *harness) {
				labels := map[string]string{"driver": driver, "status": tc.status}
				before := bindingCount(t, labels)
				a := h.attempt(pod).find("node")
				w := a.must(a.reserve("node")).startPreBind("node")
				if tc.report != nil {
					h.setStatus("claim", reports("node", "gpu-0", tc.report...))
				}
				w.end()
				expect(t, "new counts", bindingCount(t, labels)-before, 2) // one in each metric
			})
		})
	}
}

// bindingCount adds the two metrics up.
func bindingCount(t *testing.T, labels map[string]string) int {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "scheduler_dra_bindingconditions_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			if testutil.LabelsMatch(metric, labels) {
				sum += int(metric.GetCounter().GetValue()) + int(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}
