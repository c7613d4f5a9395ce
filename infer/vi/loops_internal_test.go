package vi

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// compared is an objective on a target that is not normal, at some variational parameters, and what it is in loops and
// in tensors.
func compared(t *testing.T, f family, d, chains, samples int, entropy float64, stick bool, phi func(i int) float64) (
	loops, tensors infer.Evaluation, aLoops, aTensors *objective) {
	t.Helper()
	layout, err := infer.NewLayout(infer.Shapes{"x": {d}})
	require.NoError(t, err)
	target := infer.Mean(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x")
		own := x.Square().Sum()
		return x.Sum().Square().Mul(-0.3).Sub(x.Pow(4).Sum().Mul(0.1)).Add(x.Sum()), infer.Aux{"square": own}
	}, 3)
	model, err := infer.NewGradient(target)
	require.NoError(t, err)
	shapes, err := f.sites(d)
	require.NoError(t, err)
	variational, err := infer.NewLayout(shapes)
	require.NoError(t, err)
	flat := make([]float64, max(chains, 1)*variational.Dim())
	for i := range flat {
		flat[i] = phi(i)
	}
	shape := []int{chains, variational.Dim()}
	if chains == 0 {
		shape = shape[1:]
	}
	x, err := torch.FromSlice(flat, shape...)
	require.NoError(t, err)
	streams := torch.NewStreams(3, max(chains, 1))
	noise, err := streams.Normal([]int{samples, f.noise(d)}, gotch.Double, torch.CPU)
	require.NoError(t, err)
	make := func() *objective {
		return &objective{family: f, model: model, layout: layout, noise: noise, samples: samples, entropy: entropy, data: 3,
			stick: stick}
	}
	aLoops, aTensors = make(), make()
	p := infer.Params{Layout: variational, Flat: x}
	require.True(t, aLoops.small(p))
	loops = aLoops.inLoops(p, nil)
	require.NoError(t, torch.Do(func(scope *torch.Scope) error {
		tensors = aTensors.inTensors(p, nil)
		scope.Keep(tensors.Value, tensors.Grad, tensors.Aux["square"])
		return nil
	}))
	return loops, tensors, aLoops, aTensors
}

func families() map[string]family {
	return map[string]family{"diag": diag{}, "dense": dense{lower: &lower{}}, "low rank": lowRank{rank: 2}}
}

// The objective in loops is that in tensors, which other tests compare with central differences, up to rounding: sums
// of a hundred terms of size 1.
func TestLoopsAreTheTensors(t *testing.T) {
	for what, f := range families() {
		for _, entropy := range []float64{0, 0.7} {
			for _, stick := range []bool{false, true} {
				for _, shape := range [][3]int{{4, 2, 3}, {4, 0, 1}, {4, 0, 5}, {2, 3, 1}, {3, 1, 2}} {
					t.Run(fmt.Sprintf("%s, entropy %g, stick %v, %v", what, entropy, stick, shape), func(t *testing.T) {
						loops, tensors, a, b := compared(t, f, shape[0], shape[1], shape[2], entropy, stick,
							func(i int) float64 { return math.Sin(float64(3*i + 1)) })
						for _, pair := range [][2][]float64{{loops.Values, tensors.Values}, {loops.Norms, tensors.Norms},
							{a.nelbo, b.nelbo}, {a.logPosterior, b.logPosterior}} {
							assert.InDeltaSlice(t, pair[1], pair[0], 1e-11)
						}
						for _, pair := range [][2]torch.Tensor{{loops.Value, tensors.Value}, {loops.Grad, tensors.Grad},
							{loops.Aux["square"], tensors.Aux["square"]}} {
							assert.Equal(t, pair[1].Shape(), pair[0].Shape())
							want, err := torch.ToSlice[float64](pair[1])
							require.NoError(t, err)
							have, err := torch.ToSlice[float64](pair[0])
							require.NoError(t, err)
							assert.InDeltaSlice(t, want, have, 1e-11)
						}
					})
				}
			}
		}
	}
}

// One dimension has nothing below the diagonal of L.
func TestLoopsOfOneDimension(t *testing.T) {
	for what, f := range map[string]family{"diag": diag{}, "dense": dense{lower: &lower{}}, "low rank": lowRank{rank: 1}} {
		loops, tensors, _, _ := compared(t, f, 1, 2, 3, 0.7, false, func(i int) float64 { return 0.3 - 0.2*float64(i) })
		assert.InDeltaSlice(t, tensors.Values, loops.Values, 1e-12, what)
		assert.InDeltaSlice(t, tensors.Norms, loops.Norms, 1e-12, what)
	}
}

// A scale that is gone or that overflows gives numbers that are not finite, for the chain that has it alone.
func TestLoopsThatAreNotFinite(t *testing.T) {
	for what, f := range families() {
		for _, scale := range []float64{-800, 800} {
			shapes, err := f.sites(3)
			require.NoError(t, err)
			variational, err := infer.NewLayout(shapes)
			require.NoError(t, err)
			p := variational.Dim()
			loops, tensors, _, _ := compared(t, f, 3, 2, 2, 0.7, true, func(i int) float64 {
				if i < p {
					return scale
				}
				return 0.1
			})
			assert.Equal(t, []bool{true, false}, loops.Diverged(), "%s, %g", what, scale)
			assert.Equal(t, tensors.Diverged(), loops.Diverged(), "%s, %g", what, scale)
		}
	}
}
