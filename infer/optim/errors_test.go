package optim_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
)

// field asserts that err is a [infer.FieldError] of a field, with exactly this text, and an ErrConfig.
func field(t testing.TB, err error, name, text string) {
	t.Helper()
	var f *infer.FieldError
	require.ErrorAs(t, err, &f)
	assert.Equal(t, name, f.Field)
	require.EqualError(t, err, text)
	require.ErrorIs(t, err, infer.ErrConfig)
}

func TestConfigurationErrors(t *testing.T) {
	lr, minus := infer.Constant(0.1), -0.5
	for _, e := range []struct {
		method infer.Method
		field  string
		text   string
	}{
		{optim.SGD{}, "LR", "optim.SGD: LR is missing: a schedule is required, for example infer.Constant(0.01): " +
			"below 2/λ, with λ the largest curvature of the mean log posterior"},
		{optim.SGD{LR: infer.Constant(0)}, "LR", "optim.SGD: LR is 0: it must be finite and greater than 0"},
		{optim.SGD{LR: infer.Constant(nan)}, "LR", "optim.SGD: LR is NaN: it must be finite and greater than 0"},
		{optim.SGD{LR: lr, Momentum: -0.1}, "Momentum",
			"optim.SGD: Momentum is -0.1: it must be at least 0 and less than 1"},
		{optim.SGD{LR: lr, Momentum: 1}, "Momentum", "optim.SGD: Momentum is 1: it must be at least 0 and less than 1"},
		{optim.SGD{LR: lr, Momentum: nan}, "Momentum",
			"optim.SGD: Momentum is NaN: it must be at least 0 and less than 1"},
		{optim.SGD{LR: lr, Dampening: -1}, "Dampening", "optim.SGD: Dampening is -1: it must be from 0 to 1"},
		{optim.SGD{LR: lr, Dampening: 1.5}, "Dampening", "optim.SGD: Dampening is 1.5: it must be from 0 to 1"},
		{optim.SGD{LR: lr, WeightDecay: -1}, "WeightDecay",
			"optim.SGD: WeightDecay is -1: it must be finite and at least 0"},
		{optim.SGD{LR: lr, Nesterov: true}, "Nesterov",
			"optim.SGD: Nesterov is true: it needs Momentum above 0 and Dampening 0"},
		{optim.SGD{LR: lr, Nesterov: true, Momentum: 0.9, Dampening: 0.1}, "Nesterov",
			"optim.SGD: Nesterov is true: it needs Momentum above 0 and Dampening 0"},

		{optim.Adam{LR: infer.Constant(-1)}, "LR", "optim.Adam: LR is -1: it must be finite and greater than 0"},
		{optim.Adam{LR: lr, Beta1: 1}, "Beta1", "optim.Adam: Beta1 is 1: it must be at least 0 and less than 1"},
		{optim.Adam{LR: lr, Beta1: -0.9}, "Beta1", "optim.Adam: Beta1 is -0.9: it must be at least 0 and less than 1"},
		{optim.Adam{LR: lr, Beta2: 1.1}, "Beta2", "optim.Adam: Beta2 is 1.1: it must be at least 0 and less than 1"},
		{optim.Adam{LR: lr, Beta2: nan}, "Beta2", "optim.Adam: Beta2 is NaN: it must be at least 0 and less than 1"},
		{optim.Adam{LR: lr, Eps: -1}, "Eps", "optim.Adam: Eps is -1: it must be finite and greater than 0"},
		{optim.Adam{LR: lr, Eps: nan}, "Eps", "optim.Adam: Eps is NaN: it must be finite and greater than 0"},
		{optim.Adam{LR: lr, WeightDecay: -1}, "WeightDecay",
			"optim.Adam: WeightDecay is -1: it must be finite and at least 0"},

		{optim.AdamW{LR: lr, WeightDecay: &minus}, "WeightDecay",
			"optim.AdamW: WeightDecay is -0.5: it must be finite and at least 0"},
		{optim.AdamW{LR: lr, Beta1: 2}, "Beta1", "optim.AdamW: Beta1 is 2: it must be at least 0 and less than 1"},
	} {
		t.Run(e.text, func(t *testing.T) {
			_, err := e.method.Build(infer.Sum(newWells().logPosterior, 1))
			field(t, err, e.field, e.text)
		})
	}
}

// A learning rate that goes wrong later is found at that update, and the state is as it was.
func TestLearningRatesThatGoWrongLater(t *testing.T) {
	w := newWells()
	for _, wrong := range []struct {
		value float64
		text  string
	}{{-0.1, "-0.1"}, {nan, "NaN"}, {math.Inf(1), "+Inf"}} {
		lr := func(step int) float64 {
			if step < 2 {
				return 0.1
			}
			return wrong.value
		}
		for what, method := range map[string]infer.Method{"optim.SGD": optim.SGD{LR: lr},
			"optim.Adam": optim.Adam{LR: lr}, "optim.AdamW": optim.AdamW{LR: lr}} {
			transform := build(t, method, w.logPosterior)
			s := begin(t, transform, params(w.layout, spread(w.layout.Dim()), 0))
			for range 2 {
				s, _ = update(t, transform, s, w.batch())
			}
			before := values(s.Position().Flat.T())
			_, _, err := transform.Update(s, w.batch())
			field(t, err, "LR at update 2", what+": LR at update 2 is "+wrong.text+": it must be finite and at least 0")
			identical(t, before, values(s.Position().Flat.T()), "the state")
		}
	}
}

