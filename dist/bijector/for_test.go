package bijector_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// For each support whatever number goes in, a value of the support comes out, and the inverse takes it back.
func TestForReachesTheSupport(t *testing.T) {
	inScope(t, func() {
		low, high := vec([]float64{-1, 0, 1}), vec([]float64{0, 5, 1.5})
		cases := []struct {
			s     support.Support
			name  string
			shape []int // of unconstrained values, the event last
		}{
			{support.Real, "Identity", nil},
			{support.Positive, "Exp", nil},
			{support.Nonnegative, "Exp", nil},
			{support.UnitInterval, "Sigmoid", nil},
			{support.Interval(-1, 2), "Interval", nil},
			{support.Interval(low, high), "Interval", []int{3}},
			{support.Interval(-2, high), "Interval", []int{3}},
			{support.GreaterThan(3), "GreaterThan", nil},
			{support.GreaterThan(low), "GreaterThan", []int{3}},
			{support.LessThan(3), "LessThan", nil},
			{support.LessThan(high), "LessThan", []int{3}},
			{support.Simplex, "StickBreaking", []int{4}},
			{support.ZeroSum, "ZeroSum", []int{4}},
			{support.Ordered, "Ordered", []int{4}},
			{support.PositiveOrdered, "PositiveOrdered", []int{4}},
			{support.UnitVector, "UnitVector", []int{4}},
			{support.LowerCholesky, "LowerCholesky", []int{6}},
			{support.CorrCholesky, "CorrCholesky", []int{6}},
			{support.PositiveDefinite, "PositiveDefinite", []int{6}},
		}
		for i, c := range cases {
			for extra := 0; extra <= 2; extra++ {
				if _, _, ok := c.s.Bounds(); !ok && extra == 0 {
					continue // the ends have a shape of their own
				}
				s := c.s.Independent(extra)
				b, err := bijector.For(s)
				require.NoError(t, err, c.name)
				require.Equal(t, c.name, b.Name())
				require.Equal(t, s.EventDims(), b.CodomainEventDims(), c.name)
				shape := append([]int{5, 2, 3}, c.shape...)
				n := 1
				for _, k := range shape {
					n *= k
				}
				x := vec(normals(uint64(i), n), shape...)
				y := b.Forward(torch.Of(x)).T()
				require.NoError(t, s.Check(y), c.name)
				require.Equal(
					t,
					shape[:len(shape)-b.DomainEventDims()],
					shapeOf(b.LogAbsDetJacobian(torch.Of(x), torch.Of(y)).T()),
					c.name,
				)
				image := bijector.Image(b, support.Real.Independent(b.DomainEventDims()))
				image.Closed = s.Closed // whether the ends belong to it
				require.Equal(t, s, image, c.name)
				if c.name != "UnitVector" {
					near(t, floats(x), floats(b.Inverse(torch.Of(y)).T()), 1e-12, c.name)
				}
			}
		}
		unbounded, err := bijector.For(support.Interval(math.Inf(-1), math.Inf(1)))
		require.NoError(t, err)
		require.Equal(t, "Identity", unbounded.Name())
	})
}

// Supports that cannot be varied continuously have no bijector, and the message says what it was.
func TestForErrors(t *testing.T) {
	for _, s := range []support.Support{support.Boolean, support.NonnegativeInteger, support.IntegerInterval(0, 3),
		support.Counts(3), support.Point} {
		_, err := bijector.For(s)
		var e *bijector.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, s.String(), e.Value)
		require.ErrorContains(t, err, "bijector.For: the support is "+s.String()+": it must be of numbers")
	}
	_, err := bijector.For(support.Support{Kind: support.KindInterval, Low: torch.Of(2), High: torch.Of(1)})
	require.EqualError(t, err, "bijector.For: the support is a number between 2 and 1: bijector.Interval: high − low is "+
		"-1: it must be finite and greater than 0")
}

