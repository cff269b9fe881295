package decision

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRatios prints what decisions cost with both plugins in one run, as the
// medians of some rounds. How many decisions a round has is up to -benchtime. It
// asserts nothing: a machine that does something else besides is no fault.
func TestRatios(t *testing.T) {
	if !*goals {
		t.Skip("run it with -goals")
	}
	var comparisons []Comparison
	for _, c := range slices.Concat(steadyCases(), mixedCases(), candidateCases(), blockedCases()) {
		comparisons = append(comparisons, compared(t, c))
	}
	if err := WriteRatios(os.Stdout, comparisons); err != nil {
		t.Fatal(err)
	}
	few, many := cost(comparisons, "candidates/nodes=500"), cost(comparisons, "candidates/nodes=5000")
	fmt.Printf("a decision among 5,000 nodes takes %.2f times the CPU time of one among 500 with the same candidates\n", many.CPU/few.CPU)
	alone, among := cost(comparisons, "steady/nodes=1000/held=0%"), cost(comparisons, "blocked/nodes=1000")
	fmt.Printf("a blocked pod beside every three others costs them %.1f%% CPU time at 1,000 nodes\n", 100*(among.CPU/alone.CPU-1))
}

// rounds is how often the plugins take turns in a case.
const rounds = 3

// compared measures a case with both plugins in turn and takes the medians.
func compared(t *testing.T, c benchmarkCase) Comparison {
	objects := c.cluster.objects()
	schedulers := make(map[string]*Scheduler)
	costs := make(map[string][]Cost)
	for _, plugin := range []string{Ours, Stock} {
		s, err := start(plugin, objects)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		schedulers[plugin] = s
	}
	for range rounds {
		for _, plugin := range []string{Ours, Stock} {
			result := testing.Benchmark(func(b *testing.B) { measure(b, schedulers[plugin], objects) })
			costs[plugin] = append(costs[plugin], costOf(result))
		}
	}
	return Comparison{Name: c.group + "/" + c.name, Ours: middle(costs[Ours]), Stock: middle(costs[Stock])}
}

// middle returns the cost in the middle, by CPU time.
func middle(costs []Cost) Cost {
	sort.Slice(costs, func(i, j int) bool { return costs[i].CPU < costs[j].CPU })
	return costs[len(costs)/2]
}

func cost(comparisons []Comparison, name string) Cost {
	i := slices.IndexFunc(comparisons, func(c Comparison) bool { return c.Name == name })
	return comparisons[i].Ours
}

func TestWriteRatios(t *testing.T) {
	var out strings.Builder
	err := WriteRatios(&out, []Comparison{
		{Name: "steady", Ours: Cost{PerSecond: 300, CPU: 40, Allocs: 10, Bytes: 2048}, Stock: Cost{PerSecond: 20, CPU: 500, Allocs: 500, Bytes: 9000}},
		{Name: "stock did not run", Ours: Cost{PerSecond: 1, CPU: 7}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `CASE               DECISIONS/S   RATIO  CPU US    RATIO  ALLOCS    KIB
steady             300.0 : 20.0  15.00  40 : 500  12.50  10 : 500  2 : 8
stock did not run  1.0 : 0.0     0.00   7 : 0     0.00   0 : 0     0 : 0
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
