package integration

import (
	"debug/elf"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/device-scheduler/device-scheduler/config"
)

// TestManifests builds both deployments as a user would and has the API server
// check every object of them, admission and unknown fields included.
func TestManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		dir, config string
	}{
		"second scheduler":           {dir: "manifests/base", config: string(config.SecondScheduler)},
		"instead of the default one": {dir: "manifests/overlays/replace-default", config: string(config.ReplaceDefault)},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := cluster.Kubectl(t.Context(), nil, "kustomize", tc.dir)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := cluster.Kubectl(t.Context(), strings.NewReader(objects),
				"apply", "--dry-run=server", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"deployment.apps/device-scheduler", "poddisruptionbudget.policy/device-scheduler", "configmap/device-scheduler-config", "clusterrole.rbac.authorization.k8s.io/"} {
				if !strings.Contains(answer, want) {
					t.Errorf("the API server has not been asked about %s:\n%s", want, answer)
				}
			}
			if !holds(t, objects, tc.config) {
				t.Errorf("no ConfigMap holds the file from config/ that the tests run with")
			}
		})
	}
}

// holds tells whether one of the objects is a ConfigMap with the file in it.
func holds(t *testing.T, objects, file string) bool {
	t.Helper()
	for document := range strings.SplitSeq(objects, "\n---\n") {
		var configMap corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(document), &configMap); err != nil {
			t.Fatal(err)
		}
		if configMap.Kind == "ConfigMap" && slices.Contains(slices.Collect(maps.Values(configMap.Data)), file) {
			return true
		}
	}
	return false
}

// TestStaticBinary starts the scheduler as the image does: an image without
// anything else has no dynamic linker.
func TestStaticBinary(t *testing.T) {
	binary, err := elf.Open(cluster.SchedulerBinary())
	if err != nil {
		t.Skipf("no ELF binary on this system: %v", err)
	}
	defer binary.Close()
	for _, program := range binary.Progs {
		if program.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic linker")
		}
	}
	command := exec.Command(cluster.SchedulerBinary(), "--version")
	command.Env = []string{}
	command.Dir = os.TempDir()
	out, err := command.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "device-scheduler ") {
		t.Errorf("got %q, error %v", out, err)
	}
}
