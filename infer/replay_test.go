package infer_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// perceptron is a network of 6 inputs, 5 hidden units and 3 classes on 20 data, with a normal prior, in float32.
func perceptron(t *testing.T) (infer.Program, infer.Batch) {
	t.Helper()
	x, y := make([]float64, 20*6), make([]int, 20)
	for i := range x {
		x[i] = math.Sin(float64(7 * i))
	}
	for i := range y {
		y[i] = i % 3
	}
	layout := layoutOf(t, infer.Shapes{"w": {6, 5}, "b": {5}, "v": {5, 3}, "c": {3}})
	start := make([]float64, layout.Dim())
	for i := range start {
		start[i] = 0.5 * math.Cos(float64(5*i))
	}
	density := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		h := b.Get("x").MatMul(p.Get("w")).Add(p.Get("b"))
		logits := h.Relu().MatMul(p.Get("v")).Add(p.Get("c"))
		fit := logits.LogSoftmax(-1).Gather(1, b.Get("y").Unsqueeze(1)).Mean()
		return fit.Sub(p.Flat.Square().Sum().Mul(0.5 / 20)), infer.Aux{"fit": fit}
	}
	p := in32(t, pointOf(t, layout, start...))
	data := infer.Batch{
		"x": torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, x, 20, 6)),
		"y": torch.New(y),
	}
	return infer.Handwritten(infer.Mean(density, 20), p, nil), data
}

// A float32 network is replayed without being asked for, one chain or several, on batches of two shapes, and its run
// has the bits of eager evaluation.
func TestReplayOfANetwork(t *testing.T) {
	for _, chains := range []int{1, 3} {
		var rows [][]float64
		for _, tier := range []native.Tier{native.Auto, native.Replay, native.Eager} {
			program, data := perceptron(t)
			r, err := infer.Run(context.Background(), program, sgmcmc.SGHMC{LR: infer.Constant(0.01)}, infer.Options{
				Native: tier, Chains: chains, Warmup: 20, Draws: 5, Seed: 3, Observer: infer.Silent,
				Batches: minibatches(t, data, infer.MinibatchOptions{Size: 8, Seed: 1})}) // of 8, 8 and 4
			require.NoError(t, err)
			gradient := r.Draws.Attrs()["gradient"]
			t.Log(gradient)
			if tier == native.Eager {
				assert.Contains(t, gradient, "eager")
			} else {
				assert.Contains(t, gradient, "replay (")
			}
			if tier == native.Auto {
				assert.Contains(t, gradient, "not float64")
			}
			var all []float64
			for k := range chains {
				for i := range 5 {
					all = append(all, r.Draws.Row(k, i)...)
				}
			}
			rows = append(rows, all)
		}
		assert.Equal(t, rows[2], rows[0])
		assert.Equal(t, rows[2], rows[1])
	}
}

// A replay has the bits of eager evaluation where the products of its chains are batches of small matrices: a network
// of 60 hidden units for a number, of 6 inputs and of one.
func TestReplayOfProducts(t *testing.T) {
	for _, inputs := range []int{6, 1} {
		x := make([]float64, 20*inputs)
		for i := range x {
			x[i] = math.Sin(float64(7 * i))
		}
		layout := layoutOf(t, infer.Shapes{"w": {inputs, 60}, "v": {60, 1}})
		start := make([]float64, layout.Dim())
		for i := range start {
			start[i] = 0.5 * math.Cos(float64(5*i))
		}
		data := infer.Batch{"x": torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, x, 20, inputs))}
		target := infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			h := b.Get("x").MatMul(p.Get("w")).Tanh()
			return h.MatMul(p.Get("v")).Sub(1).Square().Sum().Add(p.Flat.Square().Sum()).Neg(), nil
		}, 20)
		var rows [][]float64
		for _, tier := range []native.Tier{native.Replay, native.Eager} {
			r, err := infer.Run(context.Background(), infer.Handwritten(target, in32(t, pointOf(t, layout, start...)), data),
				sgmcmc.SGLD{LR: infer.Constant(1e-4)}, infer.Options{Native: tier, Chains: 3, Warmup: 20, Draws: 1, Seed: 3,
					Observer: infer.Silent})
			require.NoError(t, err)
			assert.Contains(t, r.Draws.Attrs()["gradient"], string(tier))
			rows = append(rows, r.Draws.Row(2, 0))
		}
		assert.Equal(t, rows[1], rows[0], "%d inputs", inputs)
	}
}

// A model in float64 that is asked to be replayed has the bits of eager evaluation, with a temperature, and so a weight
// of the Jacobian, that changes at every update.
func TestReplayWithAJacobian(t *testing.T) {
	cooling := func(step int) float64 { return 1 + 1/float64(1+step) }
	for _, chains := range []int{1, 4} {
		var rows [][]float64
		for _, tier := range []native.Tier{native.Replay, native.Eager} {
			r, err := infer.Run(context.Background(), cubicProgram(t), sgmcmc.SGLD{LR: infer.Constant(1e-2),
				Temperature: cooling}, infer.Options{Native: tier, Chains: chains, Warmup: 50, Draws: 1, Seed: 3,
				Observer: infer.Silent})
			require.NoError(t, err)
			assert.Contains(t, r.Draws.Attrs()["gradient"], string(tier))
			rows = append(rows, r.Draws.Row(chains-1, 0))
		}
		assert.Equal(t, rows[1], rows[0])
	}
}

