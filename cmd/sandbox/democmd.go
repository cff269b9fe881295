package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/demo"
)

func newDemoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Run the examples on a simulated cluster and check what they promise",
		GroupID: sandboxGroup,
		Args:    cobra.NoArgs,
		Long: `Run the examples on a simulated cluster and check what they promise.

Starts a control plane with the hardware "demo" and device-scheduler as a second
scheduler, with its shipped configuration. Applies one example after the other,
shows where the pods run and with which devices, and compares this with the
example's expect.yaml. In the end a device in use breaks and a node is drained.

The last line counts the placements. The exit code is 0 only if none is wrong.
It takes about a minute. Ctrl-C stops everything.`,
		Example: `  sandbox demo

  # Look around afterwards
  sandbox demo --keep`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			return runDemo(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Scheduler, "scheduler", "bin/device-scheduler", "the scheduler's binary")
	flags.StringVar(&o.Examples, "examples", "manifests/examples", "directory of the examples")
	flags.StringVar(&o.Config, "config", "config/device-scheduler.yaml", "the scheduler's configuration; a kubeconfig is added")
	flags.StringVar(&o.Dir, "dir", "", "new or empty directory for everything, which stays at the end (default: a temporary one)")
	flags.BoolVar(&o.Keep, "keep", false, "leave everything running at the end until interrupted")
	return cmd
}

func runDemo(ctx context.Context, o demo.Options) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	err = demo.Run(ctx, o)
	if errors.Is(err, demo.ErrInterrupted) {
		return errInterrupted
	}
	return err
}
