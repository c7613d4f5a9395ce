package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// geometricDist is the geometric distribution; see [Geometric].
type geometricDist struct {
	base
	probs torch.Tensor
}

var geometricFamily = &family{"Geometric", support.NonnegativeInteger,
	func(b base) Distribution { return geometricDist{b, b.at(0)} },
	[]parameter{{"probs", geometricProbs}}}

var geometricProbs = check{"it must be greater than 0 and at most 1", func(v float64) bool { return v > 0 && v <= 1 }}

// Geometric counts the failures before the first success, with probability 0 < probs ≤ 1 of success:
//
//	log p(x) = x log(1 − p) + log p,  x = 0, 1, 2, …
func Geometric(probs any) Distribution { return geometricFamily.with(probs) }

// LogProb is the log mass.
func (d geometricDist) LogProb(value torch.Tensor) torch.Tensor {
	failures, outside := d.failures(value)
	return d.masked(failures.Add(logProbs(d.probs)), outside)
}

// relative is without the success.
func (d geometricDist) relative(value torch.Tensor) torch.Tensor { return d.masked(d.failures(value)) }

// failures are x log(1 − p), and where the mass is 0.
func (d geometricDist) failures(value torch.Tensor) (logp, outside torch.Tensor) {
	x, outside := whole(floating(value, d.probs), torch.Of(math.Inf(1)))
	// At x = 0 the first term is 0 log 1, not 0 log 0.
	some := torch.Of(x.Gt(0).T().MustTotype(torch.Must(torch.DTypeOfTensor(x)), false))
	p := d.probs.Mul(some)
	none := p.Eq(1)
	return x.Mul(fill(p, none, 0.5).Neg().Log1p()), either(outside, none)
}

// Sample draws ⌊log u / log(1 − p)⌋, u uniform.
func (d geometricDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.probs)
	u := torch.Must(src.Uniform(join(sample, d.batch), dtype, device))
	x := u.Log().Div(d.probs.Neg().Log1p())
	return constant(torch.Of(x.T().MustFloor(false)).Abs()) // −0 to 0; a whole number has no gradient
}

// Mean is (1 − p)/p.
func (d geometricDist) Mean() torch.Tensor { return d.spread(torch.Of(1).Sub(d.probs).Div(d.probs)) }

// Variance is (1 − p)/p².
func (d geometricDist) Variance() torch.Tensor {
	return d.spread(torch.Of(1).Sub(d.probs).Div(d.probs).Div(d.probs))
}
