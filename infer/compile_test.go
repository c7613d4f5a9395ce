package infer_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// cubic is Σ (y_i x - x³/10) / n - x²/2 over both parameters, of a batch y.
func cubic(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	x := p.Get("x")
	fit := b.Get("y").Mean().Mul(x.Sum())
	return fit.Sub(x.Pow(4).Sum().Mul(0.1)).Sub(x.Square().Sum().Mul(0.5)), nil
}

// logJacobian is Σ log (1 + x²).
func logJacobian(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	return p.Get("x").Square().Log1p().Sum(), nil
}

func compiledCubic(t *testing.T, tier native.Tier) (*native.Func, infer.Target, infer.Params, infer.Batch) {
	t.Helper()
	target := infer.Mean(cubic, 5)
	target.LogJacobian = logJacobian
	start := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0.5, -0.2)
	batch := infer.Batch{"y": vec([]float64{1, 2, 3, 4, 5})}
	f, report, err := infer.Compile(target, start, batch, native.Options{Tier: tier})
	require.NoError(t, err)
	require.NotNil(t, f, report.Reason)
	require.LessOrEqual(t, report.Error, 1e-10)
	return f, target, start, batch
}

// Native code gives the numbers of the formula, with the Jacobian at its weight, also after the batch was replaced.
func TestCompile(t *testing.T) {
	for _, tier := range []native.Tier{native.C, native.VM, native.Replay} {
		t.Run(string(tier), func(t *testing.T) {
			f, _, _, _ := compiledCubic(t, tier)
			check := func(mean float64) {
				x, grad := []float64{0.3, -1.2}, make([]float64, 2)
				value, err := f.Eval(x, 0.7, grad)
				require.NoError(t, err)
				want := 0.0
				for i, v := range x {
					want += mean*v - 0.1*math.Pow(v, 4) - v*v/2 + 0.7*math.Log1p(v*v)
					slope := mean - 0.4*v*v*v - v + 0.7*2*v/(1+v*v)
					assert.InDelta(t, slope, grad[i], 1e-14)
				}
				assert.InDelta(t, want, value, 1e-14)
			}
			check(3)
			require.NoError(t, f.Set(infer.Batch{"y": vec([]float64{2, 2, 2, 2, 3})}))
			check(2.2)
		})
	}
}

// What cannot be recorded is eager, with a reason that names it; where native code is required, that is the error.
func TestNotCompiled(t *testing.T) {
	calls := 0
	var kept torch.Tensor
	own := vec([]float64{1, 1})
	table := map[string]struct {
		f      infer.LogPosterior
		reason string
	}{
		"a value is read": {func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			x := p.Get("x").Sum()
			if x.Item() > 100 {
				return x.Neg(), nil
			}
			return x.Square().Neg(), nil
		}, "value"},
		"values are copied": {func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			x := p.Get("x").Sum()
			if x.T().MustDetach(false).Float64Values()[0] > 100 {
				return x.Neg(), nil
			}
			return x.Square().Neg(), nil
		}, "value"},
		"the address of values is asked for": {func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			x := p.Get("x").Sum()
			at, err := x.T().MustDetach(false).DataPtr()
			torch.Must(x, err)
			if *(*float64)(at) > 100 {
				return x.Neg(), nil
			}
			return x.Square().Neg(), nil
		}, "value"},
		"another formula in each call": {func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			calls++
			return p.Get("x").Square().Sum().Mul(-float64(calls)), nil
		}, ""},
		"random numbers": {func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			x := p.Get("x")
			noise := torch.Must(x.T().RandnLike(false))
			return x.Square().Sum().Neg().Sub(torch.Of(noise).Square().Sum()), nil
		}, "rand"},
		"a tensor of the call before": {func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			x := p.Get("x")
			before := kept
			if before == (torch.Tensor{}) {
				before = vec([]float64{1, 1})
			}
			kept = torch.Must(torch.Copy(torch.Of(x.T().MustDetach(false))))
			torch.Detach(kept)
			return x.Mul(before).Square().Sum().Neg(), nil
		}, ""},
		"a tensor of the program is written to": {func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			own.T().MustAddScalar_(ts.FloatScalar(1))
			return p.Get("x").Mul(own).Square().Sum().Neg(), nil
		}, ""},
	}
	start := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0.5, -0.2)
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			f, report, err := infer.Compile(infer.Sum(c.f, 1), start, nil, native.Options{})
			require.NoError(t, err)
			assert.Nil(t, f)
			assert.Equal(t, native.Eager, report.Tier)
			assert.Contains(t, report.Reason, c.reason)
			assert.NotEmpty(t, report.Reason)
			t.Log(report)
			for _, tier := range []native.Tier{native.Require, native.Replay} {
				_, _, err = infer.Compile(infer.Sum(c.f, 1), start, nil, native.Options{Tier: tier})
				require.ErrorIs(t, err, native.ErrNative)
				assert.Contains(t, err.Error(), c.reason)
			}
		})
	}
	for _, tier := range []native.Tier{native.C, native.VM} {
		_, _, err := infer.Compile(infer.Mean(cubic, 5), in32(t, start), infer.Batch{"y": vec([]float64{1})},
			native.Options{Tier: tier})
		require.ErrorIs(t, err, native.ErrNative)
		assert.ErrorContains(t, err, "float64")
	}
}

