package objective_test

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestDeviceCost: each part of the cost of one device outweighs the following
// parts of a thousand devices.
func TestDeviceCost(t *testing.T) {
	const many = 1000
	build := func(name, memory string, conditions ...string) *device.Device {
		b := builders.Device(name).Capacity("memory", memory).Conditions(conditions, nil)
		return device.New(builders.Slice("gpu.example.com", "p").Devices(b).Obj(), 0, nil, device.AllFeatures())
	}
	small, large := build("small", "1Gi"), build("large", "1025Mi") // by a thousandth of a doubling
	waiting, huge := build("waiting", "1Gi", "attached"), build("huge", "9000000000000000000E", "attached")
	failed := build("failed", "1")
	avoid := func(o allocator.Objective) allocator.Objective {
		return objective.Avoid{Objective: o, Devices: map[device.ID]bool{failed.ID: true}}
	}
	fit, order := objective.BestFit{}, objective.Order{}
	cases := map[string]struct {
		objective allocator.Objective
		// less costs less than more times many does.
		less *device.Device
		many int64
		more *device.Device
	}{
		"best fit: ready before unready":            {objective: fit, less: small, many: 1, more: waiting},
		"best fit: value before ready":              {objective: fit, less: waiting, many: 1, more: large},
		"best fit: anything before what is avoided": {objective: avoid(fit), less: huge, many: many, more: failed},
		"order: ready before unready":               {objective: order, less: small, many: 1, more: waiting},
		"order: value does not matter":              {objective: order, less: large, many: 1, more: waiting},
		"order: anything before what is avoided":    {objective: avoid(order), less: waiting, many: many, more: failed},
		"what is not avoided costs what it cost":    {objective: avoid(fit), less: small, many: 1, more: waiting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			less, more := tc.objective.DeviceCost(nil, tc.less)*tc.many, tc.objective.DeviceCost(nil, tc.more)
			if less >= more {
				t.Errorf("%d times %s costs %d, %s costs %d", tc.many, tc.less.ID, less, tc.more.ID, more)
			}
		})
	}
	if cost := avoid(fit).DeviceCost(nil, failed) * many; cost < 0 {
		t.Errorf("%d devices to be avoided cost %d", many, cost)
	}
	cost := func(d *device.Device) int64 { return fit.DeviceCost(nil, d) }
	if waits, larger := cost(waiting)-cost(small), cost(large)-cost(small); waits*many >= larger {
		t.Errorf("%d devices with conditions cost %d, a slightly larger one %d", many, waits*many, larger)
	}
	if got := order.DeviceCost(nil, small); got != 0 {
		t.Errorf("a ready device costs %d without best fit, want 0", got)
	}
}
