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

// VonMises is the normal distribution's counterpart for angles, with mean direction loc and concentration ≥ 0:
//
//	log p(x) = −2 concentration·sin²((x − loc)/2) − log(2π I₀ₑ(concentration))
//
// where I₀ₑ(k) = exp(−k) I₀(k) is the scaled Bessel function: no concentration is too large. The density has period 2π;
// draws, and the support, are from −π to π. Draws carry no gradients.
func VonMises(loc, concentration any) (made Distribution) {
	defer orMisfit(&made)
	l, a := param("VonMises", "loc", loc), param("VonMises", "concentration", concentration)
	d := vonMisesDist{base: newBase("VonMises", l, a), loc: l, concentration: a}
	d.checkNumber("loc", l, finite)
	d.checkNumber("concentration", a, nonNegative)
	return d
}

// Support is −π ≤ x ≤ π.
func (d vonMisesDist) Support() support.Support { return support.Interval(-math.Pi, math.Pi) }

// LogProb is the log density.
func (d vonMisesDist) LogProb(value torch.Tensor) torch.Tensor {
	s := floated(value).Sub(d.loc).Mul(0.5).Sin().Square()
	return d.full(s.Mul(d.concentration).Mul(-2).Sub(d.besselI0e().Log().Add(math.Log(2 * math.Pi))))
}

// besselI0e is the scaled Bessel function of the concentration, besselI1e that of order 1.
func (d vonMisesDist) besselI0e() torch.Tensor {
	dtype, device := like(d.loc, d.concentration)
	return torch.Of(tensorOf(d.concentration, dtype, device).T().MustSpecialI0e(false))
}

func (d vonMisesDist) besselI1e() torch.Tensor {
	dtype, device := like(d.loc, d.concentration)
	return torch.Of(tensorOf(d.concentration, dtype, device).T().MustSpecialI1e(false))
}

// Sample draws angles.
func (d vonMisesDist) Sample(src *Source, sample ...int64) torch.Tensor {
	k := torch.Of(filled(d.concentration, join(sample, d.batch), d.loc, d.concentration).T().MustDetach(false))
	x := torch.Of(torch.Must(src.VonMises(k.T()))).Add(torch.Of(d.loc.T().MustDetach(false)))
	// Back to −π … π.
	turns := torch.Of(x.Add(math.Pi).Mul(1 / (2 * math.Pi)).T().MustFloor(false))
	return x.Sub(turns.Mul(2*math.Pi)).Clamp(-math.Pi, math.Pi)
}

// Mean is the mean direction loc.
func (d vonMisesDist) Mean() torch.Tensor { return d.spread(d.loc) }

// Variance is the circular variance 1 − I₁/I₀ at the concentration.
func (d vonMisesDist) Variance() torch.Tensor {
	return d.spread(torch.Of(1).Sub(d.besselI1e().Div(d.besselI0e())))
}

// Expand broadcasts the batch shape.
func (d vonMisesDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and concentration.
func (d vonMisesDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("concentration", d.concentration, nonNegative))
}

// Params are the parameters by name.
func (d vonMisesDist) Params() map[string]any {
	return map[string]any{"loc": d.loc, "concentration": d.concentration}
}
