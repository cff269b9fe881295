package allocator

import (
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// constraintState is what the devices taken so far mean for a constraint.
type constraintState struct {
	kind  problem.ConstraintKind
	value device.Value // Match: the common value
	n     int          // Match: number of devices
	used  map[device.Value]int
}

func (c *constraintState) init(kind problem.ConstraintKind) {
	c.kind = kind
	if kind == problem.Distinct {
		c.used = make(map[device.Value]int)
	}
}

func (c *constraintState) allows(v device.Value) bool {
	if c.kind == problem.Distinct {
		return c.used[v] == 0
	}
	return c.n == 0 || c.value == v
}

func (c *constraintState) add(v device.Value) {
	if c.kind == problem.Distinct {
		c.used[v]++
		return
	}
	c.value = v
	c.n++
}

func (c *constraintState) remove(v device.Value) {
	if c.kind == problem.Distinct {
		c.used[v]--
		return
	}
	c.n--
}
