package perf

import (
	"os"
	"testing"
)

// TestHarness runs a small workload with both plugins in child processes, with
// API server and etcd, as "make perf" does.
func TestHarness(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server")
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	workloads, err := Workloads()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Find(workloads, []string{"template-burst", "without-claims"}, SizeTest)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := NewHarness(binary, t.Output()).Measure(t.Context(), found, SizeTest, []string{Ours, Stock}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if run.Pods != 40 || run.Seconds <= 0 || run.CPUSeconds <= 0 || run.PeakBytes < 1<<20 || run.P50 <= 0 || run.P99 < run.P50 {
			t.Errorf("run %+v: want 40 pods and all figures", run)
		}
	}
	report := NewReport(found, runs)
	if report.Workloads != 1 || report.MedianRatio <= 0 || report.Ceiling <= 0 {
		t.Errorf("report: %s", report.Summary())
	}
}
