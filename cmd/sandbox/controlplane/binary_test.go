package controlplane_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
)

var buildDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		if err := os.RemoveAll(buildDir); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) {
	var err error
	if buildDir, err = os.MkdirTemp("", "sandbox-binary-"); err != nil {
		return "", err
	}
	binary := filepath.Join(buildDir, "sandbox")
	cmd := exec.Command("go", "build", "-o", binary, "github.com/device-scheduler/device-scheduler/cmd/sandbox")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return binary, cmd.Run()
})

// sandboxBinary returns the binary that SANDBOX_BINARY names, or builds one.
func sandboxBinary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a real control plane")
	}
	if binary := os.Getenv(controlplane.BinaryVariable); binary != "" {
		return binary
	}
	t.Logf("%s is not set: building cmd/sandbox, which takes minutes when nothing is cached", controlplane.BinaryVariable)
	binary, err := build()
	if err != nil {
		t.Fatalf("build cmd/sandbox: %v", err)
	}
	return binary
}
