//go:build linux

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/device-scheduler/device-scheduler/test/e2e/cluster"
	"github.com/device-scheduler/device-scheduler/test/e2e/isolation"
	"github.com/device-scheduler/device-scheduler/test/e2e/node"
)

// shared serves all tests, one after the other.
var shared *cluster.Cluster

// TestMain runs the tests in namespaces of their own. The nodes that they start
// run this program as their first process.
func TestMain(m *testing.M) {
	node.RunInit()
	flag.Parse()
	if os.Getenv(cluster.BinariesVariable) == "" {
		fmt.Println("e2e: skipped: real nodes need programs that \"make e2e\" builds: use it")
		return
	}
	os.Exit(isolation.Run(func(directory string) int { return run(m, directory) }))
}

func run(m *testing.M, directory string) int {
	began := time.Now()
	var err error
	if shared, err = cluster.Start(context.Background(), directory); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: start the cluster:", err)
		return 1
	}
	fmt.Printf("a control plane, device-scheduler and two nodes with DRA drivers are ready (%.1fs)\n\n", time.Since(began).Seconds())
	m.Run()
	if err := shared.PrintMetrics(context.Background(), os.Stdout); err != nil {
		fmt.Println("read metrics:", err)
	}
	summary, success := shared.Tally()
	fmt.Println(summary)
	if !success {
		return 1
	}
	return 0
}

// env prepares the cluster for a test. The title says what the test shows.
func env(t *testing.T, title string) *cluster.Env {
	t.Helper()
	return cluster.NewEnv(t, shared, title)
}
