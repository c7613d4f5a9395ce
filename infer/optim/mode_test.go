package optim_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// found is where a method ends, as one slice of all chains.
func found(t *testing.T, method infer.Method, f infer.LogPosterior, start infer.Params, b infer.Batch,
	steps int) []float64 {
	t.Helper()
	result, err := infertest.Run(context.Background(), build(t, method, f), start, infer.Full(b),
		infer.Options{Warmup: steps, Draws: infer.None})
	require.NoError(t, err)
	defer infer.Free(result.State)
	assert.Zero(t, result.Held)
	return values(result.State.Position().Flat.T())
}

// climbers are configurations that reach a mode to rounding: those of Adam, whose steps do not shrink with the
// gradient, need a step size that goes to 0.
func climbers(steps int) map[string]infer.Method {
	none := 0.0
	constant, falling := infer.Constant(0.4), infer.Linear(0.05, 0, 0, steps)
	return map[string]infer.Method{
		"SGD":               optim.SGD{LR: constant},
		"SGD with momentum": optim.SGD{LR: constant, Momentum: 0.9},
		"dampened":          optim.SGD{LR: constant, Momentum: 0.9, Dampening: 0.5},
		"Nesterov":          optim.SGD{LR: constant, Momentum: 0.9, Nesterov: true},
		"Adam":              optim.Adam{LR: falling},
		"AdamW":             optim.AdamW{LR: falling, WeightDecay: &none},
	}
}

// The mode of exp(−½(x − μ)ᵀΛ(x − μ)) is μ, from every start.
func TestOptimisersFindTheModeOfAGaussian(t *testing.T) {
	const steps, chains = 1000, 4
	mean := []float64{1, -2, 0.5}
	b := infer.Batch{"mean": torch.Of(vector(mean)), "precision": torch.Of(vector([]float64{1.5, 0.6, -0.3, 0.6, 1.2, 0.4,
		-0.3, 0.4, 1.3},
		3, 3))}
	f := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		r := ts.MustCat([]*ts.Tensor{p.Get("a").T(), p.Get("b").Unsqueeze(0).T()},
			0).MustSub(b.Get("mean").T(), false)
		return torch.Of(b.Get("precision").T().MustMv(r, false).MustDot(r, false).MustMulScalar(ts.FloatScalar(-0.5),
			false)), nil
	}
	l := must(infer.NewLayout(infer.Shapes{"a": {2}, "b": {}}))
	var want []float64
	for range chains {
		want = append(want, mean...)
	}
	for what, method := range climbers(steps) {
		t.Run(what, func(t *testing.T) {
			start := params(l, spread(chains*3), chains)
			within(t, want, found(t, method, f, start, b, steps), 1e-10, "the mode")
		})
	}
}

// ridge is a linear regression: X of 40 data and 3 columns that are correlated, and y.
func ridge() (x *mat.Dense, y *mat.VecDense, b infer.Batch) {
	const n, d = 40, 3
	raw := spread(n * (d + 1))
	x, y = mat.NewDense(n, d, nil), mat.NewVecDense(n, nil)
	for i := range n {
		row := raw[i*(d+1) : (i+1)*(d+1)]
		x.SetRow(i, []float64{row[0], row[1] + 0.5*row[0], row[2] - 0.3*row[1]})
		y.SetVec(i, 2*x.At(i, 0)-x.At(i, 1)+0.5*row[3])
	}
	return x, y, infer.Batch{"x": torch.Of(vector(x.RawMatrix().Data, n, d)), "y": torch.Of(vector(y.RawVector().Data))}
}

// The mode of (1/n)(log N(y; Xw, I) + log N(w; 0, I/λ)) is (XᵀX + λI)⁻¹Xᵀy. It is also the mode of the likelihood alone
// with a weight decay of λ/n in the gradient.
func TestOptimisersFindTheModeOfRidgeRegression(t *testing.T) {
	const steps, lambda, n = 1200, 5.0, 40
	x, y, b := ridge()
	var normal mat.Dense
	normal.Mul(x.T(), x)
	for i := range 3 {
		normal.Set(i, i, normal.At(i, i)+lambda)
	}
	var right, mode mat.VecDense
	right.MulVec(x.T(), y)
	require.NoError(t, mode.SolveVec(&normal, &right))

	likelihood := func(p infer.Params, b infer.Batch) torch.Tensor {
		r := b.Get("y").Sub(b.Get("x").T().MustMv(p.Get("w").T(), false)).T()
		return torch.Of(r.MustSquare(false).MustMean(gotch.Double, false).MustMulScalar(ts.FloatScalar(-0.5), false))
	}
	posterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		w := p.Get("w").T()
		prior := w.MustDot(w, false).MustMulScalar(ts.FloatScalar(-0.5*lambda/n), false)
		return likelihood(p, b).Add(prior), nil
	}
	alone := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) { return likelihood(p, b), nil }
	start := params(must(infer.NewLayout(infer.Shapes{"w": {3}})), spread(3), 0)

	for what, method := range climbers(steps) {
		t.Run(what, func(t *testing.T) {
			within(t, mode.RawVector().Data, found(t, method, posterior, start, b, steps), 1e-10, "the mode")
		})
	}
	for what, method := range map[string]infer.Method{
		"SGD":  optim.SGD{LR: infer.Constant(0.4), Momentum: 0.9, WeightDecay: lambda / n},
		"Adam": optim.Adam{LR: infer.Linear(0.05, 0, 0, steps), WeightDecay: lambda / n},
	} {
		t.Run(what+" with weight decay", func(t *testing.T) {
			within(t, mode.RawVector().Data, found(t, method, alone, start, b, steps), 1e-10, "the mode")
		})
	}
}

// Decoupled decay does not move the mode by a prior: where AdamW rests, its step of m̂/(√v̂ + ε) = g/(|g| + ε) balances
// λθ. For the log density −½(θ − μ)² with |μ| above 1/λ that is at θ = ±1/λ, up to ε: λθ(|μ − θ| + ε) = μ − θ.
func TestAdamWRestsWhereItsStepBalancesTheDecay(t *testing.T) {
	lambda, eps := 0.5, 1e-3
	mu := []float64{5, -3}
	f := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Get("x").Sub(b.Get("mu")).Square().T().MustSum(gotch.Double,
			false).MustMulScalar(ts.FloatScalar(-0.5), false)), nil
	}
	start := params(must(infer.NewLayout(infer.Shapes{"x": {2}})), []float64{0, 0}, 0)
	// Adam's second moment forgets the way there by the factor 0.9 in each update.
	got := found(t, optim.AdamW{LR: infer.Constant(0.05), WeightDecay: &lambda, Eps: eps, Beta2: 0.9}, f, start,
		infer.Batch{"mu": torch.Of(vector(mu))}, 2000)
	for i, theta := range got {
		g := mu[i] - theta
		assert.InDelta(t, 0, g/(math.Abs(g)+eps)-lambda*theta, 1e-12, "element %d rests at %g", i, theta)
		assert.InDelta(t, math.Copysign(1/lambda, mu[i]), theta, 2*eps/lambda, "element %d", i) // |g| is about 3 and 1
	}
}
