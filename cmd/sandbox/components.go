package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
)

// newComponentCommands returns one command per component. Each replaces os.Args
// by the component's own and hands the process over: the components parse
// os.Args, install signal handlers and call os.Exit by themselves. Their
// commands are built only when asked for, since building one already sets
// process-wide state.
func newComponentCommands() []*cobra.Command {
	return []*cobra.Command{
		newComponentCommand(controlplane.Etcd, "the cluster's store", func(args []string) error {
			etcdmain.Main(args)
			return nil
		}),
		newComponentCommand(controlplane.APIServer, "the Kubernetes API", func([]string) error {
			os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
			return nil
		}),
		newComponentCommand(controlplane.ControllerManager, "the controllers behind the API", func([]string) error {
			os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
			return nil
		}),
		newComponentCommand(controlplane.Kwok, "simulated kubelets", runKwok),
		newComponentCommand("kubectl", "the command line client", func([]string) error {
			os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
			return nil
		}),
	}
}

func newComponentCommand(name, what string, run func(args []string) error) *cobra.Command {
	return &cobra.Command{
		Use:                name + " [ARGUMENTS]",
		Short:              "Run " + name + ": " + what,
		GroupID:            componentGroup,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			os.Args = append([]string{name}, args...)
			hideVersionFlag(false) // the component's own help may show it
			return run(os.Args)
		},
	}
}

// runKwok runs kwok, whose log and configuration flags are read before its
// command exists: the stages travel to it in the context.
func runKwok([]string) error {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return fmt.Errorf("read kwok's configuration: %w", err)
	}
	command := kwok.NewCommand(ctx)
	// Kubernetes' libraries have put a flag "version" of another type into the
	// process's flags, which cobra trips over; `sandbox version` tells it anyway.
	command.Version = ""
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}
