package selector

import (
	"context"
	"fmt"

	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Expression is a compiled CEL expression together with the verdicts known for
// it. It is safe for concurrent use.
type Expression struct {
	text    string
	err     error
	program cel.CompilationResult
	reads   reads
	memo    memo
}

// Text returns the source of the expression.
func (e *Expression) Text() string { return e.text }

// Err says why the expression does not compile; it is nil for a usable one.
func (e *Expression) Err() error { return e.err }

// Matches evaluates the expression for a device, or remembers the verdict of
// an earlier device that looked the same to it.
//
// An error means that there is no verdict: the expression does not compile,
// the device is malformed, reading it failed at run time (a missing attribute,
// cost limit exceeded), or ctx ended; in the last case, and only then,
// errors.Is(err, context.Cause(ctx)) holds and nothing is remembered.
func (e *Expression) Matches(ctx context.Context, d *device.Device) (bool, error) {
	if e.err != nil {
		return false, e.err
	}
	if d.Malformed != nil {
		return false, d.Malformed
	}
	var buffer [256]byte
	key := e.reads.appendKey(buffer[:0], d)
	if known, ok := e.memo.get(key); ok {
		return known.matches, known.err
	}
	matches, err := e.evaluate(ctx, d)
	if err != nil && ctx.Err() != nil {
		return false, fmt.Errorf("evaluate selector for device %s: %w", d.ID, context.Cause(ctx))
	}
	e.memo.put(key, verdict{matches: matches, err: err})
	return matches, err
}

func (e *Expression) evaluate(ctx context.Context, d *device.Device) (bool, error) {
	matches, _, err := e.program.DeviceMatches(ctx, cel.Device{
		Driver:                   d.ID.Driver.Value(),
		AllowMultipleAllocations: d.Spec.AllowMultipleAllocations,
		Attributes:               d.Spec.Attributes,
		Capacity:                 d.Spec.Capacity,
	})
	return matches, err
}
