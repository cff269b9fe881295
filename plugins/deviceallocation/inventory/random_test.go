package inventory

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// choices makes decisions: a seeded generator, or the input of a fuzzer.
type choices interface{ IntN(n int) int }

// cluster generates events and keeps an Inventory and the oracle in step.
type cluster struct {
	choices
	inventory *Inventory
	oracle    oracle
	nodes     []*corev1.Node
	version   int
	seen      []event
	// contents has what was seen with each epoch of a node's view.
	contents map[string]string
}

func newCluster(c choices) *cluster {
	return &cluster{
		choices:   c,
		inventory: New(device.AllFeatures()),
		oracle:    oracle{slices: make(map[string]*resourceapi.ResourceSlice), rules: make(map[string]*resourceapi.DeviceTaintRule)},
		nodes:     []*corev1.Node{newNode("worker-0", "a"), newNode("worker-1", "b"), newNode("worker-2", "")},
		contents:  make(map[string]string),
	}
}

func (c *cluster) deliver(e event) {
	e(c.inventory)
	c.seen = append(c.seen, e)
}

// step makes one thing happen.
func (c *cluster) step() {
	c.version++
	switch c.IntN(12) {
	case 0, 1:
		name := fmt.Sprint("slice-", c.IntN(6))
		if slice := c.oracle.slices[name]; slice != nil {
			delete(c.oracle.slices, name)
			c.deliver(remove(slice))
		}
	case 2:
		rule := newRule(fmt.Sprint("rule-", c.IntN(2)), "", []string{"", "pool-0", "pool-1"}[c.IntN(3)], []string{"", "gpu-0"}[c.IntN(2)])
		rule.UID, rule.ResourceVersion = types.UID(fmt.Sprint("rule ", c.version)), fmt.Sprint(c.version)
		rule.Spec.Taint.Value = fmt.Sprint(c.IntN(2))
		c.oracle.rules[rule.Name] = rule
		c.deliver(setRule(rule))
	case 3:
		name := fmt.Sprint("rule-", c.IntN(2))
		if rule := c.oracle.rules[name]; rule != nil {
			delete(c.oracle.rules, name)
			c.deliver(removeRule(rule))
		}
	case 4:
		// The hint and the handler deliver the same event; it is old news.
		if len(c.seen) > 0 {
			c.seen[c.IntN(len(c.seen))](c.inventory)
		}
	case 5:
		at := c.IntN(len(c.nodes))
		node := newNode(c.nodes[at].Name, []string{"", "a", "b"}[c.IntN(3)])
		node.ResourceVersion = fmt.Sprint(c.version)
		c.nodes[at] = node
	default:
		slice := c.slice()
		c.oracle.slices[slice.Name] = slice
		c.deliver(set(slice))
	}
}

func (c *cluster) slice() *resourceapi.ResourceSlice {
	name := fmt.Sprint("slice-", c.IntN(6))
	slice := newSlice(name, version(c.version), inPool(fmt.Sprint("pool-", c.IntN(2))),
		generation(int64(1+c.IntN(2)), int64(1+c.IntN(3))), uid(types.UID(fmt.Sprint("slice ", c.version))))
	if old := c.oracle.slices[name]; old != nil && c.IntN(4) > 0 {
		slice.UID = old.UID
	}
	slice.Spec.NodeName = nil
	each := c.IntN(3) == 0
	if each {
		slice.Spec.PerDeviceNodeSelection = &each
	} else {
		slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector = c.selection()
	}
	if c.IntN(5) == 0 {
		counterSet(fmt.Sprint("set-", c.IntN(2)), "memory")(slice)
	}
	for range c.IntN(4) {
		d := resourceapi.Device{Name: fmt.Sprint("gpu-", c.IntN(8))}
		if c.IntN(8) == 0 {
			d = consumer(d.Name, fmt.Sprint("set-", c.IntN(2)), []string{"memory", "cores"}[c.IntN(2)])
		}
		if each {
			d.NodeName, d.AllNodes, d.NodeSelector = c.selection()
		}
		slice.Spec.Devices = append(slice.Spec.Devices, d)
	}
	return slice
}

func (c *cluster) selection() (*string, *bool, *corev1.NodeSelector) {
	switch c.IntN(16) {
	case 0, 1, 2:
		return nil, new(true), nil
	case 3, 4, 5:
		return nil, nil, zoneSelector([]string{"a", "b"}[c.IntN(2)])
	case 6:
		return nil, nil, badSelector()
	case 7:
		return nil, nil, nil
	default:
		return new(fmt.Sprint("worker-", c.IntN(3))), nil, nil
	}
}

// check compares what each node can reach with the oracle, and what the
// candidate lists promise with what the nodes can reach.
func (c *cluster) check() error {
	snapshot := c.inventory.Snapshot()
	if c.inventory.Snapshot() != snapshot {
		return fmt.Errorf("a second snapshot differs though nothing changed")
	}
	local := make(map[string]int)
	for view := range snapshot.LocalNodes() {
		local[view.Name] = len(view.Pools)
	}
	for _, node := range c.nodes {
		view := snapshot.Node(node)
		lines := viewLines(view)
		if diff := cmp.Diff(c.oracle.view(node), lines); diff != "" {
			return fmt.Errorf("%s (-want +got):\n%s", node.Name, diff)
		}
		if snapshot.Node(node) != view && len(lines) > 0 {
			return fmt.Errorf("%s: a second view differs though nothing changed", node.Name)
		}
		content := fmt.Sprintf("%s %q", node.Name, lines)
		if view.Epoch == 0 {
			content = "nothing"
			if len(view.Pools) > 0 {
				return fmt.Errorf("%s: epoch 0, but there are pools", node.Name)
			}
		}
		epoch := fmt.Sprint(view.Epoch)
		if before, found := c.contents[epoch]; found && before != content {
			return fmt.Errorf("epoch %d was used twice:\n%s\n%s", view.Epoch, before, content)
		}
		c.contents[epoch] = content
		for _, pool := range snapshot.SharedPools() {
			if pool.at(node, c.inventory.next) != nil {
				local[node.Name]++
			}
		}
		if local[node.Name] != len(view.Pools) {
			return fmt.Errorf("%s: local and shared pools are %d, the view has %d", node.Name, local[node.Name], len(view.Pools))
		}
	}
	return nil
}

// TestRandomEventsAgainstOracle checks after most steps, so that several events
// sometimes fall into one snapshot.
func TestRandomEventsAgainstOracle(t *testing.T) {
	for seed := range uint64(60) {
		c := newCluster(rand.New(rand.NewPCG(seed, 0)))
		for step := range 150 {
			c.step()
			if c.IntN(4) == 0 {
				continue
			}
			if err := c.check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
	}
}

// bytes makes decisions from the input of a fuzzer, and always the first choice
// when that is used up.
type bytes []byte

func (b *bytes) IntN(n int) int {
	if len(*b) == 0 {
		return 0
	}
	first := int((*b)[0])
	*b = (*b)[1:]
	return first % n
}

// FuzzHalfPublishedPools lets the fuzzer choose the events. With the default of
// -fuzzminimizetime the fuzzer spends its time on shortening long inputs: 1x is
// better.
func FuzzHalfPublishedPools(f *testing.F) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		input := make([]byte, 200)
		for i := range input {
			input[i] = byte(random.IntN(256))
		}
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		b := bytes(input[:min(len(input), 4096)])
		c := newCluster(&b)
		for len(b) > 0 {
			c.step()
			if err := c.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
