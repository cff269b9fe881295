package main

import (
	"fmt"
	"os"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the API client and the workqueues
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric kubernetes_build_info
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation"
)

func main() {
	if err := setDefaults(utilfeature.DefaultMutableFeatureGate); err != nil {
		fmt.Fprintln(os.Stderr, "device-scheduler:", err)
		os.Exit(1)
	}
	command := app.NewSchedulerCommand(app.WithPlugin(deviceallocation.Name, deviceallocation.Factory()))
	introduce(command)
	guard(command)
	os.Exit(cli.Run(command))
}
