package integration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// Drivers and users may still write older versions of the API. Their objects
// are scheduled like those of v1, and what is written for them reads the same.
func TestOldVersionsOfTheAPI(t *testing.T) {
	for name, version := range map[string]oldVersion{
		"v1beta1": {publish: publishV1beta1, results: resultsV1beta1},
		"v1beta2": {publish: publishV1beta2, results: resultsV1beta2},
	} {
		t.Run(name, func(t *testing.T) {
			e := env(t)
			e.Nodes("a")
			version.publish(t, e)
			e.Create(builders.Pod("pod").Claim("claim").Obj(), builders.Pod("list").Claim("list").Obj())
			e.Runs("pod", "a")
			e.Runs("list", "a")
			allocation := e.Allocation("a", e.Device("r", "a", "large-0"), e.Device("r", "a", "large-1"))
			allocation.Devices.Results[0].Tolerations = e.Claim("claim").Spec.Devices.Requests[0].Exactly.Tolerations
			allocation.Devices.Results[1].Tolerations = allocation.Devices.Results[0].Tolerations
			e.Holds("claim", allocation, "pod")
			e.Holds("list", e.Allocation("a", e.Device("r/small", "a", "small")), "list")
			for claim, want := range map[string][]string{"claim": {"r=a/large-0", "r=a/large-1"}, "list": {"r/small=a/small"}} {
				if diff := cmp.Diff(want, version.results(t, e, claim)); diff != "" {
					t.Errorf("devices of claim %s in %s (-want +got):\n%s", claim, name, diff)
				}
			}
			e.DeletePod("pod")
			e.Released("claim")
		})
	}
}

// oldVersion is how clients of a version work.
type oldVersion struct {
	// publish creates a class for the devices of node a: two large ones with a
	// taint and a small one; the claim "claim" for two large ones that tolerates
	// the taint; and the claim "list" for a device that nobody has, or a small one.
	publish func(*testing.T, *harness.Env)
	// results reads what a claim has got, as Took writes it.
	results func(t *testing.T, e *harness.Env, claim string) []string
}

// created ends the test on an error, and cleans up at its end.
func created(t *testing.T, err error, remove func(context.Context, string, metav1.DeleteOptions) error, name string) {
	t.Helper()
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := remove(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	})
}

func is(e *harness.Env, model string) string {
	return own(e, "attributes") + `.model == "` + model + `"`
}

func publishV1beta1(t *testing.T, e *harness.Env) {
	client, options := e.Client.ResourceV1beta1(), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	device := func(name, model string, taints ...resourcev1beta1.DeviceTaint) resourcev1beta1.Device {
		return resourcev1beta1.Device{Name: name, Basic: &resourcev1beta1.BasicDevice{
			Attributes: map[resourcev1beta1.QualifiedName]resourcev1beta1.DeviceAttribute{"model": {StringValue: &model}},
			Taints:     taints,
		}}
	}
	taint := resourcev1beta1.DeviceTaint{Key: "example.com/old", Effect: resourcev1beta1.DeviceTaintEffectNoSchedule}
	selector := func(model string) []resourcev1beta1.DeviceSelector {
		return []resourcev1beta1.DeviceSelector{{CEL: &resourcev1beta1.CELDeviceSelector{Expression: is(e, model)}}}
	}
	_, err := client.DeviceClasses().Create(t.Context(), &resourcev1beta1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: e.In("gpu")},
		Spec: resourcev1beta1.DeviceClassSpec{Selectors: []resourcev1beta1.DeviceSelector{
			{CEL: &resourcev1beta1.CELDeviceSelector{Expression: `device.driver == "` + e.Driver + `"`}}}},
	}, options)
	created(t, err, client.DeviceClasses().Delete, e.In("gpu"))
	_, err = client.ResourceSlices().Create(t.Context(), &resourcev1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: e.In("slice")},
		Spec: resourcev1beta1.ResourceSliceSpec{
			Driver: e.Driver, NodeName: e.In("a"), Pool: resourcev1beta1.ResourcePool{Name: "a", ResourceSliceCount: 1},
			Devices: []resourcev1beta1.Device{device("large-0", "large", taint), device("large-1", "large", taint), device("small", "small")},
		},
	}, options)
	created(t, err, client.ResourceSlices().Delete, e.In("slice"))
	for name, request := range map[string]resourcev1beta1.DeviceRequest{
		"claim": {Name: "r", DeviceClassName: e.In("gpu"), Count: 2, Selectors: selector("large"),
			Tolerations: []resourcev1beta1.DeviceToleration{{Key: "example.com/old", Operator: resourcev1beta1.DeviceTolerationOpExists}}},
		"list": {Name: "r", FirstAvailable: []resourcev1beta1.DeviceSubRequest{
			{Name: "huge", DeviceClassName: e.In("gpu"), Selectors: selector("huge")},
			{Name: "small", DeviceClassName: e.In("gpu"), Selectors: selector("small")}}},
	} {
		_, err := client.ResourceClaims(e.Namespace).Create(t.Context(), &resourcev1beta1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       resourcev1beta1.ResourceClaimSpec{Devices: resourcev1beta1.DeviceClaim{Requests: []resourcev1beta1.DeviceRequest{request}}},
		}, options)
		if err != nil {
			t.Fatalf("create claim %s: %v", name, err)
		}
	}
}

func resultsV1beta1(t *testing.T, e *harness.Env, name string) []string {
	claim, err := e.Client.ResourceV1beta1().ResourceClaims(e.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		found = append(found, result.Request+"="+result.Pool+"/"+result.Device)
	}
	return found
}

