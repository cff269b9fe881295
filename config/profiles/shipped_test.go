package profiles_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/device-scheduler/device-scheduler/config"
	"github.com/device-scheduler/device-scheduler/config/profiles"
)

func TestShippedFiles(t *testing.T) {
	type facts struct{ SchedulerName, LeaseNamespace, LeaseName string }
	tests := map[string]struct {
		file []byte
		want facts
	}{
		"device-scheduler.yaml": {
			file: config.SecondScheduler,
			want: facts{SchedulerName: "device-scheduler", LeaseNamespace: "device-scheduler", LeaseName: "device-scheduler"},
		},
		"replace-default.yaml": {
			file: config.ReplaceDefault,
			want: facts{SchedulerName: "default-scheduler", LeaseNamespace: "kube-system", LeaseName: "kube-scheduler"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, string(tc.file))
			if err := profiles.CheckProfiles(cfg); err != nil {
				t.Errorf("CheckProfiles: %v", err)
			}
			if len(cfg.Profiles) != 1 {
				t.Fatalf("got %d profiles, want 1", len(cfg.Profiles))
			}
			if !cfg.LeaderElection.LeaderElect {
				t.Error("leader election is off")
			}
			got := facts{cfg.Profiles[0].SchedulerName, cfg.LeaderElection.ResourceNamespace, cfg.LeaderElection.ResourceName}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			checkArgs(t, &cfg.Profiles[0], string(tc.file))
			checkWeight(t, &cfg.Profiles[0])
		})
	}
}

// checkArgs checks that the file writes out every arg, each with its default.
func checkArgs(t *testing.T, profile *kubeschedulerconfig.KubeSchedulerProfile, file string) {
	t.Helper()
	for _, pluginConfig := range profile.PluginConfig {
		if pluginConfig.Name != config.PluginName {
			continue
		}
		args, err := config.Decode(pluginConfig.Args)
		if err != nil {
			t.Fatalf("Decode: %v", err)
		}
		if diff := cmp.Diff(config.Defaults(), *args); diff != "" {
			t.Errorf("args (-defaults +shipped):\n%s", diff)
		}
		for _, name := range []string{"filterTimeout", "stepBudget", "selectorErrors", "strategy", "bestFitWeight", "packingWeight"} {
			if !strings.Contains(file, " "+name+": ") {
				t.Errorf("the file does not show the arg %s", name)
			}
		}
		return
	}
	t.Errorf("no pluginConfig for %s", config.PluginName)
}

func checkWeight(t *testing.T, profile *kubeschedulerconfig.KubeSchedulerProfile) {
	t.Helper()
	for _, plugin := range profile.Plugins.MultiPoint.Enabled {
		if plugin.Name == config.PluginName {
			if plugin.Weight != 2 {
				t.Errorf("weight is %d, want 2", plugin.Weight)
			}
			return
		}
	}
	t.Errorf("%s is not enabled in multiPoint", config.PluginName)
}
