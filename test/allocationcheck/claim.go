package allocationcheck

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// checkClaim checks what can be said about one claim without the others.
func (c *checker) checkClaim(number int, claim *resourceapi.ResourceClaim, allocation *resourceapi.AllocationResult) {
	if len(allocation.Devices.Results) > resourceapi.AllocationResultsMaxSize {
		c.problem("claim %s: %d results", claim.Name, len(allocation.Devices.Results))
	}
	picks := c.picksOf(number, claim, allocation.Devices.Results)
	var chosen []*ask
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if a := c.checkRequest(claim, request, picks); a != nil {
			chosen = append(chosen, a)
		}
	}
	for _, p := range picks {
		c.checkDevice(p)
		c.checkResult(p)
	}
	for _, constraint := range claim.Spec.Devices.Constraints {
		c.checkConstraint(claim, constraint, picks)
	}
	c.checkConfig(claim, chosen, allocation)
	c.checkNodeSelector(claim, picks, allocation.NodeSelector)
	c.picks = append(c.picks, picks...)
}

// picksOf resolves names. What it cannot resolve is a problem and left out.
func (c *checker) picksOf(number int, claim *resourceapi.ResourceClaim, results []resourceapi.DeviceRequestAllocationResult) []*pick {
	var asks []*ask
	for i := range claim.Spec.Devices.Requests {
		asks = append(asks, asksOf(&claim.Spec.Devices.Requests[i])...)
	}
	var picks []*pick
	last := 0
	for i := range results {
		r := &results[i]
		position := slices.IndexFunc(asks, func(a *ask) bool { return a.name == r.Request })
		if position < 0 {
			c.problem("claim %s: result for %q, which is not a request", claim.Name, r.Request)
			continue
		}
		if position < last {
			c.problem("claim %s: results are not in the order of the requests", claim.Name)
		}
		last = position
		d := c.lookUp(deviceID{r.Driver, r.Pool, r.Device})
		if d == nil {
			c.problem("claim %s, request %s: device %s/%s/%s does not exist", claim.Name, r.Request, r.Driver, r.Pool, r.Device)
			continue
		}
		picks = append(picks, &pick{claim: number, ask: asks[position], device: d, result: r})
	}
	return picks
}

// lookUp finds a device, if there are several one that the node can have.
func (c *checker) lookUp(id deviceID) *device {
	p := c.pools[poolID{id.driver, id.pool}]
	if p == nil {
		return nil
	}
	var found *device
	for _, d := range p.devices {
		if d.id == id && (found == nil || !found.reachable) {
			found = d
		}
	}
	return found
}

// checkRequest checks which alternative has devices, and how many. It returns
// that alternative.
func (c *checker) checkRequest(claim *resourceapi.ResourceClaim, request *resourceapi.DeviceRequest, picks []*pick) *ask {
	if len(request.FirstAvailable) > 0 && !c.Features.PrioritizedList {
		c.problem("claim %s, request %s: allocated although the scheduler does not know prioritized lists", claim.Name, request.Name)
	}
	var chosen *ask
	for _, a := range asksOf(request) {
		c.checkGates(claim, a)
		got := sets.New[deviceID]()
		devices := 0
		for _, p := range picks {
			if p.ask.name == a.name {
				got.Insert(p.device.id)
				devices++
			}
		}
		if devices == 0 {
			continue
		}
		if chosen != nil {
			c.problem("claim %s, request %s: devices for more than one subrequest", claim.Name, request.Name)
		}
		chosen = a
		if got.Len() < devices {
			c.problem("claim %s, request %s: one device twice", claim.Name, a.name)
		}
		switch {
		case a.mode == resourceapi.DeviceAllocationModeAll:
			if want := c.allDevices(claim, a); !want.Equal(got) {
				c.problem("claim %s, request %s: %d devices, want all %d", claim.Name, a.name, got.Len(), want.Len())
			}
		case int64(devices) != a.count:
			c.problem("claim %s, request %s: %d devices, want %d", claim.Name, a.name, devices, a.count)
		}
	}
	if chosen == nil {
		c.problem("claim %s, request %s: no devices", claim.Name, request.Name)
	}
	return chosen
}

// checkGates: a claim that uses what the scheduler does not know must wait.
func (c *checker) checkGates(claim *resourceapi.ResourceClaim, a *ask) {
	unknown := ""
	switch {
	case a.adminSet && !c.Features.AdminAccess:
		unknown = "admin access"
	case a.capacity != nil && !c.Features.ConsumableCapacity:
		unknown = "capacity requests"
	case len(a.derived) > 0 && !c.Features.DerivedAttributes:
		unknown = "derived attributes"
	}
	if unknown != "" {
		c.problem("claim %s, request %s: allocated although the scheduler does not know %s", claim.Name, a.name, unknown)
	}
}

// allDevices returns what allocation mode All means: the devices of all sound
// pools that match and are large enough, whether in use or not.
func (c *checker) allDevices(claim *resourceapi.ResourceClaim, a *ask) sets.Set[deviceID] {
	all := sets.New[deviceID]()
	for id, p := range c.pools {
		if !p.relevant {
			continue
		}
		if p.fault != "" {
			c.problem("claim %s, request %s: wants all devices, but pool %s/%s: %s", claim.Name, a.name, id.driver, id.name, p.fault)
			continue
		}
		for _, d := range p.devices {
			if d.reachable && c.understood(d) && c.matches(d, a) == "" && c.largeEnough(d, a) {
				all.Insert(d.id)
			}
		}
	}
	return all
}
