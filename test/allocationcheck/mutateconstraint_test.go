package allocationcheck_test

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

const fresh = "example.com/fresh"

// constraintMutations add constraints that the devices do not satisfy.
var constraintMutations = map[string]mutation{
	"a constraint of an unknown kind": {"constraint of an unknown kind", func(m *mutant) bool {
		m.claim.Spec.Devices.Constraints = append(m.claim.Spec.Devices.Constraints, resourceapi.DeviceConstraint{})
		return true
	}},
	"match: no device has the attribute": {"attribute example.com/fresh: does not exist", func(m *mutant) bool { m.constrain(false); return true }},
	"match: the request does not have the attribute": {"attribute example.com/fresh: does not exist", func(m *mutant) bool {
		m.constrain(false, m.result.Request)
		return true
	}},
	"match: one device does not have the attribute": {"attribute example.com/fresh: does not exist", func(m *mutant) bool {
		m.constrain(false)
		return m.give(number(1), nothing)
	}},
	"match: values differ": {"no common value", func(m *mutant) bool {
		m.constrain(false)
		return m.give(number(1), number(2))
	}},
	"match: values differ inside a request": {"no common value", func(m *mutant) bool {
		m.constrain(false, m.request.Name)
		return m.give(number(1), number(2)) && m.of.Devices.Results[0].Request == m.of.Devices.Results[1].Request && m.of.Devices.Results[0].Request == m.result.Request
	}},
	"match: types differ": {"no common value", func(m *mutant) bool {
		m.constrain(false)
		return m.give(number(1), text("1"))
	}},
	"match: a version is no string": {"no common value", func(m *mutant) bool {
		m.constrain(false)
		return m.give(text("1.0.0"), resourceapi.DeviceAttribute{VersionValue: ptr.To("1.0.0")})
	}},
	"match: lists without a common element": {"no common value", func(m *mutant) bool {
		m.constrain(false)
		return m.give(numbers(1, 2), numbers(3, 4)) && m.situation.Features.ListTypeAttributes
	}},
	"match: lists with common elements two by two only": {"no common value", func(m *mutant) bool {
		m.constrain(false)
		return m.give(numbers(1, 2), numbers(2, 3), numbers(1, 3)) && m.situation.Features.ListTypeAttributes
	}},
	"match: a list that does not have the scalar": {"no common value", func(m *mutant) bool {
		m.constrain(false)
		return m.give(numbers(1, 2), number(3)) && m.situation.Features.ListTypeAttributes
	}},
	"match: lists without the feature": {"no common value", func(m *mutant) bool {
		m.constrain(false)
		return m.give(numbers(1), numbers(1)) && !m.situation.Features.ListTypeAttributes
	}},
	"distinct: no device has the attribute": {"attribute example.com/fresh: does not exist", func(m *mutant) bool { m.constrain(true); return true }},
	"distinct: values are equal": {"twice", func(m *mutant) bool {
		m.constrain(true)
		return m.give(number(1), number(1))
	}},
	"distinct: lists overlap": {"twice", func(m *mutant) bool {
		m.constrain(true)
		return m.give(numbers(1, 2), numbers(2, 3)) && m.situation.Features.ListTypeAttributes
	}},
	"distinct: the third is as the first": {"twice", func(m *mutant) bool {
		m.constrain(true)
		return m.give(number(1), number(2), number(1))
	}},
	"distinct: derived values are equal": {"twice", func(m *mutant) bool {
		m.constrain(true)
		m.derive(`"same"`)
		return m.give(number(1), number(2)) && m.situation.Features.DerivedAttributes
	}},
	"match: derived values differ": {"no common value", func(m *mutant) bool {
		m.constrain(false)
		// The name of a device cannot be read, so it gets another attribute.
		m.derive(`"mark" in device.attributes["example.com"]`)
		if !m.give(number(1), number(1)) {
			return false
		}
		_, d := m.find(&m.of.Devices.Results[0])
		d.Attributes["example.com/mark"] = number(1)
		return m.situation.Features.DerivedAttributes
	}},
	"match: the derivation fails": {"no such key", func(m *mutant) bool {
		m.constrain(false)
		m.derive(`device.attributes["example.com"].nobody`)
		return m.give(number(1)) && m.situation.Features.DerivedAttributes
	}},
	"match: the derivation cannot be compiled": {"undefined field", func(m *mutant) bool {
		m.constrain(false)
		m.derive(`device.nobody`)
		return m.give(number(1)) && m.situation.Features.DerivedAttributes
	}},
}

var nothing = resourceapi.DeviceAttribute{}

func number(n int64) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValue: &n} }

func text(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }

func numbers(n ...int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValues: n}
}

// constrain adds a constraint on the attribute "fresh".
func (m *mutant) constrain(distinct bool, requests ...string) {
	constraint := resourceapi.DeviceConstraint{Requests: requests}
	if distinct {
		constraint.DistinctAttribute = ptr.To[resourceapi.FullyQualifiedName](fresh)
	} else {
		constraint.MatchAttribute = ptr.To[resourceapi.FullyQualifiedName](fresh)
	}
	m.claim.Spec.Devices.Constraints = append(m.claim.Spec.Devices.Constraints, constraint)
}

// give sets the attribute "fresh" of the devices of the claim: the first value
// for the first device, and so on, the last for all others. It returns false if
// there are fewer devices than values.
func (m *mutant) give(values ...resourceapi.DeviceAttribute) bool {
	given := make(map[*resourceapi.Device]bool)
	for i := range m.of.Devices.Results {
		_, d := m.find(&m.of.Devices.Results[i])
		if given[d] {
			return false // one device cannot have two values
		}
		given[d] = true
		if d.Attributes == nil {
			d.Attributes = make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
		}
		value := values[min(i, len(values)-1)]
		if value.IntValue != nil || value.StringValue != nil || value.IntValues != nil || value.VersionValue != nil {
			d.Attributes[fresh] = value
		}
	}
	return len(given) >= len(values)
}

// derive lets all requests of the claim compute the attribute "fresh".
func (m *mutant) derive(expression string) {
	derived := resourceapi.DeviceDerivedAttribute{Name: fresh, Expression: expression}
	for i := range m.claim.Spec.Devices.Requests {
		request := &m.claim.Spec.Devices.Requests[i]
		if request.Exactly != nil {
			request.Exactly.DerivedAttributes = append(request.Exactly.DerivedAttributes, derived)
		}
		for j := range request.FirstAvailable {
			request.FirstAvailable[j].DerivedAttributes = append(request.FirstAvailable[j].DerivedAttributes, derived)
		}
	}
}
