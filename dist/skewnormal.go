package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// skewNormalDist is the skew normal distribution; see [SkewNormal].
type skewNormalDist struct {
	base
	loc, scale, skew torch.Tensor
}

var skewNormalFamily = &family{"SkewNormal", support.Real,
	func(b base) Distribution { return skewNormalDist{b, b.at(0), b.at(1), b.at(2)} },
	[]parameter{{"loc", finite}, {"scale", positive}, {"skew", finite}}}

// SkewNormal is the skew normal distribution (Azzalini 1985) located at loc, of scale > 0. Its skew α is any real
// number: 0 is the normal distribution, and large α nearly half of one, above loc:
//
//	log p(x) = log 2 + log φ(z) + log Φ(α z) − log scale,  z = (x − loc)/scale
//
// with the density φ and the distribution function Φ of standard normal numbers.
func SkewNormal(loc, scale, skew any) Distribution { return skewNormalFamily.with(loc, scale, skew) }

// LogProb is the log density.
func (d skewNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale)
	side := logNdtr(z.Mul(d.skew))
	return d.full(side.Sub(z.Square().Mul(0.5)).Sub(d.scale.Log()).Add(math.Ln2 - halfLog2Pi))
}

// delta is α/√(1 + α²), and the root of 1 − delta².
func (d skewNormalDist) delta() (delta, rest torch.Tensor) {
	rest = log1pSquare(dense(d.skew)).Mul(-0.5).Exp()
	return rest.Mul(d.skew), rest
}

// Sample draws loc + scale (δ |u| + √(1 − δ²) v) with u and v normal and δ = α/√(1 + α²), reparameterised.
func (d skewNormalDist) Sample(src *Source, sample ...int) torch.Tensor {
	delta, rest := d.delta()
	u := d.normal(src, sample, d.loc, d.scale, d.skew).Abs()
	v := d.normal(src, sample, d.loc, d.scale, d.skew)
	dtype, _ := like(d.loc, d.scale, d.skew)
	z := u.Mul(delta).Add(v.Mul(rest))
	return torch.Of(z.Mul(d.scale).Add(d.loc).T().MustTotype(dtype, false))
}

// Mean is loc + scale δ √(2/π).
func (d skewNormalDist) Mean() torch.Tensor {
	delta, _ := d.delta()
	return d.spread(delta.Mul(math.Sqrt(2 / math.Pi)).Mul(d.scale).Add(d.loc))
}

// Variance is scale² (1 − 2δ²/π).
func (d skewNormalDist) Variance() torch.Tensor {
	delta, _ := d.delta()
	return d.spread(torch.Of(1).Sub(delta.Square().Mul(2 / math.Pi)).Mul(d.scale.Square()))
}