// What neither C nor the virtual machine can have is replayed: one evaluation in two types of numbers.
func TestReplayInsteadOfEager(t *testing.T) {
	target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x").T().MustTotype(gotch.Float, false)
		return torch.Of(x.MustTotype(gotch.Double, false)).Square().Sum().Neg(), nil
	}, 1)
	start := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0.5, -0.25)
	f, report, err := infer.Compile(target, start, nil, native.Options{})
	require.NoError(t, err)
	require.Equal(t, native.Replay, report.Tier, report.Reason)
	assert.NotEmpty(t, report.Reason)
	grad := make([]float64, 2)
	value, err := f.Eval([]float64{0.5, -0.25}, 0, grad)
	require.NoError(t, err)
	assert.Equal(t, -0.3125, value)
	assert.Equal(t, []float64{-1, 0.5}, grad)
}

// A replay whose result depends on numbers in its shape is left to eager evaluation, which has the right one. A view of
// such a result has the shape that was recorded, so that it would show numbers of an earlier evaluation.
func TestReplayOfAnotherShape(t *testing.T) {
	for name, view := range map[string]bool{"result": false, "view": true} {
		t.Run(name, func(t *testing.T) { sameWithOtherRows(t, view) })
	}
}

// sameWithOtherRows samples a target whose indices of numbers beside 0 are as many as the batch has, in two tiers.
func sameWithOtherRows(t *testing.T, view bool) {
	target := infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		n := b.Get("y").T().MustNonzero(false) // a row for each
		if view {
			n = n.MustSqueezeDim(1, false)
		}
		return p.Get("x").Square().Sum().Neg().Mul(torch.Of(n.MustTotype(gotch.Double, false)).Exp().Sum()), nil
	}, 1)
	counts := func(y ...int) infer.Batch { return infer.Batch{"y": torch.New(y)} }
	program := infer.Handwritten(target, pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0.5, -0.25), nil)
	var rows [][]float64
	for _, tier := range []native.Tier{native.Replay, native.Eager} {
		r, err := infer.Run(context.Background(), program, sgmcmc.SGLD{LR: infer.Constant(1e-3)}, infer.Options{
			Native: tier, Chains: 1, Warmup: 3, Draws: 1, Seed: 3, Observer: infer.Silent, DependentRows: true,
			Batches: &turns{batches: []infer.Batch{counts(0, 1, 2), counts(0, 0, 4)}}})
		require.NoError(t, err)
		rows = append(rows, r.Draws.Row(0, 0))
	}
	assert.Equal(t, rows[1], rows[0])
}

// turns gives batches in turn.
type turns struct {
	batches []infer.Batch
	at      int
}

func (b *turns) Next() (infer.Batch, error) {
	b.at++
	return b.batches[(b.at-1)%len(b.batches)], nil
}
func (b *turns) Position() infer.Position     { return infer.Position{Index: b.at} }
func (b *turns) Seek(at infer.Position) error { b.at = at.Index; return nil }
func (b *turns) Fingerprint() (string, error) { return "turns", nil }

// Many goroutines share a replay, and evaluations keep the memory: after the first ten thousand it grows by less than a
// leaked tensor of 100 bytes an evaluation would add.
func TestReplayShared(t *testing.T) {
	testkit.Long(t)
	f, _, _, _ := compiledCubic(t, native.Replay)
	const goroutines = 64
	calls := func(each int) {
		var wg sync.WaitGroup
		for k := range goroutines {
			wg.Go(func() {
				x, grad := []float64{float64(k) / 64, -1.2}, make([]float64, 2)
				first, err := f.Eval(x, 0.7, grad)
				if err != nil {
					t.Error(err)
				}
				want := 0.0
				for _, v := range x {
					want += 3*v - 0.1*math.Pow(v, 4) - v*v/2 + 0.7*math.Log1p(v*v)
				}
				if math.Abs(first-want) > 1e-13 {
					t.Errorf("at %v: %v, want %v", x, first, want)
				}
				slope := grad[0]
				for range each {
					if again, err := f.Eval(x, 0.7, grad); again != first || grad[0] != slope || err != nil {
						t.Errorf("at %v: the bits changed, or %v", x, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	calls(10_000 / goroutines)
	bytes := unscoped()
	testkit.GrownInRounds(t, 3, 50_000*100, func() { calls(50_000 / goroutines) })
	assert.Equal(t, bytes, unscoped())
	runtime.KeepAlive(f)
}

// A function of a batch follows it, and refuses one of other shapes or types.
func TestReplayBatches(t *testing.T) {
	f, _, _, _ := compiledCubic(t, native.Replay)
	assert.ErrorContains(t, f.Set(infer.Batch{"y": vec([]float64{1, 2})}), "of shape [5]")
	assert.ErrorContains(t, f.Set(nil), `no tensor "y"`)
	other := infer.Batch{"y": vec([]float64{2, 2, 2, 2, 3})}
	require.NoError(t, f.Set(other))
	torch.Free(other["y"])
	runtime.GC()
	grad := make([]float64, 2)
	value, err := f.Eval([]float64{1, 0}, 0, grad)
	require.NoError(t, err)
	assert.InDelta(t, 2.2-0.1-0.5, value, 1e-15)
	assert.InDeltaSlice(t, []float64{2.2 - 0.4 - 1, 2.2}, grad, 1e-15)
}
