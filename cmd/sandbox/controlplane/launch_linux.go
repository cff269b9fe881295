package controlplane

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// launches hands work to one operating-system thread that lives as long as this
// process. The kernel sends a child its parent-death signal when the thread that
// made the child ends, not when the process does; a goroutine that is locked to
// its thread and never returns keeps that thread alive.
var launches = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// launch starts cmd so that it dies with this process, and in a process group
// of its own: Ctrl-C in a terminal reaches every process of the foreground
// group, but the control plane has to stop in order.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	launches() <- func() { started <- cmd.Start() }
	return <-started
}
