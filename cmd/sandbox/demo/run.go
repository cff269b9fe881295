package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
)

// hardwareName is the simulated cluster that the examples are written for.
const hardwareName = "demo"

var (
	// ErrWrong means that a promise did not hold. Everything about it has been
	// written to Options.Out.
	ErrWrong = errors.New("not everything is as promised")
	// ErrInterrupted means that ctx ended before the demo did.
	ErrInterrupted = errors.New("interrupted")
)

// run is one demo on a running control plane.
type run struct {
	*report
	*Stage
	scheduler *scheduler
	undo      []string // arguments of kubectl that undo the mishaps
}

// Run plays the whole demo and stops everything that it started, also after an
// error. The last line that it writes counts the placements; the error is or
// wraps ErrWrong if one of them is not as promised, and ErrInterrupted if ctx
// ended too early.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	examples, err := LoadExamples(o.Examples)
	if err != nil {
		return err
	}
	objects, err := hardware.Cluster(hardwareName)
	if err != nil {
		return err
	}
	began := time.Now()
	report := &report{out: o.Out}
	report.printf("starting a control plane\n")
	cp, err := controlplane.Start(ctx, controlplane.Options{Binary: o.Binary, Dir: o.Dir, Out: o.Out})
	if err == nil {
		err = errors.Join(onControlPlane(ctx, cp, o, report, examples, objects, began), cp.Stop())
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.Join(ErrInterrupted, err)
	case err != nil:
		return err
	}
	if !o.Keep {
		report.printf("all of it took %.0fs\n\n", time.Since(began).Seconds())
		report.summary()
	}
	if report.wrong > 0 {
		return ErrWrong
	}
	return nil
}

// onControlPlane starts the scheduler, plays, and stops the scheduler.
func onControlPlane(parent context.Context, cp *controlplane.ControlPlane, o Options, report *report,
	examples []*Example, objects *hardware.Objects, began time.Time) (err error) {
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	stage, err := NewStage(cp.RESTConfig(), client)
	if err != nil {
		return err
	}
	r := &run{report: report, Stage: stage}
	if err := r.createHardware(parent, objects); err != nil {
		return err
	}
	lead, err := r.launchScheduler(parent, cp, o)
	if err != nil {
		return err
	}
	defer func() {
		if r.scheduler.running() {
			err = errors.Join(err, r.scheduler.stop())
			r.printf("scheduler: stopped\n")
		}
	}()

	// Whatever dies ends the demo with the reason.
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	go func() {
		select {
		case err := <-cp.Failed():
			cancel(err)
		case <-r.scheduler.ended:
			cancel(r.scheduler.died())
		case <-ctx.Done():
		}
	}()
	err = r.awaitLeadership(ctx, lead, cp)
	if err == nil {
		r.printf("everything runs after %.0fs\n", time.Since(began).Seconds())
		err = r.play(ctx, examples)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return err
	}
	if !o.Keep {
		r.printf("\nstopping everything\n")
		return nil
	}
	r.farewell(cp, o)
	<-ctx.Done()
	if parent.Err() != nil {
		return nil // Ctrl-C is how it is meant to end
	}
	return context.Cause(ctx)
}

func (r *run) createHardware(ctx context.Context, objects *hardware.Objects) error {
	if err := hardware.Apply(ctx, r.client, objects); err != nil {
		return err
	}
	r.printf("hardware: %d simulated nodes with %d ResourceSlices, %d DeviceClasses\n",
		len(objects.Nodes), len(objects.Slices), len(objects.Classes))
	return await(ctx, "all nodes to be ready", func(ctx context.Context) (bool, error) {
		nodes, err := r.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		ready := 0
		for _, node := range nodes.Items {
			if isReady(&node) && len(node.Spec.Taints) == 0 {
				ready++
			}
		}
		return ready == len(objects.Nodes), nil
	})
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// launchScheduler starts the scheduler with files in a directory of its own and
// returns the lease that makes it the leader.
func (r *run) launchScheduler(ctx context.Context, cp *controlplane.ControlPlane, o Options) (lease, error) {
	dir := schedulerDir(cp)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return lease{}, fmt.Errorf("create directory: %w", err)
	}
	config := filepath.Join(dir, "config.yaml")
	lead, err := writeSchedulerConfig(o.Config, config, cp.Kubeconfig())
	if err != nil {
		return lease{}, err
	}
	// The namespace of the lease comes with the deployment, in a real cluster.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lead.namespace}}
	_, err = r.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return lease{}, fmt.Errorf("create namespace of the scheduler's lease: %w", err)
	}
	r.printf("scheduler: %s with %s; log in %s\n", o.Scheduler, o.Config, filepath.Join(dir, schedulerLog))
	r.scheduler, err = startScheduler(o.Scheduler, dir, config, cp.Kubeconfig())
	return lead, err
}

func schedulerDir(cp *controlplane.ControlPlane) string {
	return filepath.Join(cp.Dir(), "device-scheduler")
}

// awaitLeadership waits until the scheduler schedules, not only runs.
func (r *run) awaitLeadership(ctx context.Context, lead lease, cp *controlplane.ControlPlane) error {
	err := await(ctx, fmt.Sprintf("the scheduler to hold the lease %s/%s (see %s)", lead.namespace, lead.name, r.scheduler.logFile),
		func(ctx context.Context) (bool, error) {
			held, err := r.client.CoordinationV1().Leases(lead.namespace).Get(ctx, lead.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			return held.Spec.HolderIdentity != nil && *held.Spec.HolderIdentity != "", nil
		})
	if err != nil {
		return err
	}
	return r.scheduler.connect(cp.RESTConfig(), schedulerDir(cp))
}

// farewell says how to look around in what is left running, and how to undo
// what the demo did to the cluster.
func (r *run) farewell(cp *controlplane.ControlPlane, o Options) {
	r.printf("\nEverything goes on running. In another terminal:\n\n    export KUBECONFIG=%s\n", cp.Kubeconfig())
	kubectl := func(arguments string) { r.printf("    %s kubectl %s\n", o.Binary, arguments) }
	kubectl("get pods -A -o wide")
	kubectl("get resourceclaims -A -o yaml")
	kubectl("get resourceslices")
	if len(r.undo) > 0 {
		r.printf("\nTo mend what broke:\n\n")
	}
	for _, arguments := range r.undo {
		kubectl(arguments)
	}
	r.printf("\nCtrl-C stops everything.\n\n")
	r.summary()
}
