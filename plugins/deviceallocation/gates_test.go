package deviceallocation

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// renamed are the features that kube-scheduler's allocator calls otherwise.
var renamed = map[string]string{"DeviceBindingAndStatus": "BindingConditions"}

// TestDeviceFeaturesFollowTheGates: whatever gates are set, the core gets what
// kube-scheduler's own allocator would get. A feature that is new to that
// allocator and unknown to the core shows here.
func TestDeviceFeaturesFollowTheGates(t *testing.T) {
	var gates []string
	for field := range reflect.TypeFor[plfeature.Features]().Fields() {
		if strings.HasPrefix(field.Name, "EnableDRA") {
			gates = append(gates, field.Name)
		}
	}
	seen := make(map[string]bool)
	check := func(set ...string) {
		var features plfeature.Features
		for _, name := range set {
			reflect.ValueOf(&features).Elem().FieldByName(name).SetBool(true)
		}
		want := reflect.ValueOf(dynamicresources.AllocatorFeatures(features))
		got := reflect.ValueOf(deviceFeatures(features))
		for field := range want.Type().Fields() {
			name := field.Name
			if other, ok := renamed[name]; ok {
				name = other
			}
			value := got.FieldByName(name)
			if !value.IsValid() {
				t.Fatalf("the core does not know the feature %s", field.Name)
			}
			expect(t, field.Name+" with "+strings.Join(set, ", "), value.Bool(), want.FieldByName(field.Name).Bool())
		}
		for field := range got.Type().Fields() {
			seen[field.Name] = seen[field.Name] || got.FieldByName(field.Name).Bool()
		}
	}
	check()
	check(gates...)
	for i, gate := range gates {
		check(gate)
		for _, other := range gates[i+1:] {
			check(gate, other)
		}
	}
	for field := range reflect.TypeFor[plfeature.Features]().Fields() {
		if !strings.HasPrefix(field.Name, "EnableDRA") {
			check(field.Name)
		}
	}
	for field := range reflect.TypeOf(deviceFeatures(plfeature.Features{})).Fields() {
		if !seen[field.Name] {
			t.Errorf("no gate switches on %s", field.Name)
		}
	}
}
