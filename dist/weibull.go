package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// weibullDist is the Weibull distribution; see [Weibull].
type weibullDist struct {
	base
	scale, concentration torch.Tensor
}

var weibullFamily = &family{"Weibull", support.Positive,
	func(b base) Distribution { return weibullDist{b, b.at(0), b.at(1)} },
	[]parameter{{"scale", positive}, {"concentration", positive}}}

// Weibull is the Weibull distribution with scale > 0 and shape k = concentration > 0; for x > 0, with z = x/scale,
//
//	log p(x) = log k − log scale + (k − 1) log z − z^k
func Weibull(scale, concentration any) Distribution { return weibullFamily.with(scale, concentration) }

// LogProb is the log density.
func (d weibullDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.inside(value, dense(value).Lt(0), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		// With u = k log(x/scale) it is log k − log x + u − eᵘ, but for x = 0.
		k, zero := d.concentration, dense(x).Eq(0)
		z := fill(x, zero, 1)
		y := k.Log().Sub(z.Log()).Sub(expm1Less(z.Div(d.scale).Log().Mul(k))).Sub(1)
		return torch.Choose(zero, xlogy(k.Sub(1), fill(x, not(zero), 0)).Sub(k.Mul(d.scale.Log())).Add(k.Log()), y)
	})
}

// Sample draws scale·(−log u)^(1/k), reparameterised.
func (d weibullDist) Sample(src *Source, sample ...int) torch.Tensor {
	e := d.uniform(src, sample, d.scale, d.concentration).Log().Neg()
	return e.Log().Div(d.concentration).Exp().Mul(d.scale)
}

// Mean is scale·Γ(1 + 1/k).
func (d weibullDist) Mean() torch.Tensor {
	return d.spread(d.concentration.Reciprocal().Add(1).Lgamma().Exp().Mul(d.scale))
}

// Variance is scale² [Γ(1 + 2/k) − Γ(1 + 1/k)²].
func (d weibullDist) Variance() torch.Tensor {
	e := d.concentration.Reciprocal()
	one := e.Add(1).Lgamma().Mul(2)
	return d.spread(lgammaGap(e).Expm1().Mul(one.Exp()).Mul(d.scale.Square()))
}

// lgammaGap is log Γ(1 + 2e) − 2 log Γ(1 + e), which cancels for small e. There it is the difference of the series
// log Γ(1 + x) = −γx + Σ ζ(k)(−x)ᵏ/k over k from 2 on.
func lgammaGap(e torch.Tensor) torch.Tensor {
	const from = 0.02
	direct := func(e torch.Tensor) torch.Tensor {
		return e.Mul(2).Add(1).Lgamma().Sub(e.Add(1).Lgamma().Mul(2))
	}
	series := func(e torch.Tensor) torch.Tensor {
		sum := torch.Of(0)
		for i := len(zeta) - 1; i >= 0; i-- {
			k := float64(i + 2)
			sum = sum.Mul(e.Neg()).Add(zeta[i] * (math.Exp2(k) - 2) / k)
		}
		return sum.Mul(e.Square())
	}
	if operand.IsNumber(e) {
		if operand.Number(e) < from {
			return series(e)
		}
		return direct(e)
	}
	small := e.Lt(from)
	return torch.Choose(small, series(fill(e, not(small), from)), direct(fill(e, small, 1)))
}

// zeta is ζ(2), ζ(3), … (Abramowitz and Stegun, table 23.3).
var zeta = []float64{
	1.64493406684822643647,
	1.20205690315959428540,
	1.08232323371113819152,
	1.03692775514336992633,
	1.01734306198444913971,
	1.00834927738192282684,
	1.00407735619794433938,
	1.00200839282608221442,
	1.00099457512781808534,
	1.00049418860411946456,
}

// CDF is 1 − exp(−z^k).
func (d weibullDist) CDF(value torch.Tensor) torch.Tensor {
	return inPieces(d, func(d weibullDist, x ...torch.Tensor) torch.Tensor {
		return d.positivePart(x[0], 0, func(x torch.Tensor) torch.Tensor {
			return x.Div(d.scale).Log().Mul(d.concentration).Exp().Neg().Expm1().Neg()
		})
	}, value)
}

// ICDF is scale·(−log(1 − p))^(1/k).
func (d weibullDist) ICDF(p torch.Tensor) torch.Tensor {
	return d.full(p.Neg().Log1p().Neg().Log().Div(d.concentration).Exp().Mul(d.scale))
}
