package hardware_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
)

// inventory is what a scheduler can tell about one node's devices.
type inventory struct {
	GPUs, NICs     int
	Slices         int
	Models         map[string]int
	Memory         map[string]int // GPUs by capacity
	AlignableRoots int            // PCIe roots with at least one GPU and one NIC
	Others         map[string]int // devices of other drivers
	Features       []string       // that the node declares
}

func inventoryOf(t *testing.T, objects *hardware.Objects) inventory {
	t.Helper()
	got := inventory{Models: map[string]int{}, Memory: map[string]int{}, Others: map[string]int{}}
	roots := map[string]map[string]bool{} // root -> drivers
	for _, slice := range objects.Slices {
		got.Slices++
		for _, device := range slice.Spec.Devices {
			switch slice.Spec.Driver {
			case "gpu.example.com":
				got.GPUs++
				got.Models[*device.Attributes["productName"].StringValue]++
				memory := device.Capacity["memory"].Value
				got.Memory[memory.String()]++
			case "nic.example.com":
				got.NICs++
			default:
				got.Others[slice.Spec.Driver]++
			}
			if root := device.Attributes["resource.kubernetes.io/pcieRoot"].StringValue; root != nil {
				if roots[*root] == nil {
					roots[*root] = map[string]bool{}
				}
				roots[*root][slice.Spec.Driver] = true
			}
		}
	}
	for _, node := range objects.Nodes {
		got.Features = append(got.Features, node.Status.DeclaredFeatures...)
	}
	for _, drivers := range roots {
		if len(drivers) == 2 {
			got.AlignableRoots++
		}
	}
	return got
}

// The properties that demo and tests rely on, profile by profile.
func TestProfile(t *testing.T) {
	tests := map[string]inventory{
		"training": {
			GPUs: 8, NICs: 4, Slices: 2, AlignableRoots: 4,
			Models: map[string]int{"NVIDIA H100 80GB HBM3": 8}, Memory: map[string]int{"80Gi": 8},
		},
		"inference": {
			GPUs: 8, Slices: 1,
			Models: map[string]int{"Tesla T4": 4, "NVIDIA A10": 4}, Memory: map[string]int{"16Gi": 4, "24Gi": 4},
		},
		"edge": {
			GPUs: 2, NICs: 4, Slices: 2, AlignableRoots: 0,
			Models: map[string]int{"NVIDIA L4": 2}, Memory: map[string]int{"24Gi": 2},
		},
		"plain": {},
		"split": {
			GPUs: 8, Slices: 2,
			Models: map[string]int{"NVIDIA A100-SXM4-40GB": 8}, Memory: map[string]int{"40Gi": 8},
		},
		// Two GPUs with 14 partitions each, and a slice for their counters.
		"partition": {Slices: 3, Others: map[string]int{"mig.example.com": 2 * (1 + 14)}},
		"shared":    {NICs: 2, Slices: 1},
		"fabric":    {Slices: 1, Others: map[string]int{"fabric.example.com": 3}},
		"numa": {
			GPUs: 4, NICs: 2, Slices: 2,
			Models: map[string]int{"AMD Instinct MI210": 4}, Memory: map[string]int{"64Gi": 4},
		},
		"modes":  {Slices: 2, Others: map[string]int{"modes.example.com": 2 + 8}},
		"remote": {Features: []string{"DRAOptionalNodeOperations"}},
	}
	var tested []string
	for _, profile := range hardware.Profiles() {
		want, ok := tests[profile]
		if !ok {
			t.Errorf("profile %q has no case here", profile)
			continue
		}
		tested = append(tested, profile)
		t.Run(profile, func(t *testing.T) {
			objects, err := hardware.Profile(hardware.Machine{Name: "machine", Profile: profile, Zone: "zone-x", Index: 258})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, inventoryOf(t, objects), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			if len(objects.Nodes) != 1 {
				t.Fatalf("got %d nodes, want 1", len(objects.Nodes))
			}
			checkNode(t, objects.Nodes[0], "machine", "zone-x", "10.1.1.3")
		})
	}
	if len(tested) != len(tests) {
		t.Errorf("tested only profiles %v", tested)
	}
}

func checkNode(t *testing.T, node *corev1.Node, name, zone, address string) {
	t.Helper()
	if node.Name != name || node.Labels[corev1.LabelHostname] != name || node.Labels[corev1.LabelTopologyZone] != zone {
		t.Errorf("got name %q and labels %v, want name and hostname %q, zone %q", node.Name, node.Labels, name, zone)
	}
	want := []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: name},
		{Type: corev1.NodeInternalIP, Address: address},
	}
	if diff := cmp.Diff(want, node.Status.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		capacity, allocatable := node.Status.Capacity[resource], node.Status.Allocatable[resource]
		if allocatable.Sign() <= 0 || allocatable.Cmp(capacity) > 0 {
			t.Errorf("%s: allocatable %s and capacity %s make no sense", resource, allocatable.String(), capacity.String())
		}
	}
}

