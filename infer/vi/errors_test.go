package vi_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// downhill is an optimiser with the wrong sign.
type downhill struct{ optim.SGD }

func (d downhill) BuildGradient(g infer.Gradient) (infer.Transform, error) {
	return d.SGD.BuildGradient(flipped{g})
}

type flipped struct{ infer.Gradient }

func (f flipped) ValueAndGrad(p infer.Params, b infer.Batch, _ float64) (infer.Evaluation, error) {
	e, err := f.Gradient.ValueAndGrad(p, b, 0)
	if err == nil {
		e.Grad, err = raw.Of(e.Grad.T().Neg(false))
	}
	return e, err
}

// forgetful is an optimiser whose transform hides that it can be restored.
type forgetful struct{ optim.SGD }

func (f forgetful) BuildGradient(g infer.Gradient) (infer.Transform, error) {
	t, err := f.SGD.BuildGradient(g)
	return struct{ infer.Transform }{t}, err
}

// random is an optimiser whose transform asks for random streams.
type random struct{ optim.SGD }

func (r random) BuildGradient(g infer.Gradient) (infer.Transform, error) {
	t, err := r.SGD.BuildGradient(g)
	return seeded{t, t.(infer.Restorer)}, err
}

type seeded struct {
	infer.Transform
	infer.Restorer
}

func (s seeded) InitStreams(p infer.Params, _ torch.Streams) (infer.State, error) { return s.Init(p) }

// notAnOptimizer is a method that takes log posteriors only.
type notAnOptimizer struct{}

func (notAnOptimizer) Build(infer.Target) (infer.Transform, error) { return nil, nil }

// An error names the field, its value, and what is allowed.
func TestConfigurationsAreChecked(t *testing.T) {
	nan := math.NaN()
	decay := 0.0
	for _, k := range []struct {
		what   string
		method infer.Method
		want   []string
	}{
		{"another method", vi.Diag{Optimizer: notAnOptimizer{}}, []string{"Optimizer is a vi_test.notAnOptimizer",
			"infer.GradientMethod"}},
		{"a method of its own kind", vi.Diag{Optimizer: vi.Diag{Optimizer: adam}},
			[]string{"Optimizer is a vi.Diag", "infer.GradientMethod"}},
		{"the wrong way", vi.Diag{Optimizer: downhill{climb}},
			[]string{"Optimizer is a vi_test.downhill that went from 0 to -1", "climb"}},
		{"not restorable", vi.Diag{Optimizer: forgetful{climb}}, []string{"vi_test.forgetful", "infer.Restorer"}},
		{"random", vi.Diag{Optimizer: random{climb}}, []string{"vi_test.random", "random numbers"}},
		{"its own mistake", vi.Dense{Optimizer: optim.SGD{}},
			[]string{"vi.Dense: Optimizer: optim.SGD: LR is missing"}},
		{"decay by default", vi.Diag{Optimizer: optim.AdamW{LR: infer.Constant(0.1)}},
			[]string{"optim.AdamW", "weight decay", "prior"}},
		{"decay", vi.Diag{Optimizer: optim.SGD{LR: infer.Constant(0.1), WeightDecay: 1e-6}}, []string{"weight decay"}},
		{"samples", vi.Diag{Optimizer: adam, Samples: -1}, []string{"vi.Diag: Samples is -1", "at least 1"}},
		{"pairs", vi.LowRank{Optimizer: adam, Samples: 3, Antithetic: true}, []string{"Samples is 3", "even"}},
		{"pairs", vi.LowRank{Optimizer: adam, Samples: 1, Antithetic: true}, []string{"Samples is 1", "even"}},
		{"temperature", vi.Dense{Optimizer: adam, Temperature: infer.Constant(-1)},
			[]string{"vi.Dense: Temperature is -1", "at least 0"}},
		{"weight", vi.Diag{Optimizer: adam, KLWeight: infer.Constant(1)},
			[]string{"vi.Diag: KLWeight is set", "infer.FromParts"}},
		{"start", vi.Diag{Optimizer: adam, InitScale: nan}, []string{"InitScale is NaN", "finite"}},
		{"start", vi.Dense{Optimizer: adam, InitScale: -0.1}, []string{"vi.Dense: InitScale is -0.1",
			"greater than 0"}},
		{"start", vi.LowRank{Optimizer: adam, InitScale: math.Inf(1)}, []string{"vi.LowRank: InitScale is +Inf"}},
		{"memory", vi.Diag{Optimizer: adam, Memory: -1}, []string{"vi.Diag: Memory is -1",
			"at least 1, or 0 for 1 GiB"}},
		{"memory", vi.Dense{Optimizer: adam, Memory: -1}, []string{"vi.Dense: Memory is -1"}},
		{"memory", vi.LowRank{Optimizer: adam, Memory: -1}, []string{"vi.LowRank: Memory is -1"}},
		{"rank", vi.LowRank{Optimizer: adam, Rank: -2}, []string{"vi.LowRank: Rank is -2", "at least 1"}},
	} {
		_, err := k.method.Build(infer.Sum(line, 1))
		if assert.Error(t, err, k.what) {
			assert.ErrorIs(t, err, infer.ErrConfig, k.what)
			for _, want := range k.want {
				assert.ErrorContains(t, err, want, k.what)
			}
		}
	}
	_, err := must(vi.LowRank{Rank: 7}.Build(infer.Sum(line, 1))).Init(params(lineLayout(), make([]float64, 5), 0))
	assert.ErrorContains(t, err, "vi.LowRank: Rank is 7")
	assert.Equal(t, 1, strings.Count(err.Error(), "vi.LowRank"), err)
	// A step that is too long, in the right direction, is the user's own affair, and so is AdamW without decay.
	for _, o := range []infer.Method{optim.SGD{LR: infer.Constant(5)}, optim.AdamW{LR: infer.Constant(0.1),
		WeightDecay: &decay}} {
		_, err := vi.Diag{Optimizer: o}.Build(infer.Sum(line, 1))
		assert.NoError(t, err)
	}
	for _, method := range methods(adam, 1, 1, nil) {
		_, err := method.Build(infer.Target{})
		assert.ErrorContains(t, err, "log posterior is nil")
	}
	_, err = vi.Diag{Optimizer: adam, KLWeight: infer.Constant(-1)}.Build(newConjugate().target())
	assert.ErrorContains(t, err, "vi.Diag: KLWeight is -1")
}

