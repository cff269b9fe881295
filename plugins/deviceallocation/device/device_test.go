package device_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

const driver = "gpu.example.com"

// published returns the device that a driver publishes as the only one of a
// slice, after change has been applied to both.
func published(change func(*resourceapi.ResourceSlice, *resourceapi.Device)) *device.Device {
	return publishedWith(device.AllFeatures(), change)
}

func publishedWith(features device.Features, change func(*resourceapi.ResourceSlice, *resourceapi.Device)) *device.Device {
	slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
		Driver:   driver,
		Pool:     resourceapi.ResourcePool{Name: "pool"},
		NodeName: ptr.To("node"),
		Devices:  []resourceapi.Device{{Name: "gpu-0"}},
	}}
	change(slice, &slice.Spec.Devices[0])
	return device.New(slice, 0, nil, features)
}

func withAttributes(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) *device.Device {
	return published(func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) { d.Attributes = attributes })
}

func text(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }

func TestID(t *testing.T) {
	a, b := device.NewID(driver, "pool", "gpu-0"), device.NewID(driver, "pool", strings.Clone("gpu-0"))
	if a != b {
		t.Error("equal names give different IDs")
	}
	if got := a.String(); got != "gpu.example.com/pool/gpu-0" {
		t.Errorf("got %s", got)
	}
	// Slashes in names must not make two devices one.
	if device.NewID(driver, "a/b", "c") == device.NewID(driver, "a", "b/c") {
		t.Error("different devices have one ID")
	}
}

func TestPoolOrder(t *testing.T) {
	ordered := []device.PoolID{device.NewPoolID("a", "z"), device.NewPoolID("b", "x"), device.NewPoolID("b", "y")}
	for i, p := range ordered {
		for j, q := range ordered {
			if got := p.Compare(q); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("compare %s with %s: %d", p, q, got)
			}
		}
	}
}

func TestAttribute(t *testing.T) {
	for name, tc := range map[string]struct {
		attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
		asked      resourceapi.FullyQualifiedName
		want       string
		scalars    bool // list-type attributes are off
	}{
		"fully qualified":            {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"other.example.com/model": text("x")}, asked: "other.example.com/model", want: "x"},
		"bare, of the driver":        {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": text("x")}, asked: driver + "/model", want: "x"},
		"bare, of another domain":    {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": text("x")}, asked: "other.example.com/model"},
		"the qualified entry wins":   {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": text("bare"), driver + "/model": text("full")}, asked: driver + "/model", want: "full"},
		"absent":                     {asked: driver + "/model"},
		"name without a domain":      {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": text("x")}, asked: "model", want: "x"},
		"a list has its values once": {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValues: []string{"x", "y", "x"}}}, asked: driver + "/model", want: "x y"},
		"a list of numbers":          {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"n": {IntValues: []int64{2, 1}}}, asked: driver + "/n", want: "2 1"},
		"a list of booleans":         {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"b": {BoolValues: []bool{true, false}}}, asked: driver + "/b", want: "true false"},
		"a list of versions":         {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"v": {VersionValues: []string{"1.0.0"}}}, asked: driver + "/v", want: "1.0.0"},
		"an empty list":              {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"n": {IntValues: []int64{}}}, asked: driver + "/n"},
		"a list without lists":       {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValues: []string{"x"}}}, asked: driver + "/model", scalars: true},
		"a type from the future":     {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {}}, asked: driver + "/model"},
		"numbers are written plain":  {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"n": {IntValue: ptr.To(int64(-7))}}, asked: driver + "/n", want: "-7"},
		"booleans are written plain": {attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"b": {BoolValue: ptr.To(true)}}, asked: driver + "/b", want: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			attribute, _ := withAttributes(tc.attributes).Attribute(tc.asked)
			got := ""
			for _, value := range device.AppendValues(nil, attribute, !tc.scalars) {
				got += value.String() + " "
			}
			if strings.TrimSpace(got) != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestValues: values are equal exactly when type and content are, in Go and in
