//go:build linux

package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
	"github.com/device-scheduler/device-scheduler/test/e2e/isolation"
	"github.com/device-scheduler/device-scheduler/test/e2e/process"
)

// patience bounds the start of one program.
const patience = time.Minute

// Options describe a node and the cluster that it joins.
type Options struct {
	// Name is that of the Node object.
	Name string
	// Address and Gateway are IPv4 addresses on the bridge: the node's own, and
	// that of the machine that runs the API server. See Bridge.
	Address, Gateway string
	// Port is the API server's, CA the PEM of its authority, and Token that of an
	// administrator, with which the kubelet asks for a certificate of its own.
	Port  string
	CA    []byte
	Token string
	// Disk is a directory for what outlasts a loss of power. It may be empty.
	Disk string
	// Logs is the directory of the programs' logs.
	Logs string
	// Binaries is the directory with containerd, containerd-shim-runc-v2, ctr,
	// kubelet and dra-driver. Runc is the path of runc.
	Binaries, Runc string
	// Image is the path of an archive, see package image.
	Image string
	// Drivers are the names of the DRA drivers.
	Drivers []string
}

// Node is a node, which can be switched off and on. Its methods must be called
// from one goroutine at a time.
type Node struct {
	// Kubelet can be ended and started at will, and so can the drivers; see Driver.
	Kubelet *process.Process

	options    Options
	init       *exec.Cmd // nil while the node is off
	containerd *process.Process
	drivers    map[string]*process.Process
}

// New prepares the disk of a node that is off.
func New(options Options) (*Node, error) {
	n := &Node{options: options, drivers: make(map[string]*process.Process)}
	if err := n.writeDisk(); err != nil {
		return nil, err
	}
	n.containerd = n.process("containerd", "containerd", "--config", containerdConfigPath)
	n.Kubelet = n.process("kubelet", "kubelet",
		"--config", kubeletConfigPath, "--kubeconfig", kubeletKubeconfig, "--bootstrap-kubeconfig", bootstrapKubeconfig,
		"--hostname-override", options.Name, "--node-ip", options.Address)
	for _, name := range options.Drivers {
		n.drivers[name] = n.process(name, "dra-driver", "--driver", name, "--node", options.Name,
			"--kubeconfig", bootstrapKubeconfig, "--kubelet-directory", kubeletDirectory, "--cdi-directory", cdiDirectory)
	}
	return n, nil
}

// process is a program of the node.
func (n *Node) process(name, binary string, args ...string) *process.Process {
	name = n.options.Name + "-" + name
	return process.New(process.Options{
		Name:    name,
		Command: append([]string{n.binary(binary)}, args...),
		// Its own directory, before those of the machine: containerd looks for programs.
		Environment: []string{"PATH=" + n.options.Binaries + ":" + os.Getenv("PATH")},
		Log:         filepath.Join(n.options.Logs, name+".log"),
		Start:       func(cmd *exec.Cmd) error { return start(n.init.Process.Pid, cmd) },
	})
}

func (n *Node) binary(name string) string { return filepath.Join(n.options.Binaries, name) }

// Name is that of the Node object.
func (n *Node) Name() string { return n.options.Name }

// On switches the node on and returns when its programs run. Whether the node is
// ready is for the API server to say.
func (n *Node) On(ctx context.Context) error {
	if err := n.boot(); err != nil {
		return fmt.Errorf("start node %s: %w", n.options.Name, err)
	}
	if err := connect(n.init.Process.Pid, n.options.Name, n.options.Address, n.options.Gateway); err != nil {
		return fmt.Errorf("connect node %s: %w", n.options.Name, err)
	}
	if err := n.containerd.Start(); err != nil {
		return err
	}
	if err := n.importImage(ctx); err != nil {
		return err
	}
	if err := n.Kubelet.Start(); err != nil {
		return err
	}
	for _, name := range n.options.Drivers {
		if err := n.StartDriver(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// boot starts the first process of the node.
func (n *Node) boot() error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), diskVariable+"="+n.options.Disk)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: isolation.Namespaces}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		return errors.Join(fmt.Errorf("its first process does not get ready: %w", err), cmd.Wait())
	}
	n.init = cmd
	return nil
}

// importImage waits for containerd and gives it the image.
func (n *Node) importImage(ctx context.Context) error {
	var output strings.Builder
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		if err := n.containerd.Ended(); err != nil {
			return false, err
		}
		output.Reset()
		cmd := exec.Command(n.binary("ctr"), "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", n.options.Image)
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := start(n.init.Process.Pid, cmd); err != nil {
			return false, err
		}
		return cmd.Wait() == nil, nil // containerd needs a moment
	})
	if err != nil {
		return fmt.Errorf("import image on node %s: %w: %s", n.options.Name, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// IsOn tells whether the node is on.
func (n *Node) IsOn() bool { return n.init != nil }

// Off takes the power away: everything on the node is gone at once, except for
// the disk. Switching off twice does nothing.
func (n *Node) Off() error {
	if n.init == nil {
		return nil
	}
	all := n.Processes()
	for _, p := range all {
		p.Expect()
	}
	if err := n.init.Process.Kill(); err != nil {
		return fmt.Errorf("stop node %s: %w", n.options.Name, err)
	}
	_ = n.init.Wait() // it was killed
	n.init = nil
	for _, p := range all {
		p.Wait()
	}
	disconnect(n.options.Name)
	return isolation.RemoveCgroups(n.options.Disk)
}

// Processes are the programs of the node.
func (n *Node) Processes() []*process.Process {
	all := []*process.Process{n.containerd, n.Kubelet}
	for _, name := range n.options.Drivers {
		all = append(all, n.drivers[name])
	}
	return all
}

// DriverProcess is a DRA driver as a program, which can be ended at will.
func (n *Node) DriverProcess(name string) *process.Process { return n.drivers[name] }

// StartDriver starts a DRA driver and returns when it takes orders.
func (n *Node) StartDriver(ctx context.Context, name string) error {
	p := n.drivers[name]
	if err := p.Start(); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := n.Driver(name).State(ctx)
		return err == nil, p.Ended()
	})
	if err != nil {
		return fmt.Errorf("wait for driver %s of node %s: %w; the end of its log:\n%s", name, n.options.Name, err, p.Tail(20))
	}
	return nil
}

// Driver gives orders to a DRA driver of the node while it runs.
func (n *Node) Driver(name string) *driver.Client {
	socket := filepath.Join(n.options.Disk, "kubelet", "plugins", name, driver.ControlSocket)
	return driver.NewClient(socket)
}

// CDIFiles are the paths of the CDI files on the node.
func (n *Node) CDIFiles() ([]string, error) {
	return filepath.Glob(fmt.Sprintf("/proc/%d/root%s/*.json", n.init.Process.Pid, cdiDirectory))
}
