package profiles

import (
	"slices"

	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

const everything = "*"

// enabledAt returns the names of the plugins that the scheduler framework runs at an extension point, in the order
// in which it runs them. atPoint is the point's own set, multiPoint the profile's multiPoint set.
//
// The rules are those of the framework (k8s.io/kubernetes/pkg/scheduler/framework/runtime): first the plugins that
// are named at the point and in multiPoint, in the order of the point; then the rest of multiPoint without what the
// point disables; then the rest of the point. Disabling at a point removes only what comes from multiPoint, and the
// disabled list of multiPoint has done its work when the defaults were merged.
//
// Plugins in multiPoint that do not implement the point are in the answer as well. They do not change the order of
// the others; callers ask only for plugins of which they know that they implement the point.
func enabledAt(atPoint, multiPoint kubeschedulerconfig.PluginSet) []string {
	own := names(atPoint.Enabled)
	disabled := names(atPoint.Disabled)
	if slices.Contains(disabled, everything) {
		return own
	}
	expanded := slices.DeleteFunc(names(multiPoint.Enabled), func(name string) bool {
		return slices.Contains(disabled, name)
	})
	var first, last []string
	for _, name := range own {
		if slices.Contains(expanded, name) {
			first = append(first, name)
		} else {
			last = append(last, name)
		}
	}
	middle := slices.DeleteFunc(expanded, func(name string) bool { return slices.Contains(own, name) })
	return slices.Concat(first, middle, last)
}

func names(plugins []kubeschedulerconfig.Plugin) []string {
	var names []string
	for _, p := range plugins {
		names = append(names, p.Name)
	}
	return names
}
