package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestParseQueues(t *testing.T) {
	got, err := parseQueues("# HELP scheduler_pending_pods x\n" +
		"scheduler_pending_pods{queue=\"active\"} 0\nscheduler_pending_pods{queue=\"unschedulable\"} 12\nother 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"active": 0, "unschedulable": 12}, got); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	for metrics, want := range map[string]string{
		"other 1\n": "lack scheduler_pending_pods",
		"scheduler_pending_pods{queue=\"active\"} many\n": "parse the scheduler's metric",
	} {
		if _, err := parseQueues(metrics); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", metrics, err, want)
		}
	}
}

// The shipped file goes to the scheduler with nothing changed but the kubeconfig.
func TestWriteSchedulerConfig(t *testing.T) {
	shipped := filepath.Join("..", "..", "..", "config", "device-scheduler.yaml")
	file := filepath.Join(t.TempDir(), "config.yaml")
	got, err := writeSchedulerConfig(shipped, file, "/k")
	if err != nil {
		t.Fatal(err)
	}
	if want := (lease{"device-scheduler", "device-scheduler"}); got != want {
		t.Errorf("got lease %v, want %v", got, want)
	}
	want, have := decodeMap(t, shipped), decodeMap(t, file)
	want["clientConnection"] = map[string]any{"kubeconfig": "/k"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func decodeMap(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}
