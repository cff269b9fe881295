package allocationcheck_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/randomcluster"
)

// mutant is a sound allocation in which something can be made wrong: in the
// results, or in the situation for which they were good.
type mutant struct {
	*rand.Rand
	situation   *allocationcheck.Situation
	allocations []resourceapi.AllocationResult
	// claim and result are those to be spoilt. The other fields belong to them.
	claim   *resourceapi.ResourceClaim
	of      *resourceapi.AllocationResult
	result  *resourceapi.DeviceRequestAllocationResult
	slice   *resourceapi.ResourceSlice
	device  *resourceapi.Device
	request *resourceapi.DeviceRequest
	// subrequest is nil unless the request is a prioritized list.
	subrequest *resourceapi.DeviceSubRequest
}

// newMutant copies everything and picks a result, of which there must be one.
func newMutant(r *rand.Rand, s *allocationcheck.Situation, allocations []resourceapi.AllocationResult) *mutant {
	m := &mutant{Rand: r, situation: s.DeepCopy()}
	for _, a := range allocations {
		m.allocations = append(m.allocations, *a.DeepCopy())
	}
	i := r.IntN(len(allocations))
	for len(allocations[i].Devices.Results) == 0 {
		i = (i + 1) % len(allocations)
	}
	m.claim, m.of = m.situation.Claims[i], &m.allocations[i]
	m.result = &m.of.Devices.Results[r.IntN(len(m.of.Devices.Results))]
	m.slice, m.device = m.find(m.result)
	main, sub, _ := strings.Cut(m.result.Request, "/")
	for i := range m.claim.Spec.Devices.Requests {
		if request := &m.claim.Spec.Devices.Requests[i]; request.Name == main {
			m.request = request
		}
	}
	for i := range m.request.FirstAvailable {
		if m.request.FirstAvailable[i].Name == sub {
			m.subrequest = &m.request.FirstAvailable[i]
		}
	}
	return m
}

// find returns the device of a result in the newest generation.
func (m *mutant) find(r *resourceapi.DeviceRequestAllocationResult) (*resourceapi.ResourceSlice, *resourceapi.Device) {
	var slice *resourceapi.ResourceSlice
	var device *resourceapi.Device
	for _, s := range m.situation.Slices {
		if s.Spec.Driver != r.Driver || s.Spec.Pool.Name != r.Pool || slice != nil && s.Spec.Pool.Generation < slice.Spec.Pool.Generation {
			continue
		}
		for i := range s.Spec.Devices {
			if s.Spec.Devices[i].Name == r.Device {
				slice, device = s, &s.Spec.Devices[i]
			}
		}
	}
	return slice, device
}

func (m *mutant) admin() bool { return m.result.AdminAccess != nil }

// shared tells whether the result is a share.
func (m *mutant) shared() bool { return m.result.ShareID != nil }

// selectors, capacity and derived are fields of the request or subrequest.
func (m *mutant) selectors() *[]resourceapi.DeviceSelector {
	if m.subrequest != nil {
		return &m.subrequest.Selectors
	}
	return &m.request.Exactly.Selectors
}

func (m *mutant) capacity() **resourceapi.CapacityRequirements {
	if m.subrequest != nil {
		return &m.subrequest.Capacity
	}
	return &m.request.Exactly.Capacity
}

func (m *mutant) count() *int64 {
	if m.subrequest != nil {
		return &m.subrequest.Count
	}
	return &m.request.Exactly.Count
}

func (m *mutant) all() bool {
	mode := resourceapi.DeviceAllocationModeAll
	return m.subrequest != nil && m.subrequest.AllocationMode == mode || m.subrequest == nil && m.request.Exactly.AllocationMode == mode
}

// held tells whether somebody had the device, or a share of it, before.
func (m *mutant) held() bool {
	for _, claim := range m.situation.Held {
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.AdminAccess == nil && r.Driver == m.result.Driver && r.Pool == m.result.Pool && r.Device == m.result.Device {
				return true
			}
		}
	}
	return false
}

// hold lets another claim have a device of the pool.
func (m *mutant) hold(device string, change func(*resourceapi.DeviceRequestAllocationResult)) {
	holder := builders.Claim("another").Holding(m.result.Driver, m.result.Pool, device).Obj()
	if change != nil {
		change(&holder.Status.Allocation.Devices.Results[0])
	}
	m.situation.Held = append(m.situation.Held, holder)
}

// mutation makes something wrong.
type mutation struct {
	// want is part of what the check must say.
	want string
	// apply returns false if there is nothing that it could make wrong.
	apply func(m *mutant) bool
}

// TestCheckRejectsMutants spoils sound allocations in every way that a check
// should notice. PROPERTY_SEED and PROPERTY_CASES choose the clusters.
func TestCheckRejectsMutants(t *testing.T) {
	seed := fromEnvironment(t, "PROPERTY_SEED", 1)
	cases := fromEnvironment(t, "PROPERTY_CASES", 300)
	rejected := make(map[string]int)
	all := make(map[string]mutation)
	for _, mutations := range []map[string]mutation{resultMutations, situationMutations, useMutations, constraintMutations, gateMutations} {
		for name, mutate := range mutations {
			all[name] = mutate
		}
	}
	for i := range cases {
		s := randomcluster.New(seed + i)
		allocations, outcome := askStock(s)
		if outcome != "allocated" || !slices.ContainsFunc(allocations, func(a resourceapi.AllocationResult) bool { return len(a.Devices.Results) > 0 }) {
			continue
		}
		for name, mutate := range all {
			m := newMutant(rand.New(rand.NewPCG(seed+i, 0)), s, allocations)
			if !mutate.apply(m) {
				continue
			}
			problems := allocationcheck.Check(m.situation, m.allocations)
			if slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, mutate.want) }) {
				rejected[name]++
				continue
			}
			t.Errorf("%s (claim %s, result %v): got problems %q, want %q\nreplay with PROPERTY_SEED=%d PROPERTY_CASES=1",
				name, m.claim.Name, m.result, problems, mutate.want, seed+i)
		}
		if t.Failed() {
			return
		}
	}
	for name := range all {
		if cases >= 300 && rejected[name] == 0 {
			t.Errorf("%s: never happens in %d clusters", name, cases)
		}
	}
	t.Logf("rejected: %v", rejected)
}