// With a standard normal x, the density of y on the circle and the log density term make a density of x that integrates
// to 1, for a density of y that is not uniform: exp(cos(angle − 1))/(2π I₀(1)).
func TestUnitVectorIntegratesToOne(t *testing.T) {
	inScope(t, func() {
		const bessel = 1.2660658777520084 // I₀(1)
		// the trapezoid rule is exact to rounding for so smooth a function, but for the kink at 0
		const h, n = 0.05, 320
		points := make([]float64, 0, 2*n*n)
		for i := 0; i < n; i++ {
			for j := 0; j < n; j++ {
				points = append(points, (float64(i)-n/2+0.5)*h, (float64(j)-n/2+0.5)*h)
			}
		}
		b := bijector.UnitVector()
		x := vec(points, n*n, 2)
		y := b.Forward(torch.Of(x)).T()
		near(t, []float64{1}, floats(y.MustSquare(false).MustSumDimIntlist([]int64{-1}, false, double, false))[:1], 1e-15)
		values, changes := floats(y), floats(bijector.LogDensityChange(b, torch.Of(x), torch.Of(y)).T())
		total := 0.0
		for i, c := range changes {
			cosine := values[2*i]*math.Cos(1) + values[2*i+1]*math.Sin(1)
			total += math.Exp(cosine+c) / (2 * math.Pi * bessel) * h * h
		}
		require.InDelta(t, 1, total, 1e-5)

		// The term of a chain and of many vectors is the sum of those of its parts; other maps have none.
		five := vec(normals(2, 10), 5, 2)
		each := floats(bijector.LogDensityChange(b, torch.Of(five), b.Forward(torch.Of(five))).T())
		want := 0.0
		for _, v := range each {
			want += v
		}
		many := bijector.Independent(b, 1)
		near(
			t,
			[]float64{want},
			floats(bijector.LogDensityChange(many, torch.Of(five), many.Forward(torch.Of(five))).T()),
			1e-14,
		)
		c := bijector.Chain(bijector.Affine(0, 2), b)
		half := five.MustMulScalar(ts.FloatScalar(0.5), false)
		for i := range each {
			each[i] += 2 * math.Ln2
		}
		near(t, each, floats(bijector.LogDensityChange(c, torch.Of(half), c.Forward(torch.Of(half))).T()), 1e-14)
		require.True(
			t,
			bijector.Completes(c) && bijector.Completes(many) &&
				!bijector.Completes(bijector.Chain(bijector.Exp(), bijector.Exp())),
		)
		e := bijector.Chain(bijector.Exp(), bijector.Affine(0, 3))
		near(
			t,
			floats(e.LogAbsDetJacobian(torch.Of(five), e.Forward(torch.Of(five))).T()),
			floats(bijector.LogDensityChange(e, torch.Of(five), e.Forward(torch.Of(five))).T()),
			0,
		)
	})
}

// The gradient of the term in x is −x, and under vmap it is that of the loop.
func TestUnitVectorTerm(t *testing.T) {
	inScope(t, func() {
		b := bijector.UnitVector()
		f := func(x torch.Tensor) torch.Tensor {
			return torch.Of(bijector.LogDensityChange(b, x, b.Forward(x)).
				T().
				MustAdd(b.Forward(x).T().MustSelect(-1, 0, false), false))
		}
		x := normals(1, 12)
		values, grads, err := torch.VmapValueAndGrad(f, torch.Of(vec(x, 4, 3)))
		require.NoError(t, err)
		for i := 0; i < 4; i++ {
			row := x[3*i : 3*i+3]
			near(t, number(f)(row), floats(values.T())[i:i+1], 1e-14)
			near(t, jacobian(number(f), row)[0], floats(grads.T())[3*i:3*i+3], 1e-9)
		}
	})
}

// Images of sets: what a transformed distribution's support is.
func TestImage(t *testing.T) {
	inf := math.Inf(1)
	interval := func(low, high float64) support.Support {
		return support.Support{Kind: support.KindInterval, Low: torch.Of(low), High: torch.Of(high)}
	}
	cases := []struct {
		b    bijector.Bijector
		from support.Support
		to   support.Support
	}{
		{bijector.Exp(), support.Real, interval(0, inf)},
		{bijector.Exp(), interval(0, 1), interval(1, math.E)},
		{bijector.Softplus(), interval(0, inf), interval(math.Ln2, inf)},
		{bijector.Affine(1, -2), interval(0, 3), interval(-5, 1)},
		{bijector.Affine(1, -2), interval(0, inf), interval(-inf, 1)},
		{bijector.Affine(1, 2), support.Real, support.Real},
		{bijector.Inverse(bijector.Exp()), interval(0, inf), support.Real},
		{bijector.Inverse(bijector.Exp()), interval(1, inf), interval(0, inf)},
		{bijector.Inverse(bijector.LessThan(2)), interval(-inf, 2), support.Real},
		{bijector.LessThan(2), support.Real, interval(-inf, 2)},
		{bijector.LessThan(2), interval(0, inf), interval(-inf, 1)},
		{bijector.Chain(bijector.Exp(), bijector.Affine(3, 2)), support.Real, interval(3, inf)},
		{bijector.Ordered(), support.Real.Independent(1), support.Ordered},
		{bijector.Permute(1, 0), support.Ordered, support.Real.Independent(1)},
		{bijector.Permute(1, 0), support.PositiveOrdered, support.Positive.Independent(1)},
		{bijector.Permute(1, 0), support.Simplex, support.Simplex},
		{bijector.Permute(1, 0), support.Positive.Independent(1), support.Positive.Independent(1)},
		{bijector.StickBreaking(), support.Real.Independent(2), support.Simplex.Independent(1)},
		{bijector.ZeroSum(), support.Real.Independent(2), support.ZeroSum.Independent(1)},
		{bijector.Exp(), support.Simplex, interval(0, inf).Independent(1)},
	}
	for _, c := range cases {
		require.Equal(t, c.to, bijector.Image(c.b, c.from), "%s of %s", c.b.Name(), c.from)
	}
	inScope(t, func() {
		loc := vec([]float64{1, 2})
		s := bijector.Image(bijector.Affine(loc, 3), support.Positive)
		require.Equal(t, []float64{1, 2}, s.Low.Values())
		require.Equal(t, torch.Of(inf), s.High)
		require.Equal(t, support.Real, bijector.Image(bijector.Affine(loc, 3), support.Real))
		require.Equal(t, support.Real, bijector.Image(bijector.Affine(0, loc), support.Positive))
	})
}

