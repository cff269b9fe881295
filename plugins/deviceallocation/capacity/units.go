package capacity

import (
	"math"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	milli = -3
	nano  = -9

	// largest is the power of ten that no meaningful quantity reaches. The API
	// means to stop at 2^63, but lets 1e1000000000 pass, and whoever compares
	// that with 1 computes a number with a billion digits.
	largest = 100
)

// absurd says whether a quantity has so many digits, or such an exponent, that
// it must not be added or compared.
func absurd(q resource.Quantity) bool {
	if !q.IsZero() { // AsInt64 appends the zeros of 0e1000000000 one by one
		if _, ok := q.AsInt64(); ok {
			return false
		}
	}
	d := q.AsDec() // of a copy; the original is not converted
	return d.Scale() < -largest || d.Scale() > largest || d.UnscaledBig().BitLen() > largest*10/3
}

// tame replaces an absurd quantity by one that is nearer to zero and still too
// large for everything.
func tame(q resource.Quantity) resource.Quantity {
	if q.IsZero() {
		return resource.Quantity{Format: q.Format}
	}
	if !absurd(q) {
		return q
	}
	return *resource.NewScaledQuantity(int64(q.Sign()), largest)
}

// units is a quantity as a number of units: floor is the next lower whole
// number, exact says that it is the quantity. Unless inRange, it is outside of
// int64, and floor is the end of int64 on that side.
type units struct {
	floor          int64
	exact, inRange bool
}

// up returns the next higher whole number, at most the end of int64.
func (u units) up() int64 {
	if u.exact || !u.inRange || u.floor == math.MaxInt64 {
		return u.floor
	}
	return u.floor + 1
}

// inUnits counts a quantity that is not absurd in units of 10^scale.
func inUnits(q resource.Quantity, scale int) units {
	// ScaledValue rounds and overflows without a word, but costs little.
	n := q.ScaledValue(resource.Scale(scale))
	if q.Cmp(*resource.NewScaledQuantity(n, resource.Scale(scale))) == 0 {
		return units{floor: n, exact: true, inRange: true}
	}
	d := q.AsDec()
	quotient, remainder := new(big.Int).Set(d.UnscaledBig()), new(big.Int)
	if exponent := -int64(d.Scale()) - int64(scale); exponent >= 0 {
		quotient.Mul(quotient, power(exponent))
	} else {
		quotient.DivMod(quotient, power(-exponent), remainder)
	}
	u := units{exact: remainder.Sign() == 0, inRange: quotient.IsInt64()}
	switch {
	case u.inRange:
		u.floor = quotient.Int64()
		// Up to a whole number that is one too large.
		u.inRange = u.exact || u.floor < math.MaxInt64
	case quotient.Sign() < 0:
		u.floor = math.MinInt64
	default:
		u.floor = math.MaxInt64
	}
	return u
}

func power(exponent int64) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent), nil)
}
