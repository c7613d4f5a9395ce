package sgmcmc_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

var nan = math.NaN()

// mistake is a configuration with the error that it makes.
type mistake struct {
	method infer.Method
	field  string // "" for what is not the matter of one field
	text   string
}

// refused checks that none of the configurations is built.
func refused(t *testing.T, mistakes ...mistake) {
	t.Helper()
	for _, e := range mistakes {
		_, err := e.method.Build(infer.Sum(newQuartic().logPosterior, 1))
		require.EqualError(t, err, e.text)
		require.ErrorIs(t, err, infer.ErrConfig)
		if e.field != "" {
			field(t, err, e.field, e.text)
		}
	}
}

// goWrong checks that the third update of each configuration fails, and leaves the state as it was.
func goWrong(t *testing.T, mistakes ...mistake) {
	t.Helper()
	q := newQuartic()
	for _, e := range mistakes {
		transform := build(t, e.method, q.logPosterior)
		s, batch := begin[infer.State](t, transform, params(q.layout, spread(q.layout.Dim()), 0), 1), q.batch()
		for range 2 {
			s, _ = update(t, transform, s, batch)
		}
		before := values(s.Position().Flat.T())
		_, _, err := transform.Update(s, batch)
		require.EqualError(t, err, e.text)
		require.ErrorIs(t, err, infer.ErrConfig)
		if e.field != "" {
			field(t, err, e.field, e.text)
		}
		identical(t, before, values(s.Position().Flat.T()), "the state")
	}
}

func TestConfigurationErrors(t *testing.T) {
	c := infer.Constant
	refused(t, []mistake{
		{sgmcmc.SGLD{}, "LR", "sgmcmc.SGLD: LR is missing: a schedule is required, for example infer.Constant(0.01): " +
			"below 2/λ, with λ the largest curvature of the mean log posterior"},
		{sgmcmc.SGLD{LR: c(0)}, "LR", "sgmcmc.SGLD: LR is 0: it must be finite and greater than 0"},
		{sgmcmc.SGLD{LR: c(-0.1)}, "LR", "sgmcmc.SGLD: LR is -0.1: it must be finite and greater than 0"},
		{sgmcmc.SGLD{LR: c(nan)}, "LR", "sgmcmc.SGLD: LR is NaN: it must be finite and greater than 0"},
		{sgmcmc.SGLD{LR: c(math.Inf(1))}, "LR", "sgmcmc.SGLD: LR is +Inf: it must be finite and greater than 0"},
		{sgmcmc.SGLD{LR: c(1), Temperature: c(-1)}, "Temperature",
			"sgmcmc.SGLD: Temperature is -1: it must be finite and at least 0"},
		{sgmcmc.SGLD{LR: c(1), Temperature: c(nan)}, "Temperature",
			"sgmcmc.SGLD: Temperature is NaN: it must be finite and at least 0"},
		{sgmcmc.SGLD{LR: c(1), Beta: -2}, "Beta", "sgmcmc.SGLD: Beta is -2: it must be finite and at least 0"},
		{sgmcmc.SGLD{LR: c(1), Beta: nan}, "Beta", "sgmcmc.SGLD: Beta is NaN: it must be finite and at least 0"},

		{sgmcmc.SGHMC{}, "LR", "sgmcmc.SGHMC: LR is missing: a schedule is required, for example infer.Constant(0.01): " +
			"below α/λ, with λ the largest curvature of the mean log posterior"},
		{sgmcmc.SGHMC{LR: c(0)}, "LR", "sgmcmc.SGHMC: LR is 0: it must be finite and greater than 0"},
		{sgmcmc.SGHMC{LR: c(nan)}, "LR", "sgmcmc.SGHMC: LR is NaN: it must be finite and greater than 0"},
		{sgmcmc.SGHMC{LR: c(1), Alpha: c(-1)}, "Alpha", "sgmcmc.SGHMC: Alpha is -1: it must be finite and at least 0"},
		{sgmcmc.SGHMC{LR: c(1), Temperature: c(-1)}, "Temperature",
			"sgmcmc.SGHMC: Temperature is -1: it must be finite and at least 0"},
		{sgmcmc.SGHMC{LR: c(1), Sigma: -1}, "Sigma", "sgmcmc.SGHMC: Sigma is -1: it must be finite and greater than 0"},
		{sgmcmc.SGHMC{LR: c(1), Sigma: nan}, "Sigma",
			"sgmcmc.SGHMC: Sigma is NaN: it must be finite and greater than 0"},
		{sgmcmc.SGHMC{LR: c(1), Beta: -2}, "Beta", "sgmcmc.SGHMC: Beta is -2: it must be finite and at least 0"},
	}...)
}

