package dist

import (
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// TruncatedNormalDist is the normal distribution on an interval; see [TruncatedNormal].
type TruncatedNormalDist struct {
	base
	loc, scale, low, high val
}

// TruncatedNormal is the normal distribution with the given loc and scale > 0 on condition that low ≤ x ≤ high; either end
// may be infinite. With z = (x − loc)/scale, and a and b the same of the ends,
//
//	log p(x) = −z²/2 − log √(2π) − log scale − log(Φ(b) − Φ(a))
//
// It is computed from the ratio of Φ to its density, so that the interval may be far out in a tail, and narrow.
func TruncatedNormal(loc, scale, low, high any) TruncatedNormalDist {
	l, s := param("TruncatedNormal", "loc", loc), param("TruncatedNormal", "scale", scale)
	lo, hi := param("TruncatedNormal", "low", low), param("TruncatedNormal", "high", high)
	d := TruncatedNormalDist{base: newBase("TruncatedNormal", l, s, lo, hi), loc: l, scale: s, low: lo, high: hi}
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	d.checkNumber("low", lo, notNaN)
	d.checkNumber("high", hi, notNaN)
	d.checkAbove("high", lo, hi)
	return d
}

// Support is low ≤ x ≤ high.
func (d TruncatedNormalDist) Support() support.Support {
	return support.Interval(d.low.any(), d.high.any())
}

// farOut is beyond any end that matters: Φ is 0 or 1 there, and its square is finite even as a float32.
const farOut = 1e15

// end is (x − loc)/scale of an end, made finite. The bounds before the division keep the gradient of an infinite end finite.
func (d TruncatedNormalDist) end(x val) val {
	x = x.max(num(-farOut)).min(num(farOut))
	return x.sub(d.loc).div(d.scale).max(num(-farOut)).min(num(farOut))
}

// interval is an interval turned, where it lies in the upper tail, into the lower one.
type interval struct {
	low, high val
	flipped   *ts.Tensor // where it was turned
}

func turn(a, b val) interval {
	if a.isNum() && b.isNum() {
		a, b = ten(a.tensor()), ten(b.tensor())
	}
	flipped := a
	if flipped.isNum() {
		flipped = b.mul(num(0)).add(a)
	}
	mask := flipped.t.MustGt(ts.FloatScalar(0), false)
	return interval{choose(mask, b.neg(), a), choose(mask, a.neg(), b), mask}
}

// logMass is log(Φ(high) − Φ(low)) as −c²/2 − log √(2π) + rest: with a c at which φ is about as small as the mass, nothing is
// lost of the rest however far out the interval is.
type logMass struct{ c, rest val }

// over is log(φ(z)/mass).
func (m logMass) over(z val) val {
	return m.c.sub(z).mul(m.c.add(z)).mul(num(0.5)).sub(m.rest)
}

// Below narrow in width, and in width times distance, an interval is integrated over.
const narrow = 0.25

// mass is the probability of the interval, before the scale.
func (d TruncatedNormalDist) mass() logMass {
	a, b := d.end(d.low), d.end(d.high)
	if a.isNum() && b.isNum() {
		return massOfNumbers(a.c, b.c)
	}
	return turn(a, b).mass()
}

// massOfNumbers is interval.mass of numbers, without a tensor.
func massOfNumbers(low, high float64) logMass {
	if low > 0 {
		low, high = -high, -low
	}
	width, middle := high-low, (low+high)/2
	ratio := func(x float64) float64 { return erfcx(-x / math.Sqrt2) }
	switch {
	case width < narrow && math.Abs(width*middle) < narrow:
		sum := 0.0
		for i, s := range legendreNodes {
			sum += legendreWeights[i] * math.Exp(-0.5*width*s*(width*s+2*middle))
		}
		return logMass{num(middle), num(math.Log(sum) + math.Log(width))}
	case high < -1:
		share := math.Log(ratio(low)/ratio(high)) + 0.5*(high-low)*(high+low)
		return logMass{num(high), num(math.Log(ratio(high)) + 0.5*math.Log(math.Pi/2) + math.Log(-math.Expm1(share)))}
	}
	return logMass{num(0), num(math.Log(0.5*(math.Erf(high/math.Sqrt2)-math.Erf(low/math.Sqrt2))) + halfLog2Pi)}
}

// erfcx is exp(t²) erfc(t), from 25 on by its asymptotic series (Abramowitz and Stegun 7.1.23).
func erfcx(t float64) float64 {
	if t < 25 {
		return math.Exp(t*t) * math.Erfc(t)
	}
	u := 1 / (2 * t * t)
	return (1 - u*(1-3*u*(1-5*u*(1-7*u*(1-9*u*(1-11*u)))))) / (t * math.Sqrt(math.Pi))
}

// mass is in three parts. In the tail, c being the nearer end, it is φ(c) [M(c) − M(low) exp((c² − low²)/2)] with the ratio
// M = Φ/φ. With an end beyond −1 it is the difference of error functions, and c = 0. Of narrow intervals, where either
// cancels, c is the middle, and the mass is φ(c) ∫ exp(−c s − s²/2) ds over −width/2 < s < width/2, by Gauss and Legendre's
// rule of 8 points.
func (i interval) mass() logMass {
	width, middle := i.high.sub(i.low), i.high.add(i.low).mul(num(0.5))
	thin := below(width.t, num(narrow)).MustLogicalAnd(below(width.mul(middle).abs().t, num(narrow)), false)
	tail := below(i.high.t, num(-1)).MustLogicalAnd(not(thin), false)
	root := num(math.Sqrt2 / 2)

	high, low := i.high.fill(not(tail), -1), i.low.fill(not(tail), -2)
	ratio := func(x val) val { return ten(x.neg().mul(root).t.MustSpecialErfcx(false)) }
	share := ratio(low).div(ratio(high)).log().add(high.sub(low).mul(high.add(low)).mul(num(0.5)))
	far := ratio(high).log().add(num(0.5 * math.Log(math.Pi/2))).add(share.log1mexp())

	// Of two error functions of one sign that do not differ, the difference is not computed here.
	whole := tail.MustLogicalOr(thin, false)
	high, low = i.high.fill(whole, 1), i.low.fill(whole, -1)
	near := ten(high.mul(root).t.MustErf(false)).sub(ten(low.mul(root).t.MustErf(false))).mul(num(0.5)).log().add(num(halfLog2Pi))

	w, c := width.fill(not(thin), narrow), middle.fill(not(thin), 0)
	nodes := func(x []float64) val {
		dtype, device := like(w)
		return ten(torch.Must(torch.FromSliceOn(device, dtype, x, int64(len(x)))))
	}
	s := ten(w.t.MustUnsqueeze(-1, false)).mul(nodes(legendreNodes))
	e := s.add(ten(c.t.MustUnsqueeze(-1, false)).mul(num(2))).mul(s).mul(num(-0.5)).exp()
	flat := ten(sumLast(e.mul(nodes(legendreWeights)).t, 1)).log().add(w.log())

	return logMass{choose(thin, middle, i.high.fill(not(tail), 0)), choose(thin, flat, choose(tail, far, near))}
}

// legendreNodes and legendreWeights are for integrals over (−½, ½) (Abramowitz and Stegun, table 25.4).
var (
	legendreNodes = []float64{-0.48014492824876811, -0.39833323870681337, -0.26276620495816449, -0.09171732124782490,
		0.09171732124782490, 0.26276620495816449, 0.39833323870681337, 0.48014492824876811}
	legendreWeights = []float64{0.05061426814518813, 0.11119051722668724, 0.15685332293894364, 0.18134189168918099,
		0.18134189168918099, 0.15685332293894364, 0.11119051722668724, 0.05061426814518813}
)

// LogProb is the log density.
func (d TruncatedNormalDist) LogProb(value *ts.Tensor) *ts.Tensor {
	outside := below(value, d.low).MustLogicalOr(above(value, d.high), false)
	mass := d.mass()
	return d.inside(value, outside, d.someInside(), func(x *ts.Tensor) val {
		return mass.over(ten(x).sub(d.loc).div(d.scale)).sub(d.scale.log())
	})
}

// someInside is a finite number of the interval.
func (d TruncatedNormalDist) someInside() val {
	return d.low.max(num(-farOut)).min(d.high)
}

// Sample inverts the distribution function, in logarithms, and is reparameterised: gradients are those of the quantile at
// fixed probability.
func (d TruncatedNormalDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	x, _ := d.quantile(ten(d.uniform(src, sample, d.loc, d.scale, d.low, d.high)))
	return x.t
}

// ICDF is the quantile function.
func (d TruncatedNormalDist) ICDF(p *ts.Tensor) *ts.Tensor {
	at := constant(ten(p))
	x, z := d.quantile(at)
	// dx/dp = scale (Φ(b) − Φ(a))/φ(z).
	mass := turn(constant(d.end(d.low)), constant(d.end(d.high))).mass()
	slope := mass.over(z).neg().exp().mul(constant(d.scale))
	return x.add(ten(p).sub(at).mul(slope)).t
}

// quantile is the quantile at p, which has no graph, and the standardised one, without its graph.
func (d TruncatedNormalDist) quantile(p val) (x, standard val) {
	a, b := d.end(d.low), d.end(d.high)
	ac, bc := constant(a), constant(b)
	i := turn(ac, bc)
	// In the turned interval the probability counts from the other end.
	u := choose(i.flipped, num(1).sub(p), p)
	logP := logAddExp(u.neg().log1p().add(i.low.logNdtr()), u.log().add(i.high.logNdtr()))
	z := normalQuantileLog(logP)
	z = choose(i.flipped, z.neg(), z).max(ac).min(bc)
	// dz/da = (1 − p) φ(a)/φ(z) and dz/db = p φ(b)/φ(z), by differentiating Φ(z) = (1 − p) Φ(a) + p Φ(b).
	half := z.square().mul(num(0.5))
	wa := num(1).sub(p).mul(half.sub(ac.square().mul(num(0.5))).exp())
	wb := p.mul(half.sub(bc.square().mul(num(0.5))).exp())
	x = z.add(a.sub(ac).mul(wa)).add(b.sub(bc).mul(wb)).mul(d.scale).add(d.loc)
	// Rounding may have left the interval.
	return ten(d.full(x.max(d.low).min(d.high).t)), z
}

// constant is a val without its graph.
func constant(v val) val {
	if v.isNum() {
		return v
	}
	return ten(v.t.MustDetach(false))
}

// normalQuantileLog is the z with log Φ(z) = l. From a start that is good to a few percent, Newton's method on the logarithm
// converges in four steps.
func normalQuantileLog(l val) val {
	deep := l.t.MustLt(ts.FloatScalar(-5), false)
	near := ten(l.fill(deep, -1).exp().t.MustSpecialNdtri(false))
	t := l.fill(not(deep), -10)
	// z² = −2 l − log 2π − 2 log|z|, with |z| ≈ √(−2 l) in the logarithm.
	z := t.mul(num(-2)).sub(num(2 * halfLog2Pi)).sub(t.mul(num(-2)).log()).sqrt().neg()
	for range 4 {
		f := z.logNdtr()
		slope := z.square().mul(num(-0.5)).sub(num(halfLog2Pi)).sub(f).exp()
		z = z.sub(f.sub(t).div(slope))
	}
	return choose(deep, z, near)
}

// Mean is loc + scale (φ(a) − φ(b))/(Φ(b) − Φ(a)).
func (d TruncatedNormalDist) Mean() *ts.Tensor {
	mean, _ := d.moments()
	return d.spread(mean.mul(d.scale).add(d.loc))
}

// Variance is scale² [1 + (a φ(a) − b φ(b))/(Φ(b) − Φ(a)) − ((φ(a) − φ(b))/(Φ(b) − Φ(a)))²].
func (d TruncatedNormalDist) Variance() *ts.Tensor {
	_, variance := d.moments()
	return d.spread(variance.mul(d.scale.square()))
}

// moments are the standardised mean and variance. In a tail, and of narrow intervals, the closed forms cancel, and they are
// those of high − s, where s has the density exp(high s − s²/2), by Gauss and Legendre's rule.
func (d TruncatedNormalDist) moments() (mean, variance val) {
	a, b := d.end(d.low), d.end(d.high)
	i := turn(a, b)
	mass := i.mass()
	pa, pb := mass.over(a).exp(), mass.over(b).exp()
	mean = pa.sub(pb)
	variance = a.mul(pa).sub(b.mul(pb)).add(num(1)).sub(mean.square())

	width := i.high.sub(i.low)
	steep := below(i.high.t, num(-1)).MustLogicalOr(below(width.t, num(narrow)), false)
	high := i.high.fill(not(steep), -1)
	// Beyond 40 over the hazard there is nothing.
	rule := gaussLegendre()
	dtype, device := like(high)
	nodes := ten(torch.Must(torch.FromSliceOn(device, dtype, rule.nodes, int64(len(rule.nodes)))))
	weights := ten(torch.Must(torch.FromSliceOn(device, dtype, rule.weights, int64(len(rule.nodes)))))
	length := width.fill(not(steep), 1).min(high.neg().max(num(1)).recip().mul(num(40)))
	s := ten(length.t.MustUnsqueeze(-1, false)).mul(nodes)
	p := s.mul(ten(high.t.MustUnsqueeze(-1, false)).sub(s.mul(num(0.5)))).exp().mul(weights)
	sum := func(v val) val { return ten(v.t.MustSumDimIntlist([]int64{-1}, true, v.t.DType(), false)) }
	total := sum(p)
	m := sum(p.mul(s)).div(total)
	v := sum(p.mul(s.sub(m).square())).div(total)
	at := high.sub(ten(m.t.MustSqueezeDim(-1, false)))
	return choose(steep, choose(i.flipped, at.neg(), at), mean), choose(steep, ten(v.t.MustSqueezeDim(-1, false)), variance)
}

// gaussLegendre is the rule of 64 points for integrals over (0, 1), its nodes by Newton's method.
var gaussLegendre = sync.OnceValue(func() (rule struct{ nodes, weights []float64 }) {
	const n = 64
	for k := range n {
		x, slope := math.Cos(math.Pi*(float64(k)+0.75)/(n+0.5)), 0.0
		for range 10 {
			p, before := 1.0, 0.0
			for j := 1; j <= n; j++ {
				p, before = (float64(2*j-1)*x*p-float64(j-1)*before)/float64(j), p
			}
			slope = n * (x*p - before) / (x*x - 1)
			x -= p / slope
		}
		rule.nodes = append(rule.nodes, (1+x)/2)
		rule.weights = append(rule.weights, 1/((1-x*x)*slope*slope))
	}
	return rule
})

// CDF is (Φ(z) − Φ(a))/(Φ(b) − Φ(a)).
func (d TruncatedNormalDist) CDF(value *ts.Tensor) *ts.Tensor {
	a, b := d.end(d.low), d.end(d.high)
	under, over := below(value, d.low), above(value, d.high)
	middle := d.low.max(num(-farOut)).add(d.high.min(num(farOut))).mul(num(0.5))
	z := d.end(choose(under.MustLogicalOr(over, false), middle, floated(value)))
	part, all := turn(a, z).mass(), turn(a, b).mass()
	p := all.over(part.c).add(part.rest).exp()
	return d.full(p.fill(under, 0).fill(over, 1).t)
}

// Expand broadcasts the batch shape.
func (d TruncatedNormalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc, scale, low and high.
func (d TruncatedNormalDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive), d.validate("low", d.low, notNaN),
		d.validate("high", d.high, notNaN), d.validateAbove("high", d.low, d.high))
}

// Params are the parameters by name.
func (d TruncatedNormalDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), "scale": d.scale.any(), "low": d.low.any(), "high": d.high.any()}
}
