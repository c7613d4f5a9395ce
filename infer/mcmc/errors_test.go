package mcmc_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/mcmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// run samples a plain density of two numbers.
func run(f func(x []float64) float64, m infer.Method, o infer.Options) (*infer.Result, error) {
	o.Observer = infer.Silent
	return infer.Run(context.Background(), infer.Plain(f, []string{"a", "b"}, []float64{1, 2}), m, o)
}

func normal(x []float64) float64 { return -(x[0]*x[0] + x[1]*x[1]) / 2 }

// A density that has no finite value names where it was looked for.
func TestNoDensity(t *testing.T) {
	for _, v := range []float64{math.Inf(-1), math.NaN(), math.Inf(1)} {
		_, err := run(func([]float64) float64 { return v }, mcmc.Slice{}, infer.Options{})
		require.ErrorIs(t, err, infer.ErrNonFinite)
		require.ErrorContains(t, err, "chain 0: the log density is not finite at 100 points around the start")
	}
	start := infertest.Params(infertest.Layout(infer.Shapes{"a": {}, "b": {}}), []float64{0, 0, 5, 0}, 2)
	_, err := run(func(x []float64) float64 {
		if x[0] > 4 {
			return math.NaN()
		}
		return normal(x)
	}, mcmc.RandomWalk{}, infer.Options{Start: start})
	require.ErrorIs(t, err, infer.ErrNonFinite)
	require.ErrorContains(t, err, "the log density of chain 1 or its gradient is not finite at the start, [5 0]")
}

// NaN on the way is outside of the support, and the run says how often and where it was.
func TestUndefinedOnTheWay(t *testing.T) {
	for _, m := range []infer.Method{mcmc.Slice{}, mcmc.RandomWalk{}} {
		r, err := run(func(x []float64) float64 { return math.Log(x[0]) - x[0] - x[1]*x[1]/2 }, m, infer.Options{})
		require.NoError(t, err)
		require.Len(t, r.Draws.Notes(), 1)
		assert.Equal(t, "undefined_density", r.Draws.Notes()[0].Kind)
		assert.Contains(t, r.Draws.Notes()[0].Text, "values of the log density were NaN or +Inf, the first at [-")
		for _, row := range r.Draws.Rows() {
			require.Positive(t, row[0])
		}
	}
}

// A panic is an error with its value, and the draws so far are there.
func TestPanics(t *testing.T) {
	boom := errors.New("boom")
	for what, m := range samplers(law{mean: []float64{0, 0}, cov: []float64{1, 0, 0, 1}}, nil) {
		if what == "Barker" {
			continue
		}
		r, err := run(func(x []float64) float64 {
			if x[0] > 3.2 {
				panic(boom)
			}
			return normal(x)
		}, m, infer.Options{Chains: 8, Warmup: infer.None, Draws: 1000, Thin: 20})
		require.ErrorIs(t, err, boom, what)
		var panicked *infer.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.Equal(t, "log density", panicked.In)
		assert.Contains(t, panicked.Stack, "errors_test.go")
		if r != nil && r.Draws != nil {
			assert.Less(t, r.Draws.Total(), 8000)
		}
	}
}

// Methods that need a gradient refuse plain Go, and name those that do not.
func TestMethodsThatNeedGradients(t *testing.T) {
	lr := infer.Constant(0.1)
	for _, m := range []infer.Method{hmc.NUTS{}, hmc.HMC{}, hmc.MAMS{}, hmc.Exchange{Ladder: []float64{1, 2}}, vi.Diag{},
		vi.Dense{}, laplace.DenseHessian{}, optim.Adam{LR: lr}, optim.LBFGS{}, sgmcmc.SGLD{LR: lr}, mcmc.Barker{},
		pathfinder.Pathfinder{}} {
		_, err := run(normal, m, infer.Options{})
		require.ErrorIs(t, err, infer.ErrConfig, "%T", m)
		require.ErrorContains(t, err, "use mcmc.Slice, RandomWalk, Stretch", "%T", m)
	}
	_, err := run(normal, ekf.Dense{}, infer.Options{})
	require.Error(t, err)
	_, err = run(normal, mcmc.Elliptical{}, infer.Options{})
	require.ErrorContains(t, err, "mcmc.Elliptical: Mean is nil: give Mean and Covariance")
}

// What does not fit is named.
func TestFields(t *testing.T) {
	one := []float64{1}
	for text, m := range map[string]infer.Method{
		"mcmc.Slice: Width is -1":                        mcmc.Slice{Width: -1},
		"mcmc.Slice: MaxSteps is -2":                     mcmc.Slice{MaxSteps: -2},
		"mcmc.Slice: Temperature is 0: ":                 mcmc.Slice{Temperature: infer.Constant(0)},
		"mcmc.Stretch: A is 0.5: it must be above 1":     mcmc.Stretch{A: 0.5},
		"mcmc.RandomWalk: TargetAccept is 1.5":           mcmc.RandomWalk{TargetAccept: 1.5},
		"mcmc.DifferentialEvolution: Jitter is NaN":      mcmc.DifferentialEvolution{Jitter: math.NaN()},
		"mcmc.Elliptical: Covariance is 1: it must have": mcmc.Elliptical{Mean: []float64{1, 2}, Covariance: []float64{1}},
		"Covariance is given: it must be positive definite": mcmc.Elliptical{Mean: []float64{1, 2},
			Covariance: []float64{1, 2, 2, 1}},
		"Mean is of 1 numbers: it must have d = 2":                         mcmc.Elliptical{Mean: one, Covariance: one},
		"Chains is 4: mcmc.Stretch needs at least 2d + 2 = 6 for d = 2":    mcmc.Stretch{},
		"Chains is 4: mcmc.DifferentialEvolution needs at least 6, better": mcmc.DifferentialEvolution{},
	} {
		_, err := run(normal, m, infer.Options{})
		require.ErrorIs(t, err, infer.ErrConfig, text)
		require.ErrorContains(t, err, text)
	}
	flat := infertest.Params(infertest.Layout(infer.Shapes{"a": {}, "b": {}}), []float64{1, 1, 2, 2, 3, 3, 4, 4,
		5, 5, 6, 6}, 6)
	_, err := run(normal, mcmc.Stretch{}, infer.Options{Chains: 6, Start: flat})
	require.ErrorContains(t, err, "the chains start in a plane of fewer than d = 2 dimensions")
	for text, p := range map[string]infer.Program{
		"the log density is nil":               infer.Plain(nil, []string{"a"}, []float64{1}),
		"2 names and 1 numbers to start at":    infer.Plain(normal, []string{"a", "b"}, []float64{1}),
		`the name "a" of number 1 is empty or`: infer.Plain(normal, []string{"a", "a"}, []float64{1, 2}),
	} {
		_, err := infer.Sample(context.Background(), p, mcmc.Slice{}, infer.Options{Observer: infer.Silent})
		require.ErrorIs(t, err, infer.ErrConfig)
		require.ErrorContains(t, err, text)
	}
}
