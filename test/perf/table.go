package perf

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Report is what all runs say together.
type Report struct {
	Rows []Row `json:"rows"`
	// MedianRatio is the median of the ratios of Workloads rows.
	MedianRatio float64 `json:"medianRatio"`
	Workloads   int     `json:"workloads"`
	// Ceiling is our throughput with claims divided by that of the same pods
	// without; 0 if one of the two has not run.
	Ceiling float64  `json:"ceiling,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Runs    []*Run   `json:"runs"`
}

// Row is one workload in one size. A side is nil if the plugin did not run or
// did not come to an end.
type Row struct {
	Workload string `json:"workload"`
	Size     Size   `json:"size"`
	Ours     *Side  `json:"ours,omitempty"`
	Stock    *Side  `json:"stock,omitempty"`
	// Ratio is that of the throughputs, ours to stock; 0 without both sides.
	Ratio float64 `json:"ratio,omitempty"`
}

// Side is the median of the rounds of one plugin, figure by figure.
type Side struct {
	PodsPerSecond float64 `json:"podsPerSecond"`
	P50           float64 `json:"p50"`       // ms
	P99           float64 `json:"p99"`       // ms
	CPUPerPod     float64 `json:"cpuPerPod"` // seconds
	PeakBytes     float64 `json:"peakBytes"`
	Rounds        int     `json:"rounds"`
}

// NewReport computes the report for workloads from runs.
func NewReport(workloads []*Workload, runs []*Run) *Report {
	report := &Report{Runs: runs}
	var ratios []float64
	for _, w := range workloads {
		for _, size := range sizesOf(w, runs) {
			row := Row{Workload: w.Name, Size: size, Ours: side(runs, w.Name, size, Ours), Stock: side(runs, w.Name, size, Stock)}
			if row.Ours != nil && row.Stock != nil {
				row.Ratio = row.Ours.PodsPerSecond / row.Stock.PodsPerSecond
				ratios = append(ratios, row.Ratio)
			}
			report.Rows = append(report.Rows, row)
		}
	}
	report.MedianRatio, report.Workloads = median(ratios), len(ratios)
	for _, w := range workloads {
		report.compare(w)
	}
	for _, run := range runs {
		if run.TooLong {
			report.Notes = append(report.Notes, fmt.Sprintf("%s/%s: %s needs more than %s", run.Workload, run.Size, run.Plugin, patience))
		}
	}
	return report
}

// compare compares a workload with the one that it names.
func (r *Report) compare(w *Workload) {
	for _, row := range r.Rows {
		base := r.row(w.Baseline, row.Size)
		if row.Workload != w.Name || base == nil {
			continue
		}
		if w.Ceiling {
			if base.Ours != nil && row.Ours != nil {
				r.Ceiling = base.Ours.PodsPerSecond / row.Ours.PodsPerSecond
			}
			continue
		}
		for _, sides := range []struct {
			plugin     string
			with, base *Side
		}{{Ours, row.Ours, base.Ours}, {Stock, row.Stock, base.Stock}} {
			if sides.with != nil && sides.base != nil {
				r.Notes = append(r.Notes, fmt.Sprintf("%s/%s: %+.1f%% throughput of %s compared with %s", row.Workload, row.Size,
					100*(sides.with.PodsPerSecond/sides.base.PodsPerSecond-1), sides.plugin, w.Baseline))
			}
		}
	}
}

func (r *Report) row(workload string, size Size) *Row {
	for i := range r.Rows {
		if r.Rows[i].Workload == workload && r.Rows[i].Size == size {
			return &r.Rows[i]
		}
	}
	return nil
}

func sizesOf(w *Workload, runs []*Run) []Size {
	var sizes []Size
	for _, run := range runs {
		if run.Workload == w.Name && !slices.Contains(sizes, run.Size) {
			sizes = append(sizes, run.Size)
		}
	}
	return sizes
}

func side(runs []*Run, workload string, size Size, plugin string) *Side {
	var rounds []*Run
	for _, run := range runs {
		if run.Workload == workload && run.Size == size && run.Plugin == plugin && !run.TooLong {
			rounds = append(rounds, run)
		}
	}
	if len(rounds) == 0 {
		return nil
	}
	of := func(figure func(*Run) float64) float64 {
		figures := make([]float64, len(rounds))
		for i, run := range rounds {
			figures[i] = figure(run)
		}
		return median(figures)
	}
	return &Side{
		PodsPerSecond: of((*Run).PodsPerSecond),
		P50:           of(func(r *Run) float64 { return r.P50 }),
		P99:           of(func(r *Run) float64 { return r.P99 }),
		CPUPerPod:     of(func(r *Run) float64 { return r.CPUSeconds / float64(r.Pods) }),
		PeakBytes:     of(func(r *Run) float64 { return float64(r.PeakBytes) }),
		Rounds:        len(rounds),
	}
}

// median is the middle value, or the mean of the two in the middle; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Table writes the report for people. Pairs are ours and stock.
func (r *Report) Table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKLOAD\tPODS/S\tRATIO\tP50 MS\tP99 MS\tCPU MS/POD\tPEAK MIB\tROUNDS")
	for _, row := range r.Rows {
		ratio := "-"
		if row.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", row.Ratio)
		}
		fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.Workload, row.Size,
			row.pair("%.1f", func(s *Side) float64 { return s.PodsPerSecond }), ratio,
			row.pair("%.1f", func(s *Side) float64 { return s.P50 }),
			row.pair("%.1f", func(s *Side) float64 { return s.P99 }),
			row.pair("%.1f", func(s *Side) float64 { return s.CPUPerPod * 1000 }),
			row.pair("%.0f", func(s *Side) float64 { return s.PeakBytes / (1 << 20) }),
			row.pair("%.0f", func(s *Side) float64 { return float64(s.Rounds) }))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, note)
	}
	return nil
}

func (r *Row) pair(format string, figure func(*Side) float64) string {
	text := func(s *Side) string {
		if s == nil {
			return "-"
		}
		return fmt.Sprintf(format, figure(s))
	}
	return text(r.Ours) + " : " + text(r.Stock)
}

// Summary is the last line.
func (r *Report) Summary() string {
	text := func(figure float64) string {
		if figure == 0 {
			return "unknown"
		}
		return fmt.Sprintf("%.2f", figure)
	}
	return fmt.Sprintf("perf: median ratio %s over %d workloads, ceiling %s", text(r.MedianRatio), r.Workloads, text(r.Ceiling))
}

// JSON writes the report with all runs.
func (r *Report) JSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
