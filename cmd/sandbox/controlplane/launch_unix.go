//go:build unix && !linux

package controlplane

import (
	"os/exec"
	"syscall"
)

// launch starts cmd in a process group of its own: Ctrl-C in a terminal reaches
// every process of the foreground group, but the control plane has to stop in
// order. Outside Linux nothing ends the child when this process is killed with
// SIGKILL; the next start in the same directory then reports the locked data.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
