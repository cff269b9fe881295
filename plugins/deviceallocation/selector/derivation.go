package selector

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Derivation is the compiled expression of a derived attribute (KEP-6080)
// together with the values known for it. It is safe for concurrent use.
type Derivation struct {
	source
	memo memo[derived]
}

type derived struct {
	attribute resourceapi.DeviceAttribute
	err       error
}

// Attribute computes the attribute for a device, or remembers what an earlier
// device got that looked the same to it. The caller must not change it.
//
// An error means that there is no value, for the same reasons as there is no
// verdict of Expression.Matches; it also treats the end of ctx alike.
func (v *Derivation) Attribute(ctx context.Context, d *device.Device) (resourceapi.DeviceAttribute, error) {
	if err := v.usable(d); err != nil {
		return resourceapi.DeviceAttribute{}, err
	}
	var buffer [keySize]byte
	key := v.reads.appendKey(buffer[:0], d)
	if known, ok := v.memo.get(key); ok {
		return known.attribute, known.err
	}
	attribute, _, err := v.program.EvaluateDerivedAttribute(ctx, input(d))
	if err != nil && ctx.Err() != nil {
		return resourceapi.DeviceAttribute{}, fmt.Errorf("derive attribute for device %s: %w", d.ID, context.Cause(ctx))
	}
	result := derived{err: err}
	if err == nil {
		result.attribute = *attribute
	}
	v.memo.put(key, result)
	return result.attribute, result.err
}
