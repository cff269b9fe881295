package allocationcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// checkConstraint checks a constraint of a claim against the devices of that
// claim. The order of the devices does not matter.
func (c *checker) checkConstraint(claim *resourceapi.ResourceClaim, constraint resourceapi.DeviceConstraint, picks []*pick) {
	name, distinct := constraint.MatchAttribute, false
	if name == nil {
		name, distinct = constraint.DistinctAttribute, true
	}
	if name == nil {
		c.problem("claim %s: allocated although there is a constraint of an unknown kind", claim.Name)
		return
	}
	var values []sets.Set[string]
	for _, p := range picks {
		if !p.ask.coveredBy(constraint.Requests) {
			continue
		}
		value, err := c.valuesOf(p, *name)
		if err != nil {
			c.problem("%v: attribute %s: %v", p, *name, err)
			continue
		}
		values = append(values, value)
	}
	if !distinct && !haveCommon(values) {
		c.problem("claim %s: no common value of attribute %s", claim.Name, *name)
	}
	if distinct && !disjoint(values) {
		c.problem("claim %s: one value of attribute %s twice", claim.Name, *name)
	}
}

func haveCommon(values []sets.Set[string]) bool {
	if len(values) < 2 {
		return true
	}
	common := values[0]
	for _, value := range values[1:] {
		common = common.Intersection(value)
	}
	return common.Len() > 0
}

func disjoint(values []sets.Set[string]) bool {
	seen := sets.New[string]()
	for _, value := range values {
		if seen.HasAny(value.UnsortedList()...) {
			return false
		}
		seen = seen.Union(value)
	}
	return true
}

// valuesOf returns the values that the device has for the request, each with
// its type, so that values of different types differ.
func (c *checker) valuesOf(p *pick, name resourceapi.FullyQualifiedName) (sets.Set[string], error) {
	attribute, err := c.attributeOf(p, name)
	if err != nil {
		return nil, err
	}
	value := sets.New[string]()
	// An attribute has one of these fields. Lists are read first.
	switch a := attribute; {
	case len(a.IntValues) > 0:
		insert(value, "int", a.IntValues...)
	case len(a.BoolValues) > 0:
		insert(value, "bool", a.BoolValues...)
	case len(a.StringValues) > 0:
		insert(value, "string", a.StringValues...)
	case len(a.VersionValues) > 0:
		insert(value, "version", a.VersionValues...)
	case a.IntValue != nil:
		insert(value, "int", *a.IntValue)
	case a.BoolValue != nil:
		insert(value, "bool", *a.BoolValue)
	case a.StringValue != nil:
		insert(value, "string", *a.StringValue)
	case a.VersionValue != nil:
		insert(value, "version", *a.VersionValue)
	}
	if c.Features.ListTypeAttributes {
		if value.Len() == 0 {
			return nil, fmt.Errorf("has no value")
		}
		return value, nil
	}
	if a := attribute; a.IntValues != nil || a.BoolValues != nil || a.StringValues != nil || a.VersionValues != nil {
		// Equal to nothing: without the feature a list is a value of an
		// unknown type.
		return sets.New[string](), nil
	}
	return value, nil
}

func insert[T any](into sets.Set[string], kind string, values ...T) {
	for _, value := range values {
		into.Insert(fmt.Sprintf("%s %v", kind, value))
	}
}

// attributeOf finds what the request derives, or else what the driver says.
func (c *checker) attributeOf(p *pick, name resourceapi.FullyQualifiedName) (*resourceapi.DeviceAttribute, error) {
	derived := slices.IndexFunc(p.ask.derived, func(d resourceapi.DeviceDerivedAttribute) bool { return d.Name == name })
	if derived >= 0 {
		compiled := c.expressions.GetOrCompileDerivedAttribute(p.ask.derived[derived].Expression)
		if compiled.Error != nil {
			return nil, compiled.Error
		}
		attribute, _, err := compiled.EvaluateDerivedAttribute(context.Background(), forCEL(p.device))
		return attribute, err
	}
	if attribute, ok := p.device.spec.Attributes[resourceapi.QualifiedName(name)]; ok {
		return &attribute, nil
	}
	if short, ok := strings.CutPrefix(string(name), p.device.id.driver+"/"); ok {
		if attribute, ok := p.device.spec.Attributes[resourceapi.QualifiedName(short)]; ok {
			return &attribute, nil
		}
	}
	return nil, fmt.Errorf("does not exist")
}
