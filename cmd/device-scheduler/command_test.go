package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/device-scheduler/device-scheduler/config"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation"
)

func TestCheck(t *testing.T) {
	shipped := string(config.SecondScheduler)
	for name, tc := range map[string]struct {
		file string // content; empty means no file
		want string // part of the error; empty means none
	}{
		"second scheduler":   {file: shipped},
		"replaces default":   {file: string(config.ReplaceDefault)},
		"no file":            {want: "without --config no profile would use the plugin DeviceAllocation"},
		"not enabled at all": {file: "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"},
		"no configuration":   {file: "kind: Pod\napiVersion: v1\n", want: "no kind \"Pod\""},
		"both plugins": {
			file: strings.Replace(shipped, "profiles:\n", "profiles:\n- schedulerName: other\n", 1),
			want: "DynamicResources",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := ""
			if tc.file != "" {
				file = filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := check(file)
			if tc.want == "" && err != nil {
				t.Fatalf("check refuses: %v", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got error %v, want one with %q", err, tc.want)
			}
			if err != nil && file != "" && !strings.Contains(err.Error(), file) {
				t.Errorf("error %v does not name the file %s", err, file)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	command := app.NewSchedulerCommand(app.WithPlugin(deviceallocation.Name, deviceallocation.Factory()))
	introduce(command)
	guard(command)
	var out strings.Builder
	command.SetOut(&out)
	command.SetArgs([]string{"--version"})
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "device-scheduler "+version+" (Kubernetes ") {
		t.Errorf("got %q", got)
	}
}

// unused are the feature gates before a command has made flags of them.
var unused = utilfeature.DefaultMutableFeatureGate.DeepCopy()

// TestSetDefaults: a gate that Kubernetes does not know any more, or has locked,
// must not go unnoticed.
func TestSetDefaults(t *testing.T) {
	gates := unused
	if err := setDefaults(gates); err != nil {
		t.Fatal(err)
	}
	for _, name := range config.FeatureGates {
		if utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name)) {
			t.Errorf("%s is on by default in Kubernetes: it need not be set", name)
		}
		if !gates.Enabled(featuregate.Feature(name)) {
			t.Errorf("%s is off", name)
		}
		if err := gates.Set(name + "=false"); err != nil || gates.Enabled(featuregate.Feature(name)) {
			t.Errorf("%s cannot be turned off: %v", name, err)
		}
	}
}
