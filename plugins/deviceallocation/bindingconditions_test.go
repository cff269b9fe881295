package deviceallocation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	attached = "attached"
	powered  = "powered"
	broken   = "broken"
)

// conditionalGPUs is the pool of a node whose devices have to be attached.
func conditionalGPUs(node string, n int) *builders.SliceBuilder {
	return builders.Slice(driver, node).OnNode(node).Devices(builders.DevicesNamed("gpu", n, func(_ int, d *builders.DeviceBuilder) {
		d.Conditions([]string{attached, powered}, []string{broken})
	})...)
}

// condition is what a driver reports, such as "attached=True".
func condition(text string) metav1.Condition {
	name, status, _ := strings.Cut(text, "=")
	return metav1.Condition{Type: name, Status: metav1.ConditionStatus(status), Reason: "Simulated", Message: "by the test"}
}

// reports adds the status of a device to that of its claim.
func reports(pool, gpu string, conditions ...string) func(*resourceapi.ResourceClaimStatus) {
	return func(status *resourceapi.ResourceClaimStatus) {
		entry := resourceapi.AllocatedDeviceStatus{Driver: driver, Pool: pool, Device: gpu}
		for _, text := range conditions {
			entry.Conditions = append(entry.Conditions, condition(text))
		}
		for i := range status.Devices {
			if status.Devices[i].Pool == pool && status.Devices[i].Device == gpu {
				status.Devices[i] = entry
				return
			}
		}
		status.Devices = append(status.Devices, entry)
	}
}

// conditional is a claim that has a device with conditions, for the named pods,
// since some time.
func conditional(name, node, gpu string, age time.Duration, pods ...string) *builders.ClaimBuilder {
	return held(name, node, gpu, pods...).With(func(c *resourceapi.ResourceClaim) {
		r := &c.Status.Allocation.Devices.Results[0]
		r.BindingConditions, r.BindingFailureConditions = []string{attached, powered}, []string{broken}
		c.Status.Allocation.AllocationTimestamp = ptr.To(metav1.NewTime(time.Now().Add(-age)))
	})
}

// TestUnreadyDevices: which reports of a driver make a device ready.
func TestUnreadyDevices(t *testing.T) {
	type result = resourceapi.DeviceRequestAllocationResult
	type status = resourceapi.AllocatedDeviceStatus
	share, otherShare := types.UID("share"), "other"
	both := []metav1.Condition{condition(attached + "=True"), condition(powered + "=True")}
	device := func(name string) result {
		return result{Driver: driver, Pool: "pool", Device: name, BindingConditions: []string{attached, powered}, BindingFailureConditions: []string{broken}}
	}
	report := func(name string, conditions ...string) status {
		s := status{Driver: driver, Pool: "pool", Device: name}
		for _, text := range conditions {
			s.Conditions = append(s.Conditions, condition(text))
		}
		return s
	}
	shared := device("a")
	shared.ShareID = &share
	tests := map[string]struct {
		results  []result
		statuses []status
		// want lists the devices that are not ready, and why.
		want []string
	}{
		"no devices":               {},
		"nothing to wait for":      {results: []result{{Driver: driver, Pool: "pool", Device: "a"}}},
		"failure conditions alone": {results: []result{{Driver: driver, Pool: "pool", Device: "a", BindingFailureConditions: []string{broken}}}, statuses: []status{report("a", broken+"=True")}},
		"no report":                {results: []result{device("a")}, want: []string{"a: no attached"}},
		"one of two conditions":    {results: []result{device("a")}, statuses: []status{report("a", attached+"=True")}, want: []string{"a: no powered"}},
		"all conditions":           {results: []result{device("a")}, statuses: []status{report("a", powered+"=True", attached+"=True")}},
		"a condition that is false": {results: []result{device("a")}, statuses: []status{report("a", attached+"=False", powered+"=True")},
			want: []string{"a: no attached"}},
		"a condition that nobody knows": {results: []result{device("a")}, statuses: []status{report("a", attached+"=Unknown", powered+"=True")},
			want: []string{"a: no attached"}},
		"failure": {results: []result{device("a")}, statuses: []status{report("a", attached+"=True", broken+"=True")}, want: []string{"a: broken"}},
		"failure of a device that was ready": {results: []result{device("a")}, statuses: []status{report("a", attached+"=True", powered+"=True", broken+"=True")},
			want: []string{"a: broken"}},
		"a failure that is over": {results: []result{device("a")}, statuses: []status{report("a", attached+"=True", powered+"=True", broken+"=False")}},
		"two devices": {results: []result{device("a"), device("b")}, statuses: []status{report("b", broken+"=True")},
			want: []string{"a: no attached", "b: broken"}},
		"report of another device": {results: []result{device("a")}, statuses: []status{{Driver: driver, Pool: "pool", Device: "b", Conditions: both}}, want: []string{"a: no attached"}},
		"report of another pool":   {results: []result{device("a")}, statuses: []status{{Driver: driver, Pool: "other", Device: "a", Conditions: both}}, want: []string{"a: no attached"}},
		"report of another driver": {results: []result{device("a")}, statuses: []status{{Driver: "other", Pool: "pool", Device: "a", Conditions: both}}, want: []string{"a: no attached"}},
		"report of another share":  {results: []result{shared}, statuses: []status{{Driver: driver, Pool: "pool", Device: "a", ShareID: &otherShare, Conditions: both}}, want: []string{"a: no attached"}},
		"report of no share":       {results: []result{shared}, statuses: []status{{Driver: driver, Pool: "pool", Device: "a", Conditions: both}}, want: []string{"a: no attached"}},
		"report of the share":      {results: []result{shared}, statuses: []status{{Driver: driver, Pool: "pool", Device: "a", ShareID: ptr.To(string(share)), Conditions: both}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			claim := builders.Claim("claim").Obj()
			claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: tc.results}}
			claim.Status.Devices = tc.statuses
			var got []string
			for _, d := range unreadyDevices(claim) {
				text := "no " + d.missing
				if d.failure != nil {
					text = d.failure.Type
				}
				got = append(got, d.id.Device.Value()+": "+text)
			}
			expectAll(t, "not ready", got, tc.want...)
		})
	}
	expect(t, "without an allocation", len(unreadyDevices(builders.Claim("claim").Obj())), 0)
}

