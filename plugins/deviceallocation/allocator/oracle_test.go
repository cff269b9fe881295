package allocator_test

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// The oracle knows all assignments of devices to requests and tries them one
// after the other. It is written without a look at the allocator, on the API
// objects alone, for nodes that can reach all devices of sound pools.

// offer is one device of the oracle's node.
type offer struct {
	driver, pool string
	device       *resourceapi.Device
	inUse        bool
}

// wish is one alternative of a request.
type wish struct {
	claim, rank   int
	request, name string // main, and main or main/sub
	all, admin    bool
	count         int
	selectors     []condition
	tolerates     sets.Set[string] // keys of taints
}

// grant says what a request gets: an alternative, and devices by their number.
type grant struct {
	wish    wish
	devices []int
}

type oracle struct {
	c      *cluster
	offers []offer
	wishes [][]wish // for each request of all claims
	grants []grant
	visit  func([]grant) bool // returns false to stop
}

func newOracle(c *cluster) *oracle {
	o := &oracle{c: c}
	o.listOffers()
	for i, claim := range c.claims {
		for _, request := range claim.Spec.Devices.Requests {
			o.wishes = append(o.wishes, o.wishesOf(i, request))
		}
	}
	return o
}

func (o *oracle) listOffers() {
	sorted := slices.Clone(o.c.slices)
	slices.SortFunc(sorted, func(a, b *resourceapi.ResourceSlice) int {
		return slices.Compare([]string{a.Spec.Driver, a.Spec.Pool.Name, a.Name}, []string{b.Spec.Driver, b.Spec.Pool.Name, b.Name})
	})
	for _, slice := range sorted {
		for i := range slice.Spec.Devices {
			d := offer{driver: slice.Spec.Driver, pool: slice.Spec.Pool.Name, device: &slice.Spec.Devices[i]}
			for _, claim := range o.c.allocated {
				for _, r := range claim.Status.Allocation.Devices.Results {
					d.inUse = d.inUse || r.Driver == d.driver && r.Pool == d.pool && r.Device == d.device.Name
				}
			}
			o.offers = append(o.offers, d)
		}
	}
}

func (o *oracle) wishesOf(claim int, request resourceapi.DeviceRequest) []wish {
	make := func(name string, rank int, class string, mode resourceapi.DeviceAllocationMode, count int64, selectors []resourceapi.DeviceSelector, tolerations []resourceapi.DeviceToleration) wish {
		w := wish{claim: claim, rank: rank, request: request.Name, name: name,
			all: mode == resourceapi.DeviceAllocationModeAll, count: int(count), tolerates: sets.New[string]()}
		for _, toleration := range tolerations {
			w.tolerates.Insert(toleration.Key)
		}
		object, _ := o.c.class(class)
		for _, s := range slices.Concat(object.Spec.Selectors, selectors) {
			w.selectors = append(w.selectors, conditionOf(s.CEL.Expression))
		}
		return w
	}
	if e := request.Exactly; e != nil {
		w := make(request.Name, 0, e.DeviceClassName, e.AllocationMode, e.Count, e.Selectors, e.Tolerations)
		w.admin = e.AdminAccess != nil && *e.AdminAccess
		return []wish{w}
	}
	var wishes []wish
	for i, s := range request.FirstAvailable {
		wishes = append(wishes, make(request.Name+"/"+s.Name, i, s.DeviceClassName, s.AllocationMode, s.Count, s.Selectors, s.Tolerations))
	}
	return wishes
}

// each visits all solutions: by the first request's rank, then by its devices
// in the order of the pools, then by the second request's, and so on.
func (o *oracle) each(visit func([]grant) bool) {
	o.visit = visit
	o.from(0)
}

func (o *oracle) from(request int) bool {
	if request == len(o.wishes) {
		if o.problemWith(o.grants) != "" {
			return true
		}
		return o.visit(o.grants)
	}
	for _, w := range o.wishes[request] {
		for _, devices := range o.choices(w) {
			o.grants = append(o.grants, grant{w, devices})
			goOn := o.conflict(o.grants) != "" || o.from(request+1)
			o.grants = o.grants[:len(o.grants)-1]
			if !goOn {
				return false
			}
		}
	}
	return true
}

// choices lists the sets of devices that suit a wish taken alone.
func (o *oracle) choices(w wish) [][]int {
	var suitable, matching []int
	for i := range o.offers {
		if o.matches(w, i) {
			matching = append(matching, i)
			if o.obstacle(w, i) == "" {
				suitable = append(suitable, i)
			}
		}
	}
	if w.all {
		if len(matching) == 0 || len(suitable) < len(matching) {
			return nil
		}
		return [][]int{matching}
	}
	return subsets(suitable, w.count)
}

