package config

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	minStepBudget = 1
	minWeight     = 0
	maxWeight     = 100

	minBindingTimeout = time.Second
)

var (
	selectorErrorPolicies = []SelectorErrorPolicy{SelectorErrorsSkip, SelectorErrorsFail}
	objectiveStrategies   = []ObjectiveStrategy{StrategyPacked, StrategySpread, StrategyNone}
)

// Validate returns every field whose value is impossible, in the order of the fields, as one error that names the
// fields and what they allow; nil if there is none. APIVersion and Kind may be empty.
func (a *DeviceAllocationArgs) Validate() error {
	return a.validate().ToAggregate()
}

func (a *DeviceAllocationArgs) validate() field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateOneOf(field.NewPath("apiVersion"), a.APIVersion, []string{"", APIVersion})...)
	errs = append(errs, validateOneOf(field.NewPath("kind"), a.Kind, []string{"", Kind})...)
	if a.FilterTimeout.Duration < 0 {
		errs = append(errs, field.Invalid(field.NewPath("filterTimeout"), a.FilterTimeout.Duration.String(),
			"must not be negative; 0s means no limit"))
	}
	errs = append(errs, validateRange(field.NewPath("stepBudget"), a.StepBudget, minStepBudget, math.MaxInt32)...)
	if a.BindingTimeout.Duration < minBindingTimeout {
		errs = append(errs, field.Invalid(field.NewPath("bindingTimeout"), a.BindingTimeout.Duration.String(),
			"must be at least 1s"))
	}
	errs = append(errs, validateOneOf(field.NewPath("selectorErrors"), a.SelectorErrors, selectorErrorPolicies)...)
	return append(errs, a.Objective.validate(field.NewPath("objective"))...)
}

func (o *ObjectiveArgs) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateOneOf(path.Child("strategy"), o.Strategy, objectiveStrategies)...)
	errs = append(errs, validateRange(path.Child("bestFitWeight"), o.BestFitWeight, minWeight, maxWeight)...)
	return append(errs, validateRange(path.Child("packingWeight"), o.PackingWeight, minWeight, maxWeight)...)
}

func validateOneOf[T ~string](path *field.Path, value T, allowed []T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	// The empty string stands for "not given" and is nothing that a user should be told to write.
	offered := slices.DeleteFunc(slices.Clone(allowed), func(v T) bool { return v == "" })
	return field.ErrorList{field.NotSupported(path, value, offered)}
}

func validateRange(path *field.Path, value, smallest, largest int32) field.ErrorList {
	if value >= smallest && value <= largest {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "must be "+wholeNumber(smallest, largest))}
}

func wholeNumber(smallest, largest int32) string {
	return fmt.Sprintf("a whole number from %d to %d", smallest, largest)
}