// The noise variance Tε(2a − Tεβ) is 0 at β = 2a/(Tε) and negative beyond.
func TestTooLargeBeta(t *testing.T) {
	c := infer.Constant
	refused(t, []mistake{
		{sgmcmc.SGLD{LR: c(0.5), Beta: 9, Temperature: c(0.5)}, "",
			"sgmcmc.SGLD: the noise variance τε(2a − τεβ) is -0.0625 at update 0, with τ = T/N = 0.5, step ε = " +
				"0.5, friction a = 1, β (Beta) = 9: " +
				"Beta must be at most 2a/(τε) = 8, or LR smaller: invalid configuration"},
		{sgmcmc.SGHMC{LR: c(0.5), Beta: 17, Alpha: c(2), Temperature: c(0.5)}, "",
			"sgmcmc.SGHMC: the noise variance τε(2a − τεβ) is -0.0625 at update 0, with τ = T/N = 0.5, step ε = " +
				"0.5, friction a = 2, β (Beta) = 17: " +
				"Beta must be at most 2a/(τε) = 16, or LR smaller: invalid configuration"},
		{sgmcmc.SGHMC{LR: c(0.5), Beta: 0.25, Alpha: c(0)}, "",
			"sgmcmc.SGHMC: the noise variance τε(2a − τεβ) is -0.0625 at update 0, with τ = T/N = 1, step ε = " +
				"0.5, friction a = 0, β (Beta) = 0.25: " +
				"Beta must be at most 2a/(τε) = 0, or LR smaller: invalid configuration"},
	}...)
	for _, ok := range []infer.Method{
		sgmcmc.SGLD{LR: c(0.5), Beta: 8, Temperature: c(0.5)},
		sgmcmc.SGHMC{LR: c(0.5), Beta: 16, Alpha: c(2), Temperature: c(0.5)},
		sgmcmc.SGLD{LR: c(0.5), Beta: 1e6, Temperature: zero},
	} {
		_, err := ok.Build(infer.Sum(newQuartic().logPosterior, 1))
		require.NoError(t, err, "%+v is on the edge and allowed", ok)
	}
}

// from is a schedule that is before until an update, and after from then on.
func from(step int, before, after float64) infer.Schedule {
	return func(t int) float64 {
		if t < step {
			return before
		}
		return after
	}
}

// What a schedule does later is found at that update: it is an error that names the update, and the state is as it was.
func TestSchedulesThatGoWrongLater(t *testing.T) {
	c := infer.Constant
	goWrong(t, []mistake{
		{sgmcmc.SGLD{LR: from(2, 0.1, -0.1)}, "LR at update 2",
			"sgmcmc.SGLD: LR at update 2 is -0.1: it must be finite and at least 0"},
		{sgmcmc.SGLD{LR: c(0.1), Temperature: from(2, 1, nan)}, "Temperature at update 2",
			"sgmcmc.SGLD: Temperature at update 2 is NaN: it must be finite and at least 0"},
		{sgmcmc.SGLD{LR: from(2, 0.25, 0.5), Beta: 6}, "", "sgmcmc.SGLD: the noise variance τε(2a − τεβ) is -0.5 at " +
			"update 2, with τ = T/N = 1, step ε = 0.5, friction a = 1, β (Beta) = 6: Beta must be at most 2a/(τε) = 4, " +
			"or LR smaller: " +
			"invalid configuration"},
		{sgmcmc.SGHMC{LR: from(2, 0.1, math.Inf(1))}, "LR at update 2",
			"sgmcmc.SGHMC: LR at update 2 is +Inf: it must be finite and at least 0"},
		{sgmcmc.SGHMC{LR: c(0.1), Temperature: from(2, 1, -1)}, "Temperature at update 2",
			"sgmcmc.SGHMC: Temperature at update 2 is -1: it must be finite and at least 0"},
		{sgmcmc.SGHMC{LR: c(0.1), Alpha: from(2, 1, nan)}, "Alpha at update 2",
			"sgmcmc.SGHMC: Alpha at update 2 is NaN: it must be finite and at least 0"},
		{sgmcmc.SGHMC{LR: c(0.25), Alpha: from(2, 1, 0.5), Beta: 6}, "",
			"sgmcmc.SGHMC: the noise variance τε(2a − τεβ) is -0.125 at update 2, with τ = T/N = 1, step ε = " +
				"0.25, friction a = 0.5, β (Beta) = 6: " +
				"Beta must be at most 2a/(τε) = 4, or LR smaller: invalid configuration"},
	}...)
}

