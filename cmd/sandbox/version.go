package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
	etcdversion "go.etcd.io/etcd/api/v3/version"
	"k8s.io/component-base/version"
)

// kwokModule is looked up in the build information: kwok's own version variable
// is set by its release builds only.
const kwokModule = "sigs.k8s.io/kwok"

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of the components",
		GroupID: sandboxGroup,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kubernetes %s\netcd       %s\nkwok       %s\n",
				version.Get().GitVersion, etcdversion.Version, moduleVersion(kwokModule))
			return err
		},
	}
}

// moduleVersion returns the version of a module that is linked in.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "unknown"
}
