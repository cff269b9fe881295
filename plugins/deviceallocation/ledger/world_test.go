package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// world is a ledger next to an inventory, fed as the plugin does.
type world struct {
	ledger    *Ledger
	inventory *inventory.Inventory
}

func newWorld() *world {
	return &world{ledger: New(), inventory: inventory.New(device.AllFeatures())}
}

func (w *world) join() *Snapshot { return w.ledger.Snapshot(w.inventory.Snapshot()) }

func (w *world) publish(slice *resourceapi.ResourceSlice) {
	w.change(slice, w.inventory.SetSlice)
}

// withdraw deletes a slice.
func (w *world) withdraw(slice *resourceapi.ResourceSlice) {
	w.change(slice, w.inventory.DeleteSlice)
}

func (w *world) change(slice *resourceapi.ResourceSlice, change func(*resourceapi.ResourceSlice)) {
	if !w.inventory.Displaces(slice) {
		change(slice)
		return
	}
	w.ledger.Join(w.inventory.Snapshot(), func() { change(slice) })
}

func (w *world) reserve(reservations ...Reservation) error {
	return w.ledger.Reserve(w.inventory.Snapshot(), reservations)
}

// counters returns those of a pool, as published now.
func (w *world) counters(pool string) *inventory.Counters {
	found := w.inventory.Snapshot().Pool(deviceID(pool + "/").PoolID())
	if found == nil {
		return nil
	}
	return found.Counters
}

// drawn has "set/counter: amount" for what is drawn of a pool, in whole units.
func (w *world) drawn(pool string) []string {
	return describeDrawn(w.join().Pool(deviceID(pool+"/").PoolID()), w.counters(pool))
}

func describeDrawn(usage *PoolUsage, counters *inventory.Counters) []string {
	var lines []string
	for i, amount := range usage.Drawn(counters) {
		if amount == 0 {
			continue
		}
		set, name := counters.Name(i)
		lines = append(lines, fmt.Sprintf("%s/%s: %v", set, name, float64(amount)/float64(unitOf(counters, i))))
	}
	return lines
}

// unitOf returns how much a quantity of one is.
func unitOf(counters *inventory.Counters, i int) int64 {
	set, name := counters.Name(i)
	return counters.DrawsOf([]resourceapi.DeviceCounterConsumption{consuming(set, map[string]string{name: "1"})})[0].Amount
}

// sliceOf returns a slice of the pool "p" with two slices, version v.
func sliceOf(name string, version int, devices ...resourceapi.Device) *resourceapi.ResourceSlice {
	node := "worker-1"
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), ResourceVersion: fmt.Sprint(version)},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, Pool: resourceapi.ResourcePool{Name: "p", Generation: 1, ResourceSliceCount: 2},
			NodeName: &node, Devices: devices,
		},
	}
}

// countersOf returns the slice with the counter sets of the pool "p".
func countersOf(version int, sets map[string]map[string]string) *resourceapi.ResourceSlice {
	slice := sliceOf("counters", version)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		slice.Spec.SharedCounters = append(slice.Spec.SharedCounters, resourceapi.CounterSet{Name: name, Counters: quantities(sets[name])})
	}
	return slice
}

func quantities(values map[string]string) map[string]resourceapi.Counter {
	counters := make(map[string]resourceapi.Counter)
	for name, value := range values {
		counters[name] = resourceapi.Counter{Value: resource.MustParse(value)}
	}
	return counters
}

func consuming(set string, values map[string]string, groups ...string) resourceapi.DeviceCounterConsumption {
	return resourceapi.DeviceCounterConsumption{CounterSet: set, Counters: quantities(values), CompatibilityGroups: groups}
}

// partition consumes memory of the set "gpu", with groups.
func partition(name, memory string, groups ...string) resourceapi.Device {
	return resourceapi.Device{Name: name, ConsumesCounters: []resourceapi.DeviceCounterConsumption{
		consuming("gpu", map[string]string{"memory": memory}, groups...),
	}}
}

// shareable can be shared by its memory, if that is not empty.
func shareable(d resourceapi.Device, memory string) resourceapi.Device {
	d.AllowMultipleAllocations = new(true)
	if memory != "" {
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}}
	}
	return d
}

// asking returns a reservation of any results.
func asking(name string, results ...resourceapi.DeviceRequestAllocationResult) Reservation {
	r := reservation(name)
	r.Allocation.Devices.Results = results
	return r
}

// admitted lists which of the groups a device may have that joins those held.
func admitted(usage *PoolUsage, counters *inventory.Counters) string {
	var admits []string
	for set := range counters.Sets() {
		c := usage.Groups(counters, set)
		if c.Admits(nil) {
			admits = append(admits, "none")
		}
		for _, group := range []string{"a", "b", "c"} {
			if c.Admits([]string{group}) {
				admits = append(admits, group)
			}
		}
	}
	return strings.Join(admits, " ")
}
