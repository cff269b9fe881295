package allocationcheck_test

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
)

// exercised names what allocations need of the allocator. Each of it must
// happen, or random clusters prove nothing about it.
func exercised(s *allocationcheck.Situation, allocations []resourceapi.AllocationResult) map[string]bool {
	did := make(map[string]bool)
	uses := make(map[string]int)
	for i, a := range allocations {
		for j := range a.Devices.Results {
			r := &a.Devices.Results[j]
			m := &mutant{situation: s, claim: s.Claims[i], result: r}
			m.slice, m.device = m.find(r)
			uses[r.Driver+r.Pool+r.Device]++
			did["two shares of a device"] = did["two shares of a device"] || uses[r.Driver+r.Pool+r.Device] > 1 && r.ShareID != nil
			m.exercise(did)
		}
		for _, constraint := range s.Claims[i].Spec.Devices.Constraints {
			if len(a.Devices.Results) < 2 {
				continue
			}
			name := "matchAttribute"
			if constraint.DistinctAttribute != nil {
				name = "distinctAttribute"
			}
			did[name] = true
			did[name+" on some requests"] = did[name+" on some requests"] || len(constraint.Requests) > 0
			attribute := string(ptrOr(constraint.MatchAttribute, constraint.DistinctAttribute))
			did["a constraint on a derived attribute"] = did["a constraint on a derived attribute"] || strings.HasPrefix(attribute, "derived.")
			did["a constraint on lists"] = did["a constraint on lists"] || strings.HasSuffix(attribute, "/links")
		}
	}
	did["several claims"] = len(allocations) > 1
	return did
}

func ptrOr[T any](first, second *T) T {
	if first != nil {
		return *first
	}
	return *second
}

func (m *mutant) exercise(did map[string]bool) {
	held, counters := m.held(), len(m.device.ConsumesCounters)
	shared := m.device.AllowMultipleAllocations != nil && m.result.ShareID != nil
	for name, happens := range map[string]bool{
		"admin access":                         m.admin(),
		"admin access to a device in use":      m.admin() && held,
		"a subrequest":                         strings.Contains(m.result.Request, "/"),
		"a second subrequest":                  strings.HasSuffix(m.result.Request, "/sub-1"),
		"a share":                              shared,
		"a share of a device in use":           shared && held,
		"a share of a partition":               shared && counters > 0,
		"a share of a partition in use":        shared && counters > 0 && held,
		"a partition":                          counters > 0,
		"a partition of two counter sets":      counters > 1,
		"a partition of a set that is in use":  counters > 0 && !held && m.setInUse(false),
		"a partition that competes with nodes": counters > 0 && !held && m.setInUse(true),
		"compatibility groups":                 counters > 0 && len(m.device.ConsumesCounters[0].CompatibilityGroups) > 0,
		"binding conditions":                   len(m.result.BindingConditions) > 0,
		"skipNodeOperations":                   len(m.result.SkipNodeOperations) > 0,
		"a tolerated taint":                    len(m.device.Taints) > 0 && len(m.result.Tolerations) > 0,
		"a device of a multi-host pool":        m.slice.Spec.PerDeviceNodeSelection != nil,
		"a request policy":                     shared && m.hasPolicy(),
		"a node selector by label":             m.slice.Spec.NodeSelector != nil,
	} {
		did[name] = did[name] || happens
	}
}

func (m *mutant) hasPolicy() bool {
	for _, capacity := range m.device.Capacity {
		if capacity.RequestPolicy != nil {
			return true
		}
	}
	return false
}

// setInUse tells whether another device, or one that this node cannot reach,
// holds counters of the same set.
func (m *mutant) setInUse(elsewhere bool) bool {
	found := false
	m.eachSlice(func(s *resourceapi.ResourceSlice) {
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			other := &mutant{situation: m.situation, result: &resourceapi.DeviceRequestAllocationResult{
				Driver: m.result.Driver, Pool: m.result.Pool, Device: d.Name,
			}}
			far := s.Spec.NodeName != nil && *s.Spec.NodeName != m.situation.Node.Name || d.NodeName != nil && *d.NodeName != m.situation.Node.Name
			for _, c := range d.ConsumesCounters {
				same := c.CounterSet == m.device.ConsumesCounters[0].CounterSet
				found = found || same && d != m.device && other.held() && (far || !elsewhere)
			}
		}
	})
	return found
}
