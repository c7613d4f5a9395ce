package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// generalizedNormalDist is the generalised normal distribution; see [GeneralizedNormal].
type generalizedNormalDist struct {
	base
	loc, scale, shape torch.Tensor
}

var generalizedNormalFamily = &family{"GeneralizedNormal", support.Real,
	func(b base) Distribution { return generalizedNormalDist{b, b.at(0), b.at(1), b.at(2)} },
	[]parameter{{"loc", finite}, {"scale", positive}, {"shape", positive}}}

// GeneralizedNormal is the generalised normal (exponential power) distribution located at loc, of scale α > 0 and shape
// β > 0: Laplace for β = 1, normal with standard deviation α/√2 for β = 2, and nearly uniform for large β:
//
//	log p(x) = log β − log 2α − log Γ(1/β) − |z|^β,  z = (x − loc)/α
func GeneralizedNormal(loc, scale, shape any) Distribution {
	return generalizedNormalFamily.with(loc, scale, shape)
}

// LogProb is the log density.
func (d generalizedNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	z := floated(value).Sub(d.loc).Div(d.scale).Abs()
	zero := z.Eq(0) // where a power below 1 has no derivative
	power := fill(fill(z, zero, 1).Log().Mul(d.shape).Exp(), zero, 0)
	// β/Γ(1/β) is 1/Γ(1 + 1/β), which does not overflow for large β.
	norm := d.shape.Reciprocal().Add(1).Lgamma().Add(d.scale.Log()).Add(math.Ln2)
	return d.full(power.Neg().Sub(norm))
}

// Sample draws loc ± α g^(1/β), with g gamma of shape 1/β, reparameterised.
func (d generalizedNormalDist) Sample(src *Source, sample ...int) torch.Tensor {
	inverse := d.shape.Reciprocal()
	size := d.logGamma(src, sample, inverse, d.loc, d.scale, d.shape).Mul(inverse).Exp()
	u := d.uniform(src, sample, d.loc, d.scale, d.shape)
	return torch.Choose(u.Lt(0.5), size, size.Neg()).Mul(d.scale).Add(d.loc)
}

// Mean is loc.
func (d generalizedNormalDist) Mean() torch.Tensor { return d.spread(d.loc) }

// Variance is α² Γ(3/β)/Γ(1/β).
func (d generalizedNormalDist) Variance() torch.Tensor {
	i := d.shape.Reciprocal()
	return d.spread(i.Mul(3).Lgamma().Sub(i.Lgamma()).Exp().Mul(d.scale.Square()))
}
