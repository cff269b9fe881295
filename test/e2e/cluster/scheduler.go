//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/device-scheduler/device-scheduler/test/e2e/process"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// accountDirectory is where a container finds the credential of its
// ServiceAccount. Programs in a cluster look nowhere else.
const accountDirectory = "/run/secrets/kubernetes.io/serviceaccount"

// repository is the top of the repository, seen from the directory of the tests.
const repository = "../.."

// Where the Deployment mounts the shipped configuration, and where it is in the
// repository.
const (
	mountedConfig = "/etc/device-scheduler"
	shippedConfig = "config"
)

// Scheduler is device-scheduler as its Deployment runs it: the arguments of the
// manifest, the shipped configuration as it is, and the credential of the
// ServiceAccount where a container has it.
type Scheduler struct {
	*process.Process
	cluster *Cluster
	log     string
}

func newScheduler(c *Cluster) (*Scheduler, error) {
	root, err := filepath.Abs(repository)
	if err != nil {
		return nil, fmt.Errorf("find repository: %w", err)
	}
	args, err := deployedArguments(root)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{cluster: c, log: filepath.Join(c.directory, "scheduler.log")}
	s.Process = process.New(process.Options{
		Name: "device-scheduler", Command: append([]string{c.SchedulerBinary()}, args...), Log: s.log,
	})
	return s, nil
}

// deployedArguments reads the arguments of the Deployment. What is mounted there
// is read from the repository here.
func deployedArguments(root string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(root, "manifests", "base", "deployment.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(content, &deployment); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	args := deployment.Spec.Template.Spec.Containers[0].Args
	for i := range args {
		args[i] = strings.Replace(args[i], mountedConfig, filepath.Join(root, shippedConfig), 1)
	}
	return args, nil
}

// Start starts the scheduler in front of the API server.
func (s *Scheduler) Start() error {
	config := s.cluster.RESTConfig()
	return s.start(config.Host, config.CAData)
}

// StartBehind starts the scheduler behind a proxy.
func (s *Scheduler) StartBehind(proxy *harness.Proxy) error { return s.start(proxy.URL(), proxy.CA()) }

// start gives the scheduler what it would find in a container, and starts it.
func (s *Scheduler) start(server string, ca []byte) error {
	host, port, err := hostPort(server)
	if err != nil {
		return fmt.Errorf("start scheduler: %w", err)
	}
	err = os.MkdirAll(accountDirectory, 0o700)
	for name, content := range map[string][]byte{
		"token": []byte(s.cluster.Token()), "ca.crt": ca, "namespace": []byte("device-scheduler"),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(accountDirectory, name), content, 0o600))
	}
	if err != nil {
		return fmt.Errorf("mount the scheduler's credential: %w", err)
	}
	return s.Process.Start("KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
}

// Alarms are the lines of the scheduler's log that must not be there.
func (s *Scheduler) Alarms() ([]string, error) {
	content, err := os.ReadFile(s.log)
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's log: %w", err)
	}
	return harness.Alarming(content, false), nil
}
