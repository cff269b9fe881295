// Command dra-driver is the DRA driver of package driver, as a process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
)

func main() {
	var o driver.Options
	flag.StringVar(&o.Driver, "driver", driver.GPU, "which devices: "+driver.GPU+" or "+driver.NIC)
	flag.StringVar(&o.Node, "node", "", "name of the node")
	flag.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of the kubeconfig file")
	flag.StringVar(&o.KubeletDirectory, "kubelet-directory", "/var/lib/kubelet", "root directory of the kubelet")
	flag.StringVar(&o.CDIDirectory, "cdi-directory", "/run/cdi", "where the container runtime looks for CDI files")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := driver.Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "dra-driver:", err)
		os.Exit(1)
	}
}
