package perf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	cases := map[string]struct {
		values []float64
		want   float64
	}{
		"none":              {},
		"one":               {values: []float64{3}, want: 3},
		"odd, not in order": {values: []float64{9, 1, 4}, want: 4},
		"even":              {values: []float64{8, 1, 4, 2}, want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := median(tc.values); got != tc.want {
				t.Errorf("median: got %v, want %v", got, tc.want)
			}
		})
	}
}

// ran returns runs of one plugin with the given throughputs.
func ran(workload string, size Size, plugin string, throughputs ...float64) []*Run {
	var runs []*Run
	for i, throughput := range throughputs {
		runs = append(runs, &Run{
			Workload: workload, Size: size, Plugin: plugin, Round: i + 1, Throughput: throughput, P50: throughput / 10, P99: throughput,
			Record: Record{Pods: 100, Seconds: 100 / throughput, CPUSeconds: 2, PeakBytes: 300 << 20},
		})
	}
	return runs
}

func all(runs ...[]*Run) []*Run {
	var joined []*Run
	for _, r := range runs {
		joined = append(joined, r...)
	}
	return joined
}

func TestReport(t *testing.T) {
	burst, ceiling := &Workload{Name: "burst"}, &Workload{Name: "ceiling", Ceiling: true, Baseline: "burst"}
	large, blocked := &Workload{Name: "large"}, &Workload{Name: "blocked", Baseline: "large"}
	late := &Run{Workload: "large", Size: SizeFull, Plugin: Stock, Round: 1, TooLong: true}
	cases := map[string]struct {
		workloads []*Workload
		runs      []*Run
		table     string
		summary   string
	}{
		"medians of the rounds, and the ceiling": {
			workloads: []*Workload{burst, ceiling},
			runs: all(
				ran("burst", SizeShort, Ours, 60, 90, 66), ran("burst", SizeShort, Stock, 20, 22, 10),
				ran("ceiling", SizeShort, Ours, 88)),
			table: `WORKLOAD       PODS/S       RATIO  P50 MS     P99 MS       CPU MS/POD   PEAK MIB   ROUNDS
burst/short    66.0 : 20.0  3.30   6.6 : 2.0  66.0 : 20.0  20.0 : 20.0  300 : 300  3 : 3
ceiling/short  88.0 : -     -      8.8 : -    88.0 : -     20.0 : -     300 : -    1 : -
`,
			summary: "perf: median ratio 3.30 over 1 workloads, ceiling 0.75",
		},
		"the median of the ratios, and what blocked pods cost": {
			workloads: []*Workload{burst, large, blocked},
			runs: all(
				ran("burst", SizeShort, Ours, 60), ran("burst", SizeShort, Stock, 20),
				ran("large", SizeShort, Ours, 50), ran("large", SizeShort, Stock, 10),
				ran("blocked", SizeShort, Ours, 48), ran("blocked", SizeShort, Stock, 4)),
			table: `WORKLOAD       PODS/S       RATIO  P50 MS     P99 MS       CPU MS/POD   PEAK MIB   ROUNDS
burst/short    60.0 : 20.0  3.00   6.0 : 2.0  60.0 : 20.0  20.0 : 20.0  300 : 300  1 : 1
large/short    50.0 : 10.0  5.00   5.0 : 1.0  50.0 : 10.0  20.0 : 20.0  300 : 300  1 : 1
blocked/short  48.0 : 4.0   12.00  4.8 : 0.4  48.0 : 4.0   20.0 : 20.0  300 : 300  1 : 1
blocked/short: -4.0% throughput of DeviceAllocation compared with large
blocked/short: -60.0% throughput of DynamicResources compared with large
`,
			summary: "perf: median ratio 5.00 over 3 workloads, ceiling unknown",
		},
		"too long in full size": {
			workloads: []*Workload{large},
			runs: all(ran("large", SizeFull, Ours, 40), []*Run{late},
				ran("large", SizeRatio, Ours, 60), ran("large", SizeRatio, Stock, 15)),
			table: `WORKLOAD     PODS/S       RATIO  P50 MS     P99 MS       CPU MS/POD   PEAK MIB   ROUNDS
large/full   40.0 : -     -      4.0 : -    40.0 : -     20.0 : -     300 : -    1 : -
large/ratio  60.0 : 15.0  4.00   6.0 : 1.5  60.0 : 15.0  20.0 : 20.0  300 : 300  1 : 1
large/full: DynamicResources needs more than 10m0s
`,
			summary: "perf: median ratio 4.00 over 1 workloads, ceiling unknown",
		},
		"nothing ran": {
			workloads: []*Workload{burst},
			table:     "WORKLOAD  PODS/S  RATIO  P50 MS  P99 MS  CPU MS/POD  PEAK MIB  ROUNDS\n",
			summary:   "perf: median ratio unknown over 0 workloads, ceiling unknown",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := NewReport(tc.workloads, tc.runs)
			var table strings.Builder
			if err := report.Table(&table); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.table, table.String()); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
			if got := report.Summary(); got != tc.summary {
				t.Errorf("summary: got %q, want %q", got, tc.summary)
			}
		})
	}
}

func TestPodsPerSecond(t *testing.T) {
	cases := map[string]struct {
		run  Run
		want float64
	}{
		"that of scheduler_perf":       {run: Run{Throughput: 50, Record: Record{Pods: 100, Seconds: 4}}, want: 50},
		"counted, in a run too short":  {run: Run{Record: Record{Pods: 100, Seconds: 4}}, want: 25},
		"nothing was measured in time": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.run.PodsPerSecond(); got != tc.want {
				t.Errorf("pods/s: got %v, want %v", got, tc.want)
			}
		})
	}
}
