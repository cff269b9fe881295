package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// up runs `sandbox up` and returns once it says that it is up.
func up(t *testing.T, args ...string) (*exec.Cmd, *buffer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), sandboxBinary(t), append([]string{"up"}, args...)...)
	out := &buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "sandbox up", func(context.Context) string {
		if !strings.Contains(out.String(), "The control plane is up.") {
			return fmt.Sprintf("output %q", out)
		}
		return ""
	})
	return cmd, out
}

// An interrupt ends `sandbox up` in order and without an error.
func TestUpStopsInOrder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd, out := up(t, "--hardware", "demo")
	kubeconfig := regexp.MustCompile(`KUBECONFIG=(\S+)`).FindStringSubmatch(out.String())
	if kubeconfig == nil || !exists(kubeconfig[1]) {
		t.Fatalf("no kubeconfig file in %q", out)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seconds := regexp.MustCompile(`in [0-9.]+s`)
	got := strings.Split(strings.TrimSpace(seconds.ReplaceAllString(out.String(), "in Ns")), "\n")
	want := []string{
		"etcd: ready in Ns", "kube-apiserver: ready in Ns", "kube-controller-manager: ready in Ns", "kwok: ready in Ns",
		"hardware: 9 nodes, 14 ResourceSlices, 8 DeviceClasses",
		"", "The control plane is up. In another terminal:", "", "    export KUBECONFIG=" + kubeconfig[1], "", "Ctrl-C stops it.", "",
		"kwok: stopped", "kube-controller-manager: stopped", "kube-apiserver: stopped", "etcd: stopped",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A wrong description costs no start and names the place.
func TestUpReadsDescriptionsFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machines.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capcity: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), sandboxBinary(t), "up", "--nodes", file).CombinedOutput()
	want := "sandbox: decode document 1 of " + file + `: strict decoding error: unknown field "status.capcity"` + "\n"
	if err == nil || string(out) != want {
		t.Errorf("got error %v and output %q, want %q", err, out, want)
	}
}

// On Linux the components die with their parent even when it cannot stop them.
func TestComponentsDieWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs parent-death signals")
	}
	dir := filepath.Join(t.TempDir(), "sandbox")
	cmd, _ := up(t, "--dir", dir, "--without-kwok", "--without-controller-manager")
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) != 2 {
		t.Errorf("got children %v, want etcd and kube-apiserver", children)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("killed, but ended without an error")
	}
	await(t, "children to die", func(context.Context) string {
		for _, pid := range children {
			// A zombie that nobody has reaped yet is dead enough.
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if err == nil && !strings.Contains(string(status), "State:\tZ") {
				return fmt.Sprintf("process %d is alive", pid)
			}
		}
		return ""
	})
}

func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, pid)
		}
	}
	return children
}
