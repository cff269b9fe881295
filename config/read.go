package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reader stores a parsed value into the field that it was built for, or says why it cannot.
type reader func(path *field.Path, value any) field.ErrorList

// readArgs overlays the parsed args on the defaults in args.
func readArgs(tree any, args *DeviceAllocationArgs) field.ErrorList {
	return object(map[string]reader{
		"apiVersion":     text(&args.APIVersion, quoted(APIVersion)),
		"kind":           text(&args.Kind, quoted(Kind)),
		"filterTimeout":  duration(&args.FilterTimeout.Duration),
		"bindingTimeout": duration(&args.BindingTimeout.Duration),
		"stepBudget":     number(&args.StepBudget, minStepBudget, math.MaxInt32),
		"selectorErrors": text(&args.SelectorErrors, quoted(selectorErrorPolicies...)),
		"objective": object(map[string]reader{
			"strategy":      text(&args.Objective.Strategy, quoted(objectiveStrategies...)),
			"bestFitWeight": number(&args.Objective.BestFitWeight, minWeight, maxWeight),
			"packingWeight": number(&args.Objective.PackingWeight, minWeight, maxWeight),
		}),
	})(nil, tree)
}

// object reads a JSON object whose fields are read by readers. null stands for an object without fields.
func object(readers map[string]reader) reader {
	return func(path *field.Path, value any) field.ErrorList {
		if value == nil {
			return nil
		}
		known := slices.Sorted(maps.Keys(readers))
		fields, ok := value.(map[string]any)
		if !ok {
			if path == nil {
				path = field.NewPath("args")
			}
			return field.ErrorList{field.TypeInvalid(path, value, "must be an object with the fields "+strings.Join(known, ", "))}
		}
		var errs field.ErrorList
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			read, ok := readers[name]
			switch {
			case !ok:
				errs = append(errs, field.Forbidden(path.Child(name), unknownField(name, known)))
			case fields[name] != nil: // a field that is null has its default, as everywhere in Kubernetes
				errs = append(errs, read(path.Child(name), fields[name])...)
			}
		}
		return errs
	}
}

func unknownField(name string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return fmt.Sprintf("unknown field: write it as %q", k)
		}
	}
	return "unknown field: the fields here are " + strings.Join(known, ", ")
}

func text[T ~string](into *T, allowed string) reader {
	return func(path *field.Path, value any) field.ErrorList {
		s, ok := value.(string)
		if !ok {
			return field.ErrorList{field.TypeInvalid(path, value, "must be the text "+allowed)}
		}
		if s == "" {
			// Only an absent field has a default: an empty one is more likely a template that was not filled in.
			return field.ErrorList{field.Invalid(path, value, "must be "+allowed+", or be left out")}
		}
		*into = T(s)
		return nil
	}
}

func quoted[T ~string](allowed ...T) string {
	var quoted []string
	for _, a := range allowed {
		quoted = append(quoted, fmt.Sprintf("%q", a))
	}
	return strings.Join(quoted, " or ")
}

func number(into *int32, smallest, largest int32) reader {
	return func(path *field.Path, value any) field.ErrorList {
		switch n := value.(type) {
		case int64:
			if n < int64(smallest) || n > int64(largest) {
				return field.ErrorList{field.Invalid(path, n, "must be "+wholeNumber(smallest, largest))}
			}
			*into = int32(n)
			return nil
		default:
			return field.ErrorList{field.TypeInvalid(path, value, "must be "+wholeNumber(smallest, largest))}
		}
	}
}

func duration(into *time.Duration) reader {
	return func(path *field.Path, value any) field.ErrorList {
		s, ok := value.(string)
		if !ok {
			return field.ErrorList{field.TypeInvalid(path, value, `must be a duration in quotes with its unit, such as "10s"`)}
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			return field.ErrorList{field.Invalid(path, s, `must be a duration with its unit, such as "10s" or "1m30s"`)}
		}
		*into = d
		return nil
	}
}
