package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/recency"
)

// Inventory keeps what the drivers have published up to date. Create it with
// New. It is safe for concurrent use.
//
// Objects given to it are kept and never changed; the caller must not change
// them either. Each event may be given several times and in any order: events
// that are older than what was seen are ignored (package recency).
type Inventory struct {
	features device.Features

	mu         sync.Mutex
	sliceNames *recency.Names[string]
	ruleNames  *recency.Names[string]
	// slices and rules are by name. Slices with the same name never exist at
	// the same time, whatever their pools.
	slices map[string]*resourceapi.ResourceSlice
	rules  map[string]*resourceapi.DeviceTaintRule
	// members are the pools with at least one slice.
	members map[device.PoolID]*members
	// dirty pools have to be compiled before the next snapshot. stale says the
	// same without the lock.
	dirty map[device.PoolID]struct{}
	stale atomic.Bool

	epochs   atomic.Uint64
	snapshot atomic.Pointer[Snapshot]
	cells    cells
}

// members are the slices of one pool, of all generations, by name.
type members struct {
	slices map[string]*member
	// rulesChanged is set if the taints of all slices have to be worked out
	// anew.
	rulesChanged bool
}

type member struct {
	slice *resourceapi.ResourceSlice
	// published is nil until the pool has been compiled with this slice in its
	// newest generation.
	published *publication
}

// New returns an Inventory without slices. With a feature off, what uses it is
// left out, ignored or marked as unsupported, as kube-scheduler does.
func New(features device.Features) *Inventory {
	i := &Inventory{
		features:   features,
		sliceNames: recency.NewNames[string](),
		ruleNames:  recency.NewNames[string](),
		slices:     make(map[string]*resourceapi.ResourceSlice),
		rules:      make(map[string]*resourceapi.DeviceTaintRule),
		members:    make(map[device.PoolID]*members),
		dirty:      make(map[device.PoolID]struct{}),
	}
	i.cells.reset()
	i.snapshot.Store(emptySnapshot(&i.cells, i.next))
	return i
}

// next hands out epochs.
func (i *Inventory) next() uint64 { return i.epochs.Add(1) }

// SetSlice takes in a slice that was seen, as its driver published it: taints
// of DeviceTaintRules are added here.
func (i *Inventory) SetSlice(slice *resourceapi.ResourceSlice) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if news, _ := i.sliceNames.Observe(slice.Name, slice.UID, slice.ResourceVersion); !news {
		return
	}
	old := i.slices[slice.Name]
	if old != nil && apiequality.Semantic.DeepEqual(&old.Spec, &slice.Spec) {
		return
	}
	if old != nil {
		i.remove(old)
	}
	i.slices[slice.Name] = slice
	id := PoolOf(slice)
	if i.members[id] == nil {
		i.members[id] = &members{slices: make(map[string]*member)}
	}
	i.members[id].slices[slice.Name] = &member{slice: slice}
	i.mark(id)
}

// DeleteSlice takes in that a slice was deleted.
func (i *Inventory) DeleteSlice(slice *resourceapi.ResourceSlice) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.sliceNames.Delete(slice.Name, slice.UID) {
		return
	}
	i.remove(i.slices[slice.Name])
	delete(i.slices, slice.Name)
}

// Displaces reports whether a device that draws from counters may change or go
// away, or be published no longer, because of a slice that is about to be set or
// deleted. Whoever has to know what such devices draw must find it out before.
func (i *Inventory) Displaces(slice *resourceapi.ResourceSlice) bool {
	if !i.features.PartitionableDevices {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if old := i.slices[slice.Name]; old != nil && drawsCounters(old) {
		return true
	}
	members := i.members[PoolOf(slice)]
	if members == nil {
		return false
	}
	for _, m := range members.slices {
		if m.slice.Spec.Pool.Generation < slice.Spec.Pool.Generation && drawsCounters(m.slice) {
			return true
		}
	}
	return false
}

func drawsCounters(slice *resourceapi.ResourceSlice) bool {
	return slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return len(d.ConsumesCounters) > 0 })
}

func (i *Inventory) remove(slice *resourceapi.ResourceSlice) {
	id := PoolOf(slice)
	delete(i.members[id].slices, slice.Name)
	if len(i.members[id].slices) == 0 {
		delete(i.members, id)
	}
	i.mark(id)
}

func (i *Inventory) mark(id device.PoolID) {
	i.dirty[id] = struct{}{}
	i.stale.Store(true)
}

