package device

import (
	"slices"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
)

type kind uint8

const (
	noKind kind = iota
	stringKind
	intKind
	boolKind
	versionKind
)

// Value is a scalar attribute value. It is comparable: two values are equal
// when type and content are. Versions are compared as strings, because
// semantic versions have one spelling only (resource.k8s.io/v1
// DeviceConstraint.matchAttribute).
type Value struct {
	kind   kind
	number int64
	text   string
}

// ValueOf converts an attribute. ok is false for lists and for types that this
// version does not know.
func ValueOf(attribute resourceapi.DeviceAttribute) (value Value, ok bool) {
	switch {
	case isList(attribute):
		return Value{}, false
	case attribute.StringValue != nil:
		return Value{kind: stringKind, text: *attribute.StringValue}, true
	case attribute.IntValue != nil:
		return Value{kind: intKind, number: *attribute.IntValue}, true
	case attribute.BoolValue != nil:
		return boolValue(*attribute.BoolValue), true
	case attribute.VersionValue != nil:
		return Value{kind: versionKind, text: *attribute.VersionValue}, true
	default:
		return Value{}, false
	}
}

func boolValue(b bool) Value {
	if b {
		return Value{kind: boolKind, number: 1}
	}
	return Value{kind: boolKind}
}

// AppendValues adds the values of an attribute to values: one for a scalar, each
// different one of a list. It adds nothing for an empty list and for a type that
// this version does not know; with lists false (DRAListTypeAttributes) also for
// any list. Values of one attribute are of one type.
func AppendValues(values []Value, attribute resourceapi.DeviceAttribute, lists bool) []Value {
	if !isList(attribute) {
		if value, ok := ValueOf(attribute); ok {
			return append(values, value)
		}
		return values
	}
	if !lists {
		return values
	}
	first := len(values)
	add := func(value Value) {
		if !slices.Contains(values[first:], value) {
			values = append(values, value)
		}
	}
	// In the order in which kube-scheduler looks for a list, should there be
	// several against the API's rules.
	switch {
	case len(attribute.IntValues) > 0:
		for _, number := range attribute.IntValues {
			add(Value{kind: intKind, number: number})
		}
	case len(attribute.BoolValues) > 0:
		for _, b := range attribute.BoolValues {
			add(boolValue(b))
		}
	case len(attribute.StringValues) > 0:
		for _, text := range attribute.StringValues {
			add(Value{kind: stringKind, text: text})
		}
	case len(attribute.VersionValues) > 0:
		for _, text := range attribute.VersionValues {
			add(Value{kind: versionKind, text: text})
		}
	}
	return values
}

func isList(attribute resourceapi.DeviceAttribute) bool {
	return attribute.StringValues != nil || attribute.IntValues != nil ||
		attribute.BoolValues != nil || attribute.VersionValues != nil
}

// String returns the value as a person would write it.
func (v Value) String() string {
	switch v.kind {
	case intKind:
		return strconv.FormatInt(v.number, 10)
	case boolKind:
		return strconv.FormatBool(v.number == 1)
	default:
		return v.text
	}
}

// Append adds an unambiguous encoding of the value to key and returns it. Two
// values have the same encoding exactly when they are equal; encodings can be
// concatenated without becoming ambiguous.
func (v Value) Append(key []byte) []byte {
	key = append(key, byte(v.kind))
	key = strconv.AppendInt(key, v.number, 36)
	key = append(key, ':')
	key = strconv.AppendInt(key, int64(len(v.text)), 36)
	key = append(key, ':')
	return append(key, v.text...)
}