// An error of the model is the model's, in every tier.
func TestCompileErrors(t *testing.T) {
	start := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0.5, -0.2)
	_, _, err := infer.Compile(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("y"), nil
	}, 1), start, nil, native.Options{})
	assert.ErrorContains(t, err, `"y"`)
	_, _, err = infer.Compile(infer.Mean(cubic, 5), start, nil, native.Options{Tier: "fast"})
	assert.ErrorContains(t, err, `"fast"`)
	t.Setenv("KELVIN_NATIVE", "quick")
	_, _, err = infer.Compile(infer.Mean(cubic, 5), start, nil, native.Options{})
	assert.ErrorContains(t, err, "KELVIN_NATIVE")
}

func cubicProgram(t *testing.T) infer.Program {
	t.Helper()
	target := infer.Mean(cubic, 5)
	target.LogJacobian = logJacobian
	return infer.Handwritten(target, pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0.5, -0.2),
		infer.Batch{"y": vec([]float64{1, 2, 3, 4, 5})})
}

// A run says who evaluated its gradients. It repeats itself bit for bit, and the tiers agree as long as rounding has
// not grown.
func TestRunInTiers(t *testing.T) {
	first := map[native.Tier][]float64{}
	for _, tier := range []native.Tier{native.C, native.VM, native.Replay, native.Eager} {
		for range 2 {
			for _, m := range []infer.Method{hmc.NUTS{}, sgmcmc.SGLD{LR: infer.Constant(1e-3)}} {
				r, err := infer.Run(context.Background(), cubicProgram(t), m, infer.Options{Native: tier, Chains: 2, Warmup: 5,
					Draws: 5, Seed: 3, Observer: infer.Silent})
				require.NoError(t, err)
				assert.Contains(t, r.Draws.Attrs()["gradient"], string(tier))
				key := native.Tier(fmt.Sprintf("%T", m)) + tier
				row := r.Draws.Row(1, 4)
				if first[key] != nil {
					assert.Equal(t, first[key], row)
				}
				first[key] = row
				if eager := first[native.Tier(fmt.Sprintf("%T", m))+native.C]; eager != nil {
					assert.InDeltaSlice(t, eager, row, 1e-8, "%T in the tier %s", m, tier)
				}
			}
		}
	}
}

