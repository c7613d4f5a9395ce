package dist

import (
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// studentTDist is the Student's t distribution; see [StudentT].
type studentTDist struct {
	base
	df, loc, scale torch.Tensor
}

var studentTFamily = &family{"StudentT", support.Real,
	func(b base) Distribution { return studentTDist{b, b.at(0), b.at(1), b.at(2)} },
	[]parameter{{"df", positive}, {"loc", finite}, {"scale", positive}}}

// StudentT is Student's t distribution with df > 0 degrees of freedom, located at loc, of scale > 0:
//
//	log p(x) = −(df + 1)/2 log(1 + z²/df) − log B(df/2, 1/2) − ½ log df − log scale,  z = (x − loc)/scale
//
// It is computed so that nothing large cancels, and tends to the normal density for large df.
func StudentT(df, loc, scale any) Distribution { return studentTFamily.with(df, loc, scale) }

// LogProb is the log density.
func (d studentTDist) LogProb(value torch.Tensor) torch.Tensor {
	return d.full(studentTKernel(d.df, floated(value).Sub(d.loc), d.scale))
}

// normalFrom is from which df on terms of the normal distribution are taken out, which have no derivative in df.
const normalFrom = 1000

// studentTKernel is the log density at a distance x from the location,
//
//	−df/2 log(1 + z²/df) − log √(scale² df + x²) − log B(df/2, ½)
func studentTKernel(df, x, scale torch.Tensor) torch.Tensor {
	return split(df, normalFrom, func(df torch.Tensor) torch.Tensor { return studentTNear(df, x, scale) },
		func(df torch.Tensor) torch.Tensor { return studentTFar(df, x, scale) })
}

func studentTNear(df, x, scale torch.Tensor) torch.Tensor {
	root := scale.Mul(df.Sqrt())
	h := torch.Of(x.T().MustHypot(alike(root, x).T(), false)).Log()
	return log1pSquare(x.Div(root)).Mul(df.Mul(-0.5)).Sub(h).Sub(logBeta(df.Mul(0.5), torch.Of(0.5)))
}

// studentTFar has, with v = z²/df and u = 1/df,
//
//	−z²/2 log(1 + v)/v − ½ log(1 + v) − log scale − log √2π − [½ − log(1 + u)/(2u) + δ(df/2) − δ((df + 1)/2)]
//
// and the remainder δ of Stirling's formula.
func studentTFar(df, x, scale torch.Tensor) torch.Tensor {
	z := x.Div(scale)
	w := z.Div(df.Sqrt())
	log := log1pSquare(w)
	near := w.Abs().Lt(0.1)
	z = fill(z, not(near), 0).Square()
	power := torch.Choose(near, z.Mul(log1pOver(z.Div(df)).Add(1)), log.Mul(df)).Add(log)
	rest := log1pOver(df.Reciprocal()).Mul(-0.5).Add(stirling(df.Mul(0.5))).Sub(stirling(df.Add(1).Mul(0.5)))
	return power.Mul(-0.5).Sub(rest).Sub(scale.Log()).Sub(halfLog2Pi)
}

// log1pOver is log(1 + v)/v − 1 for v up to 0.01.
func log1pOver(v torch.Tensor) torch.Tensor {
	sum := torch.Of(0)
	for k := 9; k >= 2; k-- {
		sum = sum.Add(1 / float64(k)).Mul(v).Neg()
	}
	return sum
}

// Sample draws loc + scale·z √(df/(2g)), with z normal and g gamma of shape df/2, reparameterised.
func (d studentTDist) Sample(src *Source, sample ...int) torch.Tensor {
	z := d.normal(src, sample, d.df, d.loc, d.scale)
	log := tidy(func() torch.Tensor {
		half := d.df.Mul(0.5)
		log := d.logGamma(src, sample, half, d.df, d.loc, d.scale)
		return half.Log().Sub(log)
	})
	return tidy(func() torch.Tensor { return z.Mul(log.Mul(0.5).Exp()) }).Mul(d.scale).Add(d.loc)
}

// Mean is loc; NaN for df ≤ 1.
func (d studentTDist) Mean() torch.Tensor { return d.spread(d.moment(d.loc, d.df, 1, math.NaN())) }

// Variance is scale² df/(df − 2); infinite for df ≤ 2, NaN for df ≤ 1.
func (d studentTDist) Variance() torch.Tensor {
	v := d.scale.Square().Mul(d.df.Div(d.df.Sub(2)))
	return d.spread(d.moment(d.moment(v, d.df, 2, math.Inf(1)), d.df, 1, math.NaN()))
}

// CDF is the distribution function, by [studentTDist.logTails].
func (d studentTDist) CDF(value torch.Tensor) torch.Tensor {
	return inPieces(d, func(d studentTDist, x ...torch.Tensor) torch.Tensor {
		lower, _ := tailsAnywhere(d, x[0])
		return d.full(lower.Exp())
	}, floated(value))
}

// ICDF is the quantile function, by Halley's method; its gradients are exact.
func (d studentTDist) ICDF(p torch.Tensor) torch.Tensor {
	line := truncatedDist{d.base, d, torch.Of(math.Inf(-1)), torch.Of(math.Inf(1))}
	return line.ICDF(dense(p))
}

// logTails has, for z = (x − loc)/scale > 0, [studentTail] as its upper tail. In z it has the derivatives of the
// density, in df those of the integral.
func (d studentTDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale)
	left := z.Lt(0)
	z = torch.Choose(left, z.Neg(), z)
	at := constant(z)
	near := studentTail(d.df, at.Div(d.df.Sqrt())).Sub(logBeta(d.df.Mul(0.5), torch.Of(0.5)))
	if hasGraph(z) {
		// log T(at) + log(1 − (z − at) p/T), with p half-way, whose first two derivatives at z are those of log T.
		p := StudentT(d.df, 0, 1).LogProb(z.Add(at).Mul(0.5))
		near = near.Add(at.Sub(z).Mul(p.Sub(near).Exp()).Log1p())
	}
	far := logOneMinusExp(near)
	return torch.Choose(left, near, far), torch.Choose(left, far, near)
}

