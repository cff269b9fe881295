package deviceallocation

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcelisters "k8s.io/client-go/listers/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
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
