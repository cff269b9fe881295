package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/device-scheduler/device-scheduler/config"
)

// The plugins that are compared.
const (
	Ours  = config.PluginName
	Stock = names.DynamicResources
)

func otherThan(plugin string) string {
	if plugin == Ours {
		return Stock
	}
	return Ours
}

const (
	// patience is how long measured pods may take to get their nodes.
	patience = 10 * time.Minute
	// preparation is how long the rest of a run may take: the nodes and slices
	// of the largest cluster, and its end.
	preparation = 10 * time.Minute

	recordFile = "record.json"
)

// Harness runs workloads in child processes.
type Harness struct {
	// Binary is the test binary of this package.
	Binary string
	// Profiles is a folder for profiles of the measured part, or empty.
	Profiles string
	// Log gets a line for each run.
	Log io.Writer
	// run starts a child; tests replace it.
	run func(context.Context, *Harness, Job) (*Run, error)
}

// Job is one run that is to be done.
type Job struct {
	Workload *Workload
	Size     Size
	Plugin   string
	Round    int
}

// Run is what came out of a job.
type Run struct {
	Workload string `json:"workload"`
	Size     Size   `json:"size"`
	Plugin   string `json:"plugin"`
	Round    int    `json:"round"`
	// Throughput is SchedulingThroughput/Average of scheduler_perf in pods/s, or
	// 0 if the run was too short for it: it takes one sample a second.
	Throughput float64 `json:"throughput,omitempty"`
	// P50 and P99 are milliseconds of scheduling_algorithm_duration: from the
	// snapshot of the nodes to the choice of one. For pod groups it is that of
	// the whole group.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Record
	// TooLong says that the pods did not all get nodes in time; nothing else is
	// known then.
	TooLong bool `json:"tooLong,omitempty"`
}

// PodsPerSecond is the throughput of scheduler_perf, or what was counted in a
// run that was too short for it.
func (r *Run) PodsPerSecond() float64 {
	if r.Throughput > 0 {
		return r.Throughput
	}
	if r.Seconds > 0 {
		return float64(r.Pods) / r.Seconds
	}
	return 0
}

// Measure does all workloads with all plugins in the given number of rounds.
// The plugins take turns, and who comes first changes from round to round, so
// that a machine that slows down hits both. When the stock plugin needs too
// long, the workload is done in its next smaller size by both, from then on.
func (h *Harness) Measure(ctx context.Context, workloads []*Workload, size Size, plugins []string, rounds int) ([]*Run, error) {
	sizes := make(map[string]Size)
	var runs []*Run
	for round := 1; round <= rounds; round++ {
		for _, w := range workloads {
			if sizes[w.Name] == "" {
				sizes[w.Name] = w.nearest(size)
			}
			for {
				done, err := h.round(ctx, w, sizes[w.Name], plugins, round)
				runs = append(runs, done...)
				if err != nil {
					return runs, err
				}
				smaller := w.smaller(sizes[w.Name])
				if smaller == "" || !slices.ContainsFunc(done, func(r *Run) bool { return r.TooLong }) {
					break
				}
				sizes[w.Name] = smaller
			}
		}
	}
	return runs, nil
}

func (h *Harness) round(ctx context.Context, w *Workload, size Size, plugins []string, round int) ([]*Run, error) {
	order := slices.Clone(plugins)
	if round%2 == 0 {
		slices.Reverse(order)
	}
	var runs []*Run
	for _, plugin := range order {
		if w.Ceiling && plugin != Ours && slices.Contains(plugins, Ours) {
			continue
		}
		start := time.Now()
		run, err := h.run(ctx, h, Job{Workload: w, Size: size, Plugin: plugin, Round: round})
		if err != nil {
			return runs, fmt.Errorf("run %s/%s with %s: %w", w.Name, size, plugin, err)
		}
		runs = append(runs, run)
		outcome := fmt.Sprintf("%.1f pods/s", run.PodsPerSecond())
		if run.TooLong {
			outcome = "more than " + patience.String()
		}
		fmt.Fprintf(h.Log, "round %d: %s/%s with %s: %s (%s in all)\n", round, w.Name, size, plugin, outcome, time.Since(start).Round(time.Second))
	}
	return runs, nil
}

// NewHarness returns a harness that starts the given test binary.
func NewHarness(binary string, log io.Writer) *Harness {
	return &Harness{Binary: binary, Log: log, run: runChild}
}

