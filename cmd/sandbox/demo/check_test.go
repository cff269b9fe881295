package demo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cluster has two nodes with two GPUs and a NIC; GPU 0 and the NIC of a node
// hang on one root.
const cluster = `
apiVersion: v1
kind: List
items:
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: n1-gpu}
  spec:
    driver: gpu.example.com
    nodeName: n1
    pool: {name: n1, generation: 2, resourceSliceCount: 1}
    devices:
    - name: gpu-0
      attributes:
        architecture: {string: Hopper}
        productName: {string: NVIDIA H100 80GB HBM3}
        memoryType: {string: HBM}
        resource.kubernetes.io/pcieRoot: {string: "pci0:1"}
      capacity: {memory: {value: 80Gi}}
    - name: gpu-1
      attributes:
        gpu.example.com/architecture: {string: Turing}
        productName: {string: Tesla T4}
        memoryType: {string: HBM}
        resource.kubernetes.io/pcieRoot: {string: "pci0:2"}
      capacity: {memory: {value: 16Gi}}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: n1-nic}
  spec:
    driver: nic.example.com
    nodeName: n1
    pool: {name: n1, generation: 1, resourceSliceCount: 1}
    devices:
    - name: nic-0
      attributes:
        productName: {string: "MT2910 Family [ConnectX-7]"}
        resource.kubernetes.io/pcieRoot: {string: "pci0:1"}
        rdma: {bool: true}
        linkSpeed: {int: 400000}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: n1-gpu-old}
  spec:
    driver: gpu.example.com
    nodeName: n1
    pool: {name: n1, generation: 1, resourceSliceCount: 1}
    devices:
    - name: gpu-9
`

var (
	gpu0 = DeviceID{"gpu.example.com", "n1", "gpu-0"} // Hopper
	gpu1 = DeviceID{"gpu.example.com", "n1", "gpu-1"} // Turing
	nic0 = DeviceID{"nic.example.com", "n1", "nic-0"} // on the root of gpu-0
)

// running is a pod on n1 with devices, each for the request named before it.
func running(name string, held ...any) Pod {
	pod := Pod{Name: name, Node: "n1", Running: true}
	for i := 0; i < len(held); i += 2 {
		pod.Devices = append(pod.Devices, Held{Claim: name, Request: held[i].(string), ID: held[i+1].(DeviceID)})
	}
	return pod
}

