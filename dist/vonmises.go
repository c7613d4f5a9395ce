package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// VonMisesDist is the von Mises distribution; see [VonMises].
type VonMisesDist struct {
	base
	loc, concentration val
}

// VonMises is the normal distribution's counterpart for angles, with mean direction loc and concentration ≥ 0:
//
//	log p(x) = −2 concentration·sin²((x − loc)/2) − log(2π I₀ₑ(concentration))
//
// where I₀ₑ(k) = exp(−k) I₀(k) is the scaled Bessel function: no concentration is too large. The density has period 2π;
// draws, and the support, are from −π to π. Draws carry no gradients.
func VonMises(loc, concentration any) VonMisesDist {
	l, a := param("VonMises", "loc", loc), param("VonMises", "concentration", concentration)
	d := VonMisesDist{base: newBase("VonMises", l, a), loc: l, concentration: a}
	d.checkNumber("loc", l, finite)
	d.checkNumber("concentration", a, nonNegative)
	return d
}

// Support is −π ≤ x ≤ π.
func (d VonMisesDist) Support() support.Support { return support.Interval(-math.Pi, math.Pi) }

// LogProb is the log density.
func (d VonMisesDist) LogProb(value *ts.Tensor) *ts.Tensor {
	s := ten(floated(value).sub(d.loc).mul(num(0.5)).t.MustSin(false)).square()
	return d.full(s.mul(d.concentration).mul(num(-2)).sub(d.besselI0e().log().add(num(math.Log(2 * math.Pi)))).t)
}

// besselI0e is the scaled Bessel function of the concentration, besselI1e that of order 1.
func (d VonMisesDist) besselI0e() val {
	dtype, device := like(d.loc, d.concentration)
	return ten(d.concentration.tensorOf(dtype, device).MustSpecialI0e(false))
}

func (d VonMisesDist) besselI1e() val {
	dtype, device := like(d.loc, d.concentration)
	return ten(d.concentration.tensorOf(dtype, device).MustSpecialI1e(false))
}

// Sample draws angles.
func (d VonMisesDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	k := filled(d.concentration, join(sample, d.batch), d.loc, d.concentration).MustDetach(false)
	x := ten(torch.Must(src.VonMises(k))).add(ten(d.loc.tensor().MustDetach(false)))
	// Back to −π … π.
	turns := x.add(num(math.Pi)).mul(num(1 / (2 * math.Pi))).t.MustFloor(false)
	return x.sub(ten(turns).mul(num(2*math.Pi))).t.MustClamp(ts.FloatScalar(-math.Pi), ts.FloatScalar(math.Pi), false)
}

// Mean is the mean direction loc.
func (d VonMisesDist) Mean() *ts.Tensor { return d.spread(d.loc) }

// Variance is the circular variance 1 − I₁/I₀ at the concentration.
func (d VonMisesDist) Variance() *ts.Tensor {
	return d.spread(num(1).sub(d.besselI1e().div(d.besselI0e())))
}

// Expand broadcasts the batch shape.
func (d VonMisesDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and concentration.
func (d VonMisesDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("concentration", d.concentration, nonNegative))
}

// Params are the parameters by name.
func (d VonMisesDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), "concentration": d.concentration.any()}
}
