package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The regularised incomplete beta functions I_x(a, b) and 1 − I_x(a, b) as logarithms, in either tail, for shapes from
// 1e-8 on. Libtorch has none.

// chance is a probability x and 1 − x, each with its digits, with log x − log(1 − x).
type chance struct{ x, y, logit torch.Tensor }

// chanceOf is the chance of log-odds.
func chanceOf(logit torch.Tensor) chance {
	return chance{logit.Sigmoid(), logit.Neg().Sigmoid(), logit}
}

// betaLift is by how much a is made larger before the integral is taken, and betaDrop how far the logarithm of the
// integrand falls over it.
const betaLift, betaDrop = 10, 36

// betaTails are log I_x(a, b) and log(1 − I_x(a, b)) for a, b > 0 and a chance from 0 to 1. In the log-odds the first
// two derivatives are those of the density; in a and b they are those of what computes it.
func betaTails(a, b torch.Tensor, p chance) (lower, upper torch.Tensor) {
	l := dense(p.logit)
	none, all := l.Eq(math.Inf(-1)), l.Eq(math.Inf(1))
	atEnd := either(none, all)
	l = fill(l, atEnd, 0)
	x, y := fill(dense(constant(p.x)), atEnd, 0.5), fill(dense(constant(p.y)), atEnd, 0.5)
	// The tail that is integrated lies on the side of x away from the mode of the log-odds, a/(a + b).
	down := y.Mul(a).Ge(x.Mul(b))
	pick := func(v, w torch.Tensor) torch.Tensor { return torch.Choose(down, v, w) }
	first, second, at, rest := pick(a, b), pick(b, a), pick(x, y), pick(y, x)
	log := betaIntegral(first, second, at, rest)
	near := betaPower(first, second, at, rest).Add(log)
	if hasGraph(p.logit) {
		// d/dl I = w at l = log x − log y, with the power w = I/J, and dw/dl = w (ay − bx).
		over := l.Sub(constant(l))
		over = pick(over, over.Neg())
		bend := over.Mul(first.Mul(rest).Sub(second.Mul(at))).Mul(0.5).Add(1)
		near = near.Add(over.Mul(bend).Mul(log.Neg().Exp()).Log1p())
	}
	far := logOneMinusExp(near)
	lower, upper = pick(near, far), pick(far, near)
	lower = fill(fill(lower, none, math.Inf(-1)), all, 0)
	return lower, fill(fill(upper, none, 0), all, math.Inf(-1))
}

// betaPower is log[xᵃ yᵇ/B(a, b)], y = 1 − x: for small shapes as it stands, else
//
//	a log(x (a+b)/a) + b log(y (a+b)/b) + ½ log(ab/(a+b)) − log √2π − δ(a) − δ(b) + δ(a+b)
//
// with the remainder δ of Stirling's formula.
func betaPower(a, b, x, y torch.Tensor) torch.Tensor {
	small := dense(a).AtMost(b).Lt(stirlingFrom)
	logX := logRatio(y.Neg(), x.Log)
	logY := logRatio(x.Neg(), y.Log)
	near := a.Mul(logX).Add(b.Mul(logY)).Sub(logBeta(a, b))
	// Below the bound where the branch is taken, as in betaKernel.
	a, b = dense(a).AtLeast(stirlingFrom/2), dense(b).AtLeast(stirlingFrom/2)
	s := a.Add(b)
	over := x.Mul(b).Sub(y.Mul(a)) // x (a+b) − a
	l := logRatio(over.Div(a), func() torch.Tensor { return x.Log().Sub(a.Div(s).Log()) })
	m := logRatio(over.Neg().Div(b), func() torch.Tensor { return y.Log().Sub(b.Div(s).Log()) })
	c := a.Log().Add(b.Log()).Sub(s.Log()).Mul(0.5).Sub(halfLog2Pi).Sub(stirling(a)).Sub(stirling(b)).Add(stirling(s))
	return torch.Choose(small, near, a.Mul(l).Add(b.Mul(m)).Add(c))
}

// betaIntegral is log J, I_x(a, b) = xᵃ yᵇ/B(a, b) J, for x up to a/(a + b). By parts
//
//	J(a) = [1 + (a + b) x J(a + 1)]/a
//
// where all terms are positive, and at a + betaLift it is the integral over δ > 0 of exp(−g), where x of log-odds l has
// become that of l − δ,
//
//	g(δ) = (a + b) log(1 + y (e^δ − 1)) − b δ
//
// which is convex and changes over lengths of δ of 1 or less: Gauss and Legendre's rule of 64 points on the part where
// g is below betaDrop leaves 1e-13.
func betaIntegral(a, b, x, y torch.Tensor) torch.Tensor {
	m := a.Add(betaLift)
	last := betaLast(constant(m), constant(b), x, y)
	rule := gaussLegendre()
	d := wide(last).Mul(along(rule.nodes, last))
	g := wide(y).Mul(d.Expm1()).Log1p().Mul(wide(dense(m.Add(b)))).Sub(wide(dense(b)).Mul(d))
	j := last.Mul(operand.SumLast(g.Neg().Exp().Mul(along(rule.weights, last)), 1))
	s := a.Add(b)
	for k := betaLift - 1; k >= 0; k-- {
		j = s.Add(k).Mul(x).Mul(j).Add(1).Div(a.Add(k))
	}
	return j.Log()
}

// betaLast is about where g is betaDrop: by Newton's method of log g on log δ, in which powers are straight lines, from
// where its tangent at 0 or its asymptote is.
func betaLast(a, b, x, y torch.Tensor) torch.Tensor {
	s := a.Add(b)
	end := torch.Of(betaDrop).Sub(s.Mul(y.Log())).Div(a)
	slope := a.Mul(y).Sub(b.Mul(x))
	d := torch.Choose(slope.Mul(end).Gt(betaDrop), torch.Of(betaDrop).Div(slope.AtLeast(1e-300)), end)
	for range 8 {
		e := y.Mul(d.Expm1())
		g := s.Mul(e.Log1p()).Sub(b.Mul(d))
		rise := s.Mul(e.Add(y)).Div(e.Add(1)).Sub(b)
		step := g.Div(betaDrop).Log().Mul(g).Div(d.Mul(rise))
		d = d.Mul(step.AtLeast(-2).AtMost(2).Neg().Exp())
	}
	return d
}

func (d betaDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	y := torch.Of(1).Sub(x)
	return betaTails(d.concentration1, d.concentration0, chance{x, y, x.Log().Sub(x.Neg().Log1p())})
}

// P(X ≤ x) is I_q(n − x, x + 1), with q the probability of a failure.
func (d binomialDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	left := dense(x.Neg().Add(floated(dense(d.total))))
	if d.fromLogits {
		return betaTails(left, x.Add(1), chanceOf(dense(d.logits).Neg()))
	}
	success := dense(d.probs)
	q := torch.Of(1).Sub(success)
	return betaTails(left, x.Add(1), chance{q, success, logProbs(q).Sub(logProbs(success))})
}

// P(X ≤ x) is I_q(r, x + 1), with q the probability that ends the r repetitions.
func (d negativeBinomialDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	var p chance
	switch d.kind {
	case "mean":
		p = chanceOf(d.size.Log().Sub(logProbs(dense(d.second))))
	case "probs":
		more := dense(d.second)
		p = chance{torch.Of(1).Sub(more), more, more.Neg().Log1p().Sub(logProbs(more))}
	default:
		p = chanceOf(dense(d.second).Neg())
	}
	return betaTails(d.size, x.Add(1), p)
}
