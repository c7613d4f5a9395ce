package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// GeometricDist is the geometric distribution; see [Geometric].
type GeometricDist struct {
	base
	probs val
}

var geometricProbs = check{"it must be greater than 0 and at most 1", func(v float64) bool { return v > 0 && v <= 1 }}

// Geometric counts the failures before the first success, with probability 0 < probs ≤ 1 of success:
//
//	log p(x) = x log(1 − p) + log p,  x = 0, 1, 2, …
func Geometric(probs any) GeometricDist {
	p := param("Geometric", "probs", probs)
	d := GeometricDist{base: newBase("Geometric", p), probs: p}
	d.checkNumber("probs", p, geometricProbs)
	return d
}

// Support is 0, 1, 2, …
func (d GeometricDist) Support() support.Support { return support.NonnegativeInteger }

// LogProb is the log mass.
func (d GeometricDist) LogProb(value *ts.Tensor) *ts.Tensor {
	x, outside := whole(floating(value, d.probs), num(math.Inf(1)))
	// At x = 0 the first term is 0 log 1, not 0 log 0.
	some := ten(x.MustGt(ts.FloatScalar(0), false).MustTotype(torch.Must(torch.DTypeOfTensor(x)), false))
	return d.masked(ten(x).mul(d.probs.mul(some).neg().log1p()).add(d.probs.log()), outside)
}

// Sample draws ⌊log u / log(1 − p)⌋, u uniform.
func (d GeometricDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	dtype, device := like(d.probs)
	u := torch.Must(src.Uniform(join(sample, d.batch), dtype, device))
	x := ten(u).log().div(d.probs.neg().log1p())
	return x.t.MustFloor(false).MustAbs(false) // −0 to 0
}

// Mean is (1 − p)/p.
func (d GeometricDist) Mean() *ts.Tensor { return d.spread(num(1).sub(d.probs).div(d.probs)) }

// Variance is (1 − p)/p².
func (d GeometricDist) Variance() *ts.Tensor {
	return d.spread(num(1).sub(d.probs).div(d.probs).div(d.probs))
}

// Expand broadcasts the batch shape.
func (d GeometricDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks probs.
func (d GeometricDist) Validate() error { return d.validate("probs", d.probs, geometricProbs) }

// Params is the parameter by name.
func (d GeometricDist) Params() map[string]any { return map[string]any{"probs": d.probs.any()} }
