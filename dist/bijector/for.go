package bijector

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// For is the map from all of R^n to a support, the n numbers in the shape that InverseShape gives for one value.
// Supports of whole numbers have none, nor has a point.
func For(s support.Support) (Bijector, error) {
	b, err := single(s)
	if err != nil {
		return nil, err
	}
	return Independent(b, s.Extra), nil
}

// single is For without the extra dimensions.
func single(s support.Support) (b Bijector, err error) {
	defer func() {
		// Ends that are wrong make the constructors panic; here they are an error of the support.
		switch r := recover().(type) {
		case nil:
		case *Error:
			b, err = nil, fmt.Errorf("bijector.For: the support is %s: %w", s, r)
		default:
			panic(r)
		}
	}()
	switch s.Kind {
	case support.KindReal:
		return Identity(), nil
	case support.KindInterval:
		return interval(s), nil
	case support.KindSimplex:
		return StickBreaking(), nil
	case support.KindOrdered:
		return Ordered(), nil
	case support.KindPositiveOrdered:
		return PositiveOrdered(), nil
	case support.KindUnitVector:
		return UnitVector(), nil
	case support.KindZeroSum:
		if s.Groups != nil {
			return zeroSums(*s.Groups), nil
		}
		return ZeroSum(), nil
	case support.KindLowerCholesky:
		return LowerCholesky(), nil
	case support.KindCorrCholesky:
		return CorrCholesky(), nil
	case support.KindPositiveDefinite:
		return PositiveDefinite(), nil
	}
	return nil, &Error{"For", "the support", s.String(), "it must be of numbers that can be varied a little; sum or " +
		"enumerate over the values of a discrete one"}
}

// interval is the map to an interval, by which of its ends are there.
func interval(s support.Support) Bijector {
	low, high := s.Low, s.High
	from, to := low != minusInf, high != plusInf
	switch {
	case from && to && low == torch.Of(0) && high == torch.Of(1):
		return Sigmoid()
	case from && to:
		return Interval(low, high)
	case from && low == torch.Of(0):
		return Exp()
	case from:
		return GreaterThan(low)
	case to:
		return LessThan(high)
	}
	return Identity()
}
