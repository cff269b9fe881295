package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a process may take to end after SIGTERM.
	stopGrace = 20 * time.Second
	// tailBytes is how much of the end of a log is looked at.
	tailBytes = 32 << 10
)

// Options describe a process.
type Options struct {
	// Name is for messages.
	Name string
	// Command is the path of the program and its arguments.
	Command []string
	// Environment is added to this process's own.
	Environment []string
	// Log is the path of the file that gets what the process prints.
	Log string
	// Start starts a command; nil means exec.Cmd.Start.
	Start func(*exec.Cmd) error
}

// Process is a program that can be started several times, once at a time. Safe
// for concurrent use.
type Process struct {
	options Options

	mutex   sync.Mutex
	cmd     *exec.Cmd
	done    chan struct{} // closed when cmd has ended; nil before the first start
	stopped bool          // the end was asked for
}

// New describes a process and does not start it.
func New(options Options) *Process {
	if options.Start == nil {
		options.Start = (*exec.Cmd).Start
	}
	return &Process{options: options}
}

// Name returns the name.
func (p *Process) Name() string { return p.options.Name }

// Start starts the process and does not wait for anything. Further environment
// variables are for this start only.
func (p *Process) Start(environment ...string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.running() {
		return fmt.Errorf("start %s: it is running already", p.options.Name)
	}
	log, err := os.OpenFile(p.options.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: open log: %w", p.options.Name, err)
	}
	defer log.Close() // the process has its own descriptor
	cmd := exec.Command(p.options.Command[0], p.options.Command[1:]...)
	cmd.Env = append(append(os.Environ(), p.options.Environment...), environment...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := p.options.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.options.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.stopped = cmd, done, false
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(done)
	}()
	return nil
}

// running needs p.mutex.
func (p *Process) running() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Running tells whether the process runs.
func (p *Process) Running() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.running()
}

// Ended says how a process ended by itself, with the end of its log; it is nil
// for one that runs, was not started yet, or was told to end.
func (p *Process) Ended() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.done == nil || p.stopped || p.running() {
		return nil
	}
	return fmt.Errorf("%s ended unexpectedly: %s; the end of its log:\n%s", p.options.Name, p.cmd.ProcessState, p.Tail(20))
}

// Expect says that the process is going to end: somebody else sees to it.
func (p *Process) Expect() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.stopped = true
}

// Stop ends the process in order and waits for it. Stopping one that does not
// run does nothing.
func (p *Process) Stop() error { return p.end(syscall.SIGTERM) }

// Kill ends the process as a crash does, and waits for it.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL) }

func (p *Process) end(signal os.Signal) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.running() {
		return nil
	}
	p.stopped = true
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", p.options.Name, err)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.done:
		return nil
	case <-grace.C:
	}
	err := p.cmd.Process.Kill()
	<-p.done
	return errors.Join(fmt.Errorf("end %s: it did not end within %s and was killed", p.options.Name, stopGrace), err)
}

// Wait waits until the process has ended.
func (p *Process) Wait() {
	p.mutex.Lock()
	done := p.done
	p.mutex.Unlock()
	if done != nil {
		<-done
	}
}

// Tail returns the last lines of the log.
func (p *Process) Tail(lines int) string {
	file, err := os.Open(p.options.Log)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