// their encoding.
func TestValues(t *testing.T) {
	values := []resourceapi.DeviceAttribute{
		text(""), text("1"), text("true"), text("1:1"), text("1.0.0"),
		{IntValue: ptr.To(int64(1))}, {IntValue: ptr.To(int64(0))}, {IntValue: ptr.To(int64(-1))},
		{BoolValue: ptr.To(true)}, {BoolValue: ptr.To(false)},
		{VersionValue: ptr.To("1.0.0")}, {VersionValue: ptr.To("1.0.1")},
	}
	for i, a := range values {
		for j, b := range values {
			x, _ := device.ValueOf(a)
			y, _ := device.ValueOf(*b.DeepCopy())
			if (x == y) != (i == j) {
				t.Errorf("%v == %v: %v", a, b, x == y)
			}
			if equal := string(x.Append(nil)) == string(y.Append(nil)); equal != (i == j) {
				t.Errorf("encodings of %v and %v are equal: %v", a, b, equal)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	for name, tc := range map[string]struct {
		attribute resourceapi.DeviceAttribute
		want      string // part of the error; empty means well-formed
	}{
		"text":                      {attribute: text("x")},
		"version":                   {attribute: resourceapi.DeviceAttribute{VersionValue: ptr.To("1.2.3-rc.1+build")}},
		"a version that is none":    {attribute: resourceapi.DeviceAttribute{VersionValue: ptr.To("v1")}, want: `"v1" is not a semantic version`},
		"no value":                  {want: "has no value of a known type"},
		"list":                      {attribute: resourceapi.DeviceAttribute{IntValues: []int64{1}}},
		"a list with a bad version": {attribute: resourceapi.DeviceAttribute{VersionValues: []string{"1.0.0", "x"}}, want: `"x" is not a semantic version`},
	} {
		t.Run(name, func(t *testing.T) {
			d := withAttributes(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"odd": tc.attribute, "well": text("x")})
			switch {
			case tc.want == "" && d.Malformed != nil:
				t.Errorf("malformed: %v", d.Malformed)
			case tc.want != "" && (d.Malformed == nil || !strings.Contains(d.Malformed.Error(), tc.want) || !strings.Contains(d.Malformed.Error(), "odd")):
				t.Errorf("got %v, want attribute odd and %q", d.Malformed, tc.want)
			}
		})
	}
}

// TestUnsupported: with a gate off, what needs the feature is refused; the rest
// keeps its older meaning.
func TestUnsupported(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*resourceapi.ResourceSlice, *resourceapi.Device)
		gate   func(*device.Features) *bool
		// off is what the device is refused for with the gate off, on with it on.
		off, on device.Feature
	}{
		"plain": {
			change: func(*resourceapi.ResourceSlice, *resourceapi.Device) {},
			gate:   func(f *device.Features) *bool { return &f.PartitionableDevices },
		},
		"partition": {
			change: func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) {
				d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "set"}}
			},
			gate: func(f *device.Features) *bool { return &f.PartitionableDevices },
			off:  device.PartitionableDevices,
		},
		"shared": {
			change: func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) },
			gate:   func(f *device.Features) *bool { return &f.ConsumableCapacity },
		},
		"to be attached": {
			change: func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) { d.BindingConditions = []string{"attached"} },
			gate:   func(f *device.Features) *bool { return &f.BindingConditions },
			off:    device.BindingConditions,
		},
		"nothing to wait for": {
			change: func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) {
				d.BindingFailureConditions = []string{"broken"}
			},
			gate: func(f *device.Features) *bool { return &f.BindingConditions },
		},
		"without kubelet": {
			change: func(s *resourceapi.ResourceSlice, _ *resourceapi.Device) {
				s.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
			},
			gate: func(f *device.Features) *bool { return &f.OptionalNodeOperations },
			off:  device.OptionalNodeOperations,
		},
		"memory of the node": {
			change: func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) {
				d.NodeAllocatableResources = map[corev1.ResourceName]resourceapi.NodeAllocatableResource{corev1.ResourceMemory: {}}
			},
			gate: func(f *device.Features) *bool { return &f.NodeAllocatableResources },
			on:   device.NodeAllocatableResources,
		},
		"list": {
			change: func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) {
				d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"numa": {IntValues: []int64{0, 1}}}
			},
			gate: func(f *device.Features) *bool { return &f.ListTypeAttributes },
		},
	} {
		t.Run(name, func(t *testing.T) {
			features := device.AllFeatures()
			features.NodeAllocatableResources = true
			if got := publishedWith(features, tc.change).Unsupported; got != tc.on {
				t.Errorf("all features on: got %q, want %q", got, tc.on)
			}
			*tc.gate(&features) = false
			if got := publishedWith(features, tc.change).Unsupported; got != tc.off {
				t.Errorf("gate off: got %q, want %q", got, tc.off)
			}
		})
	}
}

