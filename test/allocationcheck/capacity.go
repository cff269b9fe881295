package allocationcheck

import (
	"math/big"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// consumption returns what each capacity of the device loses to a request, or
// false if the device has less, not at all, or not in such portions.
func (c *checker) consumption(d *device, a *ask) (map[resourceapi.QualifiedName]*big.Rat, bool) {
	for name := range a.capacity {
		if _, ok := d.spec.Capacity[name]; !ok {
			return nil, false
		}
	}
	consumed := make(map[resourceapi.QualifiedName]*big.Rat)
	for name, capacity := range d.spec.Capacity {
		var want *resource.Quantity
		if amount, ok := a.capacity[name]; ok {
			want = &amount
		}
		portion, ok := portionOf(capacity, want, c.Features.FractionalCapacityRange)
		if !ok || portion.Sign() < 0 || portion.Cmp(exactly(capacity.Value)) > 0 {
			return nil, false
		}
		consumed[name] = portion
	}
	return consumed, true
}

func (c *checker) largeEnough(d *device, a *ask) bool {
	if !c.Features.ConsumableCapacity {
		return true
	}
	_, ok := c.consumption(d, a)
	return ok
}

// portionOf rounds a request up to what the policy of the capacity allows.
func portionOf(capacity resourceapi.DeviceCapacity, want *resource.Quantity, fractional bool) (*big.Rat, bool) {
	policy := capacity.RequestPolicy
	switch {
	case want == nil && policy != nil && policy.Default != nil:
		return exactly(*policy.Default), true
	case want == nil:
		return exactly(capacity.Value), true
	case policy == nil:
		return exactly(*want), true
	case policy.ValidRange != nil:
		return inRange(policy.ValidRange, *want, fractional)
	case len(policy.ValidValues) > 0:
		for _, value := range policy.ValidValues { // ascending, says the API
			if want.Cmp(value) <= 0 {
				return exactly(value), true
			}
		}
		return nil, false
	}
	return exactly(*want), true
}

// inRange returns the smallest min + n*step that is not below the request.
func inRange(limits *resourceapi.CapacityRequestPolicyRange, want resource.Quantity, fractional bool) (*big.Rat, bool) {
	number := exactly
	if !fractional && limits.Step != nil {
		number = roundedUp // there are only whole numbers
	}
	portion := exactly(want)
	switch {
	case limits.Min == nil:
	case want.Cmp(*limits.Min) < 0:
		portion = exactly(*limits.Min)
	case limits.Step != nil:
		steps := new(big.Rat).Sub(number(want), number(*limits.Min))
		steps.Quo(steps, number(*limits.Step))
		portion.Mul(ceiling(steps), number(*limits.Step))
		portion.Add(portion, number(*limits.Min))
	}
	if limits.Max != nil && portion.Cmp(exactly(*limits.Max)) > 0 {
		return nil, false
	}
	return portion, true
}

func exactly(q resource.Quantity) *big.Rat {
	value, ok := new(big.Rat).SetString(q.AsDec().String())
	if !ok {
		panic("quantity " + q.String() + " is not a number")
	}
	return value
}

func roundedUp(q resource.Quantity) *big.Rat { return ceiling(exactly(q)) }

func ceiling(r *big.Rat) *big.Rat {
	quotient, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return new(big.Rat).SetInt(quotient)
}
