package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// PluginName is the name of the plugin in scheduler profiles and in pluginConfig.
	PluginName = "DeviceAllocation"

	// APIVersion and Kind may be left out of the plugin's args; if they are present they must be these.
	APIVersion = "config.device-scheduler.io/v1alpha1"
	Kind       = PluginName + "Args"
)

// DeviceAllocationArgs holds the arguments of the DeviceAllocation plugin. It is a plain value: copy it by
// assignment. A field that is absent, or null, has its default; zero means zero.
//
// A new field needs an entry here, in Defaults, in readArgs and, if not every value makes sense, in Validate.
type DeviceAllocationArgs struct {
	// TypeMeta is APIVersion and Kind, both optional.
	metav1.TypeMeta `json:",inline"`

	// FilterTimeout is the longest time that Filter spends on one node for one pod, as a duration such as "10s" or
	// "1m30s". At 0 there is no limit but StepBudget. Not negative. Default 10s.
	FilterTimeout metav1.Duration `json:"filterTimeout"`

	// StepBudget is the largest number of search steps for one pod on one node. It counts steps, not seconds, so
	// that the same objects give the same placement on a slow and on a fast machine. At least 1. Default 100000.
	StepBudget int32 `json:"stepBudget"`

	// BindingTimeout is how long the devices of a claim have, from their allocation on, until all their binding
	// conditions are true (KEP-5007). Then the pod tries again. At least 1s. Default 10m.
	BindingTimeout metav1.Duration `json:"bindingTimeout"`

	// SelectorErrors says what happens when a CEL selector fails at run time on one device. Default Skip.
	SelectorErrors SelectorErrorPolicy `json:"selectorErrors"`

	// Objective says which of several devices, and of several nodes, is the better choice.
	Objective ObjectiveArgs `json:"objective"`
}

// SelectorErrorPolicy says what a CEL runtime error on one device means for the pod.
type SelectorErrorPolicy string

const (
	// SelectorErrorsSkip: the device does not match, and the error is named in the reasons.
	SelectorErrorsSkip SelectorErrorPolicy = "Skip"
	// SelectorErrorsFail: the scheduling attempt of the pod is aborted, as kube-scheduler does it.
	SelectorErrorsFail SelectorErrorPolicy = "Fail"
)

// ObjectiveArgs says which of several possible allocations is preferred. It never makes a pod fit or not fit.
type ObjectiveArgs struct {
	// Strategy is the preference across nodes. Default Packed.
	Strategy ObjectiveStrategy `json:"strategy"`

	// BestFitWeight is the weight, 0 to 100, of taking the least valuable devices that satisfy the requests. On a
	// node they always go first unless it is 0; across nodes it counts against PackingWeight, and its default of 3
	// keeps a small request off a large device even where that node is the fuller one.
	BestFitWeight int32 `json:"bestFitWeight"`

	// PackingWeight is the weight, 0 to 100, of Strategy in a node's score. At 0 the number of free devices of a
	// node does not matter. Default 1.
	PackingWeight int32 `json:"packingWeight"`
}

// ObjectiveStrategy is the preference across nodes.
type ObjectiveStrategy string

const (
	// StrategyPacked prefers the node whose free devices of the asked kind are fewest, which keeps whole nodes free
	// for pods that need many devices.
	StrategyPacked ObjectiveStrategy = "Packed"
	// StrategySpread prefers the node whose free devices of the asked kind are most.
	StrategySpread ObjectiveStrategy = "Spread"
	// StrategyNone takes devices in kube-scheduler's order and scores a node only by its choice among the
	// alternatives of prioritized lists. Both weights are without effect.
	StrategyNone ObjectiveStrategy = "None"
)

// Defaults returns the arguments of a plugin that was configured with none.
func Defaults() DeviceAllocationArgs {
	return DeviceAllocationArgs{
		TypeMeta:       metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		FilterTimeout:  metav1.Duration{Duration: 10 * time.Second},
		StepBudget:     100000,
		BindingTimeout: metav1.Duration{Duration: 10 * time.Minute},
		SelectorErrors: SelectorErrorsSkip,
		Objective: ObjectiveArgs{
			Strategy:      StrategyPacked,
			BestFitWeight: 3,
			PackingWeight: 1,
		},
	}
}
