package demo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

func decodeCluster(t *testing.T) Devices {
	t.Helper()
	var list resourcev1.ResourceSliceList
	if err := yaml.UnmarshalStrict([]byte(cluster), &list); err != nil {
		t.Fatal(err)
	}
	return publishedDevices(list.Items)
}

func TestWriteTable(t *testing.T) {
	worker := Pod{Name: "worker", Node: "n1", Running: true, Devices: []Held{
		{Claim: "worker-1", Request: "gpu", ID: gpu0},
		{Claim: "worker-1", Request: "gpu", ID: gpu1},
		{Claim: "worker-2", Request: "nic", ID: nic0, Admin: true},
		{Claim: "worker-3", Request: "nic", ID: nic0, Consumes: map[string]string{"bandwidth": "40G"}},
	}}
	pods := []Pod{
		{Name: "late", Condition: "0/6 nodes are available: " + strings.Repeat("3 request \"gpu\": all matching devices in use, ", 3)},
		{Name: "plain", Node: "n2", Running: true},
		worker,
	}
	const want = `
  POD      NODE      CLAIM      REQUEST   DEVICE
  late     (waits)   -          -         -
      0/6 nodes are available: 3 request "gpu": all matching devices in use, 3 request "gpu": all
      matching devices in use, 3 request "gpu": all matching devices in use,
  plain    n2        -          -         -
  worker   n1        worker-1   gpu       gpu-0 (H100, 80Gi)
                     worker-1   gpu       gpu-1 (T4, 16Gi)
                     worker-2   nic       nic-0 (ConnectX-7, admin access)
                     worker-3   nic       nic-0 (ConnectX-7, bandwidth 40G)
`
	var got strings.Builder
	got.WriteString("\n")
	if err := writeTable(&got, pods, decodeCluster(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestShortProduct(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3":                    "H100",
		"NVIDIA A100-SXM4-40GB":                    "A100",
		"Tesla T4":                                 "T4",
		"MT2910 Family [ConnectX-7]":               "ConnectX-7",
		"ConnectX Family mlx5Gen Virtual Function": "ConnectX",
		"NVIDIA": "NVIDIA",
		"":       "",
	} {
		if got := shortProduct(name); got != want {
			t.Errorf("shortProduct(%q): got %q, want %q", name, got, want)
		}
	}
}

func TestJoinNames(t *testing.T) {
	for names, want := range map[string]string{
		"gpu-3":                   "gpu-3",
		"gpu-0 gpu-1":             "gpu-0, gpu-1",
		"gpu-8 gpu-9 gpu-10":      "gpu-8 to gpu-10",
		"gpu-0 gpu-1 gpu-3":       "gpu-0, gpu-1, gpu-3",
		"gpu-0 nic-1 gpu-2":       "gpu-0, nic-1, gpu-2",
		"left middle right":       "left, middle, right",
		"gpu-2 gpu-1 gpu-0 gpu-3": "gpu-2, gpu-1, gpu-0, gpu-3",
	} {
		if got := joinNames(strings.Fields(names)); got != want {
			t.Errorf("joinNames(%s): got %q, want %q", names, got, want)
		}
	}
}
