package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
)

func newHardwareCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "hardware NAME",
		Short:   "Print simulated hardware as YAML, as a start for your own",
		GroupID: sandboxGroup,
		Args:    cobra.ExactArgs(1),
		Long: `Print simulated hardware as YAML, as a start for your own.

NAME is a ready-made cluster (` + strings.Join(hardware.Clusters(), ", ") + `) or one kind of machine
(` + strings.Join(hardware.Profiles(), ", ") + `). Change the output and hand it to
"sandbox up --nodes FILE" or to "kubectl apply".`,
		Example:   "  sandbox hardware training > machine.yaml",
		ValidArgs: append(hardware.Clusters(), hardware.Profiles()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := describedAs(args[0])
			if err != nil {
				return err
			}
			return printObjects(cmd.OutOrStdout(), objects)
		},
	}
}

func describedAs(name string) (*hardware.Objects, error) {
	if slices.Contains(hardware.Clusters(), name) {
		return hardware.Cluster(name)
	}
	return hardware.Profile(hardware.Machine{Name: name + "-1", Profile: name})
}

// printObjects writes the objects in the order in which Apply creates them. They
// carry apiVersion and kind from the description that they were read from.
func printObjects(out io.Writer, objects *hardware.Objects) error {
	var all []any
	for _, class := range objects.Classes {
		all = append(all, class)
	}
	for _, node := range objects.Nodes {
		all = append(all, node)
	}
	for _, slice := range objects.Slices {
		all = append(all, slice)
	}
	for _, object := range all {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
