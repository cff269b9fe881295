package perf

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/etcd/server/v3/etcdmain"
	benchmark "k8s.io/kubernetes/test/integration/scheduler_perf"
)

// The flags of the harness.
var (
	set       = flag.String("perf.set", "", "measure: short or full, the set of workloads and their size")
	workloads = flag.String("perf.workloads", "", "names of workloads, with commas or spaces between them; all of the set if empty")
	plugins   = flag.String("perf.plugins", Ours+","+Stock, "the plugins that are compared")
	rounds    = flag.Int("perf.rounds", 3, "how often each plugin does each workload")
	format    = flag.String("o", "table", "how to write the result: table or json")
	profiles  = flag.String("perf.profiles", "", "folder for CPU and memory profiles of the measured part of each run")
)

// TestMain plays one of the parts that doc.go names.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	if err := benchmark.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *set == "" {
		os.Exit(m.Run())
	}
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

// measure is the harness.
func measure() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := Workloads()
	if err != nil {
		return err
	}
	chosen, err := Find(all, listOf(*workloads), Size(*set))
	if err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find test binary: %w", err)
	}
	harness := NewHarness(binary, os.Stderr)
	harness.Profiles = *profiles
	runs, err := harness.Measure(ctx, chosen, Size(*set), listOf(*plugins), *rounds)
	report := NewReport(chosen, runs)
	write := report.Table
	if *format == "json" {
		write = report.JSON
	}
	if failed := write(os.Stdout); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	if *format != "json" {
		fmt.Println(report.Summary())
	}
	return nil
}

func listOf(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