// runChild does a job in a child process and checks what it did.
func runChild(ctx context.Context, h *Harness, job Job) (*Run, error) {
	dir, err := os.MkdirTemp("", "perf-")
	if err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	defer os.RemoveAll(dir)
	// scheduler_perf looks for a program called etcd.
	if err := os.Symlink(h.Binary, filepath.Join(dir, "etcd")); err != nil {
		return nil, fmt.Errorf("link etcd: %w", err)
	}
	output, err := h.start(ctx, dir, job)
	if err != nil {
		if strings.Contains(output, "waiting for pods to get scheduled") || strings.Contains(output, "error waiting for pods in namespace") {
			return &Run{Workload: job.Workload.Name, Size: job.Size, Plugin: job.Plugin, Round: job.Round, TooLong: true}, nil
		}
		return nil, fmt.Errorf("%w, its last output was:\n%s", err, tail(output, 40))
	}
	run, err := collect(dir, job)
	if err != nil {
		return nil, fmt.Errorf("%w, its last output was:\n%s", err, tail(output, 40))
	}
	if err := run.check(job); err != nil {
		return nil, err
	}
	return run, h.keepProfiles(dir, job)
}

// start runs the child and returns what it printed.
func (h *Harness) start(ctx context.Context, dir string, job Job) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience+preparation, errors.New("it takes too long"))
	defer cancel()
	args := []string{
		"-test.run=^$", "-test.bench=^BenchmarkPerfScheduling$", "-test.benchtime=1x", "-test.timeout=0",
		"-perf.workload=" + job.Workload.Name, "-perf.size=" + string(job.Size), "-perf.plugin=" + job.Plugin, "-perf.output=" + dir,
		"-data-items-dir=" + dir, "-with-data-items-unique-id=false",
	}
	if h.Profiles != "" {
		args = append(args, "-perf-cpuprofile", "-perf-memprofile")
	}
	command := exec.CommandContext(ctx, h.Binary, args...)
	command.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+dir)
	// A group of its own, so that etcd does not outlive it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return string(output), err
}

// collect reads what the child has left in its folder.
func collect(dir string, job Job) (*Run, error) {
	run := &Run{Workload: job.Workload.Name, Size: job.Size, Plugin: job.Plugin, Round: job.Round}
	content, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	if err := json.Unmarshal(content, &run.Record); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "BenchmarkPerfScheduling_*.json"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("find data items: %d files, error %v", len(files), err)
	}
	if content, err = os.ReadFile(files[0]); err != nil {
		return nil, fmt.Errorf("read data items: %w", err)
	}
	return run, run.take(content)
}

// take takes over the data items of scheduler_perf.
func (r *Run) take(content []byte) error {
	var items struct {
		DataItems []struct {
			Data   map[string]float64 `json:"data"`
			Labels map[string]string  `json:"labels"`
		} `json:"dataItems"`
	}
	if err := json.Unmarshal(content, &items); err != nil {
		return fmt.Errorf("decode data items: %w", err)
	}
	for _, item := range items.DataItems {
		switch item.Labels["Metric"] {
		case metricThroughput:
			r.Throughput = item.Data["Average"]
		case metricGroupAlgorithm:
			r.P50, r.P99 = item.Data["Perc50"], item.Data["Perc99"]
		case metricAlgorithm:
			if r.P50 == 0 {
				r.P50, r.P99 = item.Data["Perc50"], item.Data["Perc99"]
			}
		}
	}
	return nil
}

// check makes sure that the right plugin has done the work. scheduler_perf has
// waited for the pods.
func (r *Run) check(job Job) error {
	switch {
	case !slices.Contains(r.Plugins, job.Plugin) || slices.Contains(r.Plugins, otherThan(job.Plugin)):
		return fmt.Errorf("the plugins that ran are %v", r.Plugins)
	case r.Pods == 0:
		return errors.New("no pod with the label " + measuredLabel + " got a node")
	case job.Plugin == Ours && !job.Workload.Ceiling && r.Searches == 0:
		return errors.New("our allocator has not searched")
	case job.Plugin != Ours && r.Searches > 0:
		return fmt.Errorf("our allocator has searched %d times", r.Searches)
	}
	return nil
}

// keepProfiles moves profiles to where they were asked for.
func (h *Harness) keepProfiles(dir string, job Job) error {
	if h.Profiles == "" {
		return nil
	}
	if err := os.MkdirAll(h.Profiles, 0o755); err != nil {
		return fmt.Errorf("create folder for profiles: %w", err)
	}
	for _, kind := range []string{"cpu", "delta-mem"} {
		found, err := filepath.Glob(filepath.Join(dir, "*-"+kind+".prof"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("find profile %s: %d files, error %v", kind, len(found), err)
		}
		content, err := os.ReadFile(found[0])
		if err != nil {
			return fmt.Errorf("read profile: %w", err)
		}
		name := fmt.Sprintf("%s-%s-%s-%d.%s.prof", job.Workload.Name, job.Size, job.Plugin, job.Round, strings.TrimPrefix(kind, "delta-"))
		if err := os.WriteFile(filepath.Join(h.Profiles, name), content, 0o644); err != nil {
			return fmt.Errorf("write profile: %w", err)
		}
	}
	return nil
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
