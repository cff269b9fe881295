package inventory

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// TestOnlyReachedNodesChange applies one event to a cluster with a local pool
// on each of three nodes, one pool per zone and one for all nodes.
func TestOnlyReachedNodesChange(t *testing.T) {
	tests := map[string]struct {
		event event
		// want are the nodes whose view must be another one.
		want []string
		// sameSnapshot is set if not even the snapshot may change.
		sameSnapshot bool
	}{
		"local pool changes":             {event: set(newSlice("local-0", version(2), inPool("local-0"), onNode("worker-0"), named("gpu-0", "gpu-1"))), want: []string{"worker-0"}},
		"local pool disappears":          {event: remove(newSlice("local-0")), want: []string{"worker-0"}},
		"local pool becomes incomplete":  {event: set(newSlice("local-0", version(2), inPool("local-0"), generation(1, 2), onNode("worker-0"), named("gpu-0"))), want: []string{"worker-0"}},
		"local pool moves":               {event: set(newSlice("local-0", version(2), inPool("local-0"), onNode("worker-1"), named("gpu-0"))), want: []string{"worker-0", "worker-1"}},
		"local pool becomes shared":      {event: set(newSlice("local-0", version(2), inPool("local-0"), onZone("b"), named("gpu-0"))), want: []string{"worker-0", "worker-1"}},
		"new local pool":                 {event: set(newSlice("new", inPool("new"), onNode("worker-2"), named("gpu-0"))), want: []string{"worker-2"}},
		"pool of a zone changes":         {event: set(newSlice("zone-b", version(2), inPool("zone-b"), onZone("b"), named("nic-0", "nic-1"))), want: []string{"worker-1"}},
		"pool of a zone disappears":      {event: remove(newSlice("zone-b")), want: []string{"worker-1"}},
		"new pool of a zone":             {event: set(newSlice("new", inPool("new"), onZone("a"), named("nic-0"))), want: []string{"worker-0"}},
		"pool for all nodes changes":     {event: set(newSlice("everywhere", version(2), inPool("everywhere"), onAllNodes, named("nic-0", "nic-1"))), want: []string{"worker-0", "worker-1", "worker-2"}},
		"taint rule for one pool":        {event: setRule(newRule("rule", driver, "local-1", "")), want: []string{"worker-1"}},
		"taint rule that selects nobody": {event: setRule(newRule("rule", driver, "local-1", "no such device")), sameSnapshot: true},
		"only metadata changes":          {event: set(newSlice("local-0", version(2), inPool("local-0"), onNode("worker-0"), named("gpu-0"))), sameSnapshot: true},
		"event comes again":              {event: set(newSlice("local-0", inPool("local-0"), onNode("worker-0"), named("gpu-0"))), sameSnapshot: true},
		"slice of an older generation":   {event: set(newSlice("old", inPool("local-0"), generation(0, 5), onNode("worker-0"), named("gpu-9"))), sameSnapshot: true},
		"slice on a node without shared": {event: set(newSlice("new", inPool("new"), onNode("worker-9"), named("gpu-0"))), want: nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inventory := New(device.AllFeatures())
			nodes := []*corev1.Node{newNode("worker-0", "a"), newNode("worker-1", "b"), newNode("worker-2", "c")}
			for i := range nodes {
				name := fmt.Sprint("local-", i)
				inventory.SetSlice(newSlice(name, inPool(name), onNode(nodes[i].Name), named("gpu-0")))
			}
			inventory.SetSlice(newSlice("zone-a", inPool("zone-a"), onZone("a"), named("nic-0")))
			inventory.SetSlice(newSlice("zone-b", inPool("zone-b"), onZone("b"), named("nic-0")))
			inventory.SetSlice(newSlice("everywhere", inPool("everywhere"), onAllNodes, named("nic-0")))
			before := inventory.Snapshot()
			views := make(map[string]*NodeView)
			for _, node := range nodes {
				views[node.Name] = before.Node(node)
			}
			tc.event(inventory)
			after := inventory.Snapshot()
			if (after == before) != tc.sameSnapshot {
				t.Errorf("same snapshot: %v, want %v", after == before, tc.sameSnapshot)
			}
			if after != before && after.Epoch() <= before.Epoch() {
				t.Errorf("epoch went from %d to %d", before.Epoch(), after.Epoch())
			}
			var changed []string
			for _, node := range nodes {
				view := after.Node(node)
				if view != views[node.Name] {
					changed = append(changed, node.Name)
					if view.Epoch <= views[node.Name].Epoch {
						t.Errorf("%s: epoch went from %d to %d", node.Name, views[node.Name].Epoch, view.Epoch)
					}
				}
			}
			if diff := cmp.Diff(tc.want, changed); diff != "" {
				t.Errorf("nodes with another view (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodeLabelsChange(t *testing.T) {
	inventory := New(device.AllFeatures())
	inventory.SetSlice(newSlice("zone-a", inPool("zone-a"), onZone("a"), named("nic-0")))
	inventory.SetSlice(newSlice("local", inPool("local"), named("gpu-0")))
	snapshot := inventory.Snapshot()
	pools := func(node *corev1.Node) []string { return viewLines(snapshot.Node(node)) }
	local, zone := "gpu.example.com/local gpu-0(local 0)", "gpu.example.com/zone-a nic-0(zone-a 0)"

	node := newNode("worker-1", "a")
	if diff := cmp.Diff([]string{local, zone}, pools(node)); diff != "" {
		t.Errorf("in zone a (-want +got):\n%s", diff)
	}
	moved := newNode("worker-1", "b")
	moved.ResourceVersion = "2"
	if diff := cmp.Diff([]string{local}, pools(moved)); diff != "" {
		t.Errorf("in zone b (-want +got):\n%s", diff)
	}
	bare := newNode("worker-1", "")
	bare.ResourceVersion = "3"
	if diff := cmp.Diff([]string{local}, pools(bare)); diff != "" {
		t.Errorf("without labels (-want +got):\n%s", diff)
	}
	back := newNode("worker-1", "a")
	back.ResourceVersion = "4"
	view := snapshot.Node(back)
	if diff := cmp.Diff([]string{local, zone}, viewLines(view)); diff != "" {
		t.Errorf("back in zone a (-want +got):\n%s", diff)
	}
	heartbeat := newNode("worker-1", "a")
	heartbeat.ResourceVersion = "5"
	heartbeat.Labels["other"] = "label"
	if snapshot.Node(heartbeat) != view {
		t.Error("a label that no selector reads changed the view")
	}
}

// TestDeletedNodeLeavesNothingBehind guards against caches that grow with each
// node that an autoscaler ever made.
func TestDeletedNodeLeavesNothingBehind(t *testing.T) {
	inventory := New(device.AllFeatures())
	inventory.SetSlice(newSlice("everywhere", onAllNodes, named("nic-0")))
	view := inventory.Snapshot().Node(newNode("worker-1", ""))
	inventory.DeleteNode("worker-1")
	if got := inventory.cells.byName.Load().Len(); got != 0 {
		t.Errorf("%d nodes are cached", got)
	}
	if diff := cmp.Diff(viewLines(view), viewLines(inventory.Snapshot().Node(newNode("worker-1", "")))); diff != "" {
		t.Errorf("the view changed:\n%s", diff)
	}
}

func TestLookups(t *testing.T) {
	inventory := New(device.AllFeatures())
	inventory.SetSlice(newSlice("a", generation(1, 2), named("gpu-0")))
	inventory.SetSlice(newSlice("b", generation(1, 2), named("gpu-1", "gpu-0")))
	inventory.SetSlice(newSlice("c", inPool("incomplete"), generation(3, 2), named("gpu-5")))
	inventory.SetSlice(newSlice("d", inPool("incomplete"), generation(2, 1), named("gpu-4")))
	inventory.SetSlice(newSlice("e", inPool("bad"), onBadSelector, named("nic-0")))
	snapshot := inventory.Snapshot()
	tests := map[string]struct {
		id    device.ID
		slice string
	}{
		"known":                       {id: device.NewID(driver, "pool", "gpu-1"), slice: "b"},
		"duplicate, the first counts": {id: device.NewID(driver, "pool", "gpu-0"), slice: "a"},
		"in an incomplete pool":       {id: device.NewID(driver, "incomplete", "gpu-5"), slice: "c"},
		"in an older generation":      {id: device.NewID(driver, "incomplete", "gpu-4")},
		"unknown device":              {id: device.NewID(driver, "pool", "gpu-7")},
		"unknown pool":                {id: device.NewID(driver, "no such pool", "gpu-0")},
		"unknown driver":              {id: device.NewID("other.example.com", "pool", "gpu-0")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if d := snapshot.Device(tc.id); d != nil {
				got = d.Slice
			}
			if got != tc.slice {
				t.Errorf("found in slice %q, want %q", got, tc.slice)
			}
		})
	}
	var all, shared []string
	for _, pool := range snapshot.Pools() {
		all = append(all, pool.ID.String())
	}
	for _, pool := range snapshot.SharedPools() {
		shared = append(shared, pool.Fault.String())
	}
	if diff := cmp.Diff([]string{"gpu.example.com/bad", "gpu.example.com/incomplete", "gpu.example.com/pool"}, all); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pool gpu.example.com/bad invalid (bad node selector)"}, shared); diff != "" {
		t.Errorf("shared pools (-want +got):\n%s", diff)
	}
}

// TestConcurrentUse lets writers and readers meet, under the race detector, and
// wants the state that the events lead to in any order.
func TestConcurrentUse(t *testing.T) {
	const workers, rounds = 4, 60
	inventory := New(device.AllFeatures())
	nodes := []*corev1.Node{newNode("worker-0", "a"), newNode("worker-1", "b"), newNode("worker-2", "")}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for round := range rounds {
				number := round % 7
				options := []option{version(10*round + worker + 1), uid(types.UID(fmt.Sprint(number))),
					inPool(fmt.Sprint("pool-", number)), named(fmt.Sprint("gpu-", round), fmt.Sprint("gpu-x", worker))}
				if number%2 == 0 {
					options = append(options, onAllNodes)
				}
				slice := newSlice(fmt.Sprint("slice-", number), options...)
				inventory.SetSlice(slice)
				inventory.SetTaintRule(newRule(fmt.Sprint("rule-", worker), driver, slice.Spec.Pool.Name, ""))
				snapshot := inventory.Snapshot()
				for _, node := range nodes {
					view := snapshot.Node(node)
					if again := inventory.Snapshot().Node(node); again.Epoch == view.Epoch && !slices.Equal(viewLines(again), viewLines(view)) {
						t.Errorf("epoch %d has two contents", view.Epoch)
					}
				}
				inventory.DeleteNode(nodes[round%len(nodes)].Name)
			}
		})
	}
	group.Wait()
	want := make(map[string]string)
	for number := range 7 {
		last := (rounds-1-number)/7*7 + number
		want[fmt.Sprint("gpu.example.com/pool-", number)] = fmt.Sprintf("[gpu-%d gpu-x%d]", last, workers-1)
	}
	got := make(map[string]string)
	for _, pool := range inventory.Snapshot().Pools() {
		got[pool.ID.String()] = fmt.Sprint(deviceNames(pool.Devices))
	}
	if !maps.Equal(want, got) {
		t.Errorf("pools (-want +got):\n%s", cmp.Diff(want, got))
	}
}
