package problem_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	numa = "example.com/numa"
	root = "example.com/root"
)

func classes(classes ...*builders.ClassBuilder) problem.ClassGetter {
	return func(name string) (*resourceapi.DeviceClass, error) {
		for _, b := range classes {
			if class := b.Obj(); class.Name == name {
				return class, nil
			}
		}
		return nil, fmt.Errorf("class %s not found", name)
	}
}

var someClasses = classes(
	builders.Class("gpu").Select(`device.driver == "gpu.example.com"`),
	builders.Class("same-as-gpu").Select(`device.driver == "gpu.example.com"`),
	builders.Class("broken").Select("true", "device."),
)

func build(getter problem.ClassGetter, claims ...*builders.ClaimBuilder) (*problem.Problem, error) {
	var objects []*resourceapi.ResourceClaim
	for _, claim := range claims {
		objects = append(objects, claim.Obj())
	}
	return buildWith(device.AllFeatures(), getter, objects)
}

func buildWith(features device.Features, getter problem.ClassGetter, claims []*resourceapi.ResourceClaim) (*problem.Problem, error) {
	return problem.Build(claims, problem.Source{Classes: getter, Compiler: selector.NewCompiler(cel.Features{}), Features: features})
}

func mustBuild(t *testing.T, getter problem.ClassGetter, claims ...*builders.ClaimBuilder) *problem.Problem {
	t.Helper()
	p, err := build(getter, claims...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func gpu(name string) *builders.RequestBuilder { return builders.Request(name, "gpu") }

func TestBuildRefuses(t *testing.T) {
	noCEL := func(r *resourceapi.ExactDeviceRequest) { r.Selectors = []resourceapi.DeviceSelector{{}} }
	cases := map[string]struct {
		claim *builders.ClaimBuilder
		want  problem.RefusedError
		err   bool // an underlying error is expected
	}{
		"unknown class": {
			builders.Claim("c", builders.Request("r", "none")),
			problem.RefusedError{Cause: problem.ClassUnavailable, Request: "r", Class: "none"}, true},
		"unknown class of a subrequest": {
			builders.Claim("c", builders.FirstAvailable("r", gpu("a"), builders.Request("b", "none"))),
			problem.RefusedError{Cause: problem.ClassUnavailable, Request: "r/b", Class: "none"}, true},
		"broken derived attribute": {
			builders.Claim("c", gpu("r").With(func(r *resourceapi.ExactDeviceRequest) {
				r.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: numa, Expression: "device."}}
			})),
			problem.RefusedError{Cause: problem.BadDerivation, Request: "r", Attribute: numa}, true},
		"unknown type of request": {
			builders.Claim("c").With(func(c *resourceapi.ResourceClaim) {
				c.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r"}}
			}),
			problem.RefusedError{Cause: problem.UnknownRequestType, Request: "r"}, false},
		"no class": {
			builders.Claim("c", builders.Request("r", "")),
			problem.RefusedError{Cause: problem.UnknownRequestType, Request: "r"}, false},
		"unknown mode": {
			builders.Claim("c", gpu("r").With(func(r *resourceapi.ExactDeviceRequest) { r.AllocationMode = "Some" })),
			problem.RefusedError{Cause: problem.UnknownAllocationMode, Request: "r", Mode: "Some"}, false},
		"unknown selector": {
			builders.Claim("c", gpu("r").With(noCEL)),
			problem.RefusedError{Cause: problem.UnknownSelector, Request: "r", Number: 1}, false},
		"unknown constraint": {
			builders.Claim("c", gpu("r")).MatchAttribute(numa).With(func(c *resourceapi.ResourceClaim) {
				c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, resourceapi.DeviceConstraint{})
			}),
			problem.RefusedError{Cause: problem.UnknownConstraint, Number: 2}, false},
		"broken expression of a request": {
			builders.Claim("c", gpu("r").Select("true", "nonsense")),
			problem.RefusedError{Cause: problem.BadExpression, Request: "r", Number: 2}, true},
		"broken expression of a class": {
			builders.Claim("c", builders.Request("r", "broken")),
			problem.RefusedError{Cause: problem.BadExpression, Request: "r", Class: "broken", Number: 2}, true},
		"count 0": {
			builders.Claim("c", gpu("r").Count(0)),
			problem.RefusedError{Cause: problem.BadCount, Request: "r", Count: 0}, false},
		"33 devices": {
			builders.Claim("c", gpu("r").Count(33)),
			problem.RefusedError{Cause: problem.TooManyDevices, Count: 33}, false},
		"33 devices in two requests": {
			builders.Claim("c", gpu("r").Count(20), builders.FirstAvailable("s", gpu("a").Count(40), gpu("b").Count(13))),
			problem.RefusedError{Cause: problem.TooManyDevices, Count: 33}, false},
		"more devices than a number can say": {
			builders.Claim("c", gpu("r").Count(1<<62), gpu("s").Count(1<<62)),
			problem.RefusedError{Cause: problem.TooManyDevices, Count: 66}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Claim = "c"
			_, err := build(someClasses, builders.Claim("fine", gpu("r")), tc.claim)
			var got *problem.RefusedError
			if !errors.As(err, &got) {
				t.Fatalf("error %v, want a refusal", err)
			}
			if diff := cmp.Diff(&tc.want, got, cmpopts.IgnoreFields(problem.RefusedError{}, "Err")); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if (got.Err != nil) != tc.err {
				t.Errorf("underlying error %v", got.Err)
			}
		})
	}
}

