package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
)

// errInterrupted ends a start that the user called off.
var errInterrupted = errors.New("interrupted")

// upOptions are the flags of `sandbox up`.
type upOptions struct {
	controlPlane controlplane.Options
	files        []string // hardware descriptions
	clusters     []string // ready-made ones
}

func newUpCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:     "up",
		Short:   "Start a control plane and keep it running until interrupted",
		GroupID: sandboxGroup,
		Args:    cobra.NoArgs,
		Long: `Start a control plane and keep it running until interrupted.

Starts etcd, kube-apiserver, kube-controller-manager and kwok, one after the
other, which takes about ten seconds; then prints the path of a kubeconfig file
with an administrator's credential. Ctrl-C stops everything in reverse order.

Everything lies in one directory: kubeconfig, logs/, pki/ and etcd's data.
Without --dir it is a temporary one, which disappears at the end. A directory
named with --dir stays, and a later "up" with the same directory continues with
its cluster, with new ports and credentials. Remove it yourself when done.

Simulated nodes become Ready by themselves. Pods that are bound to them run
until they are deleted; pods of a Job succeed after one second, or after the
duration in their annotation sandbox.device-scheduler/run-for. There is no
scheduler: until you start one, pods stay Pending.`,
		Example: `  # The demo's machines: GPUs and NICs on nine nodes
  sandbox up --hardware demo

  # A copy of a real cluster's machines
  kubectl get nodes,resourceslices,deviceclasses -o yaml > machines.yaml
  sandbox up --nodes machines.yaml

  # A cluster that survives a restart
  sandbox up --dir ~/sandbox --hardware demo`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *upOptions) addFlags(flags *pflag.FlagSet) {
	c := &o.controlPlane
	flags.StringVar(&c.Dir, "dir", "",
		"directory for everything; new, empty, or left by an earlier sandbox (default: a temporary one)")
	flags.BoolVar(&c.KeepDir, "keep", false, "keep the temporary directory at the end, to look at the logs")
	flags.StringArrayVar(&o.files, "nodes", nil,
		"file with Nodes, ResourceSlices and DeviceClasses to create; may be repeated")
	flags.StringSliceVar(&o.clusters, "hardware", nil,
		"ready-made simulated cluster to create: "+strings.Join(hardware.Clusters(), ", "))
	flags.BoolVar(&c.WithoutKwok, "without-kwok", false, "do not simulate kubelets: nodes do not become Ready, pods do not run")
	flags.BoolVar(&c.WithoutControllerManager, "without-controller-manager", false,
		"leave kube-controller-manager out: no claims from templates, no default ServiceAccount")
	flags.StringArrayVar(&c.APIServerFlags, "apiserver-flag", nil, "further flag of kube-apiserver, as --name=value; may be repeated")
	flags.StringArrayVar(&c.ControllerManagerFlags, "controller-manager-flag", nil,
		"further flag of kube-controller-manager, as --name=value; may be repeated")
	flags.Var(gates{&c.FeatureGates}, "feature-gates", "feature gates of both, as Name=true,Other=false")
}

// up runs the control plane until a signal arrives or a component dies.
func up(ctx context.Context, o upOptions, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	// Read all descriptions first: a typo should not cost a start.
	objects, err := o.hardware()
	if err != nil {
		return err
	}
	options := o.controlPlane
	if options.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	options.Out = out
	cp, err := controlplane.Start(ctx, options)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop(), farewell(out, cp.Dir(), o)) }()

	if err := create(ctx, cp, objects, out); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\nThe control plane is up. In another terminal:\n\n    export KUBECONFIG=%s\n\nCtrl-C stops it.\n",
		cp.Kubeconfig()); err != nil {
		return err
	}
	select {
	case err := <-cp.Failed():
		return err
	case <-ctx.Done():
		_, err := fmt.Fprintln(out)
		return err
	}
}

// hardware reads what --nodes and --hardware name.
func (o *upOptions) hardware() (*hardware.Objects, error) {
	all := &hardware.Objects{}
	for _, name := range o.clusters {
		objects, err := hardware.Cluster(name)
		if err != nil {
			return nil, err
		}
		all.Add(objects)
	}
	for _, file := range o.files {
		objects, err := hardware.LoadFile(file)
		if err != nil {
			return nil, err
		}
		all.Add(objects)
	}
	return all, nil
}

func create(ctx context.Context, cp *controlplane.ControlPlane, objects *hardware.Objects, out io.Writer) error {
	if len(objects.Nodes)+len(objects.Slices)+len(objects.Classes) == 0 {
		return nil
	}
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	if err := hardware.Apply(ctx, client, objects); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "hardware: %d nodes, %d ResourceSlices, %d DeviceClasses\n",
		len(objects.Nodes), len(objects.Slices), len(objects.Classes))
	return err
}

// farewell says what is left on disk.
func farewell(out io.Writer, dir string, o upOptions) error {
	var err error
	switch {
	case o.controlPlane.Dir != "":
		_, err = fmt.Fprintf(out, "kept %s: start again with the same --dir to continue\n", dir)
	case o.controlPlane.KeepDir:
		_, err = fmt.Fprintf(out, "kept %s\n", dir)
	}
	return err
}