// The optimisers take gradients in the place of log posteriors; none is an error.
func TestOptimisersTakeGradients(t *testing.T) {
	for _, o := range []infer.GradientMethod{climb, adam, optim.AdamW{LR: infer.Constant(0.1)}} {
		_, err := o.BuildGradient(nil)
		assert.ErrorIs(t, err, infer.ErrConfig)
		assert.ErrorContains(t, err, "gradient is nil")
		_, err = o.Build(infer.Target{})
		assert.ErrorContains(t, err, "log posterior is nil")
		g := must(infer.NewGradient(infer.Sum(line, 1)))
		one, err := o.BuildGradient(g)
		require.NoError(t, err)
		a, b := one, build(t, o, line)
		start := params(lineLayout(), spread(5), 0)
		sa, sb := must(a.Init(start)), must(b.Init(start))
		for range 3 {
			sa, _, err = a.Update(sa, lineData())
			require.NoError(t, err)
			sb, _, err = b.Update(sb, lineData())
			require.NoError(t, err)
		}
		same(t, sb, sa, "the two ways to build")
	}
}

func TestStartsAreChecked(t *testing.T) {
	five := params(lineLayout(), spread(5), 0)
	_, err := build(t, vi.LowRank{Optimizer: adam, Rank: 6}, line).Init(five)
	assert.ErrorContains(t, err, "Rank is 6: it must be at most the number of parameters, 5")
	assert.ErrorIs(t, err, infer.ErrConfig)
	_, err = build(t, vi.LowRank{Optimizer: adam, Rank: 5}, line).Init(five)
	assert.NoError(t, err)
	for what, method := range methods(adam, 1, 1, nil) {
		transform := build(t, method, line)
		_, err := transform.Init(params(lineLayout(), []float64{0, 0, math.NaN(), 0, 0}, 0))
		assert.ErrorContains(t, err, "w[0,1] of chain 0 is NaN")
		assert.ErrorContains(t, err, what)
		_, err = transform.Init(infer.Params{Layout: lineLayout(), Flat: torch.Of(vector(spread(4)))})
		assert.ErrorIs(t, err, infer.ErrLayout)
		_, err = transform.(infer.Seeded).InitStreams(five, torch.NewStreams(1, 2))
		assert.ErrorContains(t, err, "2 random streams for 1 chains")
	}
}

// Schedules are checked as they go.
func TestSchedulesAreCheckedAtEachUpdate(t *testing.T) {
	falling := infer.Schedule(func(step int) float64 { return 1 - float64(step) })
	target := newConjugate().target()
	start := params(newConjugate().prior.layout(), make([]float64, 3), 0)
	for want, method := range map[string]vi.Diag{
		"Temperature at update 2 is -1": {Optimizer: adam, Temperature: falling},
		"KLWeight at update 2 is -1":    {Optimizer: adam, KLWeight: falling},
		"LR at update 2 is -1":          {Optimizer: optim.SGD{LR: falling}},
	} {
		transform, err := method.Build(target)
		require.NoError(t, err)
		s := begin(t, transform, start, 1)
		s, _ = update(t, transform, s, nil)
		s, info := update(t, transform, s, nil)
		assert.Nil(t, info.Diverged)
		_, _, err = transform.Update(s, nil)
		assert.ErrorContains(t, err, want)
	}
}

// A density that is not finite at the start of a run is one.
func TestModelsThatFail(t *testing.T) {
	start := params(newConjugate().prior.layout(), make([]float64, 3), 0)
	for what, method := range methods(adam, 2, 1, nil) {
		transform := build(t, method, func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			return torch.Of(p.Flat.Log().T().MustSum(gotch.Double, false)), nil
		})
		_, err := infertest.Run(context.Background(), transform, start, infer.Full(nil),
			infer.Options{Warmup: 5, Draws: infer.None})
		assert.ErrorIs(t, err, infer.ErrNonFinite, what)
		_, err = infertest.Run(context.Background(), build(t, method, func(p infer.Params, _ infer.Batch) (torch.Tensor,
			infer.Aux) {
			return p.Flat, nil
		}), start, infer.Full(nil), infer.Options{Warmup: 5, Draws: infer.None})
		assert.ErrorContains(t, err, "log posterior", what)
	}
}
