package dist

import (
	"math"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/internal/foreign"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Inverses of tails that have no closed form. They solve log T = t, for the tail T that is the smaller: for most
// families log T is concave in the coordinate used, so that Newton's method converges from anywhere.

// rising is a function that rises, with its derivative, and that of the derivative's logarithm; without the last it is
// that between two steps.
type rising struct{ off, slope, bend torch.Tensor }

// mostSteps bounds the steps of root: as many halve any interval of numbers to neighbours.
const mostSteps = 80

// root is, for each element, where f is 0 between low and high: by Halley's method from s, with bisection where a step
// leaves the interval that is left. An element is done when |f| was at most 1e-5 before its last step, which takes off
// all but a power of that. In a recording no number can be read, and all go the given number of steps. of makes f for a
// part of the elements; it is nil where f cannot be divided. The caller has switched gradients off.
func root(s, low, high torch.Tensor, blind int, of func(p part) func(s torch.Tensor) rising) torch.Tensor {
	if ts.KelvinRecorded() {
		f, at := of(part{}), bracket{s: s, low: low, high: high}
		for range blind {
			torch.Must(0, torch.Do(func(scope *torch.Scope) error {
				at, _ = at.step(f)
				scope.Keep(at.tensors()...)
				return nil
			}))
		}
		return at.s
	}
	at, f, divided := bracket{s: s, low: low, high: high}, of(part{}), len(s.Shape()) == 1 && !undivided()
	var out, index torch.Tensor // of elements that are done, and where the others are
	if divided {
		out = s.Add(0)
		index = torch.Of(ts.MustArange(ts.IntScalar(int64(s.Numel())), gotch.Int64, torch.Must(torch.DeviceOf(s))))
	}
	for k, left := 0, 1; k < mostSteps && left > 0; k++ {
		var open torch.Tensor
		torch.Must(0, torch.Do(func(scope *torch.Scope) error {
			at, open = at.step(f)
			all := torch.Must(foreign.Whole(open.T().MustTotype(gotch.Int64, false)))
			left = int(torch.Of(all.MustSum(gotch.Int64, false)).Item())
			scope.Keep(append(at.tensors(), open)...)
			return nil
		}))
		if divided && left > 0 && left*4 < index.Numel()*3 {
			among := part{back: 1, n: left, index: torch.Of(open.T().MustNonzero(false)).Squeeze(-1)}
			rest := part{back: 1, n: left, index: among.of(index)}
			some := of(rest)
			if some == nil {
				divided = false
				continue
			}
			out = torch.Of(out.T().MustIndexCopy(0, index.T(), at.s.T(), false))
			f, at, index = some, at.part(among), rest.index
		}
	}
	if !divided || index.Numel() == s.Numel() {
		return at.s
	}
	return torch.Of(out.T().MustIndexCopy(0, index.T(), at.s.T(), false))
}

// bracket is where root is, between low and high, and where it was before, with the slope there.
type bracket struct{ s, low, high, before, slope torch.Tensor }

func (b bracket) tensors() []torch.Tensor {
	return []torch.Tensor{b.s, b.low, b.high, b.before, b.slope}
}

func (b bracket) part(p part) bracket {
	return bracket{p.of(b.s), p.of(b.low), p.of(b.high), p.of(b.before), p.of(b.slope)}
}

// step is the next one, and which elements are not yet done.
func (b bracket) step(f func(s torch.Tensor) rising) (next bracket, open torch.Tensor) {
	y, s := f(b.s), b.s
	bend := y.bend
	if operand.IsNumber(bend) && !operand.IsNumber(b.slope) {
		bend = y.slope.Div(b.slope).Log().Div(s.Sub(b.before))
		bend = fill(bend, not(torch.Of(bend.T().MustIsfinite(false))), 0)
	}
	short := y.off.Lt(0)
	low, high := torch.Choose(short, s, b.low), torch.Choose(short, b.high, s)
	step := y.off.Div(y.slope)
	to := s.Sub(step.Div(step.Mul(bend).Mul(-0.5).Add(1).AtLeast(0.5).AtMost(1.5)))
	inside := torch.Of(to.Ge(low).T().MustLogicalAnd(to.Le(high).T(), false))
	to = torch.Choose(inside, to, low.Add(high).Mul(0.5))
	open = torch.Of(y.off.Abs().Gt(1e-5).T().MustLogicalAnd(to.T().MustNeTensor(s.T(), false), false))
	return bracket{to, low, high, s, y.slope}, open
}

// gammaFromTails is the t at which the gamma distribution of shape a and rate 1 has the given tails. The start is
// Wilson's and Hilferty's (1931), or from P < tᵃ/Γ(a + 1).
func gammaFromTails(a, lower, upper torch.Tensor) torch.Tensor {
	down, near := lower.Lt(upper), lower.AtMost(upper)
	none := isInfinite(near)
	near = fill(near, none, -1)
	z := normalQuantileAfter(near, 0)
	c := a.Mul(9).Reciprocal()
	cube := torch.Choose(down, z, z.Neg()).Mul(c.Sqrt()).Sub(c).Add(1)
	least := torch.Choose(down, near, logOneMinusExp(near)).Add(a.Add(1).Lgamma()).Div(a)
	start := cube.AtLeast(0.2).Log().Mul(3).Add(a.Log())
	start = torch.Choose(torch.Of(cube.Lt(0.3).T().MustLogicalAnd(down.T(), false)), least, start.AtLeast(least))
	low, high := start.Mul(0).Sub(745), start.Mul(0).Add(710)
	u := root(start.AtLeast(low).AtMost(high), low, high, 16, func(p part) func(u torch.Tensor) rising {
		a, near, down := p.of(a), p.of(near), p.of(down)
		return func(u torch.Tensor) rising {
			t := u.Exp()
			l, r := gammaTails(a, t)
			at := torch.Choose(down, l, r)
			slope := gammaKernel(a, t).Add(u).Sub(at).Exp()
			off := at.Sub(near)
			// The logarithm of the density of u has the derivative a − t.
			return rising{torch.Choose(down, off, off.Neg()), slope, a.Sub(t).Sub(torch.Choose(down, slope, slope.Neg()))}
		}
	})
	t := fill(u.Exp(), torch.Of(none.T().MustLogicalAnd(down.T(), false)), 0)
	return fill(t, torch.Of(none.T().MustLogicalAnd(not(down).T(), false)), math.Inf(1))
}

func (d gammaDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	return gammaFromTails(constant(d.concentration), lower, upper).Div(d.rate)
}

func (d chi2Dist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	return gammaFromTails(constant(d.df).Mul(0.5), lower, upper).Mul(2)
}

func (d inverseGammaDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	return gammaFromTails(constant(d.concentration), upper, lower).Reciprocal().Mul(d.scale)
}

// fromTails solves for y = arsinh(z/√df), in which the density is cosh(y)^(−df)/B(df/2, ½), from Wallace's start
// (1959).
func (d studentTDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	const most = 709.
	n := constant(d.df)
	down, near := lower.Lt(upper), lower.AtMost(upper)
	none := isInfinite(near)
	near = fill(near, none, -1)
	z := normalQuantileAfter(near, 0).Mul(n.Mul(8).Add(3).Div(n.Mul(8).Add(1)))
	k := z.Square().Div(n.Mul(2)) // log cosh y
	start := k.Add(k.Mul(-2).Expm1().Neg().Sqrt().Log1p()).AtMost(most)
	target := near.Add(logBeta(n.Mul(0.5), torch.Of(0.5)))
	y := root(start, start.Mul(0), start.Mul(0).Add(most), 12, func(p part) func(y torch.Tensor) rising {
		n, target := p.of(n), p.of(target)
		return func(y torch.Tensor) rising {
			s := torch.Of(y.T().MustSinh(false))
			at := studentTail(n, s)
			slope := log1pSquare(s).Mul(n).Mul(-0.5).Sub(at).Exp()
			return rising{target.Sub(at), slope, slope.Sub(torch.Of(y.T().MustTanh(false)).Mul(n))}
		}
	})
	z = fill(torch.Of(y.T().MustSinh(false)).Mul(n.Sqrt()), either(none, y.Ge(most)), math.Inf(1))
	return torch.Choose(down, z.Neg(), z).Mul(d.scale).Add(d.loc)
}

// fromTails are between the least and the greatest of the components' quantiles.
func (d mixtureDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	d.mixing = d.mixing.quick()
	return between(d, lower, upper, torch.Stack(0, func() (all []torch.Tensor) {
		for _, c := range d.components {
			all = append(all, d.full(quantileOf(c, lower, upper)))
		}
		return all
	}()), 0)
}

func (d mixtureSameFamilyDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	d.mixing = d.mixing.quick()
	return between(d, lower, upper, quantileOf(d.components, lower.Unsqueeze(-1), upper.Unsqueeze(-1)), -1)
}

// quick is d without derivatives, with a mix that takes a third of the time and loses nothing of tails up to 1/2.
func (d categoricalDist) quick() categoricalDist {
	if !d.fromLogits {
		d.logits, d.fromLogits = logNormalised(constant(d.probs)), true
	}
	d.logits = constant(d.logits)
	return d
}

// between solves between the ends of what there is along a dimension, from the end that is further out.
func between(d Distribution, lower, upper, all torch.Tensor, dim int) torch.Tensor {
	least := torch.Of(all.T().MustAmin([]int64{int64(dim)}, false, false))
	greatest := torch.Of(all.T().MustAmax([]int64{int64(dim)}, false, false))
	return solve(d, lower, upper, torch.Choose(lower.Lt(upper), least, greatest), least, greatest)
}

// quantileOf is the x at which d has the given tails.
func quantileOf(d Distribution, lower, upper torch.Tensor) torch.Tensor {
	switch f := d.(type) {
	case tailInverse:
		return f.fromTails(lower, upper)
	case ICDFer:
		return f.ICDF(lower.Exp())
	}
	low, high := bounds(d)
	return solve(d, lower, upper, innerOf(d), low, high)
}

// coordinate is a scale on which numbers of all sizes differ by little: the logarithm of the distance from an end of
// the support, else the inverse hyperbolic sine of that from a centre.
type coordinate struct {
	from, to torch.Tensor // the end, and the centre
	toEnd    float64      // 1 from a lower end, −1 from an upper one, 0 from the centre
}

func (c coordinate) of(x torch.Tensor) torch.Tensor {
	if c.toEnd != 0 {
		return x.Sub(c.from).Mul(c.toEnd).Log().Mul(c.toEnd).AtLeast(-745).AtMost(745)
	}
	return torch.Of(x.Sub(c.to).T().MustAsinh(false)).AtLeast(-710).AtMost(710)
}

// at is x, and the logarithm of its derivative.
func (c coordinate) at(s torch.Tensor) (x, logSlope torch.Tensor) {
	if c.toEnd != 0 {
		s = s.Mul(c.toEnd)
		return s.Exp().Mul(c.toEnd).Add(c.from), s
	}
	e := s.Abs()
	return torch.Of(s.T().MustSinh(false)).Add(c.to), e.Add(e.Mul(-2).Exp().Log1p()).Sub(math.Ln2)
}

// solve is the x between low and high at which d has the given tails.
func solve(d Distribution, lower, upper, start, low, high torch.Tensor) torch.Tensor {
	down, near := lower.Lt(upper), lower.AtMost(upper)
	from, to := bounds(d)
	c := coordinate{to: start}
	switch {
	case !is(from, math.Inf(-1)):
		c = coordinate{from: constant(from), toEnd: 1}
	case !is(to, math.Inf(1)):
		c = coordinate{from: constant(to), toEnd: -1}
	}
	wide := func(x torch.Tensor) torch.Tensor { return near.Mul(0).Add(c.of(x)) }
	none := isInfinite(near)
	near = fill(near, none, -1)
	s := root(wide(start), wide(low), wide(high), 64, func(p part) func(s torch.Tensor) rising {
		d, c, near, down := partOf(d, p), c, p.of(near), p.of(down)
		if d == nil {
			return nil
		}
		c.from, c.to = p.of(c.from), p.of(c.to)
		return func(s torch.Tensor) rising {
			x, slope := c.at(s)
			at := nearTail(d, x, down)
			off := at.Sub(near)
			return rising{torch.Choose(down, off, off.Neg()), d.LogProb(x).Add(slope).Sub(at).Exp(), torch.Of(0)}
		}
	})
	x, _ := c.at(s)
	end := torch.Choose(down, from, to)
	return torch.Choose(none, end, x)
}
