package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
)

const (
	// schedulerStopGrace is how long the scheduler may take to end after SIGTERM.
	schedulerStopGrace = 20 * time.Second
	schedulerLog       = "scheduler.log"
)

// lease names the object that the scheduler's replicas take turns with.
type lease struct{ namespace, name string }

// scheduler is the running process under demonstration.
type scheduler struct {
	cmd     *exec.Cmd
	logFile string
	port    int
	client  *http.Client
	ended   chan struct{} // closed when the process is gone
}

// writeSchedulerConfig writes the shipped configuration with nothing but the
// path of the kubeconfig added, and returns the lease that it names.
func writeSchedulerConfig(shipped, file, kubeconfig string) (lease, error) {
	text, err := os.ReadFile(shipped)
	if err != nil {
		return lease{}, fmt.Errorf("read scheduler configuration: %w: name it with --config", err)
	}
	var config map[string]any
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return lease{}, fmt.Errorf("decode scheduler configuration %s: %w", shipped, err)
	}
	connection, _ := config["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = kubeconfig
	config["clientConnection"] = connection

	election, _ := config["leaderElection"].(map[string]any)
	namespace, _ := election["resourceNamespace"].(string)
	name, _ := election["resourceName"].(string)
	if namespace == "" || name == "" {
		return lease{}, fmt.Errorf("read scheduler configuration %s: leaderElection.resourceNamespace and resourceName are needed", shipped)
	}
	if text, err = yaml.Marshal(config); err != nil {
		return lease{}, fmt.Errorf("encode scheduler configuration: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return lease{}, fmt.Errorf("write scheduler configuration: %w", err)
	}
	return lease{namespace, name}, nil
}

// startScheduler starts the binary; its files go into dir. The caller must stop it.
func startScheduler(binary, dir, configFile, kubeconfig string) (*scheduler, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &scheduler{logFile: filepath.Join(dir, schedulerLog), port: port, ended: make(chan struct{})}
	log, err := os.OpenFile(s.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the scheduler's log: %w", err)
	}
	defer log.Close() // the process has its own descriptor
	s.cmd = exec.Command(binary,
		"--config="+configFile,
		// These two are not taken from the file's clientConnection.
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port),
		"--cert-dir="+dir,
		"--v=2",
	)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// Ctrl-C in a terminal reaches the whole process group; the scheduler has to
	// end before the API server does. Should this process be killed, the control
	// plane dies with it and the scheduler ends as soon as it loses its lease.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start scheduler: %w: build it with \"make bin/device-scheduler\" or name it with --scheduler", err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended is in cmd.ProcessState
		close(s.ended)
	}()
	return s, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

func (s *scheduler) running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// died words an end that nobody asked for. Call it after ended is closed.
func (s *scheduler) died() error {
	return fmt.Errorf("the scheduler ended unexpectedly (%s); the end of %s:\n%s", s.cmd.ProcessState, s.logFile, controlplane.LogTail(s.logFile, 0))
}

// stop ends the process and waits for it; one that takes too long is killed.
func (s *scheduler) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop scheduler: %w", err)
	}
	grace := time.NewTimer(schedulerStopGrace)
	defer grace.Stop()
	select {
	case <-s.ended:
		return nil
	case <-grace.C:
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill scheduler: %w", err)
	}
	<-s.ended
	return nil
}

// connect prepares queues. The scheduler must serve already: it makes its
// certificate at the start.
func (s *scheduler) connect(config *rest.Config, dir string) error {
	client, err := rest.HTTPClientFor(&rest.Config{
		BearerToken:     config.BearerToken,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "kube-scheduler.crt")},
	})
	if err != nil {
		return fmt.Errorf("connect to the scheduler's metrics: %w", err)
	}
	s.client = client
	return nil
}

// queues returns how many pods wait in each of the scheduler's queues.
func (s *scheduler) queues(ctx context.Context) (map[string]int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", s.port), nil)
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's metrics: %w", err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's metrics: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's metrics: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the scheduler's metrics: %s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return parseQueues(string(text))
}

// parseQueues finds lines like `scheduler_pending_pods{queue="active"} 2`.
func parseQueues(metrics string) (map[string]int, error) {
	queues := map[string]int{}
	for line := range strings.Lines(metrics) {
		rest, ok := strings.CutPrefix(line, `scheduler_pending_pods{queue="`)
		if !ok {
			continue
		}
		queue, value, _ := strings.Cut(rest, `"} `)
		pods, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return nil, fmt.Errorf("parse the scheduler's metric %q: %w", strings.TrimSpace(line), err)
		}
		queues[queue] = int(pods)
	}
	if len(queues) == 0 {
		return nil, errors.New("the scheduler's metrics lack scheduler_pending_pods")
	}
	return queues, nil
}
