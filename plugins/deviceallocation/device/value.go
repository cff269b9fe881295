package device

import (
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
		value := Value{kind: boolKind}
		if *attribute.BoolValue {
			value.number = 1
		}
		return value, true
	case attribute.VersionValue != nil:
		return Value{kind: versionKind, text: *attribute.VersionValue}, true
	default:
		return Value{}, false
	}
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
