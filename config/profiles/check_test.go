package profiles_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/device-scheduler/device-scheduler/config/profiles"
)

// load reads profiles as kube-scheduler does: strictly, with its defaults merged in.
func load(t *testing.T, text string) *kubeschedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatalf("load configuration: %v", err)
	}
	cfg, ok := obj.(*kubeschedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("load configuration: got a %T", obj)
	}
	return cfg
}

func TestCheckProfiles(t *testing.T) {
	const (
		start = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
		good  = `
- schedulerName: good
  plugins:
    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation, weight: 2}]}
    postFilter: {enabled: [{name: DeviceAllocation}]}
    podGroupPostFilter: {enabled: [{name: DeviceAllocation}]}
`
		remedyBoth = `add DynamicResources to plugins.multiPoint.disabled and remove it from the enabled lists of `
		remedyOut  = `where it is needed: enable it in plugins.multiPoint and disable neither it nor "*" at these points without enabling it there`
		tooLate    = ` runs PostFilter of DeviceAllocation after DefaultPreemption, so that pods are evicted for devices that an idle claim holds: ` +
			`name DeviceAllocation in plugins.postFilter.enabled, before DefaultPreemption if that is named there too, in addition to plugins.multiPoint.enabled`
		tooLateForGroups = ` runs PodGroupPostFilter of DeviceAllocation after DefaultPreemption, so that pods are evicted for devices that an idle claim holds: ` +
			`name DeviceAllocation in plugins.podGroupPostFilter.enabled, before DefaultPreemption if that is named there too, in addition to plugins.multiPoint.enabled`
	)
	tests := map[string]struct {
		profiles string
		want     string
	}{
		"stock profile":       {profiles: "\n- schedulerName: default-scheduler\n"},
		"as shipped":          {profiles: good},
		"two of ours":         {profiles: good + "\n- schedulerName: second\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation}]}\n    postFilter: {enabled: [{name: DeviceAllocation}]}\n    podGroupPostFilter: {enabled: [{name: DeviceAllocation}]}\n"},
		"neither in another":  {profiles: good + "\n- schedulerName: no-devices\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}]}\n"},
		"all listed by hand":  {profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DeviceAllocation}, {name: DefaultPreemption}, {name: DefaultBinder}]}\n"},
		"no preemption":       {profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}, {name: DefaultPreemption}], enabled: [{name: DeviceAllocation}]}\n"},
		"star, then by name":  {profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation}]}\n    postFilter: {disabled: [{name: '*'}], enabled: [{name: DeviceAllocation}, {name: DefaultPreemption}]}\n    podGroupPostFilter: {disabled: [{name: '*'}], enabled: [{name: DeviceAllocation}, {name: DefaultPreemption}]}\n"},
		"disabled everywhere": {profiles: good + "\n- schedulerName: inert\n  plugins:\n" + disabledAtEveryPoint},
		"both in one profile": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {enabled: [{name: DeviceAllocation}]}\n    postFilter: {enabled: [{name: DeviceAllocation}]}\n    podGroupPostFilter: {enabled: [{name: DeviceAllocation}]}\n",
			want:     `profile "own" enables DynamicResources beside DeviceAllocation, but both allocate the same devices: ` + remedyBoth + `this profile`,
		},
		"DynamicResources back at one point": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation}]}\n    postFilter: {enabled: [{name: DeviceAllocation}]}\n    podGroupPostFilter: {enabled: [{name: DeviceAllocation}]}\n    preBind: {enabled: [{name: DynamicResources}]}\n",
			want:     `profile "own" enables DynamicResources beside DeviceAllocation, but both allocate the same devices: ` + remedyBoth + `this profile`,
		},
		"DynamicResources only for groups": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation}]}\n    postFilter: {enabled: [{name: DeviceAllocation}]}\n    podGroupPostFilter: {enabled: [{name: DeviceAllocation}, {name: DynamicResources}]}\n",
			want:     `profile "own" enables DynamicResources beside DeviceAllocation, but both allocate the same devices: ` + remedyBoth + `this profile`,
		},
		"DynamicResources in another profile": {
			profiles: good + "\n- schedulerName: default-scheduler\n",
			want: `profile "default-scheduler" enables DynamicResources while DeviceAllocation is enabled in profile "good", but both allocate the same devices: ` +
				remedyBoth + `profile "default-scheduler" and enable DeviceAllocation there as well, or run the profile in a scheduler of its own with devices of its own`,
		},
		"missing at two points": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation}]}\n    postFilter: {enabled: [{name: DeviceAllocation}]}\n    podGroupPostFilter: {enabled: [{name: DeviceAllocation}]}\n    reserve: {disabled: [{name: DeviceAllocation}]}\n    score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity}]}\n",
			want:     `profile "own" leaves DeviceAllocation out at score, reserve, ` + remedyOut,
		},
		"only at postFilter": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}]}\n    postFilter: {disabled: [{name: DefaultPreemption}], enabled: [{name: DeviceAllocation}]}\n",
			want:     `profile "own" leaves DeviceAllocation out at preEnqueue, preFilter, filter, score, reserve, preBind, podGroupPostFilter, ` + remedyOut,
		},
		"appended after preemption": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation}]}\n",
			want:     `profile "own"` + tooLate + "\n" + `profile "own"` + tooLateForGroups,
		},
		"appended after preemption of groups": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation}]}\n    postFilter: {enabled: [{name: DeviceAllocation}]}\n",
			want:     `profile "own"` + tooLateForGroups,
		},
		"named after preemption": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {disabled: [{name: DynamicResources}], enabled: [{name: DeviceAllocation}]}\n    postFilter: {enabled: [{name: DefaultPreemption}, {name: DeviceAllocation}]}\n    podGroupPostFilter: {enabled: [{name: DeviceAllocation}]}\n",
			want:     `profile "own"` + tooLate,
		},
		"everything wrong": {
			profiles: "\n- schedulerName: own\n  plugins:\n    multiPoint: {enabled: [{name: DeviceAllocation}]}\n    filter: {disabled: [{name: DeviceAllocation}]}\n",
			want: `profile "own" enables DynamicResources beside DeviceAllocation, but both allocate the same devices: ` + remedyBoth + "this profile\n" +
				`profile "own" leaves DeviceAllocation out at filter, ` + remedyOut + "\n" +
				`profile "own"` + tooLate + "\n" + `profile "own"` + tooLateForGroups,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, start+tc.profiles)
			before := cfg.DeepCopy()
			got := ""
			if err := profiles.CheckProfiles(cfg); err != nil {
				got = err.Error()
			}
			want := tc.want
			if want != "" {
				want = "check scheduler profiles: " + want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, cfg); diff != "" {
				t.Errorf("configuration changed (-before +after):\n%s", diff)
			}
		})
	}
}

// disabledAtEveryPoint leaves DynamicResources in multiPoint, but nowhere else: it then runs at no point.
const disabledAtEveryPoint = `
    preEnqueue: {disabled: [{name: DynamicResources}]}
    preFilter: {disabled: [{name: DynamicResources}]}
    filter: {disabled: [{name: DynamicResources}]}
    postFilter: {disabled: [{name: DynamicResources}]}
    podGroupPostFilter: {disabled: [{name: DynamicResources}]}
    score: {disabled: [{name: DynamicResources}]}
    reserve: {disabled: [{name: DynamicResources}]}
    preBind: {disabled: [{name: DynamicResources}]}
`

func TestCheckProfilesWithoutPlugins(t *testing.T) {
	cfg := &kubeschedulerconfig.KubeSchedulerConfiguration{Profiles: []kubeschedulerconfig.KubeSchedulerProfile{{SchedulerName: "bare"}}}
	if err := profiles.CheckProfiles(cfg); err != nil {
		t.Errorf("CheckProfiles: %v", err)
	}
}