func publishV1beta2(t *testing.T, e *harness.Env) {
	client, options := e.Client.ResourceV1beta2(), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	device := func(name, model string, taints ...resourcev1beta2.DeviceTaint) resourcev1beta2.Device {
		return resourcev1beta2.Device{
			Name: name, Taints: taints,
			Attributes: map[resourcev1beta2.QualifiedName]resourcev1beta2.DeviceAttribute{"model": {StringValue: &model}},
		}
	}
	taint := resourcev1beta2.DeviceTaint{Key: "example.com/old", Effect: resourcev1beta2.DeviceTaintEffectNoSchedule}
	selector := func(model string) []resourcev1beta2.DeviceSelector {
		return []resourcev1beta2.DeviceSelector{{CEL: &resourcev1beta2.CELDeviceSelector{Expression: is(e, model)}}}
	}
	_, err := client.DeviceClasses().Create(t.Context(), &resourcev1beta2.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: e.In("gpu")},
		Spec: resourcev1beta2.DeviceClassSpec{Selectors: []resourcev1beta2.DeviceSelector{
			{CEL: &resourcev1beta2.CELDeviceSelector{Expression: `device.driver == "` + e.Driver + `"`}}}},
	}, options)
	created(t, err, client.DeviceClasses().Delete, e.In("gpu"))
	_, err = client.ResourceSlices().Create(t.Context(), &resourcev1beta2.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: e.In("slice")},
		Spec: resourcev1beta2.ResourceSliceSpec{
			Driver: e.Driver, NodeName: ptr.To(e.In("a")), Pool: resourcev1beta2.ResourcePool{Name: "a", ResourceSliceCount: 1},
			Devices: []resourcev1beta2.Device{device("large-0", "large", taint), device("large-1", "large", taint), device("small", "small")},
		},
	}, options)
	created(t, err, client.ResourceSlices().Delete, e.In("slice"))
	for name, request := range map[string]resourcev1beta2.DeviceRequest{
		"claim": {Name: "r", Exactly: &resourcev1beta2.ExactDeviceRequest{DeviceClassName: e.In("gpu"), Count: 2, Selectors: selector("large"),
			Tolerations: []resourcev1beta2.DeviceToleration{{Key: "example.com/old", Operator: resourcev1beta2.DeviceTolerationOpExists}}}},
		"list": {Name: "r", FirstAvailable: []resourcev1beta2.DeviceSubRequest{
			{Name: "huge", DeviceClassName: e.In("gpu"), Selectors: selector("huge")},
			{Name: "small", DeviceClassName: e.In("gpu"), Selectors: selector("small")}}},
	} {
		_, err := client.ResourceClaims(e.Namespace).Create(t.Context(), &resourcev1beta2.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       resourcev1beta2.ResourceClaimSpec{Devices: resourcev1beta2.DeviceClaim{Requests: []resourcev1beta2.DeviceRequest{request}}},
		}, options)
		if err != nil {
			t.Fatalf("create claim %s: %v", name, err)
		}
	}
}

func resultsV1beta2(t *testing.T, e *harness.Env, name string) []string {
	claim, err := e.Client.ResourceV1beta2().ResourceClaims(e.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		found = append(found, result.Request+"="+result.Pool+"/"+result.Device)
	}
	return found
}

// Rules of older versions taint devices like those of v1.
func TestOldVersionsOfTaintRules(t *testing.T) {
	for name, create := range map[string]func(*testing.T, *harness.Env){
		"v1alpha3": func(t *testing.T, e *harness.Env) {
			rules := e.Client.ResourceV1alpha3().DeviceTaintRules()
			_, err := rules.Create(t.Context(), &resourcev1alpha3.DeviceTaintRule{
				ObjectMeta: metav1.ObjectMeta{Name: e.In("rule")},
				Spec: resourcev1alpha3.DeviceTaintRuleSpec{
					DeviceSelector: &resourcev1alpha3.DeviceTaintSelector{Driver: &e.Driver},
					Taint:          resourcev1alpha3.DeviceTaint{Key: "example.com/old", Effect: resourcev1alpha3.DeviceTaintEffectNoSchedule},
				},
			}, metav1.CreateOptions{})
			created(t, err, rules.Delete, e.In("rule"))
		},
		"v1beta2": func(t *testing.T, e *harness.Env) {
			rules := e.Client.ResourceV1beta2().DeviceTaintRules()
			_, err := rules.Create(t.Context(), &resourcev1beta2.DeviceTaintRule{
				ObjectMeta: metav1.ObjectMeta{Name: e.In("rule")},
				Spec: resourcev1beta2.DeviceTaintRuleSpec{
					DeviceSelector: &resourcev1beta2.DeviceTaintSelector{Driver: &e.Driver},
					Taint:          resourcev1beta2.DeviceTaint{Key: "example.com/old", Effect: resourcev1beta2.DeviceTaintEffectNoSchedule},
				},
			}, metav1.CreateOptions{})
			created(t, err, rules.Delete, e.In("rule"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := env(t)
			e.Nodes("a")
			create(t, e)
			e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj())
			claimAndPod(e, "pod")
			e.Waits("pod", unfit(1, `1 request "r": free devices have the untolerated taint example.com/old:NoSchedule`))
			e.Create(builders.Claim("brave", builders.Request("r", e.In("gpu")).Tolerate("example.com/old")).Obj(),
				builders.Pod("brave").Claim("brave").Obj())
			e.Runs("brave", "a")
		})
	}
}
