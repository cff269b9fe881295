package perf

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	benchmark "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

	"github.com/device-scheduler/device-scheduler/config"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation"
)

// The flags of a child; run.go sets them.
var (
	childWorkload = flag.String("perf.workload", "", "child process: the workload to run")
	childSize     = flag.String("perf.size", "", "child process: its size")
	childPlugin   = flag.String("perf.plugin", "", "child process: the plugin that allocates devices")
	childOutput   = flag.String("perf.output", "", "child process: folder for what was measured")
)

// BenchmarkPerfScheduling runs one workload with one scheduler, once. It is
// started by the harness; its name is the one that scheduler_perf expects.
func BenchmarkPerfScheduling(b *testing.B) {
	if *childWorkload == "" {
		b.Skip("started by the harness only: see README.md")
	}
	c, err := newChild()
	if err != nil {
		b.Fatal(err)
	}
	file, err := c.writeConfiguration()
	if err != nil {
		b.Fatal(err)
	}
	benchmark.RunBenchmarkPerfScheduling(b, file, "perf",
		frameworkruntime.Registry{deviceallocation.Name: deviceallocation.Factory()},
		benchmark.WithNodeUpdateFn(c.nodesExist), benchmark.WithPodsSchedulingTimeout(patience))
	if b.Failed() {
		return
	}
	if err := c.recorder.write(filepath.Join(*childOutput, recordFile)); err != nil {
		b.Fatal(err)
	}
}

type child struct {
	workload *Workload
	size     Size
	plugin   string
	recorder recorder
}

func newChild() (*child, error) {
	all, err := Workloads()
	if err != nil {
		return nil, err
	}
	found, err := Find(all, []string{*childWorkload}, "")
	if err != nil {
		return nil, err
	}
	return &child{workload: found[0], size: Size(*childSize), plugin: *childPlugin}, nil
}

// writeConfiguration writes what scheduler_perf reads: the workload, the
// objects, and our scheduler's configuration and feature gates as they are
// shipped. The stock plugin gets none, which means kube-scheduler's defaults. It moves to that folder:
// scheduler_perf finds files from the working directory.
func (c *child) writeConfiguration() (string, error) {
	schedulerConfig, gates := "", []string(nil)
	if c.plugin == Ours {
		schedulerConfig, gates = "scheduler.yaml", config.FeatureGates
		if err := os.WriteFile(filepath.Join(*childOutput, schedulerConfig), config.ReplaceDefault, 0o644); err != nil {
			return "", fmt.Errorf("write scheduler configuration: %w", err)
		}
	}
	testCases, err := c.workload.testCases(c.size, schedulerConfig, gates)
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(*childOutput, objectFiles); err != nil {
		return "", fmt.Errorf("write objects: %w", err)
	}
	if err := os.Chdir(*childOutput); err != nil {
		return "", fmt.Errorf("change folder: %w", err)
	}
	const file = "testcases.yaml"
	if err := os.WriteFile(file, testCases, 0o644); err != nil {
		return "", fmt.Errorf("write workload: %w", err)
	}
	return file, nil
}

// nodesExist is called when scheduler_perf has created the nodes. It checks
// which plugin runs, plays the driver, and watches what follows.
func (c *child) nodesExist(tCtx ktesting.TContext, scheduler *scheduler.Scheduler, w *benchmark.Workload, nodes *corev1.NodeList) error {
	profile, ok := scheduler.Profiles[corev1.DefaultSchedulerName]
	if !ok {
		return errors.New("there is no profile " + corev1.DefaultSchedulerName)
	}
	var plugins []string
	for _, plugin := range profile.ListPlugins().Reserve.Enabled {
		plugins = append(plugins, plugin.Name)
	}
	c.recorder.change(func(r *Record) { r.Plugins = plugins })
	if !slices.Contains(plugins, c.plugin) || slices.Contains(plugins, otherThan(c.plugin)) {
		return fmt.Errorf("the plugins that reserve are %v, want %s among them and not %s", plugins, c.plugin, otherThan(c.plugin))
	}
	if err := c.workload.Driver.publish(tCtx, tCtx.Client(), nodes.Items); err != nil {
		return err
	}
	if held, err := w.GetParam("held"); err == nil && held > 0 {
		if err := c.workload.Driver.hold(tCtx, tCtx.Client(), nodes.Items, held); err != nil {
			return err
		}
	}
	if perSecond, err := w.GetParam("rewrites"); err == nil && perSecond > 0 {
		c.storm(tCtx, nodes.Items, perSecond)
	}
	if backlog, err := w.GetParam("backlog"); err == nil && backlog > 0 {
		load, err := newLoad(tCtx.Client(), c.workload.Driver.Pods, backlog)
		if err != nil {
			return err
		}
		c.recorder.bound = load.bound
		untilTheEnd(tCtx, func(ctx context.Context) error { return load.run(ctx, backlog) })
	}
	informer := profile.SharedInformerFactory().Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(c.recorder.handler()); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	// Afterwards scheduler_perf sets all metrics back to zero.
	tCtx.Cleanup(func() { c.readMetrics(tCtx) })
	return nil
}

// storm rewrites slices until the workload is done.
func (c *child) storm(tCtx ktesting.TContext, nodes []corev1.Node, perSecond int) {
	client := tCtx.Client()
	untilTheEnd(tCtx, func(ctx context.Context) error {
		written, err := c.workload.Driver.rewrite(ctx, client, nodes, perSecond)
		c.recorder.change(func(r *Record) { r.Rewrites = written })
		return err
	})
}

// untilTheEnd does something besides the steps, until the workload is done.
func untilTheEnd(tCtx ktesting.TContext, do func(context.Context) error) {
	ctx, cancel := context.WithCancel(tCtx)
	var done sync.WaitGroup
	done.Go(func() {
		if err := do(ctx); err != nil {
			tCtx.Errorf("beside the workload: %v", err)
		}
	})
	tCtx.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

// readMetrics reads how often our allocator was asked, and the API server. The
// metric of our plugin is not there when the plugin is not.
func (c *child) readMetrics(tCtx ktesting.TContext) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		tCtx.Errorf("read metrics: %v", err)
		return
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := make(map[string]string)
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			c.recorder.change(func(r *Record) { r.count(family.GetName(), labels, int(metric.GetCounter().GetValue())) })
		}
	}
}
