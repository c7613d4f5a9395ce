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
// leaves the interval that is left. It ends when all |f| were at most 1e-5 before their last step, which takes off all
// but a power of that. In a recording no number can be read, and it goes the given number of steps. The caller has
// switched gradients off.
func root(s, low, high torch.Tensor, blind int, f func(s torch.Tensor) rising) torch.Tensor {
	recorded := ts.KelvinRecorded()
	if !recorded {
		blind = mostSteps
	}
	done, bend, before, slope := false, torch.Of(0), s, torch.Of(1)
	for k := 0; k < blind && !done; k++ {
		torch.Must(0, torch.Do(func(scope *torch.Scope) error {
			y := f(s)
			if bend = y.bend; operand.IsNumber(bend) && k > 0 {
				bend = y.slope.Div(slope).Log().Div(s.Sub(before))
				bend = fill(bend, not(torch.Of(bend.T().MustIsfinite(false))), 0)
			}
			short := y.off.Lt(0)
			left, right := torch.Choose(short, s, low), torch.Choose(short, high, s)
			step := y.off.Div(y.slope)
			next := s.Sub(step.Div(step.Mul(bend).Mul(-0.5).Add(1).Max(0.5).Min(1.5)))
			inside := torch.Of(next.Ge(left).T().MustLogicalAnd(next.Le(right).T(), false))
			next = torch.Choose(inside, next, left.Add(right).Mul(0.5))
			if !recorded {
				open := torch.Of(y.off.Abs().Gt(1e-5).T().MustLogicalAnd(next.T().MustNeTensor(s.T(), false), false))
				all := torch.Must(foreign.Whole(open.T().MustTotype(gotch.Double, false)))
				done = torch.Must(torch.Item(all.MustMax(false))) == 0
			}
			scope.Keep(next.T(), left.T(), right.T(), y.slope.T())
			s, before, low, high, slope = next, s, left, right, y.slope
			return nil
		}))
	}
	return s
}

// gammaFromTails is the t at which the gamma distribution of shape a and rate 1 has the given tails. The start is
// Wilson's and Hilferty's (1931), or from P < tᵃ/Γ(a + 1).
func gammaFromTails(a, lower, upper torch.Tensor) torch.Tensor {
	down, near := lower.Lt(upper), lower.Min(upper)
	none := isInfinite(near)
	near = fill(near, none, -1)
	z := normalQuantileLog(near)
	c := a.Mul(9).Reciprocal()
	cube := torch.Choose(down, z, z.Neg()).Mul(c.Sqrt()).Sub(c).Add(1)
	least := torch.Choose(down, near, logOneMinusExp(near)).Add(a.Add(1).Lgamma()).Div(a)
	start := cube.Max(0.2).Log().Mul(3).Add(a.Log())
	start = torch.Choose(torch.Of(cube.Lt(0.3).T().MustLogicalAnd(down.T(), false)), least, start.Max(least))
	low, high := start.Mul(0).Sub(745), start.Mul(0).Add(710)
	u := root(start.Max(low).Min(high), low, high, 16, func(u torch.Tensor) rising {
		t := u.Exp()
		l, r := gammaTails(a, t)
		at := torch.Choose(down, l, r)
		slope := gammaKernel(a, t).Add(u).Sub(at).Exp()
		off := at.Sub(near)
		// The logarithm of the density of u has the derivative a − t.
		return rising{torch.Choose(down, off, off.Neg()), slope, a.Sub(t).Sub(torch.Choose(down, slope, slope.Neg()))}
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
	down, near := lower.Lt(upper), lower.Min(upper)
	none := isInfinite(near)
	near = fill(near, none, -1)
	z := normalQuantileLog(near).Mul(n.Mul(8).Add(3).Div(n.Mul(8).Add(1)))
	k := z.Square().Div(n.Mul(2)) // log cosh y
	start := k.Add(k.Mul(-2).Expm1().Neg().Sqrt().Log1p()).Min(most)
	target := near.Add(logBeta(n.Mul(0.5), torch.Of(0.5)))
	y := root(start, start.Mul(0), start.Mul(0).Add(most), 12, func(y torch.Tensor) rising {
		s := torch.Of(y.T().MustSinh(false))
		at := studentTail(n, s)
		slope := log1pSquare(s).Mul(n).Mul(-0.5).Sub(at).Exp()
		return rising{target.Sub(at), slope, slope.Sub(torch.Of(y.T().MustTanh(false)).Mul(n))}
	})
	z = fill(torch.Of(y.T().MustSinh(false)).Mul(n.Sqrt()), either(none, y.Ge(most)), math.Inf(1))
	return torch.Choose(down, z.Neg(), z).Mul(d.scale).Add(d.loc)
}

// fromTails are between the least and the greatest of the components' quantiles.
func (d mixtureDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	return between(d, lower, upper, torch.Stack(0, func() (all []torch.Tensor) {
		for _, c := range d.components {
			all = append(all, d.full(quantileOf(c, lower, upper)))
		}
		return all
	}()), 0)
}

func (d mixtureSameFamilyDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	return between(d, lower, upper, quantileOf(d.components, lower.Unsqueeze(-1), upper.Unsqueeze(-1)), -1)
}

// between solves between the ends of what there is along a dimension, from the end that is further out.
func between(d Distribution, lower, upper, all torch.Tensor, dim int64) torch.Tensor {
	least := torch.Of(all.T().MustAmin([]int64{dim}, false, false))
	greatest := torch.Of(all.T().MustAmax([]int64{dim}, false, false))
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
		return x.Sub(c.from).Mul(c.toEnd).Log().Mul(c.toEnd).Max(-745).Min(745)
	}
	return torch.Of(x.Sub(c.to).T().MustAsinh(false)).Max(-710).Min(710)
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
	down, near := lower.Lt(upper), lower.Min(upper)
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
	s := root(wide(start), wide(low), wide(high), 64, func(s torch.Tensor) rising {
		x, slope := c.at(s)
		l, u := tailsAnywhere(d, x)
		at := torch.Choose(down, l, u)
		off := at.Sub(near)
		return rising{torch.Choose(down, off, off.Neg()), d.LogProb(x).Add(slope).Sub(at).Exp(), torch.Of(0)}
	})
	x, _ := c.at(s)
	end := torch.Choose(down, from, to)
	return torch.Choose(none, end, x)
}
