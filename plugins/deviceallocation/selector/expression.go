package selector

import (
	"context"
	"fmt"

	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// source is a compiled CEL expression, whatever it is for.
type source struct {
	text    string
	err     error
	program cel.CompilationResult
	reads   reads
}

// Text returns the source of the expression.
func (s *source) Text() string { return s.text }

// Err says why the expression does not compile; it is nil for a usable one.
func (s *source) Err() error { return s.err }

// usable returns an error if the expression cannot be evaluated for a device.
func (s *source) usable(d *device.Device) error {
	if s.err != nil {
		return s.err
	}
	return d.Malformed
}

func input(d *device.Device) cel.Device {
	return cel.Device{
		Driver:                   d.ID.Driver.Value(),
		AllowMultipleAllocations: d.Spec.AllowMultipleAllocations,
		Attributes:               d.Spec.Attributes,
		Capacity:                 d.Spec.Capacity,
	}
}

// keySize is the room for a key on the stack.
const keySize = 256

// Expression is a compiled selector together with the verdicts known for it.
// It is safe for concurrent use.
type Expression struct {
	source
	memo memo[verdict]
}

type verdict struct {
	matches bool
	err     error
}

// Matches evaluates the expression for a device, or remembers the verdict of
// an earlier device that looked the same to it.
//
// An error means that there is no verdict: the expression does not compile,
// the device is malformed, reading it failed at run time (a missing attribute,
// cost limit exceeded), or ctx ended; in the last case, and only then,
// errors.Is(err, context.Cause(ctx)) holds and nothing is remembered.
func (e *Expression) Matches(ctx context.Context, d *device.Device) (bool, error) {
	if err := e.usable(d); err != nil {
		return false, err
	}
	var buffer [keySize]byte
	key := e.reads.appendKey(buffer[:0], d)
	if known, ok := e.memo.get(key); ok {
		return known.matches, known.err
	}
	matches, _, err := e.program.DeviceMatches(ctx, input(d))
	if err != nil && ctx.Err() != nil {
		return false, fmt.Errorf("evaluate selector for device %s: %w", d.ID, context.Cause(ctx))
	}
	e.memo.put(key, verdict{matches: matches, err: err})
	return matches, err
}
