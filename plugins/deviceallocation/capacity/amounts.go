package capacity

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are quantities by the name of a capacity: what one allocation, or all
// of them together, consume. Amounts are not changed once they are made; nil is
// nothing at all.
//
// They may come from the status of a claim, where anything can be written. A
// quantity of more than a hundred digits counts as 10^100.
type Amounts map[resourceapi.QualifiedName]resource.Quantity

// Add returns the sum. Names that only one of the two has are kept.
func (a Amounts) Add(b Amounts) Amounts {
	return a.combine(b, (*resource.Quantity).Add)
}

// Sub returns a without b: what is left when a share that was added goes away.
// Amounts that come out as zero are left out.
func (a Amounts) Sub(b Amounts) Amounts {
	left := a.combine(b, (*resource.Quantity).Sub)
	for name, amount := range left {
		if amount.IsZero() {
			delete(left, name)
		}
	}
	return left
}

func (a Amounts) combine(b Amounts, operation func(*resource.Quantity, resource.Quantity)) Amounts {
	combined := make(Amounts, max(len(a), len(b)))
	for name, amount := range a {
		combined[name] = tame(amount).DeepCopy()
	}
	for name, amount := range b {
		total := combined[name]
		operation(&total, tame(amount))
		combined[name] = total
	}
	return combined
}

// Fits says whether the device has room for the demand next to what is used,
// the sum of all shares held. Every capacity of the device counts, also one of
// which nothing is demanded. Names that the device does not have, for instance
// because its driver no longer publishes them, do not. If it does not fit,
// short is the first capacity, by name, of which there is too little.
func Fits(d *resourceapi.Device, used, demand Amounts) (ok bool, short resourceapi.QualifiedName) {
	ok = true
	for name, published := range d.Capacity {
		if !ok && name >= short {
			continue
		}
		total := tame(used[name]).DeepCopy()
		total.Add(tame(demand[name]))
		if total.Cmp(tame(published.Value)) > 0 {
			ok, short = false, name
		}
	}
	return ok, short
}