func TestStartsThatDoNotFit(t *testing.T) {
	w := newWells()
	bad := spread(2 * w.layout.Dim())
	bad[w.layout.Dim()+4] = math.Inf(1)
	for what, method := range methods() {
		transform := build(t, method, w.logPosterior)
		_, err := transform.Init(infer.Params{Layout: w.layout, Flat: torch.Of(vector(spread(4)))})
		require.EqualError(t, err, what+": params of shape [4] for the layout u[3] v[2 1]: expected [5], or [K, "+
			"5] for K chains: layout does not fit")
		require.ErrorIs(t, err, infer.ErrLayout)
		_, err = transform.Init(params(w.layout, bad, 2))
		require.EqualError(t, err, what+": v[1,0] of chain 1 is +Inf at the start: not finite")
		require.ErrorIs(t, err, infer.ErrNonFinite)
		_, err = transform.Init(infer.Params{Flat: torch.Of(vector(spread(5)))})
		require.EqualError(t, err, what+": the params have no layout: layout does not fit")
	}
}

func TestStatesOfAnotherMethod(t *testing.T) {
	w := newWells()
	states := map[string]infer.State{}
	for what, method := range methods() {
		states[what] = begin(t, build(t, method, w.logPosterior), params(w.layout, spread(w.layout.Dim()), 0))
	}
	for _, e := range []struct{ method, state, text, missing string }{
		{"optim.SGD", "optim.Adam",
			"optim.SGD: the state is a optim.AdamState, expected optim.SGDState: it was made by another method", "buffer"},
		{"optim.Adam", "optim.SGD",
			"optim.Adam: the state is a optim.SGDState, expected optim.AdamState: it was made by another method", ""},
		{"optim.AdamW", "optim.SGD", "optim.AdamW: the state is a optim.SGDState, expected optim.AdamState: it " +
			"was made by another method", ""},
	} {
		transform := build(t, methods()[e.method], w.logPosterior)
		_, _, err := transform.Update(states[e.state], w.batch())
		require.EqualError(t, err, e.text)
		_, err = transform.(infer.Restorer).Restore(w.layout, states[e.state].Save())
		require.ErrorIs(t, err, infer.ErrCheckpoint)
		require.ErrorContains(t, err, `the saved state has no "`+e.missing)
	}
}

func TestLogPosteriorsThatFail(t *testing.T) {
	w := newWells()
	for what, method := range methods() {
		_, err := method.Build(infer.Target{})
		require.EqualError(t, err, what+": the log posterior is nil: invalid configuration")
		require.ErrorIs(t, err, infer.ErrConfig)
		for _, rows := range []int{0, 3} {
			try := func(f infer.LogPosterior, b infer.Batch) error {
				transform := build(t, method, f)
				_, _, err := transform.Update(begin(t, transform, params(w.layout, spread(max(rows, 1)*w.layout.Dim()),
					rows)), b)
				return err
			}
			require.ErrorContains(t, try(w.logPosterior, infer.Batch{"v": torch.Of(vector(w.c))}),
				what+`: log posterior: the model asked for batch tensor "u", which does not exist; there are: ["v"]`)
			err := try(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
				return p.Get("u").Dot(p.Get("v")), nil
			}, nil)
			var failed *torch.Error
			require.ErrorAs(t, err, &failed)
			require.ErrorContains(t, err, what+": log posterior: ")
		}
	}
}

// LBFGS refuses minibatches and says which methods take them; all of the data are taken in any form.
func TestLBFGSNeedsAllOfTheData(t *testing.T) {
	f := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Sub(b.Get("y")).Square().Mean().Mul(-0.5), nil
	}
	l := must(infer.NewLayout(infer.Shapes{"x": {}}))
	data := infer.Batch{"y": torch.Of(vector([]float64{1, 2, 3, 6}))}
	program := infer.Handwritten(infer.Mean(f, 4), params(l, []float64{0}, 0), data)
	split := func(size int) infer.Batches {
		return must(infer.Minibatches(data, infer.MinibatchOptions{Size: size}))
	}
	run := func(m infer.Method, b infer.Batches) error {
		_, err := infer.Run(context.Background(), program, m, infer.Options{Batches: b, Chains: 1, Warmup: 5,
			Observer: infer.Silent})
		return err
	}
	for _, b := range []infer.Batches{split(2), split(3), struct{ infer.Batches }{split(4)}} {
		err := run(optim.LBFGS{}, b)
		require.ErrorIs(t, err, infer.ErrConfig)
		for _, words := range []string{"Batches is given", "optim.LBFGS needs all of the data in every update",
			"optim.Adam", "sgmcmc", "Optimizer: optim.Adam{}"} {
			require.ErrorContains(t, err, words)
		}
		require.NoError(t, run(optim.Adam{}, b))
	}
	for _, b := range []infer.Batches{nil, infer.Full(data), split(4)} {
		require.NoError(t, run(optim.LBFGS{}, b))
	}
}
