package decision

import (
	"fmt"
	"io"
	"testing"
	"text/tabwriter"
)

// Cost is what one decision costs.
type Cost struct {
	PerSecond float64
	// CPU is microseconds of all threads together.
	CPU    float64
	Allocs int64
	Bytes  int64
}

func costOf(r testing.BenchmarkResult) Cost {
	cost := Cost{CPU: r.Extra[cpuMetric], Allocs: r.AllocsPerOp(), Bytes: r.AllocedBytesPerOp()}
	if r.T > 0 {
		cost.PerSecond = float64(r.N) / r.T.Seconds()
	}
	return cost
}

// cpuMetric is the name of Cost.CPU in the results of benchmarks. It depends
// less than the other figures on what else the machine does.
const cpuMetric = "cpu-us/op"

// Comparison is one case with both plugins.
type Comparison struct {
	Name        string
	Ours, Stock Cost
}

// Ratio is how many decisions we make in the time of one of the stock plugin.
func (c Comparison) Ratio() float64 {
	if c.Stock.PerSecond == 0 {
		return 0
	}
	return c.Ours.PerSecond / c.Stock.PerSecond
}

// CPURatio is how many decisions we make with the CPU time of one of the stock
// plugin.
func (c Comparison) CPURatio() float64 {
	if c.Ours.CPU == 0 {
		return 0
	}
	return c.Stock.CPU / c.Ours.CPU
}

// WriteRatios writes comparisons as a table. Pairs are ours and stock.
func WriteRatios(out io.Writer, comparisons []Comparison) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CASE\tDECISIONS/S\tRATIO\tCPU US\tRATIO\tALLOCS\tKIB")
	for _, c := range comparisons {
		fmt.Fprintf(w, "%s\t%.1f : %.1f\t%.2f\t%.0f : %.0f\t%.2f\t%d : %d\t%d : %d\n", c.Name,
			c.Ours.PerSecond, c.Stock.PerSecond, c.Ratio(), c.Ours.CPU, c.Stock.CPU, c.CPURatio(), c.Ours.Allocs, c.Stock.Allocs, c.Ours.Bytes>>10, c.Stock.Bytes>>10)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