func TestStartsThatDoNotFit(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	lr := infer.Constant(0.1)
	bad := spread(2 * d)
	bad[d+2], bad[d+3] = nan, math.Inf(1)
	two := params(q.layout, spread(2*d), 2)
	for prefix, method := range map[string]infer.Method{"sgmcmc.SGLD": sgmcmc.SGLD{LR: lr},
		"sgmcmc.SGHMC": sgmcmc.SGHMC{LR: lr}} {
		transform := build(t, method, q.logPosterior)
		for _, e := range []struct {
			p       infer.Params
			streams torch.Streams
			text    string
			kind    error
		}{
			{infer.Params{Layout: q.layout, Flat: torch.Of(vector(spread(8)))}, torch.NewStreams(0, 1),
				": params of shape [8] for the layout a[2] b[] w[2 3]: expected [9], or [K, 9] for K chains: layout does not fit",
				infer.ErrLayout},
			{infer.Params{Layout: q.layout, Flat: torch.Of(vector(spread(2*d), 1, 2, d))}, torch.NewStreams(0, 1),
				": params of shape [1 2 9] for the layout a[2] b[] w[2 3]: expected [9], or [K, 9] for K chains: " +
					"layout does not fit", infer.ErrLayout},
			{infer.Params{Flat: torch.Of(vector(spread(d)))}, torch.NewStreams(0, 1),
				": the params have no layout: layout does not fit", infer.ErrLayout},
			{params(q.layout, bad, 2), torch.NewStreams(0, 2), ": b of chain 1 is NaN at the start: not finite",
				infer.ErrNonFinite},
			{two, torch.NewStreams(0, 3), ": 3 random streams for 2 chains: there must be one for each: invalid configuration",
				infer.ErrConfig},
			{two, torch.Streams{}, ": 0 random streams for 2 chains: there must be one for each: invalid configuration",
				infer.ErrConfig},
		} {
			_, err := transform.(infer.Seeded).InitStreams(e.p, e.streams)
			require.EqualError(t, err, prefix+e.text)
			require.ErrorIs(t, err, e.kind)
			if len(e.streams.Chains) == e.p.Chains() {
				_, err = transform.Init(e.p)
				require.EqualError(t, err, prefix+e.text)
			}
		}
	}
}

// Momenta that do not fit are an error that says so.
func TestMomentaThatDoNotFit(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	start := func(rows int) infer.Params { return params(q.layout, spread(max(rows, 1)*d), rows) }
	given := func(shape ...int) torch.Tensor {
		n := 1
		for _, s := range shape {
			n *= s
		}
		return torch.Of(vector(spread(n), shape...))
	}
	for _, e := range []struct {
		momenta torch.Tensor
		rows    int
		text    string
	}{
		{given(8), 0, "[8]: it must be of the params' shape, [9]"},
		{given(1), 0, "[1]: it must be of the params' shape, [9]"},
		{given(2, d), 0, "[2 9]: it must be of the params' shape, [9]"},
		{given(2, d), 3, "[2 9]: it must be of the params' shape, [3 9], or of shape [9] for all chains alike"},
		{given(3, 1), 3, "[3 1]: it must be of the params' shape, [3 9], or of shape [9] for all chains alike"},
		{given(1, 3, d), 3, "[1 3 9]: it must be of the params' shape, [3 9], or of shape [9] for all chains alike"},
	} {
		for what, with := range withMomenta {
			_, err := build(t, with(e.momenta), q.logPosterior).Init(start(e.rows))
			field(t, err, "Momenta", "sgmcmc."+what+": Momenta is of shape "+e.text)
		}
	}

	bad := spread(3 * d)
	bad[2*d+4] = math.Inf(-1)
	for what, with := range withMomenta {
		_, err := build(t, with(torch.Of(vector(bad, 3, d))), q.logPosterior).Init(start(3))
		require.EqualError(t, err, "sgmcmc."+what+": Momenta: w[0,1] of chain 2 is -Inf at the start: not finite")
		require.ErrorIs(t, err, infer.ErrNonFinite)
	}
}

func TestLogPosteriorsThatFail(t *testing.T) {
	q := newQuartic()
	for prefix, method := range methods() {
		prefix = "sgmcmc." + strings.FieldsFunc(prefix, func(r rune) bool { return r == ' ' || r == ',' })[0]
		_, err := method.Build(infer.Target{})
		require.EqualError(t, err, prefix+": the log posterior is nil: invalid configuration")
		require.ErrorIs(t, err, infer.ErrConfig)

		for _, rows := range []int{0, 3} {
			start := params(q.layout, spread(max(rows, 1)*q.layout.Dim()), rows)
			try := func(f infer.LogPosterior, b infer.Batch) error {
				transform := build(t, method, f)
				s := begin[infer.State](t, transform, start, 1)
				_, _, err := transform.Update(s, b)
				return err
			}
			require.ErrorContains(t, try(q.logPosterior, nil), prefix+
				`: log posterior: the model asked for batch tensor "c", which does not exist; there are: []`)

			err = try(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
				return p.Get("v"),
					nil
			}, nil)
			require.ErrorContains(t, err,
				prefix+`: log posterior: the model asked for site "v", which does not exist; there are: ["a" "b" "w"]`)
			var model *infer.ModelError
			require.ErrorAs(t, err, &model)

			err = try(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
				return p.Get("a"),
					nil
			}, nil)
			require.ErrorIs(t, err, torch.ErrNotScalar)
			require.ErrorContains(t, err,
				prefix+": log posterior: the function to differentiate returned shape [2], expected []")

			err = try(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
				return p.Get("a").Dot(p.Get("w")), nil
			}, nil)
			var failed *torch.Error
			require.ErrorAs(t, err, &failed)
			assert.ErrorContains(t, err, prefix+": log posterior: ")
		}
	}
}