// Each mistake has a message that names the bijector, what is wrong and what is allowed.
func TestErrors(t *testing.T) {
	inScope(t, func() {
		m := vec(make([]float64, 6), 2, 3)
		point := torch.Scalar(1)
		cases := map[string]func(){
			"bijector.Affine: scale is 0: it must be finite and not 0": func() {
				bijector.Affine(1, 0)
			},
			"bijector.Affine: loc is a string: a number, a torch.Tensor or a *ts.Tensor is required": func() {
				bijector.Affine("1", 1)
			},
			"bijector.Affine: loc is nil: a number or a tensor is required": func() {
				bijector.Affine((*ts.Tensor)(nil), 1)
			},
			"bijector.Interval: high − low is 0: it must be finite and greater than 0": func() {
				bijector.Interval(1, 1)
			},
			"bijector.Permute: order is [0 0]: it must have each of 0 to 1 once": func() {
				bijector.Permute(0, 0)
			},
			"bijector.Permute: a vector of length 3: the order has 2": func() {
				bijector.Permute(1, 0).Forward(torch.Of(m)).T()
			},
			"bijector.CorrCholesky: a vector of length 2: the length must be k(k−1)/2 for some k ≥ 1": func() {
				bijector.CorrCholesky().ForwardShape([]int{3, 2})
			},
			"bijector.LowerCholesky: a vector of length 5: the length must be k(k+1)/2 for some k ≥ 1": func() {
				bijector.LowerCholesky().Forward(torch.Of(vec(make([]float64, 5)))).T()
			},
			"bijector.LowerCholesky: a value of shape [2 3]: its last two dimensions must be those of a square matrix": func() {
				bijector.LowerCholesky().Inverse(torch.Of(m)).T()
			},
			"bijector.Ordered: a value of shape []: it needs a last dimension, of a vector": func() {
				bijector.Ordered().Forward(point).T()
			},
			"bijector.StickBreaking: a vector of length 0: a probability vector has at least one element": func() {
				bijector.StickBreaking().Inverse(torch.Of(vec(nil, 0))).T()
			},
			"bijector.Affine: the shapes [[4] [3]]: they do not broadcast to one shape": func() {
				bijector.Affine(vec([]float64{1, 2, 3}), 1).ForwardShape([]int{4})
			},
		}
		for want, f := range cases {
			var e *bijector.Error
			err := errorOf(f)
			require.ErrorAs(t, err, &e, want)
			require.ErrorContains(t, err, want+" (at bijector/for_test.go:")
		}
		bad := bijector.Chain(bijector.Exp(), bijector.Independent(bijector.Affine(0, vec([]float64{1, 0})), 1))
		require.EqualError(t, bijector.Validate(bad),
			"bijector.Affine: scale is 0 at element 1 of shape [2]: it must be finite and not 0")
		bad = bijector.Inverse(bijector.Interval(0, vec([]float64{1, -2})))
		require.EqualError(t, bijector.Validate(bad), "bijector.Interval: high − low is -2 at element 1 of shape [2]: it "+
			"must be finite and greater than 0")
		require.NoError(t, bijector.Validate(bijector.Chain(bijector.Exp(), bijector.Affine(0, vec([]float64{1, 3})))))
	})
}

// Event dimensions of chains: as many as the widest part needs.
func TestChainDims(t *testing.T) {
	inScope(t, func() {
		c := bijector.Chain(bijector.Exp(), bijector.Inverse(bijector.LowerCholesky()), bijector.Exp())
		require.Equal(t, []int{2, 1}, []int{c.DomainEventDims(), c.CodomainEventDims()})
		require.Equal(t, "Chain(Exp, Inverse(LowerCholesky), Exp)", c.Name())
		c = bijector.Chain(bijector.Exp(), bijector.LowerCholesky(), bijector.Exp())
		require.Equal(t, []int{1, 2}, []int{c.DomainEventDims(), c.CodomainEventDims()})
		require.Equal(t, "Identity", bijector.Chain().Name())
		require.Equal(t, "Exp", bijector.Chain(bijector.Exp()).Name())
		require.Equal(t, "Exp", bijector.Inverse(bijector.Inverse(bijector.Exp())).Name())
		require.Len(t, bijector.Parts(c), 3)

		// Two elementwise parts around one of vectors: what they add is summed over the vector.
		x := vec(normals(6, 6), 2, 3)
		c = bijector.Chain(bijector.Affine(0, 3), bijector.Ordered(), bijector.Affine(1, -2))
		l := floats(c.LogAbsDetJacobian(torch.Of(x), c.Forward(torch.Of(x))).T())
		v := floats(x)
		near(t, []float64{3*math.Log(6) + 3*(v[1]+v[2]), 3*math.Log(6) + 3*(v[4]+v[5])}, l, 1e-14)
	})
}
