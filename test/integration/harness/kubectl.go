package harness

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Kubectl runs the kubectl of the sandbox as administrator, from the top of the
// repository, and returns what it prints. The error has what it complains about.
func (c *Cluster) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	var out, complaints strings.Builder
	command := exec.CommandContext(ctx, c.sandboxBinary, append([]string{"kubectl", "--kubeconfig", c.Kubeconfig()}, args...)...)
	command.Dir, command.Stdin, command.Stdout, command.Stderr = root, stdin, &out, &complaints
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return out.String(), nil
}

// SchedulerBinary is the path of the scheduler under test.
func (c *Cluster) SchedulerBinary() string { return c.schedulerBinary }
