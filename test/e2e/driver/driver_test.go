package driver

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/utils/ptr"
)

func claim(uid string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{}
	c.Namespace, c.Name, c.UID = "ns", "claim", types.UID(uid)
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	return c
}

func result(driver, pool, device string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: pool, Device: device}
}

// published lists pool/device of each slice.
func published(resources resourceslice.DriverResources) map[string][][]string {
	found := make(map[string][][]string)
	for name, pool := range resources.Pools {
		for _, slice := range pool.Slices {
			var devices []string
			for _, device := range slice.Devices {
				text := device.Name
				for _, taint := range device.Taints {
					text += " " + taint.Key
				}
				devices = append(devices, text)
			}
			found[name] = append(found[name], devices)
		}
	}
	return found
}

func TestResources(t *testing.T) {
	rest := map[string][][]string{
		"node-partitions": {nil, {"gpu-2-all", "gpu-2-half-0", "gpu-2-half-1"}},
		"node-shared":     {{"gpu-3"}},
	}
	tests := map[string]struct {
		change func(*Hardware) error
		want   [][]string // of the pool "node"
	}{
		"at first":  {change: func(*Hardware) error { return nil }, want: [][]string{{"gpu-0", "gpu-1"}}},
		"withdrawn": {change: func(h *Hardware) error { return h.Withdraw("gpu-0") }, want: [][]string{{"gpu-1"}}},
		"tainted": {
			change: func(h *Hardware) error { return h.Taint("gpu-1", resourceapi.DeviceTaint{Key: "broken"}) },
			want:   [][]string{{"gpu-0", "gpu-1 broken"}},
		},
		"next generation": {change: func(h *Hardware) error { h.NextGeneration(); return nil }, want: [][]string{{"gpu-0"}, {"gpu-1"}}},
		"repaired": {
			change: func(h *Hardware) error { h.NextGeneration(); err := h.Withdraw("gpu-0"); h.Repair(); return err },
			want:   [][]string{{"gpu-0", "gpu-1"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h, err := NewHardware(GPU, "node")
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.change(h); err != nil {
				t.Fatal(err)
			}
			want := map[string][][]string{"node": tc.want}
			for pool, slices := range rest {
				want[pool] = slices
			}
			if diff := cmp.Diff(want, published(h.Resources())); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownHardware(t *testing.T) {
	if _, err := NewHardware("other.example.com", "node"); err == nil {
		t.Error("a driver without devices was accepted")
	}
	h, err := NewHardware(NIC, "node")
	if err != nil {
		t.Fatal(err)
	}
	if h.Withdraw("gpu-0") == nil || h.Taint("gpu-0", resourceapi.DeviceTaint{}) == nil {
		t.Error("a device that does not exist was changed")
	}
}

func TestSpec(t *testing.T) {
	shared := result(GPU, "node-shared", "gpu-3")
	shared.ShareID = ptr.To(types.UID("s"))
	spec := Spec(GPU, claim("a-b", result(GPU, "node", "gpu-0"), result(NIC, "node", "nic-0"), shared))
	got := map[string][]string{}
	for _, device := range spec.Devices {
		got[spec.Kind+"="+device.Name] = device.ContainerEdits.Env
	}
	want := map[string][]string{
		"gpu.example.com/device=a-b-0": {"DRA_DEVICE_a_b_0=gpu.example.com/node/gpu-0 for request r of claim ns/claim"},
		"gpu.example.com/device=a-b-2": {"DRA_DEVICE_a_b_2=gpu.example.com/node-shared/gpu-3 share s for request r of claim ns/claim"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CDI devices (-want +got):\n%s", diff)
	}
}

func newPlugin(t *testing.T, dir string, crash func()) *Plugin {
	t.Helper()
	h, err := NewHardware(GPU, "node")
	if err != nil {
		t.Fatal(err)
	}
	return NewPlugin(GPU, dir, h, crash)
}

func prepare(t *testing.T, p *Plugin, c *resourceapi.ResourceClaim) string {
	t.Helper()
	results, err := p.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{c})
	if err != nil {
		t.Fatal(err)
	}
	if err := results[c.UID].Err; err != nil {
		return err.Error()
	}
	return ""
}

// What a driver has prepared is known to the one that replaces it.
func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	p := newPlugin(t, dir, nil)
	first := claim("first", result(GPU, "node", "gpu-0"), result(NIC, "node", "nic-0"))
	for range 2 { // it may be asked for once more
		if got := prepare(t, p, first); got != "" {
			t.Error(got)
		}
	}
	second := claim("second", result(GPU, "node", "gpu-0"))
	successor := newPlugin(t, dir, nil)
	if got, want := prepare(t, successor, second), "prepare claim ns/claim: device node/gpu-0 is prepared for the claim with UID first"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := prepare(t, p, claim("third", result(GPU, "other", "gpu-0"))), "prepare claim ns/claim: node node has no device other/gpu-0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for range 2 {
		if _, err := successor.UnprepareResourceClaims(t.Context(), []kubeletplugin.NamespacedObject{{UID: "first"}}); err != nil {
			t.Error(err)
		}
	}
	if got := prepare(t, p, second); got != "" {
		t.Error(got)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(dir, "gpu.example.com-second.json")}; !slices.Equal(files, want) {
		t.Errorf("CDI files %v, want %v", files, want)
	}
}

// Orders as a test gives them, over a socket.
func TestOrders(t *testing.T) {
	dir := t.TempDir()
	crashed := false
	p := newPlugin(t, dir, func() { crashed = true })
	var last resourceslice.DriverResources
	socket := filepath.Join(dir, "s")
	listener, err := listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- serve(ctx, listener, handler{p, func(_ context.Context, r resourceslice.DriverResources) error { last = r; return nil }})
	}()
	client := NewClient(socket)
	for _, order := range []Order{{FailPrepares: 1}, {CrashInPrepare: true}, {Withdraw: "gpu-1"}} {
		if err := client.Give(t.Context(), order); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Give(t.Context(), Order{}); err == nil {
		t.Error("an empty order was obeyed")
	}
	if diff := cmp.Diff([][]string{{"gpu-0"}}, published(last)["node"]); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	c := claim("c", result(GPU, "node", "gpu-0"))
	if got, want := prepare(t, p, c), "prepare claim ns/claim: told to fail"; got != want || crashed {
		t.Errorf("got %q and crash %t, want %q", got, crashed, want)
	}
	if got := prepare(t, p, c); got != "" || !crashed {
		t.Errorf("got %q and crash %t", got, crashed)
	}
	state, err := client.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &State{Prepared: []string{"c"}, Calls: []Call{
		{Method: Prepare, Claim: "ns/claim", Error: "prepare claim ns/claim: told to fail"}, {Method: Prepare, Claim: "ns/claim"},
	}}
	if diff := cmp.Diff(want, state); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
