package decision

import (
	"flag"
	"testing"
)

var goals = flag.Bool("goals", false, "measure in full size what the project has goals for, and print it (use with -v)")

// TestMemory measures what our plugin keeps of a cluster with 10 devices on
// each node, of which 4 are held: 50,000 devices and 20,000 claims with -goals.
func TestMemory(t *testing.T) {
	nodes := 200
	if *goals {
		nodes = 5000
	}
	memory, err := measureMemory(Cluster{Nodes: nodes, NICs: 2, Held: 4 * nodes, Pods: 20, Kinds: 20}.objects())
	if err != nil {
		t.Fatal(err)
	}
	const mib = 1 << 20
	t.Logf("%d devices, %d claims: informers %.1f MiB, our plugin %.1f MiB more, %d bytes for each device",
		nodes*10, nodes*4, float64(memory.Informers)/mib, float64(memory.Plugin)/mib, memory.Plugin/int64(nodes*10))
	// 200 MB for 50,000 devices, and something that does not depend on them.
	if limit := int64(nodes*10)*4000 + 10*mib; memory.Plugin > limit {
		t.Errorf("our plugin keeps %d bytes, want at most %d", memory.Plugin, limit)
	}
}
