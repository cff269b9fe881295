package controlplane_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
)

// A script in place of the binary: what Start does with a component that fails
// needs no real one.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sandbox")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStartNamesTheComponentAndItsLastWords(t *testing.T) {
	dir := t.TempDir()
	options := controlplane.Options{Dir: dir, Binary: script(t, `
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "$1 line $i"; done
exit 3`)}
	for range 2 { // the second time the log has lines of the first
		_, err := controlplane.Start(t.Context(), options)
		var startErr *controlplane.StartError
		if !errors.As(err, &startErr) {
			t.Fatalf("got error %v, want a StartError", err)
		}
		want := "start etcd: it ended at once: exit status 3; the end of " + filepath.Join(dir, "logs", "etcd.log") + ":\n" +
			"etcd line 6\netcd line 7\netcd line 8\netcd line 9\netcd line 10\netcd line 11\netcd line 12\netcd line 13\n" +
			"etcd line 14\netcd line 15\netcd line 16\netcd line 17\netcd line 18\netcd line 19\netcd line 20"
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
	}
}

func TestStartShowsNoOldLog(t *testing.T) {
	dir := t.TempDir()
	_, err := controlplane.Start(t.Context(), controlplane.Options{Dir: dir, Binary: script(t, "echo old; exit 1")})
	if err == nil {
		t.Fatal("got no error")
	}
	_, err = controlplane.Start(t.Context(), controlplane.Options{Dir: dir, Binary: script(t, "exit 1")})
	if want := "start etcd: it ended at once: exit status 1; it logged nothing"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %q", err, want)
	}
}

// Losing a port to somebody else is answered with other ports, but not forever.
func TestStartPicksOtherPorts(t *testing.T) {
	var out buffer
	seen := filepath.Join(t.TempDir(), "seen")
	_, err := controlplane.Start(t.Context(), controlplane.Options{Out: &out, Binary: script(t, `
for arg in "$@"; do case "$arg" in --listen-client-urls=*) echo "$arg" >> `+seen+`;; esac; done
echo "listen tcp 127.0.0.1:1: bind: address already in use"; exit 1`)})
	if err == nil {
		t.Fatal("got no error")
	}
	line := "etcd: its port was taken meanwhile, starting over with other ports\n"
	if diff := cmp.Diff(line+line, out.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]bool{}
	for url := range strings.Lines(string(text)) {
		ports[url] = true
	}
	if len(ports) != 3 {
		t.Errorf("got ports %v, want three different ones", ports)
	}
}

func TestStartRefuses(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails := script(t, "exit 1")
	tests := map[string]struct {
		options controlplane.Options
		want    string
	}{
		"no binary":         {controlplane.Options{}, "neither Options.Binary nor SANDBOX_BINARY is set: build it with"},
		"missing binary":    {controlplane.Options{Binary: "/nonexistent"}, "find sandbox binary: stat /nonexistent"},
		"not executable":    {controlplane.Options{Binary: filepath.Join(foreign, "thesis.txt")}, "is not an executable file"},
		"foreign directory": {controlplane.Options{Binary: fails, Dir: foreign}, "it is not empty and was not made by the sandbox (it has no file \"sandbox\"): name an empty or new directory"},
		"half a flag":       {controlplane.Options{Binary: fails, APIServerFlags: []string{"--v", "2"}}, `check APIServerFlags: "2" is not a flag`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(controlplane.BinaryVariable, "")
			_, err := controlplane.Start(t.Context(), tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
	entries, err := os.ReadDir(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the foreign directory was written to: %v", entries)
	}
}

// A second start in the same directory is refused while the first one runs, and
// continues the cluster afterwards, with other ports and credentials.
func TestStartContinuesADirectory(t *testing.T) {
	ctx := t.Context()
	options := controlplane.Options{
		Dir: filepath.Join(t.TempDir(), "new"), WithoutKwok: true, WithoutControllerManager: true,
	}
	first := start(t, options)
	client := kubernetes.NewForConfigOrDie(first.RESTConfig())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if first.Component(controlplane.Kwok) != nil || len(first.Components()) != 2 {
		t.Errorf("got components %v, want etcd and kube-apiserver alone", first.Components())
	}

	options.Binary = sandboxBinary(t)
	_, err := controlplane.Start(ctx, options)
	if err == nil || !strings.Contains(err.Error(), "another sandbox is running in it") {
		t.Errorf("second start: got error %v", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	second := start(t, options)
	client = kubernetes.NewForConfigOrDie(second.RESTConfig())
	if _, err := client.CoreV1().Nodes().Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("node of the first run: %v", err)
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	if !exists(second.Kubeconfig()) {
		t.Error("Stop removed a directory that the caller named")
	}
}

// Whatever started before the failure is stopped, and the temporary directory
// with it.
func TestStartCleansUpAfterAFailure(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out buffer
	_, err := controlplane.Start(t.Context(), controlplane.Options{
		Binary: sandboxBinary(t), Out: &out, APIServerFlags: []string{"--no-such-flag=1"},
	})
	if err == nil || !strings.HasPrefix(err.Error(), "start kube-apiserver: it ended at once: exit status 1") ||
		!strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got error %v", err)
	}
	if !strings.HasSuffix(out.String(), "etcd: stopped\n") {
		t.Errorf("got progress %q, want it to end with etcd's stop", out.String())
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "sandbox-*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