// SetTaintRule takes in a rule that was seen.
func (i *Inventory) SetTaintRule(rule *resourceapi.DeviceTaintRule) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if news, _ := i.ruleNames.Observe(rule.Name, rule.UID, rule.ResourceVersion); !news {
		return
	}
	old := i.rules[rule.Name]
	i.rules[rule.Name] = rule
	if old != nil && apiequality.Semantic.DeepEqual(&old.Spec, &rule.Spec) {
		return
	}
	if old != nil {
		i.markSelected(old)
	}
	i.markSelected(rule)
}

// DeleteTaintRule takes in that a rule was deleted.
func (i *Inventory) DeleteTaintRule(rule *resourceapi.DeviceTaintRule) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ruleNames.Delete(rule.Name, rule.UID) {
		return
	}
	i.markSelected(i.rules[rule.Name])
	delete(i.rules, rule.Name)
}

// markSelected marks the pools whose devices the rule may select. Rules change
// so rarely that looking at all pools does no harm.
func (i *Inventory) markSelected(rule *resourceapi.DeviceTaintRule) {
	for id, members := range i.members {
		if selectsPool(rule.Spec.DeviceSelector, id.Driver.Value(), id.Pool.Value()) {
			members.rulesChanged = true
			i.mark(id)
		}
	}
}

// DeleteNode drops what is cached for a node that was deleted. It only saves
// memory: views of the node stay valid.
func (i *Inventory) DeleteNode(name string) {
	i.cells.drop(name)
}

// Snapshot returns the present state. It is the same pointer for as long as
// nothing changes.
func (i *Inventory) Snapshot() *Snapshot {
	if !i.stale.Load() {
		return i.snapshot.Load()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.stale.Load() {
		return i.snapshot.Load()
	}
	changes := newChanges(i.snapshot.Load(), i.next)
	rules := slices.SortedFunc(maps.Values(i.rules), func(a, b *resourceapi.DeviceTaintRule) int {
		return strings.Compare(a.Name, b.Name)
	})
	for _, id := range slices.SortedFunc(maps.Keys(i.dirty), device.PoolID.Compare) {
		changes.replace(id, i.compile(id, rules, changes.pool(id)))
	}
	clear(i.dirty)
	snapshot := changes.snapshot()
	i.snapshot.Store(snapshot)
	// Only now: whoever reads false must find the new snapshot.
	i.stale.Store(false)
	return snapshot
}

// compile works out the present state of one pool: old if nothing about its
// newest generation has changed, nil if it has no slices.
func (i *Inventory) compile(id device.PoolID, rules []*resourceapi.DeviceTaintRule, old *Pool) *Pool {
	members := i.members[id]
	if members == nil {
		return nil
	}
	newest := members.newest()
	var applicable []*resourceapi.DeviceTaintRule
	for _, rule := range rules {
		if selectsPool(rule.Spec.DeviceSelector, id.Driver.Value(), id.Pool.Value()) {
			applicable = append(applicable, rule)
		}
	}
	publications := make([]*publication, len(newest))
	for at, m := range newest {
		if m.published == nil || members.rulesChanged {
			m.published = publish(m.slice, applicable, i.features, m.published)
		}
		publications[at] = m.published
	}
	if members.rulesChanged {
		// Slices of older generations keep nothing that could be out of date.
		for _, m := range members.slices {
			if m.slice.Spec.Pool.Generation != newest[0].slice.Spec.Pool.Generation {
				m.published = nil
			}
		}
		members.rulesChanged = false
	}
	if old != nil && slices.Equal(old.publications, publications) {
		return old
	}
	return newPool(id, publications, i.features, i.next)
}

// newest returns the slices of the newest generation, in the order of names.
func (m *members) newest() []*member {
	var newest []*member
	for _, candidate := range m.slices {
		if len(newest) > 0 {
			order := cmp.Compare(candidate.slice.Spec.Pool.Generation, newest[0].slice.Spec.Pool.Generation)
			if order < 0 {
				continue
			}
			if order > 0 {
				newest = newest[:0]
			}
		}
		newest = append(newest, candidate)
	}
	slices.SortFunc(newest, func(a, b *member) int { return strings.Compare(a.slice.Name, b.slice.Name) })
	return newest
}

// PoolOf returns the pool that a slice is part of.
func PoolOf(slice *resourceapi.ResourceSlice) device.PoolID {
	return device.NewPoolID(slice.Spec.Driver, slice.Spec.Pool.Name)
}
