package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
)

// rosenbrock is −Σ over pairs of 100(y − x²)² + (1 − x)², whose mode is at 1.
func rosenbrock(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	x, y := p.Get("x"), p.Get("y")
	return y.Sub(x.Square()).Square().Mul(100).Add(x.Neg().Add(1).Square()).Sum().Neg(), nil
}

// climb is where LBFGS is after a number of updates, with the number of gradients at other points than the states'.
func climb(t *testing.T, c optim.LBFGS, target infer.Target, start infer.Params, b infer.Batch,
	updates int) (infer.State, infer.Info) {
	t.Helper()
	transform, err := c.Build(target)
	require.NoError(t, err)
	s := begin(t, transform, start)
	var info infer.Info
	for range updates {
		s, info = update(t, transform, s, b)
	}
	return s, info
}

// The valley of Rosenbrock's function, from four starts, and from the mode itself. Converged chains stay, bit for bit.
func TestLBFGSFollowsTheValley(t *testing.T) {
	l := must(infer.NewLayout(infer.Shapes{"x": {2}, "y": {2}}))
	start := params(l, []float64{-1.2, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 3, -2, -4, 5}, 4)
	target := infer.Sum(rosenbrock, 1)
	s, info := climb(t, optim.LBFGS{}, target, start, nil, 200)
	for _, norm := range info.GradNorm {
		assert.LessOrEqual(t, norm, 1e-8)
	}
	// Curvatures at the mode lie between 0.4 and 1002: a gradient of 1e-8 is at most 2.5e-8 away from it.
	within(t, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, values(s.Position().Flat.T()), 2.5e-8, "the mode")
	transform := must(optim.LBFGS{}.Build(target))
	next, _ := update(t, transform, s, nil)
	identical(t, values(s.Position().Flat.T()), values(next.Position().Flat.T()), "a chain that converged")
}

// On a quadratic of d elements the method is conjugate gradients: with History ≥ d and nearly exact line searches it
// ends after d + 1 updates. With the default line search it takes a few more.
func TestLBFGSOnAQuadratic(t *testing.T) {
	const d = 5
	scale := []float64{1, 3, 10, 30, 100}
	f := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Sub(1).Square().Mul(b.Get("c")).Sum().Mul(-0.5), nil
	}
	start := params(must(infer.NewLayout(infer.Shapes{"x": {d}})), spread(d), 0)
	b := infer.Batch{"c": torch.Of(vector(scale))}
	s, _ := climb(t, optim.LBFGS{Curvature: 1e-3}, infer.Sum(f, 1), start, b, d+2)
	within(t, []float64{1, 1, 1, 1, 1}, values(s.Position().Flat.T()), 1e-6, "nearly exact line searches")
	s, info := climb(t, optim.LBFGS{}, infer.Sum(f, 1), start, b, 40)
	assert.LessOrEqual(t, info.GradNorm[0], 1e-8)
	within(t, []float64{1, 1, 1, 1, 1}, values(s.Position().Flat.T()), 1e-8, "the mode")
}

// A density that is not finite beyond a border: the line search comes back.
func TestLBFGSComesBackFromABorder(t *testing.T) {
	// log x − x/1000 with its mode at 1000, NaN for x < 0; its mirror image in y.
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x, y := p.Get("x"), p.Get("y").Neg()
		return x.Log().Sub(x.Mul(1e-3)).Add(y.Log().Sub(y.Mul(1e-3))), nil
	}
	l := must(infer.NewLayout(infer.Shapes{"x": {}, "y": {}}))
	s, _ := climb(t, optim.LBFGS{Tolerance: 1e-12}, infer.Sum(f, 1), params(l, []float64{1e-3, -5e4}, 0), nil, 100)
	// The curvature at the mode is 1e-6.
	within(t, []float64{1000, -1000}, values(s.Position().Flat.T()), 1e-5, "the mode")
}

