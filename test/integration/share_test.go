package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// shareOf asks for so much memory of one device of the class.
func shareOf(e *harness.Env, claim, size string) *builders.ClaimBuilder {
	return builders.Claim(claim, builders.Request("r", e.In("gpu")).With(func(r *resourceapi.ExactDeviceRequest) {
		r.Capacity = &resourceapi.CapacityRequirements{
			Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(size)},
		}
	}))
}

// consumed says how much memory a claim got of which device, and checks that
// its share has an ID which no claim of others has.
func consumed(t *testing.T, e *harness.Env, ids map[types.UID]string, name string) string {
	t.Helper()
	result := e.Claim(name).Status.Allocation.Devices.Results[0]
	if result.ShareID == nil {
		t.Fatalf("claim %s has a share without an ID", name)
	}
	if other, found := ids[*result.ShareID]; found {
		t.Errorf("claims %s and %s have the same share", name, other)
	}
	ids[*result.ShareID] = name
	memory := result.ConsumedCapacity["memory"]
	return result.Device + " " + memory.String()
}

// Claims share a device until its capacity is used up.
func TestShares(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), pool(e, "a", shared(builders.Device("gpu-0").Capacity("memory", "80Gi"))).Obj())
	ids := make(map[types.UID]string)
	for _, name := range []string{"one", "two"} {
		wants(e, shareOf(e, name, "30Gi"))
		e.Runs(name, "a")
		if diff := cmp.Diff("gpu-0 30Gi", consumed(t, e, ids, name)); diff != "" {
			t.Errorf("share of %s (-want +got):\n%s", name, diff)
		}
	}
	wants(e, shareOf(e, "three", "30Gi"))
	e.Waits("three", unfit(1, usedUp))
	wants(e, shareOf(e, "small", "20Gi"))
	e.Runs("small", "a")
	e.DeletePod("one")
	e.Runs("three", "a")
	consumed(t, e, ids, "three")
}

// A request policy says what a claim gets that asks for nothing, and rounds up
// what others ask for.
func TestCapacityPolicies(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	policy := func(p resourceapi.CapacityRequestPolicy) *builders.DeviceBuilder {
		return shared(builders.Device("gpu-0")).With(func(d *resourceapi.Device) {
			d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
				"memory": {Value: resource.MustParse("80Gi"), RequestPolicy: &p},
			}
		})
	}
	quantity := func(text string) *resource.Quantity {
		q := resource.MustParse(text)
		return &q
	}
	e.Create(class(e, "gpu").Obj(), pool(e, "a", policy(resourceapi.CapacityRequestPolicy{
		Default:    quantity("8Gi"),
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity("4Gi"), Max: quantity("40Gi"), Step: quantity("4Gi")},
	})).Obj())
	ids := make(map[types.UID]string)
	for name, tc := range map[string]struct{ ask, want string }{
		"default": {ask: "", want: "gpu-0 8Gi"},
		"least":   {ask: "1Gi", want: "gpu-0 4Gi"},
		"rounded": {ask: "13Gi", want: "gpu-0 16Gi"},
	} {
		claim := builders.Claim(name, builders.Request("r", e.In("gpu")))
		if tc.ask != "" {
			claim = shareOf(e, name, tc.ask)
		}
		wants(e, claim)
		e.Runs(name, "a")
		if diff := cmp.Diff(tc.want, consumed(t, e, ids, name)); diff != "" {
			t.Errorf("share of %s (-want +got):\n%s", name, diff)
		}
	}
	wants(e, shareOf(e, "too-much", "41Gi"))
	keepsWaiting(t, e, "too-much")
}

// Administrators get a shared device that is used up, and take nothing of it.
func TestAdministratorsOfShares(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	administrate(t, e)
	e.Create(class(e, "gpu").Obj(), pool(e, "a", shared(builders.Device("gpu-0").Capacity("memory", "80Gi"))).Obj())
	wants(e, shareOf(e, "all", "80Gi"))
	e.Runs("all", "a")
	wants(e, builders.Claim("monitor", builders.Request("r", e.In("gpu")).Admin()))
	e.Runs("monitor", "a")
	e.Took("monitor", "r=a/gpu-0")
	e.DeletePod("all")
	wants(e, shareOf(e, "again", "80Gi"))
	e.Runs("again", "a")
}

// Partitions that can be shared: the counters are charged once for all shares
// of a partition, and partitions that exclude each other are never both handed
// out.
func TestSharedPartitions(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), counters(e, "a", "gpu"),
		parts(e, "a", shared(part("one", "gpu", "60Gi")), shared(part("two", "gpu", "60Gi"))).Obj())
	for _, name := range []string{"first", "second"} {
		wants(e, shareOf(e, name, "30Gi"))
		e.Runs(name, "a")
		e.Took(name, "r=a/one")
	}
	wants(e, shareOf(e, "third", "30Gi"))
	e.Waits("third", unfit(1, usedUp))
	e.DeletePod("first")
	e.Runs("third", "a")
	e.Took("third", "r=a/one")
	e.DeletePod("second")
	e.DeletePod("third")
	wants(e, shareOf(e, "last", "60Gi"))
	e.Runs("last", "a")
}
