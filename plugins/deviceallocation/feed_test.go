package deviceallocation

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	resourcelisters "k8s.io/client-go/listers/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// lateLister lists the rules as they were before a rule was added, whose
// handler runs in the middle of the call unless it has to wait for a lock.
type lateLister struct {
	resourcelisters.DeviceTaintRuleLister
	feed  *feed
	added *resourceapi.DeviceTaintRule
}

func (l *lateLister) List(labels.Selector) ([]*resourceapi.DeviceTaintRule, error) {
	if l.feed.mutex.TryLock() {
		l.feed.mutex.Unlock()
		l.feed.setRule(l.added)
		l.added = nil
	}
	return nil, nil
}

// TestRuleAddedDuringRefresh: a rule that appears while a hint reads the store
// must not be taken for one that was deleted.
func TestRuleAddedDuringRefresh(t *testing.T) {
	devices := inventory.New(device.AllFeatures())
	devices.SetSlice(gpus("node", 1).Obj())
	rule := taintRule("rule")
	rule.UID, rule.ResourceVersion = "uid-of-rule", "2"
	lister := &lateLister{added: rule}
	lister.feed = &feed{inventory: devices, rules: lister, known: make(map[string]*resourceapi.DeviceTaintRule)}
	lister.feed.refreshRules()
	if lister.added != nil {
		lister.feed.setRule(lister.added)
	}
	taints := devices.Snapshot().Device(device.NewID(driver, "node", "gpu-0")).Taints
	expect(t, "number of taints", len(taints), 1)
}

// halfGPU publishes version v of a slice with half of a GPU, and plain devices.
func halfGPU(version string, names ...string) *resourceapi.ResourceSlice {
	slice := builders.Slice(driver, "node").Named("gpus").SliceCount(2).OnNode("node").Obj()
	slice.UID, slice.ResourceVersion = "uid-of-gpus", version
	for _, name := range names {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
			Name: name,
			ConsumesCounters: []resourceapi.DeviceCounterConsumption{{
				CounterSet: "gpu-0", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("20Gi")}},
			}},
		})
	}
	return slice
}

// TestSliceDoesNotOvertakeClaim: a driver takes a device away that a claim
// holds, before or after the scheduler has looked at either. What the device
// draws stays charged; only if the claim is seen last, nobody can know.
func TestSliceDoesNotOvertakeClaim(t *testing.T) {
	counters := builders.Slice(driver, "node").Named("counters").SliceCount(2).OnNode("node").Obj()
	counters.Spec.SharedCounters = []resourceapi.CounterSet{{
		Name: "gpu-0", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("40Gi")}},
	}}
	claim := builders.Claim("claim").Holding(driver, "node", "half").Obj()
	claim.UID, claim.ResourceVersion = "uid-of-claim", "1"
	newer := halfGPU("9")
	newer.Name, newer.UID, newer.Spec.Pool.Generation = "gpus-2", "uid-of-gpus-2", 2
	counters2 := counters.DeepCopy()
	counters2.Name, counters2.Spec.Pool.Generation = "counters-2", 2
	see := func(f *feed) { f.ledger.Observe(claim) }
	look := func(f *feed) { f.ledger.Snapshot(f.inventory.Snapshot()) }
	for name, tc := range map[string]struct {
		events []func(*feed)
		want   bool
	}{
		"device gone":                  {events: []func(*feed){see, func(f *feed) { f.setSlice(halfGPU("2")) }}, want: true},
		"device replaced":              {events: []func(*feed){see, func(f *feed) { f.setSlice(halfGPU("2", "other")) }}, want: true},
		"slice deleted and made again": {events: []func(*feed){see, func(f *feed) { f.deleteSlice(halfGPU("2")) }, func(f *feed) { again := halfGPU("3"); again.UID = "new"; f.setSlice(again) }}, want: true},
		"new generation": {events: []func(*feed){see, func(f *feed) { f.setSlice(newer) }, func(f *feed) { f.setSlice(counters2) },
			func(f *feed) { f.deleteSlice(halfGPU("10")) }, func(f *feed) { f.deleteSlice(counters) }}, want: true},
		"gone after a look":           {events: []func(*feed){look, see, look, func(f *feed) { f.setSlice(halfGPU("2")) }, look}, want: true},
		"gone, claim seen afterwards": {events: []func(*feed){look, func(f *feed) { f.setSlice(halfGPU("2")) }, see}},
		"gone, and so is the claim":   {events: []func(*feed){see, func(f *feed) { f.setSlice(halfGPU("2")) }, func(f *feed) { f.ledger.Forget(claim) }}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &feed{inventory: inventory.New(device.AllFeatures()), ledger: ledger.New()}
			f.setSlice(counters)
			f.setSlice(halfGPU("1", "half"))
			for _, event := range tc.events {
				event(f)
			}
			devices := f.inventory.Snapshot()
			pool := devices.Pool(device.NewPoolID(driver, "node"))
			drawn, total := f.ledger.Snapshot(devices).Pool(pool.ID).Drawn(pool.Counters)[0], pool.Counters.Total(0)
			want := int64(0)
			if tc.want {
				want = total / 2
			}
			expect(t, "drawn", drawn, want)
		})
	}
}

// TestSlicesAreTakenInOneByOne: no slice is taken in between the snapshot for
// the join and the change after it, with devices that nobody has joined.
func TestSlicesAreTakenInOneByOne(t *testing.T) {
	f := &feed{inventory: inventory.New(device.AllFeatures()), ledger: ledger.New()}
	f.setSlice(halfGPU("1", "half"))
	calls := 0
	for _, slice := range []*resourceapi.ResourceSlice{halfGPU("2"), builders.Slice(driver, "other").OnNode("node").Obj()} {
		f.publish(slice, func(*resourceapi.ResourceSlice) {
			calls++
			if f.publishing.TryLock() {
				t.Error("another slice can be taken in meanwhile")
			}
		})
	}
	expect(t, "number of changes", calls, 2)
}