func TestQuoteCondition(t *testing.T) {
	long := strings.Repeat("é", 2*maxQuoted)
	for name, tc := range map[string]struct{ message, want string }{
		"short":      {"no cable", "Simulated: no cable"},
		"many lines": {"no cable\nstack trace", "Simulated: no cable"},
		"long":       {long, ("Simulated: " + long)[:len("Simulated: ")+2*(maxQuoted-len("Simulated: "))] + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			c := condition(broken + "=True")
			c.Message = tc.message
			expect(t, "text", quoteCondition(&c), tc.want)
		})
	}
}

const (
	notReady = "UnschedulableAndUnresolvable: resourceclaim default/claim: device gpu.example.com/node/gpu-0 is not ready after 10m0s (bindingTimeout): condition attached is not true"
	cannotBe = "UnschedulableAndUnresolvable: resourceclaim default/claim: device gpu.example.com/node/gpu-0 cannot be made ready: condition broken is true (Simulated: by the test)"
)

// TestBindingConditionsOfAllocatedClaims: a pod comes to a claim that has its
// device already.
func TestBindingConditionsOfAllocatedClaims(t *testing.T) {
	type claims = *builders.ClaimBuilder
	age := func(age time.Duration, pods ...string) func() claims {
		return func() claims { return conditional("claim", "node", "gpu-0", age, pods...) }
	}
	status := func(make func() claims, conditions ...string) func() claims {
		return func() claims {
			return make().With(func(c *resourceapi.ResourceClaim) { reports("node", "gpu-0", conditions...)(&c.Status) })
		}
	}
	ready := []string{attached + "=True", powered + "=True"}
	tests := map[string]struct {
		claim   func() claims
		gateOff bool
		want    string
		// postFilter says what PostFilter does, if there is no node.
		postFilter string
	}{
		"not ready yet":                      {claim: age(time.Minute), want: "Success"},
		"not ready yet, a pod waits already": {claim: age(time.Minute, "other"), want: "Success"},
		"not ready in time":                  {claim: age(10 * time.Minute), want: notReady, postFilter: deallocated},
		"not ready in time, for the pod":     {claim: age(10*time.Minute, "pod"), want: notReady, postFilter: deallocated},
		"not ready in time, used by others":  {claim: age(10*time.Minute, "other"), want: notReady, postFilter: "Unschedulable"},
		"ready, long ago":                    {claim: status(age(time.Hour), ready...), want: "Success"},
		"failed":                             {claim: status(age(time.Second), broken+"=True"), want: cannotBe, postFilter: deallocated},
		"failed, used by others":             {claim: status(age(time.Second, "other"), broken+"=True"), want: cannotBe, postFilter: "Unschedulable"},
		"failed after it was ready":          {claim: status(age(time.Second), append(ready, broken+"=True")...), want: cannotBe, postFilter: deallocated},
		"no time known": {claim: func() claims {
			return age(time.Hour)().With(func(c *resourceapi.ResourceClaim) { c.Status.Allocation.AllocationTimestamp = nil })
		}, want: "Success"},
		"gate off": {claim: status(age(time.Second), ready...), gateOff: true, postFilter: "Unschedulable",
			want: "UnschedulableAndUnresolvable: resourceclaim default/claim: device gpu.example.com/node/gpu-0 has binding conditions, and the feature gate DRADeviceBindingConditions is off"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func() []any { return []any{conditionalClass(), conditionalGPUs("node", 1), tc.claim()} }, func(h *harness) {
				h.plugin.gates.EnableDRADeviceBindingConditions = !tc.gateOff
				a := h.attempt(builders.Pod("pod").Claim("claim").Obj())
				expectAll(t, "search", a.search("node"), tc.want)
				if tc.postFilter == "" {
					return
				}
				before := h.describe("claim")
				expect(t, "PostFilter", text(a.postFilter()), tc.postFilter)
				if tc.postFilter == deallocated {
					before = "free"
				}
				expect(t, "claim", h.describe("claim"), before)
			})
		})
	}
}

// TestAllocationTime: bindingTimeout counts from what is written, in the
// precision of the API.
func TestAllocationTime(t *testing.T) {
	for name, on := range map[string]bool{"gate on": true, "gate off": false} {
		t.Run(name, func(t *testing.T) {
			run(t, oneNode(1, claimFor("claim", 1)), func(h *harness) {
				h.plugin.gates.EnableDRADeviceBindingConditions = on
				time.Sleep(2500 * time.Millisecond)
				want := "<nil>"
				if on {
					want = fmt.Sprint(ptr.To(metav1.NewTime(time.Now().Truncate(time.Second))))
				}
				h.attempt(builders.Pod("pod").Claim("claim").Obj()).bind("node")
				got := "<nil>"
				if stamp := h.claim("claim").Status.Allocation.AllocationTimestamp; stamp != nil {
					got = fmt.Sprint(stamp)
				}
				expect(t, "time of allocation", got, want)
			})
		})
	}
}
