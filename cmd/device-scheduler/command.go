package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/component-base/featuregate"
	kubeversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/device-scheduler/device-scheduler/config"
	"github.com/device-scheduler/device-scheduler/config/profiles"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation"
)

// version is the version of device-scheduler, set by the linker.
var version = "v0.0.0-unknown"

const description = `device-scheduler is a Kubernetes scheduler for clusters with GPUs, NICs and other
special devices. It allocates the devices that pods ask for in ResourceClaims,
with the plugin DeviceAllocation instead of DynamicResources, and does everything
else as kube-scheduler does, whose flags it takes.

It needs a KubeSchedulerConfiguration that enables the plugin (--config).`

// introduce gives the command of kube-scheduler its new name and description.
func introduce(command *cobra.Command) {
	command.Use = "device-scheduler"
	command.Long = description
	command.Example = "  device-scheduler --config=device-scheduler.yaml"
}

// setDefaults changes the defaults of feature gates. It must come before
// anything that makes flags of them.
func setDefaults(gates featuregate.MutableFeatureGate) error {
	for _, name := range config.FeatureGates {
		if err := gates.OverrideDefault(featuregate.Feature(name), true); err != nil {
			return fmt.Errorf("set default of feature gate %s: %w", name, err)
		}
	}
	return nil
}

// guard makes the command answer --version for both versions, and refuse
// configurations under which devices would be handed out wrongly.
func guard(command *cobra.Command) {
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		if command.Flags().Lookup("version").Value.String() == "true" {
			_, err := fmt.Fprintf(command.OutOrStdout(), "device-scheduler %s (Kubernetes %s)\n", version, kubeversion.Get().GitVersion)
			return err
		}
		file, err := command.Flags().GetString("config")
		if err != nil {
			return fmt.Errorf("read flag --config: %w", err)
		}
		if err := check(file); err != nil {
			return err
		}
		return run(command, args)
	}
}

func check(file string) error {
	if file == "" {
		return errors.New("without --config no profile would use the plugin " + deviceallocation.Name +
			": pass a KubeSchedulerConfiguration that enables it, such as config/device-scheduler.yaml")
	}
	cfg, err := options.LoadConfigFromFile(klog.Background(), file)
	if err != nil {
		return fmt.Errorf("load %s: %w", file, err)
	}
	if err := profiles.CheckProfiles(cfg); err != nil {
		return fmt.Errorf("check %s: %w", file, err)
	}
	return nil
}
