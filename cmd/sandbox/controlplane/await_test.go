package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
)

// patience bounds every wait for the control plane. It only matters for tests
// that fail, and is shorter than a node lease, so that a test that would have to
// sit one out fails too.
const patience = 30 * time.Second

// await waits until check returns "", and else fails with its last answer.
func await(t *testing.T, what string, check func(ctx context.Context) string) {
	t.Helper()
	last := "nothing was observed"
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == "", nil
		})
	if err != nil {
		t.Fatalf("wait for %s: %v; last seen: %s", what, err, last)
	}
}

// start starts a control plane that the test's end stops.
func start(t *testing.T, options controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	options.Binary = sandboxBinary(t)
	if options.Out == nil {
		options.Out = t.Output()
	}
	cp, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// alive tells whether a process exists.
func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// exists tells whether a file or directory exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// buffer is a bytes.Buffer that a test reads while a process writes.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