// A run goes on in the tier that it began with, bit for bit, and refuses another.
func TestResumeInTheSameTier(t *testing.T) {
	for _, c := range []struct {
		infer.Method
		tier native.Tier
	}{
		{hmc.NUTS{}, native.VM}, {sgmcmc.SGLD{LR: infer.Constant(1e-3)}, native.VM},
		{hmc.NUTS{}, native.Replay}, {sgmcmc.SGLD{LR: infer.Constant(1e-3)}, native.Replay},
	} {
		m := c.Method
		o := infer.Options{Native: c.tier, Chains: 2, Warmup: 10, Draws: 30, Seed: 3, Observer: infer.Silent}
		whole, err := infer.Run(context.Background(), cubicProgram(t), m, o)
		require.NoError(t, err)
		o.Checkpoint = &infer.Checkpoint{Dir: t.TempDir(), Every: 7, Resume: true}
		ctx, cancel := context.WithCancel(context.Background())
		o.Observer = infer.ObserverFunc(func(p infer.Progress) {
			if p.Draws >= 15 {
				cancel()
			}
		})
		_, err = infer.Run(ctx, cubicProgram(t), m, o)
		require.ErrorIs(t, err, context.Canceled)
		o.Observer = infer.Silent

		o.Native = native.Eager
		_, err = infer.Run(context.Background(), cubicProgram(t), m, o)
		require.ErrorIs(t, err, infer.ErrCheckpoint)
		assert.ErrorContains(t, err, fmt.Sprintf("%q", c.tier))

		o.Native = native.Auto
		rest, err := infer.Run(context.Background(), cubicProgram(t), m, o)
		require.NoError(t, err)
		assert.Contains(t, rest.Draws.Attrs()["gradient"], string(c.tier))
		for k := range 2 {
			for i := range 30 {
				require.Equal(t, whole.Draws.Row(k, i), rest.Draws.Row(k, i), "draw %d of chain %d", i, k)
			}
		}
	}
}

// A run that is stopped before its first gradient, twice, goes on in the tier of a new run, or in one that it asks for.
// One that has its tier and is stopped again before a gradient keeps it.
func TestResumeBeforeTheFirstGradient(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, m := range []infer.Method{hmc.NUTS{}, sgmcmc.SGLD{LR: infer.Constant(1e-3)}} {
		for _, tier := range []native.Tier{native.Auto, native.Replay, native.Eager} {
			o := infer.Options{Native: tier, Chains: 2, Warmup: 10, Draws: 10, Seed: 3, Observer: infer.Silent}
			whole, err := infer.Run(context.Background(), cubicProgram(t), m, o)
			require.NoError(t, err)
			o.Checkpoint = &infer.Checkpoint{Dir: t.TempDir(), Every: 4, Resume: true}
			stop := func() {
				o.Observer = infer.Silent
				for range 2 {
					_, err := infer.Run(ended, cubicProgram(t), m, o)
					require.ErrorIs(t, err, context.Canceled)
				}
			}
			stop()
			ctx, cancel := context.WithCancel(context.Background())
			o.Observer = infer.ObserverFunc(func(p infer.Progress) {
				if p.Draws >= 4 {
					cancel()
				}
			})
			_, err = infer.Run(ctx, cubicProgram(t), m, o)
			require.ErrorIs(t, err, context.Canceled)
			o.Native = native.Auto
			stop()
			rest, err := infer.Run(context.Background(), cubicProgram(t), m, o)
			require.NoError(t, err)
			assert.Equal(t, whole.Draws.Attrs()["gradient"], rest.Draws.Attrs()["gradient"])
			for k := range 2 {
				require.Equal(t, whole.Draws.Row(k, 9), rest.Draws.Row(k, 9), "%T %q", m, tier)
			}
		}
	}
}

// Batches of another shape are compiled once more; the gradients are those of eager evaluation.
func TestShapesOfBatches(t *testing.T) {
	data := infer.Batch{"y": vec([]float64{1, 2, 3, 4, 5})}
	var rows [][]float64
	for _, tier := range []native.Tier{native.Auto, native.Eager} {
		r, err := infer.Run(context.Background(), cubicProgram(t), sgmcmc.SGLD{LR: infer.Constant(1e-3)}, infer.Options{
			Native: tier, Chains: 3, Warmup: 20, Draws: 1, Seed: 3, Observer: infer.Silent,
			Batches: minibatches(t, data, infer.MinibatchOptions{Size: 2, Seed: 1})}) // of 2, 2 and 1
		require.NoError(t, err)
		rows = append(rows, r.Draws.Row(2, 0))
	}
	assert.InDeltaSlice(t, rows[1], rows[0], 1e-12)
}
