package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// vonMisesDist is the von Mises distribution; see [VonMises].
type vonMisesDist struct {
	base
	loc, concentration torch.Tensor
}

var vonMisesFamily = &family{"VonMises", itsOwn,
	func(b base) Distribution { return vonMisesDist{b, b.at(0), b.at(1)} },
	[]parameter{{"loc", finite}, {"concentration", nonNegative}}}

// VonMises is the normal distribution's counterpart for angles, with mean direction loc and concentration ≥ 0:
//
//	log p(x) = −2 concentration·sin²((x − loc)/2) − log(2π I₀ₑ(concentration))
//
// where I₀ₑ(k) = exp(−k) I₀(k) is the scaled Bessel function: no concentration is too large. The density has period 2π;
// draws, and the support, are from −π to π. Draws carry no gradients.
func VonMises(loc, concentration any) Distribution { return vonMisesFamily.with(loc, concentration) }

// Support is −π ≤ x ≤ π.
func (d vonMisesDist) Support() support.Support { return support.Interval(-math.Pi, math.Pi) }

// LogProb is the log density.
func (d vonMisesDist) LogProb(value torch.Tensor) torch.Tensor {
	s := floated(value).Sub(d.loc).Mul(0.5).Sin().Square()
	return d.full(s.Mul(d.concentration).Mul(-2).Sub(d.logI0e().Add(math.Log(2 * math.Pi))))
}

// besselFar is from where on log I₀(k) − k is −½ log 2πk + Σ cᵢ k⁻ⁱ to rounding; the Bessel functions of libtorch lose
// the difference of I₁/I₀ and 1 there. bessel is the cᵢ (the logarithm of Abramowitz and Stegun 9.7.1).
const besselFar = 500

var bessel = []float64{1. / 8, 1. / 16, 25. / 384, 13. / 128, 1073. / 5120}

// bySize is near of a concentration, or far of its reciprocal where it is large.
func (d vonMisesDist) bySize(near, far func(torch.Tensor) torch.Tensor) torch.Tensor {
	dtype, device := like(d.loc, d.concentration)
	k := tensorOf(d.concentration, dtype, device)
	large := k.Gt(besselFar)
	return torch.Where(large, far(fill(k, not(large), besselFar).Reciprocal()), near(fill(k, large, besselFar)))
}

// logI0e is log I₀(k) − k at the concentration k. The derivative of libtorch's function takes |k| to be flat at 0, so
// that it is asked a little above.
func (d vonMisesDist) logI0e() torch.Tensor {
	return d.bySize(func(k torch.Tensor) torch.Tensor { return torch.Of(k.Add(1e-37).T().MustSpecialI0e(false)).Log() },
		func(r torch.Tensor) torch.Tensor {
			sum := torch.Of(0)
			for i := len(bessel) - 1; i >= 0; i-- {
				sum = sum.Add(bessel[i]).Mul(r)
			}
			return sum.Add(r.Log().Sub(math.Log(2 * math.Pi)).Mul(0.5))
		})
}

// Sample draws angles.
func (d vonMisesDist) Sample(src *Source, sample ...int) torch.Tensor {
	k := torch.Of(filled(d.concentration, join(sample, d.batch), d.loc, d.concentration).T().MustDetach(false))
	x := torch.Must(src.VonMises(k)).Add(torch.Of(d.loc.T().MustDetach(false)))
	// Back to −π … π.
	turns := torch.Of(x.Add(math.Pi).Mul(1 / (2 * math.Pi)).T().MustFloor(false))
	return x.Sub(turns.Mul(2 * math.Pi)).AtLeast(-math.Pi).AtMost(math.Pi)
}

// Mean is the mean direction loc.
func (d vonMisesDist) Mean() torch.Tensor { return d.spread(d.loc) }

// Variance is the circular variance 1 − I₁/I₀ at the concentration.
func (d vonMisesDist) Variance() torch.Tensor {
	near := func(k torch.Tensor) torch.Tensor {
		return torch.Of(1).Sub(torch.Of(k.T().MustSpecialI1e(false)).Div(torch.Of(k.T().MustSpecialI0e(false))))
	}
	// The derivative of −logI0e.
	return d.spread(d.bySize(near, func(r torch.Tensor) torch.Tensor {
		sum := torch.Of(0)
		for i := len(bessel) - 1; i >= 0; i-- {
			sum = sum.Add(float64(i+1) * bessel[i]).Mul(r)
		}
		return sum.Add(0.5).Mul(r)
	}))
}
