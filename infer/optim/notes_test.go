package optim_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
)

// An optimiser that stopped on its way says how far the mode is in standard deviations of the posterior, √(1/(Nλ)) at
// curvature λ of the mean log posterior; minibatches cannot tell.
func TestNotesOfOptimisersThatDidNotArrive(t *testing.T) {
	const n, lambda = 100, 4.0
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Mul(-0.5 * lambda), nil
	}
	l := must(infer.NewLayout(infer.Shapes{"x": {}}))
	full, part := infer.Batch{"y": vector(make([]float64, n))}, infer.Batch{"y": vector(make([]float64, n/2))}
	for _, e := range []struct {
		at      float64
		b       infer.Batch
		text    string
		serious bool
	}{
		{0.5, full, "ended about 10 posterior standard deviations from the mode", true}, // 0.5·√(Nλ) = 10
		{-0.01, full, "ended about 0.2 posterior standard deviations", false},
		{0.001, full, "", false},
		{0.5, part, "", false},
	} {
		transform := must(optim.SGD{LR: infer.Constant(1e-12)}.Build(infer.Mean(f, n)))
		s, info := update(t, transform, begin(t, transform, params(l, []float64{0, e.at}, 2)), e.b)
		notes := transform.(infer.Noter).Notes(s, infer.RunSummary{Updates: 1, Info: info, Layout: l, Batch: e.b})
		if e.text == "" {
			assert.Empty(t, notes, "at %g", e.at)
			continue
		}
		require.Len(t, notes, 1)
		assert.Equal(t, "not_converged", notes[0].Kind)
		assert.Equal(t, e.serious, notes[0].Serious)
		assert.Contains(t, notes[0].Text, e.text)
		assert.Contains(t, notes[0].Advice, "Warmup")
	}
	// A start where the density is not concave, and where it is flat in rounding: the end of LBFGS is at the mode.
	wells := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x").Square()
		return x.Sub(x.Square().Mul(0.5)), nil
	}
	transform := must(optim.SGD{LR: infer.Constant(1e-12)}.Build(infer.Sum(wells, 1)))
	s, info := update(t, transform, begin(t, transform, params(l, []float64{0.1}, 0)), nil)
	notes := transform.(infer.Noter).Notes(s, infer.RunSummary{Updates: 1, Info: info, Layout: l})
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0].Text, "at no mode")
	end, info := climb(t, optim.LBFGS{}, infer.Sum(wells, 1), params(l, []float64{0.1}, 0), nil, 40)
	transform = must(optim.LBFGS{}.Build(infer.Sum(wells, 1)))
	assert.Empty(t, transform.(infer.Noter).Notes(end, infer.RunSummary{Updates: 40, Info: info, Layout: l}))
}
