package capacity

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are quantities by the name of a capacity: what one allocation, or all
// of them together, consume. Amounts are not changed once they are made; nil is
// nothing at all.
type Amounts map[resourceapi.QualifiedName]resource.Quantity

// Add returns the sum. Names that only one of the two has are kept.
func (a Amounts) Add(b Amounts) Amounts { return nil }

// Sub returns a without b: what is left when a share that was added goes away.
// Amounts that come out as zero are left out.
func (a Amounts) Sub(b Amounts) Amounts { return nil }

// Fits says whether the device has room for the demand next to what is used,
// the sum of all shares held. Every capacity of the device counts, also one of
// which nothing is demanded. Names that the device does not have, for instance
// because its driver no longer publishes them, do not. If it does not fit,
// short is the first capacity, by name, of which there is too little.
func Fits(d *resourceapi.Device, used, demand Amounts) (ok bool, short resourceapi.QualifiedName) {
	return false, ""
}