// The integral of [studentTail] has 2·tailLift more degrees of freedom, by the rule of tailRule over tailDrop units of
// log: its error is below 1e-13.
const tailLift, tailDrop = 10, 34

var tailRule = sync.OnceValue(func() legendreRule { return legendre(24) })

// studentTail is log P(Z > s√n) + log B(n/2, ½) for s ≥ 0 and n degrees of freedom. With s = sinh y
//
//	P = cosh(y)⁻ⁿ J(n)/B(n/2, ½),  J(n) = ∫₀ (cosh(y + δ)/cosh y)⁻ⁿ dδ = [(n + 1) J(n + 2)/cosh²y + tanh y]/n
//
// the last by parts: all terms are positive. The integral is Gauss and Legendre's over the δ at which the integrand is
// above exp(−tailDrop).
func studentTail(n, s torch.Tensor) torch.Tensor {
	return byPieces("StudentT", n, dense(s), func(n, s torch.Tensor) []torch.Tensor {
		return []torch.Tensor{studentTailPart(n, s)}
	})[0]
}

func studentTailPart(n, s torch.Tensor) torch.Tensor {
	s = s.AtMost(1e300)
	log := log1pSquare(s)
	w, th := log.Neg().Exp(), log.Mul(-0.5).Exp().Mul(s)
	m := n.Add(2 * tailLift)
	rule := tailRule()
	dtype, device := like(s, n)
	column := func(x []float64) torch.Tensor {
		return torch.Must(torch.FromSliceOn(device, dtype, x, len(x)))
	}
	// cosh δ + tanh y sinh δ = 1 + e at the last δ, a quadratic equation for exp δ − 1.
	e := constant(m).Reciprocal().Mul(tailDrop).Expm1()
	c := constant(th)
	q := e.Mul(e.Add(2))
	last := q.Div(c.Add(c.Square().Add(q).Sqrt())).Add(e).Div(c.Add(1)).Log1p()
	g := wide(last).Mul(column(rule.nodes)).Expm1()
	over := g.Mul(wide(th.Add(1).Mul(0.5))).Add(wide(th)).Mul(g).Div(g.Add(1))
	j := last.Mul(over.Log1p().Mul(wide(m).Neg()).Exp().MatMul(column(rule.weights)))
	for k := tailLift - 1; k >= 0; k-- {
		m := n.Add(2 * k)
		j = m.Add(1).Mul(w).Mul(j).Add(th).Div(m)
	}
	return j.Log().Sub(log.Mul(n).Mul(0.5))
}
