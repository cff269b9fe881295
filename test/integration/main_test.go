package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// cluster serves all tests, one after the other.
var cluster *harness.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped: needs a control plane, which -short rules out")
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	var err error
	if cluster, err = harness.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "start the cluster:", err)
		return 1
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the cluster:", err)
			code = 1
		}
	}()
	return m.Run()
}

// env prepares the cluster for a test.
func env(t *testing.T) *harness.Env {
	t.Helper()
	return harness.NewEnv(t, cluster)
}

// class matches all devices of the test's driver.
func class(e *harness.Env, name string) *builders.ClassBuilder {
	return builders.Class(e.In(name)).Select(fmt.Sprintf("device.driver == %q", e.Driver))
}

// pool is a pool on a node, named like it in short.
func pool(e *harness.Env, node string, devices ...*builders.DeviceBuilder) *builders.SliceBuilder {
	return builders.Slice(e.Driver, node).OnNode(e.In(node)).Devices(devices...)
}

// gpus is a pool of n equal devices gpu-0, gpu-1, and so on.
func gpus(e *harness.Env, node string, n int) *builders.SliceBuilder {
	return pool(e, node, builders.DevicesNamed("gpu", n, nil)...)
}

// unfit is the condition of a pod that fits none of n nodes, for the given
// reasons.
func unfit(n int, reasons string) string {
	return fmt.Sprintf("0/%d nodes are available: %s. %s", n, reasons, noPreemption(n))
}

// noPreemption is what the scheduler adds when no victim would help on any of n
// nodes.
func noPreemption(n int) string {
	return fmt.Sprintf("preemption: 0/%[1]d nodes are available: %[1]d Preemption is not helpful for scheduling.", n)
}

// unfitBeside is the condition of a pod when one node was tried, for a given
// reason, and the others were left out from the start, for others.
func unfitBeside(omitted int, omittedReasons, reason string) string {
	return fmt.Sprintf("0/%d nodes are available: %d node(s) didn't satisfy plugin(s) [DeviceAllocation], 1 %s. "+
		"nodes without enough matching devices: %s, %s", omitted+1, omitted, reason, omittedReasons, noPreemption(omitted+1))
}