// A chain whose density is not finite stays with all that it remembers; the others move as without it.
func TestLBFGSHoldsAChainThatIsNotFinite(t *testing.T) {
	// −½(x − 1)² + log(x − edge)
	f := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x")
		return x.Sub(1).Square().Mul(-0.5).Add(x.Sub(b.Get("edge")).Log()), nil
	}
	l := must(infer.NewLayout(infer.Shapes{"x": {}}))
	open, narrow := infer.Batch{"edge": torch.Scalar(-9)}, infer.Batch{"edge": torch.Scalar(0.5)}
	transform := build(t, optim.LBFGS{Tolerance: 1e-3}, f)
	s := begin(t, transform, params(l, []float64{2, 3}, 2))
	s, _ = update(t, transform, s, open)
	require.NoError(t, torch.CopyFrom(s.Position().Flat, []float64{2, 0.25}))
	held, info := update(t, transform, s, narrow)
	assert.Equal(t, []bool{false, true}, info.Diverged)
	for name, x := range held.Save().Tensors {
		before, after := values(s.Save().Tensors[name].T()), values(x.T())
		half := len(after) / 2
		identical(t, before[half:], after[half:], name)
		assert.NotEqual(t, before[:half], after[:half], name)
	}
	again, info := update(t, transform, held, open)
	assert.Nil(t, info.Diverged)
	assert.NotEqual(t, values(held.Position().Flat.T())[1], values(again.Position().Flat.T())[1], "it goes on when it can")
}

// In single precision it ends as near as the rounding of the gradient lets it.
func TestLBFGSInSinglePrecision(t *testing.T) {
	l := must(infer.NewLayout(infer.Shapes{"x": {}, "y": {}}))
	start := must(params(l, []float64{-1.2, 1}, 0).To(gotch.CPU, gotch.Float))
	s, _ := climb(t, optim.LBFGS{}, infer.Sum(rosenbrock, 1), start, nil, 100)
	within(t, []float64{1, 1}, values(s.Position().Flat.T()), 1e-3, "the mode")
	for name, x := range s.Save().Tensors {
		assert.Equal(t, gotch.Float, x.T().DType(), name)
	}
}

// A Gamma(a, b) site on its unconstrained space, x = eᵘ: the optimiser finds the mode (a − 1)/b of the density that the
// user wrote. The target at temperature T has (a − 1 + T)/b, where p^(1/T)·|Jacobian| is largest.
func TestModesWithAndWithoutTheJacobian(t *testing.T) {
	const a, rate, n = 4.5, 1.5, 20
	target := infer.Target{Data: n, LogPosterior: func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		u := p.Get("u")
		return u.Mul(a - 1).Sub(u.Exp().Mul(rate)).Mul(1. / n), nil
	}, LogJacobian: func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return p.Get("u"), nil }}
	start := params(must(infer.NewLayout(infer.Shapes{"u": {}})), []float64{-1, 2}, 2)
	for _, temperature := range []float64{0, 0.25, 1, 4} {
		want := math.Log((a - 1 + temperature) / rate)
		s, _ := climb(t, optim.LBFGS{}, infer.AtTemperature(target, temperature), start, nil, 30)
		within(t, []float64{want, want}, values(s.Position().Flat.T()), 1e-6, name("T = %g", temperature))
	}
	for what, c := range map[string]infer.Method{
		"SGD":  optim.SGD{LR: infer.Constant(2), Momentum: 0.5},
		"Adam": optim.Adam{LR: infer.Linear(0.1, 0, 0, 400)},
	} {
		transform := must(c.Build(target))
		s := begin(t, transform, start)
		for range 400 {
			s, _ = update(t, transform, s, nil)
		}
		want := math.Log((a - 1) / rate)
		within(t, []float64{want, want}, values(s.Position().Flat.T()), 1e-6, what)
	}
}

func TestLBFGSErrors(t *testing.T) {
	for text, c := range map[string]optim.LBFGS{
		"optim.LBFGS: History is -1: it must be at least 1, or 0 for 10":     {History: -1},
		"optim.LBFGS: Tolerance is -1: it must be finite and greater than 0": {Tolerance: -1},
		"optim.LBFGS: Curvature is 1: it must be at least 0 and less than 1": {Curvature: 1},
		"optim.LBFGS: Curvature is 1e-05: it must be above 1e-4":             {Curvature: 1e-5},
	} {
		_, err := c.Build(infer.Sum(rosenbrock, 1))
		require.EqualError(t, err, text)
		require.ErrorIs(t, err, infer.ErrConfig)
	}
	// It is no method for noisy gradients, such as those of a variational objective.
	_, ok := infer.Method(optim.LBFGS{}).(infer.GradientMethod)
	assert.False(t, ok)
}
