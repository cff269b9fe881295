package decision

import "fmt"

// benchmarkCase is a cluster, and what decisions about its pods show.
type benchmarkCase struct {
	group, name string
	cluster     Cluster
}

// wave is how many decisions are made before they are taken back.
const wave = 64

var sizes = []int{100, 1000, 5000}

// steadyCases: an equal part of the cluster is in use all the time.
func steadyCases() []benchmarkCase {
	var cases []benchmarkCase
	for _, percent := range []int{0, 50, 95} {
		for _, nodes := range sizes {
			cluster := Cluster{Nodes: nodes, Held: nodes * gpusPerNode * percent / 100}
			cluster.Pods = min(wave, cluster.GPUs())
			cases = append(cases, benchmarkCase{"steady", fmt.Sprintf("nodes=%d/held=%d%%", nodes, percent), cluster})
		}
	}
	return cases
}

// mixedCases: pods of two kinds take turns, so that the scheduler cannot reuse
// what it has found for the pod before (opportunistic batching), which it does
// in the other cases once the plugin says which pods are equal.
func mixedCases() []benchmarkCase {
	var cases []benchmarkCase
	for _, nodes := range sizes {
		cases = append(cases, benchmarkCase{"mixed", fmt.Sprintf("nodes=%d", nodes), Cluster{Nodes: nodes, Pods: wave, Kinds: 2}})
	}
	return cases
}

// fillCases: decisions stay until 95% of the GPUs are in use.
func fillCases() []benchmarkCase {
	var cases []benchmarkCase
	for _, nodes := range sizes {
		cases = append(cases, benchmarkCase{"fill", fmt.Sprintf("nodes=%d", nodes), Cluster{Nodes: nodes, Pods: nodes * gpusPerNode * 95 / 100}})
	}
	return cases
}

// candidateCases: the same 100 nodes have GPUs among more and more nodes.
func candidateCases() []benchmarkCase {
	var cases []benchmarkCase
	for _, nodes := range []int{500, 5000} {
		cases = append(cases, benchmarkCase{"candidates", fmt.Sprintf("nodes=%d", nodes), Cluster{Nodes: nodes, Equipped: 100, Pods: wave}})
	}
	return cases
}

// blockedCases: every fourth pod is one that no node can run.
func blockedCases() []benchmarkCase {
	var cases []benchmarkCase
	for _, nodes := range sizes {
		cases = append(cases, benchmarkCase{"blocked", fmt.Sprintf("nodes=%d", nodes), Cluster{Nodes: nodes, Pods: wave, Blocked: wave / 3}})
	}
	return cases
}
