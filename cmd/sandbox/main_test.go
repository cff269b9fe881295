package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
)

// run executes the command line in this process. It must not name a component.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.Execute()
	return out.String(), err
}

// What `sandbox hardware` prints can be handed to `sandbox up --nodes`.
func TestHardwarePrintsWhatUpReads(t *testing.T) {
	printed, err := run(t, "hardware", "demo")
	if err != nil {
		t.Fatal(err)
	}
	got, err := hardware.Load(strings.NewReader(printed), "printed")
	if err != nil {
		t.Fatal(err)
	}
	want, err := hardware.Cluster("demo")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestCommandLineErrors(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown hardware": {[]string{"hardware", "abacus"}, `find hardware profile "abacus": there are edge`},
		"unknown cluster":  {[]string{"up", "--hardware", "abacus"}, `find simulated cluster "abacus": there are alpha, demo`},
		"missing file":     {[]string{"up", "--nodes", "/nonexistent.yaml"}, "read hardware description: open /nonexistent.yaml"},
		"bad gate":         {[]string{"up", "--feature-gates", "A=true,B=maybe"}, `"B=maybe" is not of the form Name=true`},
		"stray argument":   {[]string{"up", "now"}, `unknown command "now"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestGates(t *testing.T) {
	var got map[string]bool
	flag := gates{&got}
	for _, text := range []string{"A=true,B=false", "C=1", "A=false"} {
		if err := flag.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]bool{"A": false, "B": false, "C": true}, got); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
}

// Flags that Kubernetes' libraries add to the process do not show in our help.
func TestHelpShowsOwnFlagsOnly(t *testing.T) {
	help, err := run(t, "up", "--help")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(help, "--hardware") || strings.Contains(help, "--version") {
		t.Errorf("got help\n%s", help)
	}
}