func TestAllowMultiple(t *testing.T) {
	share := func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) }
	whole := func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(false) }
	off := device.AllFeatures()
	off.ConsumableCapacity = false
	got := []bool{
		published(share).AllowMultiple, published(whole).AllowMultiple,
		published(func(*resourceapi.ResourceSlice, *resourceapi.Device) {}).AllowMultiple,
		publishedWith(off, share).AllowMultiple,
	}
	if diff := cmp.Diff([]bool{true, false, false, false}, got); diff != "" {
		t.Errorf("allow multiple (-want +got):\n%s", diff)
	}
}

func TestReach(t *testing.T) {
	selector := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	for name, tc := range map[string]struct {
		change func(*resourceapi.ResourceSlice, *resourceapi.Device)
		want   device.Reach
	}{
		"node of the slice": {change: func(*resourceapi.ResourceSlice, *resourceapi.Device) {}, want: device.Reach{NodeName: "node"}},
		"all nodes": {change: func(s *resourceapi.ResourceSlice, _ *resourceapi.Device) {
			s.Spec.NodeName, s.Spec.AllNodes = nil, ptr.To(true)
		}, want: device.Reach{AllNodes: true}},
		"selected nodes": {change: func(s *resourceapi.ResourceSlice, _ *resourceapi.Device) {
			s.Spec.NodeName, s.Spec.NodeSelector = nil, selector
		}, want: device.Reach{NodeSelector: selector}},
		"per device": {change: func(s *resourceapi.ResourceSlice, d *resourceapi.Device) {
			s.Spec.NodeName, s.Spec.PerDeviceNodeSelection, d.NodeName = nil, ptr.To(true), ptr.To("other")
		}, want: device.Reach{NodeName: "other"}},
		"a way from the future": {change: func(s *resourceapi.ResourceSlice, _ *resourceapi.Device) { s.Spec.NodeName = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, published(tc.change).Reach); diff != "" {
				t.Errorf("reach (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUntoleratedTaint(t *testing.T) {
	taint := func(key string, effect resourceapi.DeviceTaintEffect) resourceapi.DeviceTaint {
		return resourceapi.DeviceTaint{Key: key, Effect: effect}
	}
	tolerate := func(key string) []resourceapi.DeviceToleration {
		return []resourceapi.DeviceToleration{{Key: key, Operator: resourceapi.DeviceTolerationOpExists}}
	}
	for name, tc := range map[string]struct {
		taints      []resourceapi.DeviceTaint
		tolerations []resourceapi.DeviceToleration
		want        string // key
	}{
		"none":             {},
		"no new claims":    {taints: []resourceapi.DeviceTaint{taint("a", resourceapi.DeviceTaintEffectNoSchedule)}, want: "a"},
		"no claims at all": {taints: []resourceapi.DeviceTaint{taint("a", resourceapi.DeviceTaintEffectNoExecute)}, want: "a"},
		"for information":  {taints: []resourceapi.DeviceTaint{taint("a", resourceapi.DeviceTaintEffectNone)}},
		"from the future":  {taints: []resourceapi.DeviceTaint{taint("a", "NoSuchEffect")}},
		"tolerated":        {taints: []resourceapi.DeviceTaint{taint("a", resourceapi.DeviceTaintEffectNoExecute)}, tolerations: tolerate("a")},
		"a toleration from the future": {taints: []resourceapi.DeviceTaint{taint("a", resourceapi.DeviceTaintEffectNoExecute)}, tolerations: []resourceapi.DeviceToleration{
			{Key: "a", Operator: resourceapi.DeviceTolerationOpExists, Effect: "NoSuchEffect"}, {Key: "a", Operator: "Resembles"},
		}, want: "a"},
		"one of two": {taints: []resourceapi.DeviceTaint{taint("a", resourceapi.DeviceTaintEffectNoExecute), taint("b", resourceapi.DeviceTaintEffectNoSchedule)}, tolerations: tolerate("a"), want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := device.UntoleratedTaint(tc.taints, tc.tolerations); found != nil {
				got = found.Key
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
