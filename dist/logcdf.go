package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
)

// LogCDF is log P(X ≤ x), with its own digits however far out x is: as log-probabilities of -10⁶ in either tail. x is a
// number or a tensor that broadcasts against the batch. Its derivatives are right in x, where that is a real number,
// and in every parameter, also in those of shape.
//
// Near the ends of what is [Truncated] it has the digits that are left of a difference of tails.
//
// All distributions of one number have it but [VonMises], [Flat] and those that [ImproperUniform] makes; another
// distribution is an [*Error] of the model, as for the functions beside it.
func LogCDF(d Distribution, x any) torch.Tensor {
	lower, _ := tailsFor("LogCDF", d, x)
	return lower
}

// LogSurvival is log P(X > x), computed in the upper tail; see [LogCDF]. Its negative is the cumulative hazard, and
// LogProb less it the logarithm of the hazard of a real number.
func LogSurvival(d Distribution, x any) torch.Tensor {
	_, upper := tailsFor("LogSurvival", d, x)
	return upper
}

// LogInterval is log P(lower < X ≤ upper), computed in the tail that is nearer; see [LogCDF]. Where upper is not above
// lower it is minus infinity. With T the nearer tail at either end, and P the probability, the relative error of P is
// some roundings of (T(lower) + T(upper))/P.
func LogInterval(d Distribution, lower, upper any) torch.Tensor {
	const name = "LogInterval"
	l, u := pairFor(name, d, lower), pairFor(name, d, upper)
	mass, lost := massBetween(d.Name(), l, u)
	return fill(mass, lost, math.Inf(-1))
}

func pairFor(name string, d Distribution, x any) tailPair {
	lower, upper := tailsFor(name, d, x)
	return tailPair{lower, upper}
}

// tailsFor are both tails at any x, or a panic that names the function and the distribution.
func tailsFor(name string, d Distribution, x any) (lower, upper torch.Tensor) {
	if d == nil {
		panic(&Error{name, "d", "nil", "a distribution of single numbers is required"})
	}
	if missing := noTails(d); missing != "" {
		panic(&Error{name, "d", missing, "it has no distribution function here; a distribution of single numbers with one " +
			"is required"})
	}
	dtype, device := typeOf(d)
	return tailsAnywhere(d, floated(tensorOf(param(name, "x", x), dtype, device)))
}

// noTails names the distribution that has no distribution function; empty where none lacks one.
func noTails(d Distribution) string {
	if len(d.EventShape()) > 0 {
		return d.Name()
	}
	return lacking(d, noOwnTails)
}

// noOwnTails is noTails of what is no mixture.
func noOwnTails(d Distribution) string {
	switch m := d.(type) {
	case deltaDist:
		return ""
	case zeroInflatedDist:
		return noTails(m.counts)
	case transformedDist:
		if _, ok := m.direction(); !ok {
			return d.Name()
		}
		return noTails(m.of)
	case misfit:
		panic(m.err)
	}
	if _, single := span(d.Support()); !single {
		return d.Name()
	}
	switch d.(type) {
	case tailed, CDFer:
		return ""
	case Enumerable:
		if d.Support().Discrete() {
			return ""
		}
	}
	return d.Name()
}

// paired are two tails, of which the smaller is exact, with the larger computed from it.
func paired(lower, upper torch.Tensor) (_, _ torch.Tensor) {
	down := dense(lower).Lt(upper)
	small := torch.Choose(down, lower, upper)
	large := logOneMinusExp(small)
	return torch.Choose(down, lower, large), torch.Choose(down, large, upper)
}
