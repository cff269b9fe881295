package inventory

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

const driver = "gpu.example.com"

type option func(*resourceapi.ResourceSlice)

// newSlice returns the only slice of generation 1 of the pool "pool" on node
// worker-1, without devices, unless options say otherwise.
func newSlice(name string, options ...option) *resourceapi.ResourceSlice {
	nodeName := "worker-1"
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), ResourceVersion: "1"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			Pool:     resourceapi.ResourcePool{Name: "pool", Generation: 1, ResourceSliceCount: 1},
			NodeName: &nodeName,
		},
	}
	for _, option := range options {
		option(slice)
	}
	return slice
}

func version(number int) option {
	return func(s *resourceapi.ResourceSlice) { s.ResourceVersion = fmt.Sprint(number) }
}

func uid(uid types.UID) option { return func(s *resourceapi.ResourceSlice) { s.UID = uid } }

func inPool(name string) option {
	return func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Name = name }
}

// generation sets the generation of the pool, and how many slices it has.
func generation(generation, count int64) option {
	return func(s *resourceapi.ResourceSlice) {
		s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = generation, count
	}
}

func onNode(name string) option {
	return func(s *resourceapi.ResourceSlice) { s.Spec.NodeName = &name }
}

func onAllNodes(s *resourceapi.ResourceSlice) {
	s.Spec.NodeName, s.Spec.AllNodes = nil, new(true)
}

func onNowhere(s *resourceapi.ResourceSlice) { s.Spec.NodeName = nil }

func onZone(zone string) option {
	return func(s *resourceapi.ResourceSlice) { s.Spec.NodeName, s.Spec.NodeSelector = nil, zoneSelector(zone) }
}

func onBadSelector(s *resourceapi.ResourceSlice) {
	s.Spec.NodeName, s.Spec.NodeSelector = nil, badSelector()
}

func eachDeviceOnItsOwn(s *resourceapi.ResourceSlice) {
	s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
}

func named(names ...string) option {
	return func(s *resourceapi.ResourceSlice) {
		for _, name := range names {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: name})
		}
	}
}

func withDevices(devices ...resourceapi.Device) option {
	return func(s *resourceapi.ResourceSlice) { s.Spec.Devices = append(s.Spec.Devices, devices...) }
}

// consumer returns a device that consumes one unit of a counter.
func consumer(name, set, counter string) resourceapi.Device {
	return resourceapi.Device{Name: name, ConsumesCounters: []resourceapi.DeviceCounterConsumption{{
		CounterSet: set, Counters: counters(counter),
	}}}
}

// counterSet adds a set with one unit of each counter.
func counterSet(name string, names ...string) option {
	return func(s *resourceapi.ResourceSlice) {
		s.Spec.SharedCounters = append(s.Spec.SharedCounters, resourceapi.CounterSet{Name: name, Counters: counters(names...)})
	}
}

func counters(names ...string) map[string]resourceapi.Counter {
	counters := make(map[string]resourceapi.Counter)
	for _, name := range names {
		counters[name] = resourceapi.Counter{Value: resource.MustParse("1")}
	}
	return counters
}

func zoneSelector(zone string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}
}

func badSelector() *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "Near", Values: []string{"a"}}},
	}}}
}

func newNode(name, zone string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), ResourceVersion: "1"}}
	if zone != "" {
		node.Labels = map[string]string{"zone": zone}
	}
	return node
}

// newRule taints what matches; empty strings match everything.
func newRule(name, driver, pool, device string) *resourceapi.DeviceTaintRule {
	selector := &resourceapi.DeviceTaintSelector{}
	for field, value := range map[**string]string{&selector.Driver: driver, &selector.Pool: pool, &selector.Device: device} {
		if value != "" {
			*field = &value
		}
	}
	return &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), ResourceVersion: "1"},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: selector,
			Taint:          resourceapi.DeviceTaint{Key: name, Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	}
}

func poolID(name string) device.PoolID { return device.NewPoolID(driver, name) }

// event changes an Inventory.
type event func(*Inventory)

func set(slice *resourceapi.ResourceSlice) event { return func(i *Inventory) { i.SetSlice(slice) } }

func remove(slice *resourceapi.ResourceSlice) event {
	return func(i *Inventory) { i.DeleteSlice(slice) }
}

func setRule(rule *resourceapi.DeviceTaintRule) event {
	return func(i *Inventory) { i.SetTaintRule(rule) }
}

func removeRule(rule *resourceapi.DeviceTaintRule) event {
	return func(i *Inventory) { i.DeleteTaintRule(rule) }
}

// permutations visits each order of the events.
func permutations(events []event, visit func(order []int, events []event)) {
	order := make([]int, 0, len(events))
	permuted := make([]event, 0, len(events))
	var next func()
	next = func() {
		if len(order) == len(events) {
			visit(order, permuted)
			return
		}
		for i, e := range events {
			if slices.Contains(order, i) {
				continue
			}
			order, permuted = append(order, i), append(permuted, e)
			next()
			order, permuted = order[:len(order)-1], permuted[:len(permuted)-1]
		}
	}
	next()
}