func TestCheck(t *testing.T) {
	const anyGPU = "- pod: a\n  nodes: [n*]\n  devices:\n  - {request: gpu, driver: gpu.example.com}\n"
	const waits = "- pod: a\n  pending: true\n  conditionContains: ['request \"gpu\"', in use]\n"
	bound := running("a", "gpu", gpu0)
	bound.Running = false
	unreserved := running("a", "gpu", gpu0)
	unreserved.Unreserved = []string{"c"}
	tests := map[string]struct {
		promise string
		pods    []Pod
		want    map[string]string // problems by pod, joined
	}{
		"as promised": {anyGPU, []Pod{running("a", "gpu", gpu0)}, map[string]string{"a": ""}},
		"no pod":      {anyGPU, nil, map[string]string{"a": "it is promised, but does not exist"}},
		"nobody promised it": {anyGPU, []Pod{running("a", "gpu", gpu0), running("b")},
			map[string]string{"a": "", "b": "expect.yaml does not mention this pod"}},
		"it waits": {anyGPU, []Pod{{Name: "a", Condition: "no room"}},
			map[string]string{"a": "promised is to run on n*, but it waits: no room"}},
		"bound only":         {anyGPU, []Pod{bound}, map[string]string{"a": "it is bound, but does not run"}},
		"claim not reserved": {anyGPU, []Pod{unreserved}, map[string]string{"a": "claim c is not reserved for it"}},
		"other node": {strings.ReplaceAll(anyGPU, "n*", "m*, k1"), []Pod{running("a", "gpu", gpu0)},
			map[string]string{"a": "promised is node m* or k1, it runs on n1"}},
		"a device too many": {anyGPU, []Pod{running("a", "gpu", gpu0, "gpu", gpu1)},
			map[string]string{"a": "promised are 1 devices, it has 2 (gpu.example.com/n1/gpu-0, gpu.example.com/n1/gpu-1)"}},
		"other request": {anyGPU, []Pod{running("a", "gpu/first", gpu0)},
			map[string]string{"a": "promised is a device for request gpu of driver gpu.example.com; gpu.example.com/n1/gpu-0 is for request gpu/first"}},
		"other driver": {anyGPU, []Pod{running("a", "gpu", nic0)},
			map[string]string{"a": "promised is a device for request gpu of driver gpu.example.com; nic.example.com/n1/nic-0 is of driver nic.example.com"}},
		"old generation": {anyGPU, []Pod{running("a", "gpu", DeviceID{"gpu.example.com", "n1", "gpu-9"})},
			map[string]string{"a": "promised is a device for request gpu of driver gpu.example.com; gpu.example.com/n1/gpu-9 is not published"}},
		"attribute, bare and qualified": {`
- pod: a
  nodes: [n1]
  devices:
  - {request: gpu, driver: gpu.example.com, attributes: {gpu.example.com/architecture: Hopper}}
  - {request: nic, driver: nic.example.com, attributes: {linkSpeed: 400000, rdma: true, resource.kubernetes.io/pcieRoot: "pci0:1"}}
`, []Pod{running("a", "nic", nic0, "gpu", gpu0)}, map[string]string{"a": ""}},
		"other attribute": {strings.Replace(anyGPU, "example.com}", "example.com, attributes: {architecture: Ada}}", 1), []Pod{running("a", "gpu", gpu1)},
			map[string]string{"a": "promised is a device for request gpu of driver gpu.example.com, architecture Ada; " +
				`gpu.example.com/n1/gpu-1 has architecture "Turing"`}},
		// The first device keeps both promises, the second only the first one.
		"devices are paired, not taken in order": {`
- pod: a
  nodes: [n1]
  devices:
  - {request: gpu, driver: gpu.example.com}
  - {request: gpu, driver: gpu.example.com, attributes: {architecture: Hopper}}
`, []Pod{running("a", "gpu", gpu0, "gpu", gpu1)}, map[string]string{"a": ""}},
		"one device keeps one promise": {`
- pod: a
  nodes: [n1]
  devices:
  - {request: gpu, driver: gpu.example.com, attributes: {architecture: Hopper}}
  - {request: gpu, driver: gpu.example.com, attributes: {architecture: Hopper}}
`, []Pod{running("a", "gpu", gpu0, "gpu", gpu1)},
			map[string]string{"a": "promised is a device for request gpu of driver gpu.example.com, architecture Hopper; " +
				`gpu.example.com/n1/gpu-0 keeps another promise; gpu.example.com/n1/gpu-1 has architecture "Turing"`}},
		"same root": {aligned, []Pod{running("a", "gpu", gpu0, "nic", nic0)}, map[string]string{"a": ""}},
		"other root": {aligned, []Pod{running("a", "gpu", gpu1, "nic", nic0)},
			map[string]string{"a": "promised is a device for request gpu of driver gpu.example.com, with the resource.kubernetes.io/pcieRoot of request nic; " +
				`gpu.example.com/n1/gpu-1 has resource.kubernetes.io/pcieRoot "pci0:2", but nic.example.com/n1/nic-0 has "pci0:1"; ` +
				"nic.example.com/n1/nic-0 is for request nic"}},
		"nothing to be the same as": {aligned, []Pod{running("a", "gpu", gpu0, "gpu", gpu1)},
			map[string]string{"a": "promised is a device for request gpu of driver gpu.example.com, with the resource.kubernetes.io/pcieRoot of request nic; " +
				"gpu.example.com/n1/gpu-0 has no device of request nic beside it; gpu.example.com/n1/gpu-1 has no device of request nic beside it; " +
				"promised is a device for request nic of driver nic.example.com; " +
				"gpu.example.com/n1/gpu-0 is for request gpu; gpu.example.com/n1/gpu-1 is for request gpu"}},
		"waits as promised": {waits, []Pod{{Name: "a", Condition: `1 request "gpu": all in use`}}, map[string]string{"a": ""}},
		"waits for another reason": {waits, []Pod{{Name: "a", Condition: `1 request "gpu": no devices`}},
			map[string]string{"a": `promised is a condition with "in use", it is: 1 request "gpu": no devices`}},
		"does not wait": {waits, []Pod{running("a", "gpu", gpu0)}, map[string]string{"a": "promised is that it waits, but it runs on n1"}},
		"several pods":  {several, []Pod{running("a-1", "gpu", gpu0), running("a-2", "gpu", gpu1)}, map[string]string{"a-1": "", "a-2": ""}},
		"too few pods": {several, []Pod{running("a-1", "gpu", gpu0)},
			map[string]string{"a-1": "", "a-": "promised are 2 pods whose names begin like this, there are 1"}},
		"too many pods": {several, []Pod{running("a-1", "gpu", gpu0), running("a-2", "gpu", gpu1), running("a-3", "gpu", DeviceID{"gpu.example.com", "n1", "gpu-2"})},
			map[string]string{"a-1": "", "a-2": "",
				"a-3": "promised is a device for request gpu of driver gpu.example.com; gpu.example.com/n1/gpu-2 is not published; promised are 2 pods a-, this is number 3"}},
		"two pods on one device": {several, []Pod{running("a-1", "gpu", gpu0), running("a-2", "gpu", gpu0)},
			map[string]string{"a-1": "has gpu.example.com/n1/gpu-0, which pod a-2 has too", "a-2": "has gpu.example.com/n1/gpu-0, which pod a-1 has too"}},
		// It is enough that one of the two is promised to share.
		"shared as promised": {shared, []Pod{running("a", "gpu", gpu0), running("b", "gpu", gpu0)}, map[string]string{"a": "", "b": ""}},
		"not shared": {shared, []Pod{running("a", "gpu", gpu0), running("b", "gpu", gpu1)},
			map[string]string{"a": "", "b": "promised is to share devices with a, which does not have gpu.example.com/n1/gpu-1"}},
		"share as promised": {share, []Pod{sharing("a", "40G")}, map[string]string{"a": ""}},
		"smaller share": {share, []Pod{sharing("a", "10G")},
			map[string]string{"a": "promised is a device for request nic of driver nic.example.com, bandwidth 40G; nic.example.com/n1/nic-0 has bandwidth 10G of its capacity"}},
		"all of it instead of a share": {share, []Pod{running("a", "nic", nic0)},
			map[string]string{"a": "promised is a device for request nic of driver nic.example.com, bandwidth 40G; nic.example.com/n1/nic-0 has all of its capacity"}},
		"share instead of all": {strings.Replace(share, ", consumes: {bandwidth: 40G}", "", 1), []Pod{sharing("a", "10G")},
			map[string]string{"a": "promised is a device for request nic of driver nic.example.com; nic.example.com/n1/nic-0 has bandwidth 10G of its capacity"}},
		"same for all": {strings.Replace(together, "ATTRIBUTE", "gpu.example.com/memoryType", 1), []Pod{running("a-1", "gpu", gpu0), running("a-2", "gpu", gpu1)},
			map[string]string{"a-1": "", "a-2": ""}},
		"not the same for all": {strings.Replace(together, "ATTRIBUTE", "architecture", 1), []Pod{running("a-1", "gpu", gpu0), running("a-2", "gpu", gpu1)},
			map[string]string{"a-1": "", "a-2": `gpu.example.com/n1/gpu-1 has architecture "Turing", another device of pods a- has "Hopper"`}},
		"nobody has what is the same": {strings.Replace(together, "ATTRIBUTE", "colour", 1), []Pod{running("a-1", "gpu", gpu0), running("a-2", "gpu", gpu1)},
			map[string]string{
				"a-1": `gpu.example.com/n1/gpu-0 has colour "", another device of pods a- has ""`,
				"a-2": `gpu.example.com/n1/gpu-1 has colour "", another device of pods a- has ""`,
			}},
		"nobody to share with": {shared, []Pod{running("b", "gpu", gpu1)},
			map[string]string{"a": "it is promised, but does not exist", "b": "promised is to share devices with a, which does not exist"}},
	}
	devices := decodeCluster(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := decodeExpectation([]byte("placements:\n" + tc.promise))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, verdict := range Check(e, tc.pods, devices) {
				got[verdict.Pod] = strings.Join(verdict.Problems, "; ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems by pod (-want +got):\n%s", diff)
			}
		})
	}
}

// sharing is a pod on n1 with a share of nic-0.
func sharing(name, bandwidth string) Pod {
	pod := running(name, "nic", nic0)
	pod.Devices[0].Consumes = map[string]string{"bandwidth": bandwidth}
	return pod
}

const (
	share = `
- pod: a
  nodes: [n1]
  devices:
  - {request: nic, driver: nic.example.com, consumes: {bandwidth: 40G}}
`
	together = several + "  sameForAll: ATTRIBUTE\n"
	aligned  = `
- pod: a
  nodes: [n1]
  devices:
  - {request: gpu, driver: gpu.example.com, sameAs: {request: nic, attribute: resource.kubernetes.io/pcieRoot}}
  - {request: nic, driver: nic.example.com}
`
	several = `
- pod: a-
  prefix: true
  count: 2
  nodes: [n1]
  devices:
  - {request: gpu, driver: gpu.example.com}
`
	shared = `
- pod: a
  nodes: [n1]
  devices:
  - {request: gpu, driver: gpu.example.com}
- pod: b
  nodes: [n1]
  devices:
  - {request: gpu, driver: gpu.example.com}
  sharesDevicesWith: [a]
`
)
