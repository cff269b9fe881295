package capacity

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// rule is how one capacity of a device is consumed.
type rule struct {
	capacity   *resourceapi.DeviceCapacity
	fractional bool
}

// consume returns how much an allocation takes. Without a request it is the
// policy's default or else everything; a request is rounded up as the policy
// says. why is empty, fatal, or Malformed; then the amount is the one that gave
// offence.
func (r rule) consume(asked resource.Quantity, isAsked bool) (amount resource.Quantity, why Why) {
	amount = asked.DeepCopy()
	switch policy := r.capacity.RequestPolicy; {
	case isAsked && absurd(asked):
		return amount, NotRepresentable
	case r.absurd():
		return amount, Malformed
	case !isAsked && policy != nil && policy.Default != nil:
		amount = policy.Default.DeepCopy()
	case !isAsked:
		amount = r.capacity.Value.DeepCopy()
	case policy == nil:
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		amount, why = r.roundToRange(amount, policy.ValidRange)
	default:
		amount = roundToValues(amount, policy.ValidValues)
	}
	if why == "" && amount.Sign() < 0 {
		why = Negative
	}
	return amount, why
}

func (r rule) roundToRange(amount resource.Quantity, bounds *resourceapi.CapacityRequestPolicyRange) (resource.Quantity, Why) {
	if amount.Cmp(*bounds.Min) < 0 {
		return bounds.Min.DeepCopy(), ""
	}
	if bounds.Step == nil {
		return amount, ""
	}
	steps, ok := stepsOf(bounds, r.fractional)
	if !ok {
		return amount, Malformed
	}
	rounded, ok := steps.roundUp(amount)
	if !ok {
		return amount, NotRepresentable
	}
	return rounded, ""
}

// roundToValues returns the first valid value, which are in ascending order,
// that is large enough. If none is, the amount stays, to be refused by permit.
func roundToValues(amount resource.Quantity, valid []resource.Quantity) resource.Quantity {
	for _, value := range valid {
		if amount.Cmp(value) <= 0 {
			return value.DeepCopy()
		}
	}
	return amount
}

// permit says why one allocation may not take the amount, or "".
func (r rule) permit(amount resource.Quantity) Why {
	if why := r.permitByPolicy(amount); why != "" {
		return why
	}
	if amount.Cmp(r.capacity.Value) > 0 {
		return AboveValue
	}
	return ""
}

func (r rule) permitByPolicy(amount resource.Quantity) Why {
	policy := r.capacity.RequestPolicy
	switch {
	case policy == nil:
		return ""
	case policy.Default != nil && amount == *policy.Default:
		// The stock allocator compares the representation: equal amounts that are
		// written in another way are checked like any other, and so are those
		// with too many digits for an int64. Validation has checked the default,
		// so that this makes a difference for objects older than the validation.
		return ""
	case policy.ValidRange != nil:
		return r.permitByRange(amount, policy.ValidRange)
	case len(policy.ValidValues) > 0 && !slices.ContainsFunc(policy.ValidValues, amount.Equal):
		return AgainstPolicy
	}
	return ""
}

func (r rule) permitByRange(amount resource.Quantity, bounds *resourceapi.CapacityRequestPolicyRange) Why {
	if bounds.Max != nil && amount.Cmp(*bounds.Max) > 0 {
		return AgainstPolicy
	}
	if bounds.Step == nil {
		return ""
	}
	steps, ok := stepsOf(bounds, r.fractional)
	switch {
	case !ok:
		return Malformed
	case !steps.include(amount):
		return AgainstPolicy
	}
	return ""
}

// absurd says whether any published quantity is one that must not be computed
// with.
func (r rule) absurd() bool {
	if absurd(r.capacity.Value) {
		return true
	}
	policy := r.capacity.RequestPolicy
	if policy == nil {
		return false
	}
	bounds := []*resource.Quantity{policy.Default}
	if policy.ValidRange != nil {
		bounds = append(bounds, policy.ValidRange.Min, policy.ValidRange.Max, policy.ValidRange.Step)
	}
	isAbsurd := func(q *resource.Quantity) bool { return q != nil && absurd(*q) }
	return slices.ContainsFunc(bounds, isAbsurd) || slices.ContainsFunc(policy.ValidValues, absurd)
}
