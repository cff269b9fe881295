package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	// What the mains of the Kubernetes components import for their side effects:
	// JSON logging, and the metrics of clients and of the version.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/demo"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		if !errors.Is(err, demo.ErrWrong) { // the demo has said everything, and its last line is the sum
			fmt.Fprintln(os.Stderr, "sandbox:", err)
		}
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "A real Kubernetes control plane with simulated hardware, in one binary",
		Long: `A real Kubernetes control plane with simulated hardware, in one binary.

It needs no root, no containers and no network, listens on 127.0.0.1 only, and
keeps all its files in one directory. Start it with

    sandbox up --hardware demo

and look around from another terminal with the kubectl that it carries, or any
other, and the kubeconfig file whose path it prints:

    sandbox kubectl --kubeconfig PATH get nodes,resourceslices

It brings no scheduler: run the one that you want to try against the kubeconfig.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	hideVersionFlag(true)
	root.AddGroup(
		&cobra.Group{ID: sandboxGroup, Title: "Commands:"},
		&cobra.Group{ID: componentGroup, Title: "Components, with their own flags (try COMPONENT --help):"},
	)
	root.AddCommand(newUpCommand(), newDemoCommand(), newHardwareCommand(), newVersionCommand())
	root.AddCommand(newComponentCommands()...)
	return root
}

// hideVersionFlag hides or shows a flag in the help texts: Kubernetes' libraries
// add --version to the flags of the whole process, but here it does nothing and
// `sandbox version` is the way.
func hideVersionFlag(hide bool) {
	if flag := pflag.Lookup("version"); flag != nil {
		flag.Hidden = hide
	}
}

// The groups under which the help lists the commands.
const (
	sandboxGroup   = "sandbox"
	componentGroup = "component"
)
