//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
	"github.com/device-scheduler/device-scheduler/test/e2e/image"
	"github.com/device-scheduler/device-scheduler/test/e2e/node"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// BinariesVariable names the environment variable with the directory of the
// nodes' binaries. Those of the sandbox and the scheduler are found as in the
// integration tests.
const BinariesVariable = "E2E_BINARIES"

// Names and addresses of the nodes.
const (
	NodeA = "node-a"
	NodeB = "node-b"

	gateway = "10.99.0.1" // the machine with the control plane
)

// drivers are the names of the DRA drivers of each node.
var drivers = []string{driver.GPU, driver.NIC}

var addresses = map[string]string{NodeA: "10.99.0.11", NodeB: "10.99.0.12"}

// Cluster is a running cluster. Tests use it one after the other.
type Cluster struct {
	*harness.Cluster
	Scheduler *Scheduler
	// Nodes are those of the cluster by name.
	Nodes map[string]*node.Node

	directory string
	history   history
	tally     tally
}

// Start starts everything and returns when pods can run. The files are in an
// empty directory. Nothing has to be stopped: it all ends with this process,
// which must be in namespaces of its own. See package isolation.
func Start(ctx context.Context, directory string) (*Cluster, error) {
	c := &Cluster{directory: directory, Nodes: make(map[string]*node.Node)}
	if err := node.Bridge(gateway); err != nil {
		return nil, fmt.Errorf("connect nodes: %w", err)
	}
	control := filepath.Join(directory, "cluster")
	if err := os.Mkdir(control, 0o700); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	var err error
	c.Cluster, err = harness.StartControlPlane(ctx, control, controlplane.Options{
		WithoutKwok:            true,
		APIServerFlags:         apiServerFlags(filepath.Join(control, "control-plane", "pki")),
		ControllerManagerFlags: controllerManagerFlags,
	})
	if err != nil {
		return nil, err
	}
	if err := c.history.follow(ctx, c); err != nil {
		return nil, err
	}
	if err := c.createClasses(ctx); err != nil {
		return nil, err
	}
	if c.Scheduler, err = newScheduler(c); err != nil {
		return nil, err
	}
	if err := c.Scheduler.Start(); err != nil {
		return nil, err
	}
	return c, c.startNodes(ctx)
}

// apiServerFlags let real kubelets in: they reach the API server through the
// bridge, and it reaches them for logs and metrics.
func apiServerFlags(pki string) []string {
	return []string{
		"--bind-address=0.0.0.0",
		"--advertise-address=" + gateway,
		"--authorization-mode=Node", // beside RBAC
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-client-certificate=" + filepath.Join(pki, "sandbox-admin.crt"),
		"--kubelet-client-key=" + filepath.Join(pki, "sandbox-admin.key"),
		"--kubelet-preferred-address-types=InternalIP",
		// Pods leave a node that was lost within seconds.
		"--default-not-ready-toleration-seconds=1",
		"--default-unreachable-toleration-seconds=1",
	}
}

// controllerManagerFlags let a node that was lost be noticed within seconds.
var controllerManagerFlags = []string{"--node-monitor-grace-period=10s", "--node-monitor-period=1s"}

// startNodes starts all nodes at once and waits for them.
func (c *Cluster) startNodes(ctx context.Context) error {
	archive, err := c.writeImage()
	if err != nil {
		return err
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("find runc: %w: install the package of that name", err)
	}
	server, err := url.Parse(c.RESTConfig().Host)
	if err != nil {
		return fmt.Errorf("parse the API server's address: %w", err)
	}
	logs := filepath.Join(c.directory, "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	for name, address := range addresses {
		c.Nodes[name], err = node.New(node.Options{
			Name: name, Address: address, Gateway: gateway,
			Port: server.Port(), CA: c.RESTConfig().CAData, Token: c.RESTConfig().BearerToken,
			Disk: filepath.Join(c.directory, name), Logs: logs,
			Binaries: os.Getenv(BinariesVariable), Runc: runc, Image: archive,
			Drivers: drivers,
		})
		if err != nil {
			return err
		}
	}
	errs := make(chan error, len(c.Nodes))
	var nodes sync.WaitGroup
	for _, n := range c.Nodes {
		nodes.Go(func() { errs <- n.On(ctx) })
	}
	nodes.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return c.awaitNodes(ctx, NodeA, NodeB)
}

// writeImage writes the archive of the tests' image and returns its path.
func (c *Cluster) writeImage() (path string, err error) {
	binary, err := os.ReadFile(filepath.Join(os.Getenv(BinariesVariable), "workload"))
	if err != nil {
		return "", fmt.Errorf("read the workload's binary: %w", err)
	}
	file, err := os.Create(filepath.Join(c.directory, "image.tar"))
	if err != nil {
		return "", fmt.Errorf("write image: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return file.Name(), image.WriteArchive(file, binary)
}

// Failed says which program of the cluster ended although nobody asked for it.
func (c *Cluster) Failed() error {
	select {
	case err := <-c.ControlPlane.Failed():
		return err
	default:
	}
	errs := []error{c.Scheduler.Ended()}
	for _, n := range c.Nodes {
		for _, p := range n.Processes() {
			errs = append(errs, p.Ended())
		}
	}
	return errors.Join(errs...)
}

// hostPort returns host and port of an address.
func hostPort(address string) (host, port string, err error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return "", "", fmt.Errorf("parse address: %w", err)
	}
	return net.SplitHostPort(parsed.Host)
}
