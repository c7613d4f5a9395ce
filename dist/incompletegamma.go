package dist

import (
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The regularised incomplete gamma functions P(a, t) and Q = 1 − P as logarithms, to 1e-13 of the smaller of the two or
// to what a rounding of t changes, at any a and t. Libtorch's are off by 5e-9 for a from 20 to 200 and by 5e-8 for a
// below 1e-6, underflow, and have no derivative in a.

// Contour is the integral for a ≥ contourFrom; below it is a series for t < seriesTo, and a Gauss-Laguerre sum beyond.
const contourFrom, seriesTo = 8, 4

// incompleteGamma is P(a, t), incompleteGammaC is Q(a, t).
func incompleteGamma(a torch.Tensor, t torch.Tensor) torch.Tensor {
	lower, _ := gammaTails(a, t)
	return lower.Exp()
}

func incompleteGammaC(a torch.Tensor, t torch.Tensor) torch.Tensor {
	_, upper := gammaTails(a, t)
	return upper.Exp()
}

// gammaTails are log P(a, t) and log Q(a, t) for a > 0 and t ≥ 0, by pieces.
func gammaTails(a torch.Tensor, t torch.Tensor) (lower, upper torch.Tensor) {
	both := byPieces("Gamma", a, dense(t), gammaTailsPart)
	return both[0], both[1]
}

// gammaTailsPart has, in a, the derivatives of what computes it; in t the first two are those of the density p, by
// log T + log(1 ± (t − t₀) p/T), with p half-way from t₀ = t to t. At t = 0 and ∞ there are none.
func gammaTailsPart(a, t torch.Tensor) []torch.Tensor {
	none, all := t.Eq(0), isInfinite(t)
	t = fill(t, either(none, all), 1)
	at := constant(t)
	lower, upper := tailsAt(a, at)
	if hasGraph(t) {
		density := gammaKernel(a, t.Add(at).Mul(0.5))
		hazard := func(tail torch.Tensor) torch.Tensor { return density.Sub(tail).AtMost(700).Exp().Mul(t.Sub(at)) }
		lower, upper = lower.Add(hazard(lower).Log1p()), upper.Add(hazard(upper).Neg().Log1p())
	}
	lower = fill(fill(lower, none, math.Inf(-1)), all, 0)
	return []torch.Tensor{lower, fill(fill(upper, none, 0), all, math.Inf(-1))}
}

func tailsAt(a, t torch.Tensor) (lower, upper torch.Tensor) {
	if operand.IsNumber(a) {
		if operand.Number(a) < contourFrom {
			return tailsNear(a, t)
		}
		return tailsFar(a, t)
	}
	small := a.Lt(contourFrom)
	return branches(small, tailsNear, tailsFar, at{fill(a, not(small), 1), t}, at{fill(a, small, contourFrom), t})
}

// at are the arguments of a function of two tensors.
type at struct{ a, t torch.Tensor }

// branches is near at the elements of a mask and far at the others. Where numbers can be read each has its own elements
// alone; elsewhere both have all, and arguments that they can bear.
func branches(mask torch.Tensor, near, far func(a, t torch.Tensor) (lower, upper torch.Tensor), forNear, forFar at) (
	lower, upper torch.Tensor) {
	if undivided() || torch.Must(torch.DeviceOf(mask)) != torch.CPU {
		nearLower, nearUpper := near(forNear.a, forNear.t)
		farLower, farUpper := far(forFar.a, forFar.t)
		return torch.Choose(mask, nearLower, farLower), torch.Choose(mask, nearUpper, farUpper)
	}
	shape := broadcast("", mask.Shape(), forNear.a.Shape(), forNear.t.Shape())
	mask = expandTo(mask, shape).Reshape(-1)
	first := torch.Of(mask.T().MustNonzero(false)).Squeeze(-1)
	switch first.Numel() {
	case mask.Numel():
		return near(forNear.a, forNear.t)
	case 0:
		return far(forFar.a, forFar.t)
	}
	rest := torch.Of(not(mask).T().MustNonzero(false)).Squeeze(-1)
	of := func(f func(a, t torch.Tensor) (lower, upper torch.Tensor), x at, index torch.Tensor) torch.Tensor {
		pick := func(v torch.Tensor) torch.Tensor {
			if operand.IsNumber(v) {
				return v
			}
			return expandTo(v, shape).Reshape(-1).IndexSelect(0, index)
		}
		lower, upper := f(pick(x.a), pick(x.t))
		return torch.Stack(0, lower, upper)
	}
	a, b := of(near, forNear, first), of(far, forFar, rest)
	both := torch.Cat(-1, a, b).T().MustIndexCopy(-1, first.T(), a.T(), false).MustIndexCopy(-1, rest.T(), b.T(), true)
	return torch.Of(both).At(0).Reshape(shape...), torch.Of(both).At(1).Reshape(shape...)
}

// tailsNear is for a < contourFrom. For t < seriesTo (DLMF 8.7.1)
//
//	P = tᵃ/Γ(a + 1) (1 − S),  S = Σ (−1)ⁿ⁻¹ tⁿ/n! a/(a + n),  n = 1, 2, …
//
// and beyond Q = tᵃ⁻¹ e⁻ᵗ/Γ(a) ∫ e⁻ʷ (1 + w/t)ᵃ⁻¹ dw over w > 0, by Gauss and Laguerre's rule of 24 points, without
// those of weights below 1e-24.
func tailsNear(a, t torch.Tensor) (lower, upper torch.Tensor) {
	small := t.Lt(seriesTo)
	return branches(small, tailsSeries, tailsLaguerre, at{a, fill(t, not(small), 1)}, at{a, fill(t, small, seriesTo)})
}

func tailsSeries(a, t torch.Tensor) (lower, upper torch.Tensor) {
	power := t.Log().Mul(a).Sub(lgamma1p(a))
	terms := alternating()
	count := along(terms.n, t)
	sum := weighted(wide(t.Log()).Mul(count).Exp(), along(terms.c, t).Mul(wide(a).Div(count.Add(wide(a)))))
	lower = power.Add(sum.Neg().Log1p())
	most := lower.Lt(-math.Ln2)
	rest := fill(power.Exp().Mul(sum).Sub(power.Expm1()), most, 1)
	return lower, torch.Choose(most, logOneMinusExp(lower), rest.Log())
}

// weighted is the sum of x times w over the last dimension. In a recording it is one loop.
func weighted(x, w torch.Tensor) torch.Tensor {
	if len(w.Shape()) == 1 && len(x.Shape()) > 1 && !undivided() {
		return x.MatMul(w)
	}
	return operand.SumLast(x.Mul(w), 1)
}

func tailsLaguerre(a, t torch.Tensor) (lower, upper torch.Tensor) {
	nodes := along(laguerreNodes, t).Mul(wide(t).Reciprocal()).Log1p().Mul(wide(a).Sub(1)).Exp()
	sum := weighted(nodes, along(laguerreWeights, t))
	upper = sum.Log().Add(a.Sub(1).Mul(t.Log())).Sub(t).Add(a.Log()).Sub(lgamma1p(a))
	return logOneMinusExp(upper), upper
}

// tailsFar is for a ≥ contourFrom: with μ = t/a, and η² = 2(μ − 1 − log μ), the smaller of P (for μ < 1) and Q is
//
//	± exp(−aη²/2)/(2πi) ∫ exp(−aζ²/2) w′(ζ)/(w(ζ) − μ) dζ
//
// over the real line, where w − 1 − log w = −ζ²/2 is the path of steepest descent (N. Temme, "Computational aspects of
// incomplete gamma functions", 1994). The trapezoidal rule converges exponentially, and what it lacks because of the
// pole at ζ = ±iη is 1/(1 + exp(2π|η|/step)). The nodes have no derivatives: the integral does not depend on them.
func tailsFar(a, t torch.Tensor) (lower, upper torch.Tensor) {
	fixed := constant(a)
	p, root := contourOf(fixed, t), fixed.Sqrt()
	over := t.Sub(a)
	u := over.Div(a)
	eta := u.Mul(etaRatio(u, t.Div(a)).Sqrt())
	z2 := eta.Square().Mul(a).Mul(0.5)
	right := over.Ge(0)
	sign := torch.Choose(right, -1, over.Mul(0).Add(1))

	d := wide(u.Mul(root).AtMost(1e18))
	from := p.rest.Mul(wide(root.Reciprocal())).Sub(d)
	b := p.near.Mul(wide(root.Reciprocal())).Add(d).Square().Add(p.angle.Square())
	weight := p.half.Mul(wide(fixed.Sub(a).Div(fixed))).Exp().Mul(p.weight)
	sum := operand.SumLast(from.Div(b).Mul(weight), 1).Mul(sign)

	z := eta.Mul(root)
	close := z.Abs().Lt(10)
	pole := torch.Choose(close, z.Mul(sign).Mul(-2*math.Pi/contourStep), 40).Softplus().Neg()
	pole = fill(pole.Add(z2), not(close), math.Inf(-1)).Exp()
	small := sum.Add(pole).Log().Sub(z2)
	large := logOneMinusExp(small)
	return torch.Choose(right, large, small), torch.Choose(right, small, large)
}

// etaRatio is (η/u)² = 2(u − log(1 + u))/u², with m = 1 + u. Near u = 0 it is, with r = u/(2 + u),
//
//	1 − r − r (1 − r)² (1/3 + r²/5 + r⁴/7 + …)
func etaRatio(u, m torch.Tensor) torch.Tensor {
	near := u.Abs().Lt(0.25)
	v := fill(u, not(near), 0)
	r := v.Div(v.Add(2))
	rr := r.Square()
	sum := torch.Of(1. / 23)
	for k := 21; k >= 3; k -= 2 {
		sum = sum.Mul(rr).Add(1 / float64(k))
	}
	left := r.Neg().Add(1)
	series := left.Sub(left.Square().Mul(r).Mul(sum))
	w := fill(u, near, 1)
	return torch.Choose(near, series, w.Sub(fill(m, near, 2).Log()).Mul(2).Div(w.Square()))
}

// contour has, at nodes τ = ζ √a along a last dimension, what the integral needs of w = 1 − A + iθ in the scale of
// 1/√a: near = A a, angle = θ √a, rest = R a − 2 A a with R = A² + θ², half = τ²/2, and the weight
// step/π exp(−half) θ √a τ/(R a).
type contour struct{ near, angle, rest, half, weight torch.Tensor }

const contourStep, contourNodes, contourTerms = 0.72, 12, 22

func contourOf(a, like torch.Tensor) contour {
	rule := contourRule()
	inverse := wide(dense(a)).Reciprocal()
	// A and θ are polynomials in 1/a.
	w := inverse.Log().Mul(along(rule.powers, like)).Exp().MatMul(along(rule.series, like).Reshape(contourTerms, -1))
	c := contour{near: w.Slice(-1, 0, contourNodes), angle: w.Slice(-1, contourNodes, 2*contourNodes)}
	modulus := c.near.Square().Mul(inverse).Add(c.angle.Square())
	c.rest, c.half = modulus.Sub(c.near.Mul(2)), along(rule.half, like)
	c.weight = c.angle.Div(modulus).Mul(along(rule.weight, like))
	return c
}

// contourRule has a column of the series for A at each node, and one for θ. These series are, but for signs, that of
// w = 1 + Σ c x^k with w − 1 − log w = x²/2, from w′ (w − 1) = x w.
var contourRule = sync.OnceValue(func() (rule struct{ powers, series, half, weight []float64 }) {
	c := []float64{0, 1}
	for n := 2; n <= 2*contourTerms; n++ {
		sum := c[n-1]
		for k := 2; k < n; k++ {
			sum -= float64(k) * c[k] * c[n+1-k]
		}
		c = append(c, sum/float64(n+1))
	}
	node := func(k int) float64 { return contourStep * (float64(k%contourNodes) + 0.5) }
	for k := range contourNodes {
		tau := node(k)
		rule.half = append(rule.half, tau*tau/2)
		rule.weight = append(rule.weight, contourStep/math.Pi*math.Exp(-tau*tau/2)*tau)
	}
	for j := range contourTerms {
		rule.powers = append(rule.powers, float64(j))
		sign := float64(1 - 2*(j%2))
		for k := range 2 * contourNodes {
			if tau := node(k); k < contourNodes {
				rule.series = append(rule.series, sign*c[2*j+2]*math.Pow(tau, float64(2*j+2)))
			} else {
				rule.series = append(rule.series, sign*c[2*j+1]*math.Pow(tau, float64(2*j+1)))
			}
		}
	}
	return rule
})

// alternating are n = 1, 2, … and (−1)ⁿ⁻¹/n!, until 4ⁿ/n! is below 1e-18.
var alternating = sync.OnceValue(func() (terms struct{ n, c []float64 }) {
	c := -1.0
	for n := 1.0; n <= 34; n++ {
		c /= -n
		terms.n, terms.c = append(terms.n, n), append(terms.c, c)
	}
	return terms
})

var (
	laguerreNodes = []float64{0.059019852181507977, 0.31123914619848373, 0.76609690554593665, 1.4255975908036131,
		2.2925620586321903, 3.3707742642089977, 4.6650837034671708, 6.1815351187367654, 7.9275392471721522,
		9.912098015077706, 12.146102711729766, 14.642732289596674, 17.417992646508979, 20.491460082616425,
		23.887329848169733, 27.635937174332717, 31.776041352374723, 36.358405801651622, 41.451720484870767,
		47.153106445156323, 53.60857454469507}
	laguerreWeights = []float64{1.4281197333478185e-1, 2.587741075174239e-1, 2.588067072728698e-1,
		1.8332268897777802e-1, 9.8166272629918892e-2, 4.0732478151408646e-2, 1.3226019405120157e-2,
		3.3693490584783036e-3, 6.7216256409354789e-4, 1.0446121465927518e-4, 1.2544721977993333e-5,
		1.1513158127372799e-6, 7.9608129591336303e-8, 4.0728589875499997e-9, 1.5070082262925849e-10,
		3.9177365150584514e-12, 6.8941810529580857e-14, 7.8198003824594485e-16, 5.3501888130100376e-18,
		2.0105174645555035e-20, 3.605765864552959e-23}
)

// along is numbers along a last dimension, in the type of another tensor.
func along(x []float64, as torch.Tensor) torch.Tensor {
	dtype, device := like(as)
	return torch.Must(torch.FromSliceOn(device, dtype, x, len(x)))
}

// lgamma1p is log Γ(1 + a), for small a by its series (DLMF 5.7.3), where 1 + a would be rounded.
func lgamma1p(a torch.Tensor) torch.Tensor {
	small := dense(a).Lt(0.05)
	s := fill(dense(a), not(small), 0)
	sum := torch.Of(0)
	for i := len(zeta) - 1; i >= 0; i-- {
		sum = sum.Neg().Mul(s).Add(zeta[i] / float64(i+2))
	}
	return torch.Choose(small, sum.Mul(s).Sub(eulerGamma).Mul(s), fill(dense(a), small, 1).Add(1).Lgamma())
}
