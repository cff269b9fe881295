//go:build linux

package isolation

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
)

// directoryVariable tells the process inside where its files are, and that it is
// inside.
const directoryVariable = "E2E_DIRECTORY"

// Namespaces are the kinds of namespaces that separate one machine, or what
// passes for one, from another.
const Namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Run calls inside in a new process that runs this program with the same
// arguments in namespaces of its own, with a directory for its files. It returns
// the exit status; when the process is interrupted, everything inside is killed.
// Main functions call it first: in the new process it is Run that calls inside.
func Run(inside func(directory string) int) int {
	if directory := os.Getenv(directoryVariable); directory != "" {
		if err := enter(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: prepare namespaces:", err)
			return 1
		}
		return inside(directory)
	}
	status, err := outside()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return status
}

// outside starts the process inside, waits for it and cleans up behind it.
func outside() (status int, err error) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	directory, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return 1, fmt.Errorf("create temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, RemoveCgroups(filepath.Join(directory, "*")), os.RemoveAll(directory)) }()

	executable, err := os.Executable()
	if err != nil {
		return 1, fmt.Errorf("find own binary: %w", err)
	}
	cmd := exec.Command(executable, os.Args[1:]...)
	cmd.Env = append(os.Environ(), directoryVariable+"="+directory)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// The first process of a process namespace takes all others with it. The
	// kernel sends the signal when the thread ends that started the process: this
	// one is kept until the process is gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: Namespaces, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start in new namespaces: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case received := <-interrupted:
		fmt.Fprintf(os.Stderr, "e2e: %s: ending everything\n", received)
		_ = cmd.Process.Kill() // it may have ended meanwhile
		<-ended
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 1, nil // killed
}

// enter makes the new namespaces usable: mounts stay inside, /proc shows the
// processes inside, /run is empty, and the process can talk to itself.
func enter() error {
	if err := PrivateMounts(); err != nil {
		return err
	}
	if err := Mount("tmpfs", "/run", "tmpfs"); err != nil {
		return err
	}
	if output, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("set up the loopback device: %w: %s", err, output)
	}
	return nil
}

// PrivateMounts separates the mounts of a new mount namespace from those of the
// parent, and mounts /proc for the present process namespace.
func PrivateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return Mount("proc", "/proc", "proc")
}

// Mount mounts a file system without a device.
func Mount(source, target, kind string) error {
	if err := unix.Mount(source, target, kind, unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, target, err)
	}
	return nil
}

// Bind makes a directory or file visible at another path.
func Bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	return nil
}
