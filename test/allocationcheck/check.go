package allocationcheck

import (
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Check returns what is wrong with allocations, which are in the order of the
// claims; none means that they are sound. It changes nothing and may be called
// from several goroutines.
func Check(s *Situation, allocations []resourceapi.AllocationResult) []string {
	if len(allocations) != len(s.Claims) {
		return []string{fmt.Sprintf("%d allocations for %d claims", len(allocations), len(s.Claims))}
	}
	c := &checker{Situation: s, pools: s.gatherPools(), holdings: s.gatherHoldings(), expressions: expressions(s)}
	for i, claim := range s.Claims {
		c.checkClaim(i, claim, &allocations[i])
	}
	c.checkUse()
	c.checkCounters()
	return c.problems
}

type checker struct {
	*Situation
	pools       map[poolID]*pool
	holdings    map[deviceID]*holding
	expressions *cel.Cache
	// picks are the devices of all claims that exist.
	picks    []*pick
	problems []string
}

// pick is one device for a request.
type pick struct {
	claim  int
	ask    *ask
	device *device
	result *resourceapi.DeviceRequestAllocationResult
}

func (p *pick) String() string {
	return fmt.Sprintf("request %s: device %s/%s/%s", p.ask.name, p.device.id.driver, p.device.id.pool, p.device.id.name)
}

func (c *checker) problem(format string, arguments ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, arguments...))
}

// caches has one cache of compiled expressions for each set of features,
// because compiling takes a thousand times longer than evaluating.
var caches sync.Map

func expressions(s *Situation) *cel.Cache {
	features := cel.Features{
		EnableConsumableCapacity: s.Features.ConsumableCapacity,
		EnableListTypeAttributes: s.Features.ListTypeAttributes,
	}
	cache, _ := caches.LoadOrStore(features, cel.NewCache(200, features))
	return cache.(*cel.Cache)
}
