package dist

import (
	"cmp"
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// truncatedNormalDist is the normal distribution on an interval; see [TruncatedNormal].
type truncatedNormalDist struct {
	base
	loc, scale, low, high torch.Tensor
}

var truncatedNormalFamily = &family{"TruncatedNormal", itsOwn,
	func(b base) Distribution { return truncatedNormalDist{b, b.at(0), b.at(1), b.at(2), b.at(3)} },
	[]parameter{{"loc", finite}, {"scale", positive}, {"low", notNaN}, {"high", notNaN}}}

// TruncatedNormal is the normal distribution with the given loc and scale > 0 on condition that low ≤ x ≤ high; either
// end may be infinite. With z = (x − loc)/scale, and a and b the same of the ends,
//
//	log p(x) = −z²/2 − log √(2π) − log scale − log(Φ(b) − Φ(a))
//
// It is computed from the ratio of Φ to its density, so that the interval may be far out in a tail, and narrow.
func TruncatedNormal(loc, scale, low, high any) (made Distribution) {
	defer orMisfit(&made)
	d := truncatedNormalFamily.build(loc, scale, low, high).(truncatedNormalDist)
	d.checkAbove("high", d.low, d.high)
	return d
}

// Support is low ≤ x ≤ high.
func (d truncatedNormalDist) Support() support.Support {
	return support.Interval(d.low, d.high)
}

// farOut is beyond any end that matters: Φ is 0 or 1 there, and its square is finite even as a float32.
const farOut = 1e15

// end is (x − loc)/scale of an end, made finite: an infinite one has no gradient.
func (d truncatedNormalDist) end(x torch.Tensor) torch.Tensor {
	bound := constant(x).AtLeast(-farOut).AtMost(farOut)
	if operand.IsNumber(x) {
		if math.IsInf(operand.Number(x), 0) {
			return bound
		}
		return x.Sub(d.loc).Div(d.scale).AtLeast(-farOut).AtMost(farOut)
	}
	infinite := isInfinite(x)
	z := fill(x, infinite, 0).Sub(d.loc).Div(d.scale).AtLeast(-farOut).AtMost(farOut)
	return torch.Choose(infinite, bound, z)
}

// middle is a number inside the interval, without a graph.
func (d truncatedNormalDist) middle() torch.Tensor {
	low, high, scale := dense(constant(d.low)), dense(constant(d.high)), constant(d.scale)
	below, above := isInfinite(low), isInfinite(high)
	low = torch.Choose(below, torch.Choose(above, constant(d.loc), high).Sub(scale), low)
	return low.Mul(0.5).Add(torch.Choose(above, low.Add(scale), high).Mul(0.5))
}

// interval is an interval turned, where it lies in the upper tail, into the lower one.
type interval struct {
	low, high torch.Tensor
	flipped   torch.Tensor // where it was turned
	// Its width is span/exp(logScale): not by low and high, of which that of a narrow interval has no digits, nor
	// derivatives.
	width, span, logScale torch.Tensor
	// Before they are standardised: the location, the end that is nearer to it, and the middle.
	loc, nearer, middle torch.Tensor
}

// between is the interval of two numbers before they are standardised.
func (d truncatedNormalDist) between(low, high, logScale torch.Tensor) interval {
	i := turn(d.end(low), d.end(high))
	l, h := alike(low, i.low), alike(high, i.low)
	unbounded := torch.Of(isInfinite(l).T().MustLogicalOr(isInfinite(h).T(), false))
	from, to := fill(l, unbounded, 0), fill(h, unbounded, 0)
	i.span, i.logScale = to.Sub(from), logScale
	i.loc, i.nearer, i.middle = d.loc, torch.Choose(i.flipped, l, h), from.Mul(0.5).Add(to.Mul(0.5))
	i.width = torch.Choose(unbounded, i.width, i.span.Div(d.scale))
	return i
}

func turn(a, b torch.Tensor) interval {
	if operand.IsNumber(a) && operand.IsNumber(b) {
		a, b = dense(a), dense(b)
	}
	flipped := a
	if operand.IsNumber(flipped) {
		flipped = b.Mul(0).Add(a)
	}
	mask := flipped.Gt(0)
	width := b.Sub(a)
	zero := torch.Of(0)
	return interval{low: torch.Choose(mask, b.Neg(), a), high: torch.Choose(mask, a.Neg(), b), flipped: mask,
		width: width, span: width, logScale: zero, loc: zero, nearer: zero, middle: zero}
}

// logMass is log(Φ(high) − Φ(low)) as −c²/2 − log √(2π) + rest: with a c at which φ is about as small as the mass,
// nothing is lost of the rest however far out the interval is. c is the standardised at, or its negative.
type logMass struct{ c, at, rest torch.Tensor }

// over is log(φ(z)/mass).
func (m logMass) over(z torch.Tensor) torch.Tensor {
	return m.c.Sub(z).Mul(m.c.Add(z)).Mul(0.5).Sub(m.rest)
}

// density is that of x, before the scale. The distance of x from at does not depend on the location, however far.
func (m logMass) density(x, loc, scale torch.Tensor) torch.Tensor {
	both := m.at.Sub(loc).Div(scale).Add(x.Sub(loc).Div(scale))
	return m.at.Sub(x).Div(scale).Mul(both).Mul(0.5).Sub(m.rest)
}

// Below narrow in width, and in width times distance, an interval is integrated over.
const narrow = 0.25

// mass is the probability of the interval, before the scale.
func (d truncatedNormalDist) mass(logScale torch.Tensor) logMass {
	a, b := d.end(d.low), d.end(d.high)
	if operand.IsNumber(a) && operand.IsNumber(b) {
		return d.massOfNumbers(operand.Number(a), operand.Number(b))
	}
	return d.between(d.low, d.high, logScale).mass()
}

// massOfNumbers is interval.mass where the standardised ends are numbers, without a tensor. So are the parameters then,
// but that the location and scale of an interval without ends may be tensors.
func (d truncatedNormalDist) massOfNumbers(low, high float64) logMass {
	nearer, width, middle := d.high, high-low, (low+high)/2
	if low > 0 {
		low, high, middle, nearer = -high, -low, -middle, d.low
	}
	if wide := d.high.Sub(d.low); !math.IsInf(operand.Number(wide), 0) {
		width = operand.Number(wide.Div(d.scale))
	}
	ratio := func(x float64) float64 { return erfcx(-x / math.Sqrt2) }
	switch {
	case width < narrow && math.Abs(width*middle) < narrow:
		sum := 0.0
		for i, s := range legendreNodes {
			sum += legendreWeights[i] * math.Exp(-0.5*width*s*(width*s+2*middle))
		}
		at := d.low.Mul(0.5).Add(d.high.Mul(0.5))
		return logMass{torch.Of(middle), at, torch.Of(math.Log(sum) + math.Log(width))}
	case high < -1:
		share := math.Log(ratio(low)/ratio(high)) + 0.5*width*(high+low)
		rest := math.Log(ratio(high)) + 0.5*math.Log(math.Pi/2) + math.Log(-math.Expm1(share))
		return logMass{torch.Of(high), nearer, torch.Of(rest)}
	}
	rest := math.Log(0.5*(math.Erf(high/math.Sqrt2)-math.Erf(low/math.Sqrt2))) + halfLog2Pi
	return logMass{torch.Of(0), d.loc, torch.Of(rest)}
}

// erfcx is exp(t²) erfc(t), from 25 on by its asymptotic series (Abramowitz and Stegun 7.1.23).
func erfcx(t float64) float64 {
	if t < 25 {
		return math.Exp(t*t) * math.Erfc(t)
	}
	u := 1 / (2 * t * t)
	return (1 - u*(1-3*u*(1-5*u*(1-7*u*(1-9*u*(1-11*u)))))) / (t * math.Sqrt(math.Pi))
}

// mass is in three parts. In the tail, c being the nearer end, it is φ(c) [M(c) − M(low) exp((c² − low²)/2)] with the
// ratio M = Φ/φ. With an end beyond −1 it is the difference of error functions, and c = 0. Of narrow intervals, where
// either cancels, c is the middle, and the mass is φ(c) ∫ exp(−c s − s²/2) ds over −width/2 < s < width/2, by Gauss and
// Legendre's rule of 8 points.
func (i interval) mass() logMass {
	width, middle := i.width, i.high.Add(i.low).Mul(0.5)
	thin := torch.Of(below(width, torch.Of(narrow)).T().MustLogicalAnd(
		below(width.Mul(middle).Abs(), torch.Of(narrow)).T(), false))
	tail := torch.Of(below(i.high, torch.Of(-1)).T().MustLogicalAnd(not(thin).T(), false))
	root := torch.Of(math.Sqrt2 / 2)

	high, low := fill(i.high, not(tail), -1), fill(i.low, not(tail), -2)
	ratio := func(x torch.Tensor) torch.Tensor { return logErfcx(x.Neg().Mul(root)) }
	share := ratio(low).Sub(ratio(high)).Add(fill(width, not(tail), 1).Mul(high.Add(low)).Mul(0.5))
	far := ratio(high).Add(0.5 * math.Log(math.Pi/2)).Add(logOneMinusExp(share))

	// Of two error functions of one sign that do not differ, the difference is not computed here.
	whole := torch.Of(tail.T().MustLogicalOr(thin.T(), false))
	high, low = fill(i.high, whole, 1), fill(i.low, whole, -1)
	near := high.Mul(root).Erf().Sub(low.Mul(root).Erf()).Mul(0.5).Log().Add(halfLog2Pi)

	w, c := fill(width, not(thin), narrow), fill(middle, not(thin), 0)
	nodes := func(x []float64) torch.Tensor {
		dtype, device := like(w)
		return torch.Must(torch.FromSliceOn(device, dtype, x, len(x)))
	}
	s := w.Unsqueeze(-1).Mul(nodes(legendreNodes))
	e := s.Add(c.Unsqueeze(-1).Mul(2)).Mul(s).Mul(-0.5).Exp()
	flat := operand.SumLast(e.Mul(nodes(legendreWeights)), 1).Log().Add(fill(i.span, not(thin), 1).Log().
		Sub(i.logScale))

	return logMass{
		torch.Choose(thin, middle, fill(i.high, not(tail), 0)),
		torch.Choose(thin, i.middle, torch.Choose(tail, i.nearer, i.loc)),
		torch.Choose(thin, flat, torch.Choose(tail, far, near)),
	}
}

// logErfcx is the logarithm of [erfcx], whose derivative −1/t is not a difference of terms of 2t for large t.
func logErfcx(t torch.Tensor) torch.Tensor {
	far := t.Gt(25)
	large := fill(t, not(far), 25)
	u := large.Square().Reciprocal().Mul(0.5)
	sum := torch.Of(1)
	for _, c := range []float64{-11, -9, -7, -5, -3} {
		sum = sum.Mul(u).Mul(c).Add(1)
	}
	series := sum.Mul(u).Neg().Log1p().Sub(large.Log()).Sub(0.5 * math.Log(math.Pi))
	return torch.Choose(far, series, torch.Of(fill(t, far, 25).T().MustSpecialErfcx(false)).Log())
}

// legendreNodes and legendreWeights are for integrals over (−½, ½) (Abramowitz and Stegun, table 25.4).
var (
	legendreNodes = []float64{-0.48014492824876811, -0.39833323870681337, -0.26276620495816449, -0.09171732124782490,
		0.09171732124782490, 0.26276620495816449, 0.39833323870681337, 0.48014492824876811}
	legendreWeights = []float64{0.05061426814518813, 0.11119051722668724, 0.15685332293894364, 0.18134189168918099,
		0.18134189168918099, 0.15685332293894364, 0.11119051722668724, 0.05061426814518813}
)

// LogProb is the log density.
func (d truncatedNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	outside := torch.Of(below(value, d.low).T().MustLogicalOr(above(value, d.high).T(), false))
	logScale := d.scale.Log()
	mass := d.mass(logScale)
	return d.inside(value, outside, d.someInside(), func(x torch.Tensor) torch.Tensor {
		return mass.density(x, d.loc, d.scale).Sub(logScale)
	})
}

// someInside is a finite number of the interval.
func (d truncatedNormalDist) someInside() torch.Tensor {
	return d.low.AtLeast(-farOut).AtMost(d.high)
}

// Sample inverts the distribution function, in logarithms, and is reparameterised: gradients are those of the quantile
// at fixed probability.
func (d truncatedNormalDist) Sample(src *Source, sample ...int) torch.Tensor {
	return inPieces(d, func(d truncatedNormalDist, p ...torch.Tensor) torch.Tensor {
		x, _ := d.quantile(p[0])
		return x
	}, d.uniform(src, sample, d.loc, d.scale, d.low, d.high))
}

// ICDF is the quantile function.
func (d truncatedNormalDist) ICDF(p torch.Tensor) torch.Tensor {
	return inPieces(d, func(d truncatedNormalDist, p ...torch.Tensor) torch.Tensor {
		return atEnds(p[0], d.low, d.high, d.icdf)
	}, p)
}

func (d truncatedNormalDist) icdf(p torch.Tensor) torch.Tensor {
	at := constant(p)
	x, z := d.quantile(at)
	// dx/dp = scale (Φ(b) − Φ(a))/φ(z).
	mass := turn(constant(d.end(d.low)), constant(d.end(d.high))).mass()
	slope := mass.over(z).Neg().Exp().Mul(constant(d.scale))
	return x.Add(p.Sub(at).Mul(slope))
}

// quantile is the quantile at p, which has no graph, and the standardised one, without its graph.
func (d truncatedNormalDist) quantile(p torch.Tensor) (x, standard torch.Tensor) {
	a, b := d.end(d.low), d.end(d.high)
	ac, bc := constant(a), constant(b)
	i := turn(ac, bc)
	// In the turned interval the probability counts from the other end.
	u := torch.Choose(i.flipped, torch.Of(1).Sub(p), p)
	logP := logAddExp(u.Neg().Log1p().Add(logNdtr(i.low)), u.Log().Add(logNdtr(i.high)))
	z := normalQuantileLog(logP)
	z = torch.Choose(i.flipped, z.Neg(), z).AtLeast(ac).AtMost(bc)
	// dz/da = (1 − p) φ(a)/φ(z) and dz/db = p φ(b)/φ(z), by differentiating Φ(z) = (1 − p) Φ(a) + p Φ(b).
	half := z.Square().Mul(0.5)
	wa := torch.Of(1).Sub(p).Mul(half.Sub(ac.Square().Mul(0.5)).Exp())
	wb := p.Mul(half.Sub(bc.Square().Mul(0.5)).Exp())
	x = z.Add(a.Sub(ac).Mul(wa)).Add(b.Sub(bc).Mul(wb)).Mul(d.scale).Add(d.loc)
	// Rounding may have left the interval.
	return d.full(x.AtLeast(d.low).AtMost(d.high)), z
}

// constant is a val without its graph.
func constant(v torch.Tensor) torch.Tensor {
	if operand.IsNumber(v) {
		return v
	}
	return torch.Of(v.T().MustDetach(false))
}

// normalQuantileLog is the z with log Φ(z) = l. From a start that is good to a few percent, Newton's method on the
// logarithm converges in four steps.
func normalQuantileLog(l torch.Tensor) torch.Tensor { return normalQuantileAfter(l, 4) }

// normalQuantileAfter is that after so many steps; after 0 it is the start.
func normalQuantileAfter(l torch.Tensor, steps int) torch.Tensor {
	deep := l.Lt(-5)
	near := torch.Of(fill(l, deep, -1).Exp().T().MustSpecialNdtri(false))
	t := fill(l, not(deep), -10)
	// z² = −2 l − log 2π − 2 log|z|, with |z| ≈ √(−2 l) in the logarithm.
	z := t.Mul(-2).Sub(2 * halfLog2Pi).Sub(t.Mul(-2).Log()).Sqrt().Neg()
	for range steps {
		f := logNdtr(z)
		slope := z.Square().Mul(-0.5).Sub(halfLog2Pi).Sub(f).Exp()
		z = z.Sub(f.Sub(t).Div(slope))
	}
	return torch.Choose(deep, z, near)
}

// Mean is loc + scale (φ(a) − φ(b))/(Φ(b) − Φ(a)).
func (d truncatedNormalDist) Mean() torch.Tensor {
	mean, _ := d.moments()
	return d.spread(mean.Mul(d.scale).Add(d.loc))
}

// Variance is scale² [1 + (a φ(a) − b φ(b))/(Φ(b) − Φ(a)) − ((φ(a) − φ(b))/(Φ(b) − Φ(a)))²].
func (d truncatedNormalDist) Variance() torch.Tensor {
	_, variance := d.moments()
	return d.spread(variance.Mul(d.scale.Square()))
}

// moments are the standardised mean and variance. In a tail, and of narrow intervals, the closed forms cancel, and they
// are those of high − s, where s has the density exp(high s − s²/2), by Gauss and Legendre's rule.
func (d truncatedNormalDist) moments() (mean, variance torch.Tensor) {
	a, b := d.end(d.low), d.end(d.high)
	i := turn(a, b)
	mass := i.mass()
	pa, pb := mass.over(a).Exp(), mass.over(b).Exp()
	mean = pa.Sub(pb)
	variance = a.Mul(pa).Sub(b.Mul(pb)).Add(1).Sub(mean.Square())

	width := i.high.Sub(i.low)
	steep := torch.Of(below(i.high, torch.Of(-1)).T().MustLogicalOr(below(width, torch.Of(narrow)).T(), false))
	high := fill(i.high, not(steep), -1)
	// Beyond 40 over the hazard there is nothing.
	rule := gaussLegendre()
	dtype, device := like(high)
	nodes := torch.Must(torch.FromSliceOn(device, dtype, rule.nodes, len(rule.nodes)))
	weights := torch.Must(torch.FromSliceOn(device, dtype, rule.weights, len(rule.nodes)))
	length := fill(width, not(steep), 1).AtMost(high.Neg().AtLeast(1).Reciprocal().Mul(40))
	s := length.Unsqueeze(-1).Mul(nodes)
	p := s.Mul(high.Unsqueeze(-1).Sub(s.Mul(0.5))).Exp().Mul(weights)
	sum := func(v torch.Tensor) torch.Tensor {
		return torch.Of(v.T().MustSumDimIntlist([]int64{-1}, true, v.T().DType(), false))
	}
	total := sum(p)
	m := sum(p.Mul(s)).Div(total)
	v := sum(p.Mul(s.Sub(m).Square())).Div(total)
	at := high.Sub(m.Squeeze(-1))
	return torch.Choose(steep, torch.Choose(i.flipped, at.Neg(), at), mean), torch.Choose(steep, v.Squeeze(-1), variance)
}

// gaussLegendre is the rule of 64 points for integrals over (0, 1).
var gaussLegendre = sync.OnceValue(func() legendreRule { return legendre(64) })

type legendreRule struct{ nodes, weights []float64 }

// legendre is Gauss and Legendre's rule of n points, its nodes by Newton's method.
func legendre(n int) (rule legendreRule) {
	for k := range n {
		x, slope := math.Cos(math.Pi*(float64(k)+0.75)/(float64(n)+0.5)), 0.0
		for range 10 {
			p, before := 1.0, 0.0
			for j := 1; j <= n; j++ {
				p, before = (float64(2*j-1)*x*p-float64(j-1)*before)/float64(j), p
			}
			slope = float64(n) * (x*p - before) / (x*x - 1)
			x -= p / slope
		}
		rule.nodes = append(rule.nodes, (1+x)/2)
		rule.weights = append(rule.weights, 1/((1-x*x)*slope*slope))
	}
	return rule
}

// CDF is (Φ(z) − Φ(a))/(Φ(b) − Φ(a)).
func (d truncatedNormalDist) CDF(value torch.Tensor) torch.Tensor {
	return inPieces(d, func(d truncatedNormalDist, x ...torch.Tensor) torch.Tensor { return d.cdf(x[0]) }, floated(value))
}

func (d truncatedNormalDist) cdf(value torch.Tensor) torch.Tensor {
	under, over := below(value, d.low), above(value, d.high)
	x := torch.Choose(torch.Of(under.T().MustLogicalOr(over.T(), false)), d.middle(), floated(value))
	logScale := d.scale.Log()
	part, all := d.between(d.low, x, logScale).mass(), d.between(d.low, d.high, logScale).mass()
	p := all.over(part.c).Add(part.rest).Exp()
	return d.full(fill(fill(p, under, 0), over, 1))
}

// Validate checks the parameters.
func (d truncatedNormalDist) Validate() error {
	return cmp.Or(d.base.Validate(), d.validateAbove("high", d.low, d.high))
}