// suits tells whether the devices are one of the choices of the wish.
func (o *oracle) suits(g grant) bool {
	if sets.New(g.devices...).Len() != len(g.devices) {
		return false
	}
	for _, d := range g.devices {
		if d < 0 || !o.matches(g.wish, d) || o.obstacle(g.wish, d) != "" {
			return false
		}
	}
	if !g.wish.all {
		return len(g.devices) == g.wish.count
	}
	matching := 0
	for d := range o.offers {
		if o.matches(g.wish, d) {
			matching++
		}
	}
	return matching > 0 && len(g.devices) == matching
}

// subsets returns all subsets of a size, in lexicographic order.
func subsets(of []int, size int) [][]int {
	if size == 0 {
		return [][]int{nil}
	}
	var result [][]int
	for i := range of {
		for _, rest := range subsets(of[i+1:], size-1) {
			result = append(result, append([]int{of[i]}, rest...))
		}
	}
	return result
}

func (o *oracle) matches(w wish, i int) bool {
	for _, s := range w.selectors {
		if !s.match(o.offers[i].driver, o.offers[i].device) {
			return false
		}
	}
	return true
}

func (o *oracle) obstacle(w wish, i int) string {
	if o.offers[i].inUse && !w.admin {
		return "in use"
	}
	for _, taint := range o.offers[i].device.Taints {
		if taint.Effect != resourceapi.DeviceTaintEffectNone && !w.tolerates.Has(taint.Key) {
			return "tainted"
		}
	}
	return ""
}

// problemWith checks a complete assignment; "" means that it is a solution.
func (o *oracle) problemWith(grants []grant) string {
	perClaim := make(map[int]int)
	for _, g := range grants {
		perClaim[g.wish.claim] += len(g.devices)
		if perClaim[g.wish.claim] > resourceapi.AllocationResultsMaxSize {
			return "more devices than a claim can hold"
		}
		if !o.suits(g) {
			return "devices do not suit " + g.wish.name
		}
	}
	if problem := o.conflict(grants); problem != "" {
		return problem
	}
	for i, claim := range o.c.claims {
		for _, constraint := range claim.Spec.Devices.Constraints {
			if problem := o.violated(constraint, i, grants); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// conflict finds a device that two requests cannot both have. Only an
// administrator's request may join earlier ones, and only of other claims.
func (o *oracle) conflict(grants []grant) string {
	for j, later := range grants {
		for _, earlier := range grants[:j] {
			if later.wish.admin && later.wish.claim != earlier.wish.claim {
				continue
			}
			if sets.New(later.devices...).HasAny(earlier.devices...) {
				return "one device for " + earlier.wish.name + " and " + later.wish.name
			}
		}
	}
	return ""
}

func (o *oracle) violated(constraint resourceapi.DeviceConstraint, claim int, grants []grant) string {
	var values []string
	for _, g := range grants {
		covered := len(constraint.Requests) == 0 || slices.Contains(constraint.Requests, g.wish.request) || slices.Contains(constraint.Requests, g.wish.name)
		if g.wish.claim != claim || !covered {
			continue
		}
		for _, d := range g.devices {
			name := constraint.MatchAttribute
			if name == nil {
				name = constraint.DistinctAttribute
			}
			value, ok := o.value(d, string(*name))
			if !ok {
				return "attribute missing"
			}
			values = append(values, value)
		}
	}
	different := sets.New(values...).Len()
	if constraint.MatchAttribute != nil && different > 1 {
		return "values differ"
	}
	if constraint.DistinctAttribute != nil && different < len(values) {
		return "values are equal"
	}
	return ""
}

// value knows the three attributes that the generator constrains.
func (o *oracle) value(d int, attribute string) (string, bool) {
	switch attribute {
	case modelAttribute:
		value, ok := o.offers[d].device.Attributes["model"]
		if !ok || o.offers[d].driver != gpuDriver {
			return "", false
		}
		return *value.StringValue, true
	case numaAttribute:
		value, ok := o.offers[d].device.Attributes[numaAttribute]
		if !ok {
			return "", false
		}
		return string(rune('0' + *value.IntValue)), true
	default:
		value, ok := o.offers[d].device.Attributes[serialNumber]
		if !ok {
			return "", false
		}
		return *value.StringValue, true
	}
}
