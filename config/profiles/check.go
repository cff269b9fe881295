package profiles

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	pluginnames "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/device-scheduler/device-scheduler/config"
)

// point is an extension point by its name in the configuration file.
type point struct {
	name string
	set  func(*kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet
}

// needed are the extension points at which DeviceAllocation must run: without one of them it hands out devices that
// it never checks, reserves, writes or gives back. DynamicResources of Kubernetes 1.37 runs at the same ones.
var needed = []point{
	{"preEnqueue", func(p *kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet { return p.PreEnqueue }},
	{"preFilter", func(p *kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet { return p.PreFilter }},
	{"filter", func(p *kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet { return p.Filter }},
	postFilter,
	{"score", func(p *kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet { return p.Score }},
	{"reserve", func(p *kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet { return p.Reserve }},
	{"preBind", func(p *kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet { return p.PreBind }},
	podGroupPostFilter,
}

var (
	postFilter = point{"postFilter", func(p *kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet {
		return p.PostFilter
	}}
	podGroupPostFilter = point{"podGroupPostFilter", func(p *kubeschedulerconfig.Plugins) kubeschedulerconfig.PluginSet {
		return p.PodGroupPostFilter
	}}
)

// CheckProfiles refuses a configuration under which devices would be handed out wrongly. cfg must have its defaults,
// as kube-scheduler's own loader leaves it; it is not changed. The error names every profile that is wrong and what
// to change in it:
//   - DynamicResources enabled beside DeviceAllocation, in one profile or in two: both allocate the same devices;
//   - a profile that leaves DeviceAllocation out at an extension point that it needs;
//   - PostFilter or PodGroupPostFilter of DeviceAllocation after the one of DefaultPreemption: pods would be evicted
//     for devices that an idle claim holds.
//
// A configuration that does not use DeviceAllocation at all is none of its business.
func CheckProfiles(cfg *kubeschedulerconfig.KubeSchedulerConfiguration) error {
	ours := having(cfg, config.PluginName, needed)
	if len(ours) == 0 {
		return nil
	}
	var errs []error
	for _, profile := range having(cfg, pluginnames.DynamicResources, needed) {
		errs = append(errs, bothEnabled(profile, ours))
	}
	for _, profile := range ours {
		errs = append(errs, missingPoints(profile), preemptionFirst(profile, "PostFilter", postFilter),
			preemptionFirst(profile, "PodGroupPostFilter", podGroupPostFilter))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("check scheduler profiles: %w", err)
	}
	return nil
}

// having returns the profiles that run the plugin at one of the points.
func having(cfg *kubeschedulerconfig.KubeSchedulerConfiguration, plugin string, points []point) []*kubeschedulerconfig.KubeSchedulerProfile {
	var found []*kubeschedulerconfig.KubeSchedulerProfile
	for i := range cfg.Profiles {
		profile := &cfg.Profiles[i]
		if slices.ContainsFunc(points, func(p point) bool { return runs(profile, plugin, p) }) {
			found = append(found, profile)
		}
	}
	return found
}

func runs(profile *kubeschedulerconfig.KubeSchedulerProfile, plugin string, p point) bool {
	return slices.Contains(pluginsAt(profile, p), plugin)
}

func pluginsAt(profile *kubeschedulerconfig.KubeSchedulerProfile, p point) []string {
	if profile.Plugins == nil {
		return nil
	}
	return enabledAt(p.set(profile.Plugins), profile.Plugins.MultiPoint)
}

func bothEnabled(profile *kubeschedulerconfig.KubeSchedulerProfile, ours []*kubeschedulerconfig.KubeSchedulerProfile) error {
	const why = "both allocate the same devices"
	remedy := "add DynamicResources to plugins.multiPoint.disabled and remove it from the enabled lists"
	if slices.Contains(ours, profile) {
		return fmt.Errorf("profile %q enables %s beside %s, but %s: %s of this profile",
			profile.SchedulerName, pluginnames.DynamicResources, config.PluginName, why, remedy)
	}
	var others []string
	for _, other := range ours {
		others = append(others, fmt.Sprintf("%q", other.SchedulerName))
	}
	return fmt.Errorf("profile %q enables %s while %s is enabled in profile %s, but %s: "+
		"%s of profile %q and enable %s there as well, or run the profile in a scheduler of its own with devices of its own",
		profile.SchedulerName, pluginnames.DynamicResources, config.PluginName, strings.Join(others, ", "), why,
		remedy, profile.SchedulerName, config.PluginName)
}

func missingPoints(profile *kubeschedulerconfig.KubeSchedulerProfile) error {
	var missing []string
	for _, p := range needed {
		if !runs(profile, config.PluginName, p) {
			missing = append(missing, p.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("profile %q leaves %s out at %s, where it is needed: "+
		"enable it in plugins.multiPoint and disable neither it nor \"*\" at these points without enabling it there",
		profile.SchedulerName, config.PluginName, strings.Join(missing, ", "))
}

// preemptionFirst refuses a profile in which preemption comes first at a point; method is the one that runs there.
func preemptionFirst(profile *kubeschedulerconfig.KubeSchedulerProfile, method string, p point) error {
	order := pluginsAt(profile, p)
	own := slices.Index(order, config.PluginName)
	preemption := slices.Index(order, pluginnames.DefaultPreemption)
	if own < 0 || preemption < 0 || own < preemption {
		return nil
	}
	return fmt.Errorf("profile %q runs %s of %s after %s, so that pods are evicted for devices that an idle claim holds: "+
		"name %s in plugins.%s.enabled, before %s if that is named there too, in addition to plugins.multiPoint.enabled",
		profile.SchedulerName, method, config.PluginName, pluginnames.DefaultPreemption, config.PluginName, p.name, pluginnames.DefaultPreemption)
}
