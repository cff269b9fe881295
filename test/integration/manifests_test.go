package integration

import (
	"debug/elf"
	"os"
	"os/exec"
	"strings"
	"testing"

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
			// The pod reads the configuration that the tests run with.
			if !strings.Contains(objects, strings.ReplaceAll(firstComment(tc.config), "\n", "\n    ")) {
				t.Errorf("the ConfigMap does not hold the file from config/")
			}
		})
	}
}

// firstComment is enough of a file to recognise it in a ConfigMap.
func firstComment(file string) string {
	line, _, _ := strings.Cut(file, "\n")
	return line
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
