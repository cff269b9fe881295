package profiles

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// filters implements the two points that are compared; it is never run.
type filters struct {
	name string
	fwk.FilterPlugin
	fwk.PostFilterPlugin
}

func (p *filters) Name() string { return p.name }

// essentials implements what no profile may lack.
type essentials struct {
	fwk.QueueSortPlugin
	fwk.BindPlugin
}

func (*essentials) Name() string { return "Essentials" }

// TestEnabledAtAgreesWithFramework compares the expansion with the one of the framework itself on random profiles.
func TestEnabledAtAgreesWithFramework(t *testing.T) {
	metrics.InitMetrics()
	registry := frameworkruntime.Registry{}
	pluginNames := []string{"A", "B", "C", "D", "E"}
	for _, name := range pluginNames {
		registry[name] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
			return &filters{name: name}, nil
		}
	}
	registry["Essentials"] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return &essentials{}, nil }

	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		some := func() []kubeschedulerconfig.Plugin {
			var chosen []kubeschedulerconfig.Plugin
			for _, i := range random.Perm(len(pluginNames))[:random.IntN(len(pluginNames)+1)] {
				chosen = append(chosen, kubeschedulerconfig.Plugin{Name: pluginNames[i]})
			}
			return chosen
		}
		plugins := &kubeschedulerconfig.Plugins{
			QueueSort:  kubeschedulerconfig.PluginSet{Enabled: []kubeschedulerconfig.Plugin{{Name: "Essentials"}}},
			Bind:       kubeschedulerconfig.PluginSet{Enabled: []kubeschedulerconfig.Plugin{{Name: "Essentials"}}},
			MultiPoint: kubeschedulerconfig.PluginSet{Enabled: some(), Disabled: some()},
			Filter:     kubeschedulerconfig.PluginSet{Enabled: some(), Disabled: some()},
			PostFilter: kubeschedulerconfig.PluginSet{Enabled: some(), Disabled: some()},
		}
		if random.IntN(4) == 0 {
			plugins.PostFilter.Disabled = append(plugins.PostFilter.Disabled, kubeschedulerconfig.Plugin{Name: everything})
		}
		ctx, cancel := context.WithCancel(t.Context())
		framework, err := frameworkruntime.NewFramework(ctx, registry, &kubeschedulerconfig.KubeSchedulerProfile{SchedulerName: "random", Plugins: plugins})
		cancel()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		runs := framework.ListPlugins()
		for name, point := range map[string]struct{ own, runs kubeschedulerconfig.PluginSet }{
			"filter":     {plugins.Filter, runs.Filter},
			"postFilter": {plugins.PostFilter, runs.PostFilter},
		} {
			got := enabledAt(point.own, plugins.MultiPoint)
			if diff := cmp.Diff(names(point.runs.Enabled), got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d: %s of %+v with multiPoint %+v (-framework +enabledAt):\n%s", seed, name, point.own, plugins.MultiPoint, diff)
			}
		}
	}
}
