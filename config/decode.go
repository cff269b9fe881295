package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Decode turns what the scheduler framework hands to a plugin's factory into complete, valid arguments. obj is nil
// for a plugin without args, else a *runtime.Unknown that holds JSON or YAML.
//
// It is strict: an unknown, misspelt or doubled field, a value of the wrong type or outside of its range, another
// apiVersion or kind, and anything after the args is an error. One error names all such fields, each with what it
// allows; only a text that does not parse is reported alone. obj is not changed.
func Decode(obj runtime.Object) (*DeviceAllocationArgs, error) {
	args, err := decode(obj)
	if err != nil {
		return nil, fmt.Errorf("decode args of plugin %s: %w", PluginName, err)
	}
	return args, nil
}

func decode(obj runtime.Object) (*DeviceAllocationArgs, error) {
	args := Defaults()
	if obj == nil {
		return &args, nil
	}
	unknown, ok := obj.(*runtime.Unknown)
	if !ok {
		return nil, fmt.Errorf("got a %T, want the *runtime.Unknown that the scheduler framework passes on", obj)
	}
	if unknown == nil || len(bytes.TrimSpace(unknown.Raw)) == 0 {
		return &args, nil
	}
	tree, errs, err := parse(unknown.Raw, unknown.ContentType)
	if err != nil {
		return nil, err
	}
	errs = append(errs, readArgs(tree, &args)...)
	// A field that could not be read still has its default, which is valid: no field is reported twice.
	errs = append(errs, args.validate()...)
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	args.APIVersion, args.Kind = APIVersion, Kind
	return &args, nil
}

// parse returns the value that raw holds, and the fields that are in it more than once.
func parse(raw []byte, contentType string) (any, field.ErrorList, error) {
	switch contentType {
	case runtime.ContentTypeJSON:
		return parseJSON(raw)
	case runtime.ContentTypeYAML:
		return parseYAML(raw)
	case "":
		// The framework leaves the type away for JSON. Args built by other programs may be YAML.
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
			return parseJSON(raw)
		}
		return parseYAML(raw)
	default:
		return nil, nil, fmt.Errorf("content type %q is not supported: give the args as %s or %s",
			contentType, runtime.ContentTypeJSON, runtime.ContentTypeYAML)
	}
}

func parseJSON(raw []byte) (any, field.ErrorList, error) {
	var tree any
	strict, err := kjson.UnmarshalStrict(raw, &tree)
	if err != nil {
		return nil, nil, fmt.Errorf("parse JSON: %w", err)
	}
	var errs field.ErrorList
	for _, problem := range strict {
		path := "args"
		var named kjson.FieldError
		if errors.As(problem, &named) {
			path = named.FieldPath()
		}
		errs = append(errs, field.Forbidden(field.NewPath(path), "the field is given more than once: keep one of them"))
	}
	return tree, errs, nil
}

func parseYAML(raw []byte) (any, field.ErrorList, error) {
	if err := refuseSecondDocument(raw); err != nil {
		return nil, nil, err
	}
	// Doubled keys are found here: the conversion would otherwise keep the last one.
	converted, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("parse YAML: %w", err)
	}
	return parseJSON(converted)
}

// refuseSecondDocument finds what the conversion leaves unread: it stops after the first document. A further document
// that holds nothing, as after a closing separator, is accepted.
func refuseSecondDocument(raw []byte) error {
	documents := goyaml.NewDecoder(bytes.NewReader(raw))
	for first := true; ; first = false {
		var document any
		err := documents.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("parse YAML: %w", err)
		case !first && document != nil:
			return errors.New("parse YAML: the args hold more than one document: keep one of them")
		}
	}
}
