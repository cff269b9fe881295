package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/device-scheduler/device-scheduler/config"
)

const (
	// stopGrace is how long a scheduler may take to end after SIGTERM.
	stopGrace = 20 * time.Second
	// becameLeader is logged by leader election.
	becameLeader = "Successfully acquired lease"
)

// leaseTimings let a successor take over sooner than in production. Everything
// else of the shipped file stays.
var leaseTimings = map[string]any{"leaseDuration": "5s", "renewDeadline": "4s", "retryPeriod": "500ms"}

// SchedulerOptions say how a scheduler differs from the shipped one.
type SchedulerOptions struct {
	// Config is the shipped file; nil means config.SecondScheduler.
	Config []byte
	// Proxy, if not nil, is used in place of the API server.
	Proxy *Proxy
	// Change changes the configuration, for features that the shipped file
	// leaves off.
	Change func(map[string]any)
	// FeatureGates are set by name; nil means those of the cluster.
	FeatureGates map[string]bool
}

// Scheduler is one process of device-scheduler, which can be ended and started
// again. Its log goes on over all starts. Safe for concurrent use.
//
// When the tests are killed it survives them for a few seconds: the control
// plane dies with them, and a scheduler without its lease ends by itself.
type Scheduler struct {
	binary  string
	args    []string
	logFile string

	mutex   sync.Mutex
	cmd     *exec.Cmd
	done    chan struct{} // closed when cmd has ended
	offset  int64         // where the log of this start begins
	stopped bool          // the end was asked for
}

// NewScheduler writes the files of a scheduler that is not started yet.
func (c *Cluster) NewScheduler(name string, options SchedulerOptions) (*Scheduler, error) {
	kubeconfig := filepath.Join(c.dir, name+".kubeconfig")
	if err := c.writeKubeconfig(kubeconfig, options.Proxy); err != nil {
		return nil, fmt.Errorf("write kubeconfig of %s: %w", name, err)
	}
	file := filepath.Join(c.dir, name+".yaml")
	if options.Config == nil {
		options.Config = config.SecondScheduler
	}
	if err := writeConfig(file, kubeconfig, options); err != nil {
		return nil, fmt.Errorf("write configuration of %s: %w", name, err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	if options.FeatureGates == nil {
		options.FeatureGates = gates
	}
	return &Scheduler{
		binary:  c.schedulerBinary,
		logFile: filepath.Join(c.dir, name+".log"),
		args: append(gateFlag(options.FeatureGates),
			"--config="+file,
			// Not taken from the file's clientConnection.
			"--authentication-kubeconfig="+kubeconfig,
			"--authorization-kubeconfig="+kubeconfig,
			"--bind-address=127.0.0.1",
			"--secure-port="+strconv.Itoa(port),
			"--v=2", // as the Deployment
		),
	}, nil
}

// writeConfig writes the shipped configuration with the kubeconfig in it.
func writeConfig(file, kubeconfig string, options SchedulerOptions) error {
	var shipped map[string]any
	if err := yaml.UnmarshalStrict(options.Config, &shipped); err != nil {
		return err
	}
	if _, found := shipped["clientConnection"]; found {
		return errors.New("the shipped file sets clientConnection: extend the harness")
	}
	shipped["clientConnection"] = map[string]any{"kubeconfig": kubeconfig}
	election, ok := shipped["leaderElection"].(map[string]any)
	if !ok {
		return errors.New("the shipped file has no leaderElection: extend the harness")
	}
	for key, value := range leaseTimings {
		election[key] = value
	}
	if options.Change != nil {
		options.Change(shipped)
	}
	text, err := yaml.Marshal(shipped)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// Launch starts the process and does not wait for anything.
func (s *Scheduler) Launch() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.done != nil && !ended(s.done) {
		return errors.New("start scheduler: it is running already")
	}
	log, err := os.OpenFile(s.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the scheduler's log: %w", err)
	}
	defer log.Close() // the process has its own descriptor
	if s.offset, err = s.logSize(); err != nil {
		return err
	}
	cmd := exec.Command(s.binary, s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start scheduler: %w", err)
	}
	done := make(chan struct{})
	s.cmd, s.done, s.stopped = cmd, done, false
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(done)
	}()
	return nil
}

// Start starts the process and waits until it is the leader.
func (s *Scheduler) Start(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.AwaitLog(ctx, becameLeader)
}

// AwaitLog waits until the log of the present start contains a text.
func (s *Scheduler) AwaitLog(ctx context.Context, text string) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		if !s.Running() {
			return false, errors.New("it ended")
		}
		found, err := s.Logged(text)
		return found, err
	})
	if err != nil {
		return fmt.Errorf("wait for scheduler to log %q: %w; its last lines:\n%s", text, err, s.Tail(s.begin()))
	}
	return nil
}

// Logged tells whether the log of the present start contains a text.
func (s *Scheduler) Logged(text string) (bool, error) {
	log, err := s.Log(s.begin())
	return bytes.Contains(log, []byte(text)), err
}

func (s *Scheduler) begin() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.offset
}

// Running tells whether the process runs.
func (s *Scheduler) Running() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.done != nil && !ended(s.done)
}

// Ended describes a process that ended by itself; it is empty if it runs or was
// stopped.
func (s *Scheduler) Ended() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.done == nil || s.stopped || !ended(s.done) {
		return ""
	}
	return s.cmd.ProcessState.String()
}

func ended(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Stop ends the process in order. A stopped scheduler stays so.
func (s *Scheduler) Stop() error { return s.end(syscall.SIGTERM) }

// Kill ends the process with SIGKILL, as a node that loses power does.
func (s *Scheduler) Kill() error { return s.end(syscall.SIGKILL) }

func (s *Scheduler) end(signal os.Signal) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.done == nil || ended(s.done) {
		return nil
	}
	s.stopped = true
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal scheduler: %w", err)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-s.done:
		return nil
	case <-grace.C:
	}
	err := s.cmd.Process.Kill()
	<-s.done
	return errors.Join(errors.New("stop scheduler: it did not end in time and was killed"), err)
}