func TestBuildAcceptsWhatMayFit(t *testing.T) {
	mustBuild(t, someClasses, builders.Claim("c",
		gpu("r").Count(31), builders.FirstAvailable("s", gpu("a").Count(40), gpu("b")), gpu("all").All()))
}

func TestConstraintsCover(t *testing.T) {
	p := mustBuild(t, someClasses, builders.Claim("before", gpu("a")), builders.Claim("c",
		gpu("a"), builders.FirstAvailable("b", gpu("x"), gpu("y"))).
		MatchAttribute(numa).MatchAttribute(root, "b").DistinctAttribute(numa, "b/y", "a"), builders.Claim("after", gpu("a")))
	want := [][]string{{"c a", "c b/x", "c b/y"}, {"c b/x", "c b/y"}, {"c a", "c b/y"}}
	for i := range p.Claims[1].Constraints {
		var covered []string
		for _, a := range p.Alternatives {
			if p.Claims[1].Constraints[i].Covers(a) {
				covered = append(covered, p.Claims[a.Claim].Object.Name+" "+a.Name)
			}
		}
		if diff := cmp.Diff(want[i], covered); diff != "" {
			t.Errorf("constraint %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestSignature(t *testing.T) {
	claim := func(name string) *builders.ClaimBuilder {
		return builders.Claim(name, gpu("r").Select("true").Tolerate("broken"), builders.FirstAvailable("s", gpu("a"), gpu("b"))).MatchAttribute(numa, "r")
	}
	reference := mustBuild(t, someClasses, claim("c")).Signature
	equal := map[string]*builders.ClaimBuilder{
		"another name":       claim("d"),
		"another namespace":  claim("c").With(func(c *resourceapi.ResourceClaim) { c.Namespace, c.UID = "other", "other" }),
		"with configuration": claim("c").Config("gpu.example.com", "{}"),
		"other toleration time": claim("c").With(func(c *resourceapi.ResourceClaim) {
			c.Spec.Devices.Requests[0].Exactly.Tolerations[0].TolerationSeconds = ptr.To(int64(5))
		}),
	}
	for name, other := range equal {
		if mustBuild(t, someClasses, other).Signature != reference {
			t.Errorf("%s: signatures differ", name)
		}
	}
	exactly := func(change func(*resourceapi.ExactDeviceRequest)) *builders.ClaimBuilder {
		return claim("c").With(func(c *resourceapi.ResourceClaim) { change(c.Spec.Devices.Requests[0].Exactly) })
	}
	different := map[string][]*builders.ClaimBuilder{
		"nothing":         {},
		"two claims":      {claim("c"), claim("d")},
		"another request": {claim("c").Requests(gpu("t"))},
		"another name":    {claim("c").With(func(c *resourceapi.ResourceClaim) { c.Spec.Devices.Requests[1].Name = "t" })},
		"another class":   {exactly(func(r *resourceapi.ExactDeviceRequest) { r.DeviceClassName = "same-as-gpu" })},
		"another count":   {exactly(func(r *resourceapi.ExactDeviceRequest) { r.Count = 2 })},
		"all": {exactly(func(r *resourceapi.ExactDeviceRequest) {
			r.AllocationMode, r.Count = resourceapi.DeviceAllocationModeAll, 0
		})},
		"admin":              {exactly(func(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = ptr.To(true) })},
		"another expression": {exactly(func(r *resourceapi.ExactDeviceRequest) { r.Selectors[0].CEL.Expression = "1 == 1" })},
		"another toleration": {exactly(func(r *resourceapi.ExactDeviceRequest) { r.Tolerations[0].Key = "other" })},
		"toleration effect": {exactly(func(r *resourceapi.ExactDeviceRequest) {
			r.Tolerations[0].Effect = resourceapi.DeviceTaintEffectNoExecute
		})},
		"order of preference": {claim("c").With(func(c *resourceapi.ResourceClaim) {
			s := c.Spec.Devices.Requests[1].FirstAvailable
			s[0], s[1] = s[1], s[0]
		})},
		"another constraint": {claim("c").DistinctAttribute(numa, "r")},
		"another attribute": {claim("c").With(func(c *resourceapi.ResourceClaim) {
			c.Spec.Devices.Constraints[0].MatchAttribute = ptr.To(resourceapi.FullyQualifiedName(root))
		})},
		"another kind": {claim("c").With(func(c *resourceapi.ResourceClaim) {
			k := &c.Spec.Devices.Constraints[0]
			k.MatchAttribute, k.DistinctAttribute = nil, k.MatchAttribute
		})},
		"another reach": {claim("c").With(func(c *resourceapi.ResourceClaim) { c.Spec.Devices.Constraints[0].Requests = nil })},
	}
	seen := map[problem.Signature]string{reference: "the reference"}
	for name, claims := range different {
		signature := mustBuild(t, someClasses, claims...).Signature
		if other, known := seen[signature]; known {
			t.Errorf("%s: same signature as %s", name, other)
		}
		seen[signature] = name
	}
	changed := classes(builders.Class("gpu").Select(`device.driver == "other.example.com"`))
	if mustBuild(t, changed, claim("c")).Signature == reference {
		t.Error("same signature although the class has another expression")
	}
}

// TestBuildRefusesWithoutFeature: each feature gate that is off refuses what
// needs it, and nothing else is refused.
func TestBuildRefusesWithoutFeature(t *testing.T) {
	cases := map[string]struct {
		claim *builders.ClaimBuilder
		off   func(*device.Features)
		want  problem.RefusedError
	}{
		"capacity": {
			builders.Claim("c", gpu("r").With(func(r *resourceapi.ExactDeviceRequest) { r.Capacity = &resourceapi.CapacityRequirements{} })),
			func(f *device.Features) { f.ConsumableCapacity = false },
			problem.RefusedError{Cause: problem.FeatureDisabled, Request: "r", Feature: device.ConsumableCapacity}},
		"derived attribute": {
			builders.Claim("c", gpu("r").With(func(r *resourceapi.ExactDeviceRequest) {
				r.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: numa, Expression: "1"}}
			})),
			func(f *device.Features) { f.DerivedAttributes = false },
			problem.RefusedError{Cause: problem.FeatureDisabled, Request: "r", Feature: device.DerivedAttributes}},
		"prioritized list": {
			builders.Claim("c", builders.FirstAvailable("r", gpu("a"))),
			func(f *device.Features) { f.PrioritizedList = false },
			problem.RefusedError{Cause: problem.FeatureDisabled, Request: "r", Feature: device.PrioritizedList}},
		"explicitly no admin access": {
			builders.Claim("c", gpu("r").With(func(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = new(bool) })),
			func(f *device.Features) { f.AdminAccess = false },
			problem.RefusedError{Cause: problem.FeatureDisabled, Request: "r", Feature: device.AdminAccess}},
		"distinct attribute": {
			builders.Claim("c", gpu("r")).With(func(c *resourceapi.ResourceClaim) {
				attribute := resourceapi.FullyQualifiedName(numa)
				c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{DistinctAttribute: &attribute}}
			}),
			func(f *device.Features) {
				*f = device.Features{AdminAccess: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true}
			},
			problem.RefusedError{Cause: problem.UnknownConstraint, Number: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Claim = "c"
			claims := []*resourceapi.ResourceClaim{builders.Claim("fine", gpu("r")).Obj(), tc.claim.Obj()}
			if _, err := buildWith(device.AllFeatures(), someClasses, claims); err != nil {
				t.Errorf("refused with all features: %v", err)
			}
			features := device.AllFeatures()
			tc.off(&features)
			_, err := buildWith(features, someClasses, claims)
			var got *problem.RefusedError
			if !errors.As(err, &got) {
				t.Fatalf("error %v, want a refusal", err)
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}
