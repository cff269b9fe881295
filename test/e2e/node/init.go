//go:build linux

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/device-scheduler/device-scheduler/test/e2e/isolation"
)

// diskVariable tells the first process of a node where the node's disk is, and
// that it is one.
const diskVariable = "E2E_NODE_DISK"

// Directories of the disk, and where programs of the node find them.
var disk = []struct{ name, target string }{
	{"kubelet", "/var/lib/kubelet"},
	{"containerd", "/var/lib/containerd"},
	{"cni", "/var/lib/cni"},
	{"pods", "/var/log/pods"},
}

// hosts is the file of the disk that is /etc/hosts of the node.
const hosts = "hosts"

// RunInit does not return if this process was started as the first process of a
// node. Main functions call it before anything else.
func RunInit() {
	directory := os.Getenv(diskVariable)
	if directory == "" {
		return
	}
	if err := mount(directory); err != nil {
		fmt.Fprintln(os.Stderr, "prepare node:", err)
		os.Exit(1)
	}
	reap(func() { fmt.Println("ready") })
}

// mount gives the node its own /proc, and empty directories wherever its programs
// write; what must last is on the disk.
func mount(directory string) error {
	if err := isolation.PrivateMounts(); err != nil {
		return err
	}
	for _, path := range []string{"/run", "/var/lib", "/var/log"} {
		if err := isolation.Mount("tmpfs", path, "tmpfs"); err != nil {
			return err
		}
	}
	for _, d := range disk {
		source := filepath.Join(directory, d.name)
		if err := errors.Join(os.MkdirAll(source, 0o755), os.MkdirAll(d.target, 0o755)); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if err := isolation.Bind(source, d.target); err != nil {
			return err
		}
	}
	return isolation.Bind(filepath.Join(directory, hosts), "/etc/hosts")
}

// reap waits for orphans, as the first process of any machine does, until it is
// killed.
func reap(ready func()) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	ready()
	for range children {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err != nil || pid == 0 {
				break
			}
		}
	}
}

// start starts a command in the namespaces of the process with the given ID. The
// command is a child of this process all the same.
func start(pid int, cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		// A thread that has changed namespaces is of no further use. It ends with
		// the goroutine, which stays locked to it.
		started <- startHere(pid, cmd)
	}()
	return <-started
}

func startHere(pid int, cmd *exec.Cmd) error {
	runtime.LockOSThread() // for good
	// All are opened before the first is entered: afterwards the path is another.
	var files []*os.File
	defer func() {
		for _, file := range files {
			_ = file.Close() // only read
		}
	}()
	for _, kind := range []string{"pid", "net", "ipc", "uts", "mnt"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		if err != nil {
			return fmt.Errorf("find the node's namespaces: %w", err)
		}
		files = append(files, file)
	}
	// Threads share their working directory, which a mount namespace would change.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("separate the working directory: %w", err)
	}
	for _, file := range files {
		if err := unix.Setns(int(file.Fd()), 0); err != nil {
			return fmt.Errorf("enter namespace %s: %w", file.Name(), err)
		}
	}
	return cmd.Start()
}
