package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// probeInterval is the pause between two looks at whether a component is ready.
	probeInterval = 50 * time.Millisecond
	// probeTimeout bounds one look, so that a half-dead component costs no more.
	probeTimeout = 2 * time.Second
	// stopGrace is how long a component may take to end after SIGTERM.
	stopGrace = 20 * time.Second
)

// Component is one process of the control plane. Its port, data, log file and
// flags stay the same over all its restarts. Safe for concurrent use.
type Component struct {
	name    string
	dir     string // working directory
	binary  string
	args    []string // without the component's name
	env     []string // on top of this process's environment
	logFile string

	// prepare, if set, runs before each start.
	prepare func(ctx context.Context) error
	// probe returns nil once the component serves.
	probe func(ctx context.Context) error
	// died is called with a readable reason when the process ends unasked.
	died func(error)

	mu      sync.Mutex
	process *process // nil while stopped
}

// process is one run of a component.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and err is set
	err  error         // how it ended; read only after done

	mu       sync.Mutex
	expected bool // its end was asked for, or is reported by Start
}

// Name returns the component's name, which is also the binary's first argument.
func (c *Component) Name() string { return c.name }

// LogFile returns the path of the component's log. Restarts append to it.
func (c *Component) LogFile() string { return c.logFile }

// PID returns the process ID, or 0 while the component is not running.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return 0
	}
	return c.process.cmd.Process.Pid
}

// running needs c.mu.
func (c *Component) running() bool {
	if c.process == nil {
		return false
	}
	select {
	case <-c.process.done:
		return false
	default:
		return true
	}
}

// Start runs the component and returns once it is ready. When the process ends
// early, or ctx ends before it is ready, the process is gone afterwards and the
// error, a *StartError, carries the last lines of the log.
func (c *Component) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running() {
		return fmt.Errorf("start %s: it is running already", c.name)
	}
	if c.prepare != nil {
		if err := c.prepare(ctx); err != nil {
			return fmt.Errorf("prepare %s: %w", c.name, err)
		}
	}
	logStart, err := c.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	err = c.awaitReady(ctx)
	if err == nil {
		c.process.mu.Lock()
		c.process.expected = false // from here on its end is news
		c.process.mu.Unlock()
		if !c.running() {
			err = fmt.Errorf("it was ready and ended: %s", c.process.cmd.ProcessState)
		}
	}
	if err != nil {
		err = errors.Join(err, c.process.end(syscall.SIGKILL))
		return &StartError{Component: c.name, LogFile: c.logFile, LogTail: LogTail(c.logFile, logStart), Err: err}
	}
	return nil
}

// launch starts the process and returns where in the log file its own lines begin.
func (c *Component) launch() (logStart int64, err error) {
	log, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open log: %w", err)
	}
	// The child has its own descriptor; ours is of no more use.
	defer func() { err = errors.Join(err, log.Close()) }()
	info, err := log.Stat()
	if err != nil {
		return 0, fmt.Errorf("open log: %w", err)
	}

	cmd := exec.Command(c.binary, append([]string{c.name}, c.args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := launch(cmd); err != nil {
		return 0, err
	}
	p := &process{cmd: cmd, done: make(chan struct{}), expected: true}
	c.process = p
	go func() {
		p.err = cmd.Wait()
		close(p.done)
		p.mu.Lock()
		expected := p.expected
		p.mu.Unlock()
		if !expected {
			c.died(fmt.Errorf("%s ended unexpectedly (%s); the end of %s:\n%s",
				c.name, cmd.ProcessState, c.logFile, LogTail(c.logFile, info.Size())))
		}
	}()
	return info.Size(), nil
}

// awaitReady polls until the component is ready, ends, or ctx does.
func (c *Component) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	lastErr := errors.New("not probed yet")
	for {
		select {
		case <-c.process.done:
			return fmt.Errorf("it ended at once: %s", c.process.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("it did not become ready: %w; last answer: %w", context.Cause(ctx), lastErr)
		case <-ticker.C:
		}
		probeCtx, cancel := context.WithTimeout(ctx, probeTimeout)
		err := c.probe(probeCtx)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil { // an error caused by ctx itself says nothing
			lastErr = err
		}
	}
}

// Stop asks the component to end, waits for it, and kills it when it takes too
// long. Stopping a stopped component does nothing.
func (c *Component) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return nil
	}
	if err := c.process.end(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	return nil
}

// Kill ends the component with SIGKILL, as a crash or a power cut would, and
// returns when it is gone.
func (c *Component) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return fmt.Errorf("kill %s: it is not running", c.name)
	}
	if err := c.process.end(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", c.name, err)
	}
	return nil
}

// Restart stops the component in order, if it runs, and starts it again.
func (c *Component) Restart(ctx context.Context) error {
	if err := c.Stop(); err != nil {
		return err
	}
	return c.Start(ctx)
}

// end sends the signal and waits until the process is gone; a process that
// outstays stopGrace is killed.
func (p *process) end(signal os.Signal) error {
	p.mu.Lock()
	p.expected = true
	p.mu.Unlock()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.done:
		return nil
	case <-grace.C:
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}