// Pools have as many slices as they say, all of one generation and node, no
// device name twice; across the cluster no UUID and no PCI address of a driver
// is there twice.
func TestClusterPools(t *testing.T) {
	for _, name := range hardware.Clusters() {
		t.Run(name, func(t *testing.T) {
			objects, err := hardware.Cluster(name)
			if err != nil {
				t.Fatal(err)
			}
			nodes := map[string]bool{}
			for _, node := range objects.Nodes {
				nodes[node.Name] = true
			}
			pools := map[string][]*resourcev1.ResourceSlice{}
			for _, slice := range objects.Slices {
				if slice.Spec.NodeName == nil || !nodes[*slice.Spec.NodeName] {
					t.Errorf("slice %s: its node is not in the cluster", slice.Name)
				}
				key := slice.Spec.Driver + "/" + slice.Spec.Pool.Name
				pools[key] = append(pools[key], slice)
			}
			unique := map[string]string{} // value -> where it was seen first
			for key, slices := range pools {
				checkPool(t, key, slices, unique)
			}
		})
	}
}

func checkPool(t *testing.T, key string, slices []*resourcev1.ResourceSlice, unique map[string]string) {
	t.Helper()
	names := map[string]bool{}
	for _, slice := range slices {
		if got := slice.Spec.Pool.ResourceSliceCount; got != int64(len(slices)) {
			t.Errorf("pool %s: slice %s says %d slices, there are %d", key, slice.Name, got, len(slices))
		}
		if slice.Spec.Pool != slices[0].Spec.Pool || *slice.Spec.NodeName != *slices[0].Spec.NodeName {
			t.Errorf("pool %s: slices %s and %s differ in pool or node", key, slice.Name, slices[0].Name)
		}
		for _, device := range slice.Spec.Devices {
			if names[device.Name] {
				t.Errorf("pool %s: device %s is there twice", key, device.Name)
			}
			names[device.Name] = true
			for _, attribute := range []resourcev1.QualifiedName{"uuid", "pciAddress", "resource.kubernetes.io/pciBusID"} {
				value := device.Attributes[attribute].StringValue
				if value == nil {
					continue
				}
				where := key + "/" + device.Name
				if first, ok := unique[*value]; ok {
					t.Errorf("%s %q is that of both %s and %s", attribute, *value, first, where)
				}
				unique[*value] = where
			}
		}
	}
}

// The kinds of machines that the demo promises.
func TestClusterDemo(t *testing.T) {
	objects, err := hardware.Cluster("demo")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, node := range objects.Nodes {
		got[node.Labels[corev1.LabelInstanceTypeStable]]++
	}
	want := map[string]int{
		"sandbox-training": 2, "sandbox-inference": 1, "sandbox-edge": 1, "sandbox-plain": 1, "sandbox-split": 1,
		"sandbox-partition": 1, "sandbox-shared": 1, "sandbox-fabric": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instance types (-want +got):\n%s", diff)
	}
	extended := map[string]string{}
	for _, class := range objects.Classes {
		extended[class.Name] = ""
		if class.Spec.ExtendedResourceName != nil {
			extended[class.Name] = *class.Spec.ExtendedResourceName
		}
	}
	wantExtended := map[string]string{
		"gpu.example.com": "", "nic.example.com": "", "extended-gpu.example.com": "example.com/gpu",
		"mig.example.com": "", "mig-gpu.example.com": "", "shared-nic.example.com": "", "fabric.example.com": "", "modes.example.com": "",
	}
	if diff := cmp.Diff(wantExtended, extended); diff != "" {
		t.Errorf("classes and their extended resources (-want +got):\n%s", diff)
	}
}

func TestProfileRefuses(t *testing.T) {
	tests := map[string]struct {
		machine hardware.Machine
		want    string
	}{
		"unknown profile": {hardware.Machine{Name: "a", Profile: "quantum"}, `find hardware profile "quantum": there are edge, fabric, inference`},
		"bad name":        {hardware.Machine{Name: "A_b", Profile: "plain"}, `check name "A_b"`},
		"index too large": {hardware.Machine{Name: "a", Profile: "plain", Index: 1 << 16}, "must be from 0 to 65534"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := hardware.Profile(tc.machine)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}
