package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/device-scheduler/device-scheduler/config"
)

func jsonArgs(raw string) *runtime.Unknown {
	return &runtime.Unknown{Raw: []byte(raw), ContentType: runtime.ContentTypeJSON}
}

func yamlArgs(raw string) *runtime.Unknown {
	return &runtime.Unknown{Raw: []byte(raw), ContentType: runtime.ContentTypeYAML}
}

func TestDecodeValid(t *testing.T) {
	with := func(change func(*config.DeviceAllocationArgs)) config.DeviceAllocationArgs {
		args := config.Defaults()
		change(&args)
		return args
	}
	every := with(func(a *config.DeviceAllocationArgs) {
		a.FilterTimeout = metav1.Duration{Duration: 90 * time.Second}
		a.StepBudget = 7
		a.BindingTimeout = metav1.Duration{Duration: time.Second}
		a.SelectorErrors = config.SelectorErrorsFail
		a.Objective = config.ObjectiveArgs{Strategy: config.StrategySpread, BestFitWeight: 0, PackingWeight: 100}
	})
	tests := map[string]struct {
		obj  runtime.Object
		want config.DeviceAllocationArgs
	}{
		"no args":            {obj: nil, want: config.Defaults()},
		"nil pointer":        {obj: (*runtime.Unknown)(nil), want: config.Defaults()},
		"nothing in it":      {obj: &runtime.Unknown{}, want: config.Defaults()},
		"null":               {obj: jsonArgs(`null`), want: config.Defaults()},
		"empty object":       {obj: jsonArgs(` {} `), want: config.Defaults()},
		"only comments":      {obj: yamlArgs("# nothing\n"), want: config.Defaults()},
		"null field":         {obj: jsonArgs(`{"stepBudget":null,"objective":null}`), want: config.Defaults()},
		"type named":         {obj: jsonArgs(`{"apiVersion":"config.device-scheduler.io/v1alpha1","kind":"DeviceAllocationArgs"}`), want: config.Defaults()},
		"closing separator":  {obj: yamlArgs("stepBudget: 100000\n---\n"), want: config.Defaults()},
		"zero is no default": {obj: jsonArgs(`{"filterTimeout":"0s"}`), want: with(func(a *config.DeviceAllocationArgs) { a.FilterTimeout.Duration = 0 })},
		"zero weight":        {obj: jsonArgs(`{"objective":{"packingWeight":0}}`), want: with(func(a *config.DeviceAllocationArgs) { a.Objective.PackingWeight = 0 })},
		"every field, JSON": {
			obj:  jsonArgs(`{"filterTimeout":"1m30s","stepBudget":7,"bindingTimeout":"1s","selectorErrors":"Fail","objective":{"strategy":"Spread","bestFitWeight":0,"packingWeight":100}}`),
			want: every,
		},
		"every field, YAML": {
			obj:  yamlArgs("filterTimeout: 1m30s\nstepBudget: 7\nbindingTimeout: 1s\nselectorErrors: Fail\nobjective:\n  strategy: Spread\n  bestFitWeight: 0\n  packingWeight: 100\n"),
			want: every,
		},
		"no content type, JSON": {obj: &runtime.Unknown{Raw: []byte(`{"stepBudget":7}`)}, want: with(func(a *config.DeviceAllocationArgs) { a.StepBudget = 7 })},
		"no content type, YAML": {obj: &runtime.Unknown{Raw: []byte("stepBudget: 7\n")}, want: with(func(a *config.DeviceAllocationArgs) { a.StepBudget = 7 })},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := config.Decode(tc.obj)
			if err != nil {
				t.Fatalf("Decode: %v", err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := map[string]struct {
		obj  runtime.Object
		want string
	}{
		"unknown field": {
			obj:  jsonArgs(`{"budget":5}`),
			want: `budget: Forbidden: unknown field: the fields here are apiVersion, bindingTimeout, filterTimeout, kind, objective, selectorErrors, stepBudget`,
		},
		"unknown nested field": {
			obj:  jsonArgs(`{"objective":{"weight":5}}`),
			want: `objective.weight: Forbidden: unknown field: the fields here are bestFitWeight, packingWeight, strategy`,
		},
		"wrong case of a field": {
			obj:  jsonArgs(`{"stepbudget":5}`),
			want: `stepbudget: Forbidden: unknown field: write it as "stepBudget"`,
		},
		"wrong case of a value": {
			obj:  jsonArgs(`{"objective":{"strategy":"packed"}}`),
			want: `objective.strategy: Unsupported value: "packed": supported values: "Packed", "Spread", "None"`,
		},
		"empty value": {
			obj:  jsonArgs(`{"selectorErrors":""}`),
			want: `selectorErrors: Invalid value: "": must be "Skip" or "Fail", or be left out`,
		},
		"wrong type: text for number": {
			obj:  jsonArgs(`{"stepBudget":"5"}`),
			want: `stepBudget: Invalid value: "5": must be a whole number from 1 to 2147483647`,
		},
		"wrong type: fraction": {
			obj:  jsonArgs(`{"objective":{"bestFitWeight":1.5}}`),
			want: `objective.bestFitWeight: Invalid value: 1.5: must be a whole number from 0 to 100`,
		},
		"wrong type: number for text": {
			obj:  jsonArgs(`{"selectorErrors":1}`),
			want: `selectorErrors: Invalid value: 1: must be the text "Skip" or "Fail"`,
		},
		"wrong type: number for duration": {
			obj:  jsonArgs(`{"filterTimeout":10}`),
			want: `filterTimeout: Invalid value: 10: must be a duration in quotes with its unit, such as "10s"`,
		},
		"wrong type: text for object": {
			obj:  jsonArgs(`{"objective":"Packed"}`),
			want: `objective: Invalid value: "Packed": must be an object with the fields bestFitWeight, packingWeight, strategy`,
		},
		"wrong type: list for args": {
			obj:  jsonArgs(`["x"]`),
			want: `args: Invalid value: ["x"]: must be an object with the fields apiVersion, bindingTimeout, filterTimeout, kind, objective, selectorErrors, stepBudget`,
		},
		"duration without unit": {
			obj:  jsonArgs(`{"filterTimeout":"10"}`),
			want: `filterTimeout: Invalid value: "10": must be a duration with its unit, such as "10s" or "1m30s"`,
		},
		"negative duration": {
			obj:  jsonArgs(`{"filterTimeout":"-1s"}`),
			want: `filterTimeout: Invalid value: "-1s": must not be negative; 0s means no limit`,
		},
		"short binding timeout": {
			obj:  jsonArgs(`{"bindingTimeout":"999ms"}`),
			want: `bindingTimeout: Invalid value: "999ms": must be at least 1s`,
		},
		"number too small": {
			obj:  jsonArgs(`{"stepBudget":0}`),
			want: `stepBudget: Invalid value: 0: must be a whole number from 1 to 2147483647`,
		},
		"number too large": {
			obj:  jsonArgs(`{"objective":{"packingWeight":101}}`),
			want: `objective.packingWeight: Invalid value: 101: must be a whole number from 0 to 100`,
		},
		"number that would wrap around": {
			obj:  jsonArgs(`{"stepBudget":4294967297}`),
			want: `stepBudget: Invalid value: 4294967297: must be a whole number from 1 to 2147483647`,
		},
		"other kind and version": {
			obj: jsonArgs(`{"apiVersion":"config.device-scheduler.io/v1","kind":"DynamicResourcesArgs"}`),
			want: `[apiVersion: Unsupported value: "config.device-scheduler.io/v1": supported values: "config.device-scheduler.io/v1alpha1", ` +
				`kind: Unsupported value: "DynamicResourcesArgs": supported values: "DeviceAllocationArgs"]`,
		},
		"doubled field, JSON": {
			obj:  jsonArgs(`{"objective":{"strategy":"None","strategy":"None"}}`),
			want: `objective.strategy: Forbidden: the field is given more than once: keep one of them`,
		},
		"doubled field, YAML": {
			obj:  yamlArgs("stepBudget: 1\nstepBudget: 2\n"),
			want: "parse YAML: yaml: unmarshal errors:\n  line 2: key \"stepBudget\" already set in map",
		},
		"everything at once": {
			obj: jsonArgs(`{"stepBudget":0,"stepBudget":0,"filterTimeout":7,"extra":1,"objective":{"strategy":"Best","packingWeight":-1}}`),
			want: `[stepBudget: Forbidden: the field is given more than once: keep one of them, ` +
				`extra: Forbidden: unknown field: the fields here are apiVersion, bindingTimeout, filterTimeout, kind, objective, selectorErrors, stepBudget, ` +
				`filterTimeout: Invalid value: 7: must be a duration in quotes with its unit, such as "10s", ` +
				`objective.packingWeight: Invalid value: -1: must be a whole number from 0 to 100, ` +
				`stepBudget: Invalid value: 0: must be a whole number from 1 to 2147483647, ` +
				`objective.strategy: Unsupported value: "Best": supported values: "Packed", "Spread", "None"]`,
		},
		"trailing data, JSON": {
			obj:  jsonArgs(`{} {}`),
			want: `parse JSON: invalid character '{' after top-level value`,
		},
		"trailing data, YAML": {
			obj:  yamlArgs("stepBudget: 1\n--- {stepBudget: 2}\n"),
			want: `parse YAML: the args hold more than one document: keep one of them`,
		},
		"no JSON": {
			obj:  jsonArgs(`{"stepBudget"`),
			want: `parse JSON: unexpected end of JSON input`,
		},
		"YAML declared as JSON": {
			obj:  jsonArgs("stepBudget: 1\n"),
			want: `parse JSON: invalid character 's' looking for beginning of value`,
		},
		"other content type": {
			obj:  &runtime.Unknown{Raw: []byte{1}, ContentType: runtime.ContentTypeProtobuf},
			want: `content type "application/vnd.kubernetes.protobuf" is not supported: give the args as application/json or application/yaml`,
		},
		"other object": {
			obj:  &metav1.Status{},
			want: `got a *v1.Status, want the *runtime.Unknown that the scheduler framework passes on`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := config.Decode(tc.obj)
			if err == nil {
				t.Fatalf("Decode accepted the args: %+v", got)
			}
			if diff := cmp.Diff("decode args of plugin DeviceAllocation: "+tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeLeavesInputAlone(t *testing.T) {
	obj := jsonArgs(`{"stepBudget":7}`)
	before := obj.DeepCopy()
	if _, err := config.Decode(obj); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, obj); diff != "" {
		t.Errorf("input changed (-before +after):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*config.DeviceAllocationArgs)
		want   string
	}{
		"defaults":        {change: func(*config.DeviceAllocationArgs) {}},
		"type left out":   {change: func(a *config.DeviceAllocationArgs) { a.TypeMeta = metav1.TypeMeta{} }},
		"largest weights": {change: func(a *config.DeviceAllocationArgs) { a.Objective.BestFitWeight, a.Objective.PackingWeight = 100, 100 }},
		"policy not set": {
			change: func(a *config.DeviceAllocationArgs) { a.SelectorErrors = "" },
			want:   `selectorErrors: Unsupported value: "": supported values: "Skip", "Fail"`,
		},
		"weight too large": {
			change: func(a *config.DeviceAllocationArgs) { a.Objective.BestFitWeight = 101 },
			want:   `objective.bestFitWeight: Invalid value: 101: must be a whole number from 0 to 100`,
		},
		"negative budget": {
			change: func(a *config.DeviceAllocationArgs) { a.StepBudget = -1 },
			want:   `stepBudget: Invalid value: -1: must be a whole number from 1 to 2147483647`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := config.Defaults()
			tc.change(&args)
			got := ""
			if err := args.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
