package allocator

import (
	"slices"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// obstacle is the first thing that keeps a matching device, which is not in
// use, from being given to an alternative.
type obstacle byte

const (
	noObstacle obstacle = iota
	featureObstacle
	nodeObstacle      // the node cannot do without the operations of a kubelet plugin
	misfitObstacle    // the device never has the capacity
	exhaustedObstacle // capacity or counters are used up
	groupsObstacle    // compatibility groups
	taintObstacle
	attributeObstacle
)

// obstacles has the obstacle for each alternative and, for explanations, a
// device that shows it.
type obstacles struct {
	kinds []obstacle // nil if there is none
	shown *device.Device
}

func (o *obstacles) set(alternative *problem.Alternative, kind obstacle, d *device.Device) {
	if n := alternative.Index + 1; len(o.kinds) < n {
		o.kinds = append(o.kinds, make([]obstacle, n-len(o.kinds))...)
	}
	o.kinds[alternative.Index], o.shown = kind, d
}

func (o *obstacles) of(alternative int) obstacle {
	if alternative >= len(o.kinds) {
		return noObstacle
	}
	return o.kinds[alternative]
}

// obstacle finds what keeps a device from an alternative, no matter what else
// the pod takes. Constraints are left aside.
func (s *surveyor) obstacle(alternative *problem.Alternative, d *device.Device, demands *demands) obstacle {
	if d.Unsupported != "" {
		return featureObstacle
	}
	if len(d.SkipNodeOperations) > 0 && !s.node.SkipsNodeOperations {
		return nodeObstacle
	}
	if demands.misfit[alternative.Index] {
		return misfitObstacle
	}
	if !s.takesNothing(alternative) {
		if found := s.shortage(alternative, demands); found != noObstacle {
			return found
		}
	}
	if len(d.Taints) > 0 && device.UntoleratedTaint(d.Taints, alternative.Tolerations) != nil {
		return taintObstacle
	}
	return noObstacle
}

// shortage checks what the device draws on against what is left of it now. It
// only becomes less while the pod takes devices.
func (s *surveyor) shortage(alternative *problem.Alternative, demands *demands) obstacle {
	offer := demands.offer
	if offer == nil {
		return noObstacle
	}
	lacks := func(d draw) bool { return s.stocks.left[d.stock] < d.amount }
	if !offer.charged && (slices.ContainsFunc(offer.counters, lacks) || s.options.Compatible && s.pool.overdrawn) {
		return exhaustedObstacle
	}
	if offer.shareable && slices.ContainsFunc(offer.shares[alternative.Index], lacks) {
		return exhaustedObstacle
	}
	if offer.exact != nil && !offer.exact.fit(alternative.Index, nil) {
		return exhaustedObstacle
	}
	if !offer.charged && slices.ContainsFunc(offer.sets, func(d setDraw) bool { return !s.stocks.sets[d.set].Admits(d.groups) }) {
		return groupsObstacle
	}
	return noObstacle
}
