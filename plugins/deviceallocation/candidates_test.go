package deviceallocation

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestCandidatesAreRemembered: for the same devices and the same needs the
// nodes are worked out once, and anew when the devices have changed.
func TestCandidatesAreRemembered(t *testing.T) {
	run(t, oneNode(1, claimFor("a", 1), claimFor("b", 1), claimFor("c", 1), builders.Node("second")), func(h *harness) {
		find := func(claim string) *reachable {
			p, err := h.plugin.problem([]*resourceapi.ResourceClaim{h.claim(claim)})
			if err != nil {
				t.Fatal(err)
			}
			found, err := h.plugin.nodes.find(h.ctx, p, h.plugin.inventory.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		first := find("a")
		if find("b") != first {
			t.Error("equal claims do not share the nodes")
		}
		if _, err := h.client.ResourceV1().ResourceSlices().Create(h.ctx, gpus("second", 1).Obj(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		h.settle()
		expect(t, "second node before its slice", first.names.Has("second"), false)
		expect(t, "second node after its slice", find("c").names.Has("second"), true)
	})
}

// TestCandidateReasonsNameThePodsOwnClaims: equal pods share the nodes, and
// their reasons, but not the names of their claims.
func TestCandidateReasonsNameThePodsOwnClaims(t *testing.T) {
	nic := func(name string) *builders.ClaimBuilder {
		return builders.Claim(name, builders.Request("request", "nic"))
	}
	cluster := oneNode(1, builders.Class("nic").Select("false"),
		claimFor("gpu-a", 1), nic("nic-a"), claimFor("gpu-b", 1), nic("nic-b"))
	run(t, cluster, func(h *harness) {
		for _, pod := range []string{"a", "b"} {
			got := h.attempt(builders.Pod(pod).Claim("gpu-" + pod).Claim("nic-" + pod).Obj()).search()
			want := fmt.Sprintf(`UnschedulableAndUnresolvable: 1 claim nic-%s, request "request": no device matches selector 1 of class nic`, pod)
			expectAll(t, "pod "+pod, got, want)
		}
	})
}

// TestCandidateReasonsFollowLabels: which shared pools a node reaches depends
// on its labels, so a reason does as well.
func TestCandidateReasonsFollowLabels(t *testing.T) {
	cluster := objects(
		builders.Class("gpu"), builders.Class("nic").Select(`device.driver == "nic.example.com"`), builders.Node("node"), builders.Node("other"),
		builders.Slice("other.example.com", "node").OnNode("node").Devices(builders.Device("other-0")),
		builders.Slice("nic.example.com", "rack").OnNodesWith("rack", "1").Devices(builders.Device("nic-0")),
		builders.Claim("claim", builders.Request("nic", "nic"), builders.Request("gpu", "gpu").Select(`device.driver == "gpu.example.com"`)))
	pod := builders.Pod("pod").Claim("claim").Obj()
	run(t, cluster, func(h *harness) {
		without := `1 request "nic": no device matches selector 1 of class nic, 1 request "nic": no devices on the node`
		with := `1 request "gpu": no device matches selector 1 of the request, 1 request "nic": no devices on the node`
		expectAll(t, "before", h.attempt(pod).search(), "UnschedulableAndUnresolvable: "+without)
		h.nodes = h.nodes[1:]
		h.addNode(builders.Node("node", "rack", "1"))
		expectAll(t, "after", h.attempt(pod).search(), "UnschedulableAndUnresolvable: "+with)
	})
}

// TestCandidateReasonsFollowNodes: equal pods share the words as long as the nodes
// are the same.
func TestCandidateReasonsFollowNodes(t *testing.T) {
	none := func(name string) *builders.ClaimBuilder {
		return builders.Claim(name, builders.Request("gpu", class).Select("false"))
	}
	run(t, oneNode(1, none("a"), none("b"), none("c")), func(h *harness) {
		search := func(claim string) []string { return h.attempt(builders.Pod(claim).Claim(claim).Obj()).search() }
		one := `UnschedulableAndUnresolvable: 1 request "gpu": no device matches selector 1 of the request`
		expectAll(t, "first pod", search("a"), one)
		expectAll(t, "second pod", search("b"), one)
		h.addNode(builders.Node("other"))
		expectAll(t, "with another node", search("c"), one+`, 1 request "gpu": no devices on the node`)
		if _, err := h.client.ResourceV1().ResourceSlices().Create(h.ctx, gpus("other", 1).Obj(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		h.settle()
		expectAll(t, "with devices on the other node", search("a"), `UnschedulableAndUnresolvable: 2 request "gpu": no device matches selector 1 of the request`)
	})
}

// TestCandidatesFollowTheInventory compares, over random changes of slices, the
// nodes that are kept up to date with those that are worked out anew.
func TestCandidatesFollowTheInventory(t *testing.T) {
	claims := []any{
		claimFor("one", 1), claimFor("two", 2), claimFor("three", 3),
		builders.Claim("large", builders.Request("gpu", class).Select(`device.attributes["gpu.example.com"].model == "large"`)),
		builders.Claim("both", builders.Request("x", class).Count(2), builders.Request("y", class).Select(`device.attributes["gpu.example.com"].model == "large"`)),
		builders.Claim("either", builders.FirstAvailable("gpu", builders.Request("four", class).Count(4), builders.Request("one", class).Select(`device.attributes["gpu.example.com"].model == "large"`))),
	}
	run(t, objects(append(claims, builders.Class(class))...), func(h *harness) {
		var problems []*problem.Problem
		for _, name := range []string{"one", "two", "three", "large", "both", "either"} {
			p, err := h.plugin.problem([]*resourceapi.ResourceClaim{h.claim(name)})
			if err != nil {
				t.Fatal(err)
			}
			problems = append(problems, p)
		}
		random := rand.New(rand.NewPCG(1, 1))
		slices := make(map[string]*resourceapi.ResourceSlice)
		for step := range 1000 {
			changeSlice(h.plugin.inventory, random, slices, step)
			devices := h.plugin.inventory.Snapshot()
			anew := newCandidates(h.plugin.verdicts, "anew", false)
			for i, p := range problems {
				got, err := h.plugin.nodes.find(h.ctx, p, devices)
				if err != nil {
					t.Fatal(err)
				}
				want, err := anew.find(h.ctx, p, devices)
				if err != nil {
					t.Fatal(err)
				}
				if got.all != want.all || !got.names.Equal(want.names) {
					t.Fatalf("step %d, problem %d: got %v %v, want %v %v", step, i, got.all, got.names, want.all, want.names)
				}
			}
		}
	})
}

// changeSlice publishes or withdraws a slice of one of four nodes, and rarely one
// that all of them reach.
func changeSlice(devices *inventory.Inventory, random *rand.Rand, known map[string]*resourceapi.ResourceSlice, step int) {
	name := fmt.Sprintf("node-%d", random.IntN(4))
	slice := builders.Slice(driver, name).OnNode(name)
	if random.IntN(20) == 0 {
		name = "shared"
		slice = builders.Slice(driver, name).OnAllNodes()
	}
	if old := known[name]; old != nil && random.IntN(3) == 0 {
		devices.DeleteSlice(old)
		delete(known, name)
		return
	}
	for i := range random.IntN(5) {
		d := builders.Device(fmt.Sprintf("gpu-%d", i)).Attribute("model", []string{"small", "large"}[random.IntN(2)])
		if random.IntN(8) == 0 {
			d.Shared()
		}
		slice.Devices(d)
	}
	if random.IntN(8) == 0 {
		slice.SliceCount(2) // incomplete, and named as such
	}
	known[name] = slice.Obj()
	known[name].ResourceVersion = strconv.Itoa(step + 1)
	devices.SetSlice(known[name])
}

// TestFilterInParallel is for the race detector: many nodes, one state.
func TestFilterInParallel(t *testing.T) {
	const nodes = 64
	cluster := []any{extendedClass(), claimFor("claim", 2), held("allocated", "node-0", "gpu-0").With(func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation.NodeSelector = builders.NodesWith("zone", "a")
	})}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		cluster = append(cluster, builders.Node(name, "zone", string("ab"[i%2])), gpus(name, 1+i%5))
	}
	pod := extendedPod("pod", "1")
	pod.Spec.ResourceClaims = builders.Pod("pod").Claim("claim").Claim("allocated").Obj().Spec.ResourceClaims
	run(t, objects(cluster...), func(h *harness) {
		a := h.attempt(pod).find()
		got := make([]string, nodes)
		var running sync.WaitGroup
		for i := range nodes {
			running.Go(func() { got[i] = text(h.plugin.Filter(h.ctx, a.cycle, pod, h.nodes[i])) })
		}
		running.Wait()
		for i := range nodes {
			free := 1 + i%5
			if i == 0 {
				free-- // its GPU is allocated
			}
			want := "each request could be satisfied, but not all"
			switch {
			case i%2 == 1:
				want = "devices of resourceclaim default/allocated cannot be reached"
			case free == 0:
				want = "all matching devices in use"
			case free == 1:
				want = "fewer than 2 matching devices free"
			case free >= 3:
				want = "Success"
			}
			if !strings.Contains(got[i], want) {
				t.Errorf("node-%d: got %q, want %q", i, got[i], want)
			}
		}
		s, err := readState(a.cycle)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "nodes that the allocated claim rules out", s.allocated[0].unreachable.Load(), nodes/2)
		expect(t, "problems for nodes that provide some extended resources", len(s.variants.mixed), 0)
	})
}
