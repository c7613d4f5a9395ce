package ode_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// solution is that of a system without gradients.
func solution(t *testing.T, s *ode.System, y0 any, start float64, times []float64, params ...any) (y []float64) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		y = ode.Solve(s, y0, start, times, params...).Values()
		return nil
	}))
	return y
}

// square is dy/dt = y², which from y0 > 0 on is infinite at 1/y0.
func square(_, y torch.Tensor, _ []torch.Tensor) torch.Tensor { return y.Square() }

func TestBlowUp(t *testing.T) {
	for name, method := range methods {
		s := ode.New(square, ode.Options{Method: method})
		y := solution(t, s, []float64{1}, 0, []float64{0.5, 0.9})
		require.InDelta(t, 2, y[0], 1e-4, name) // 1/(1 − t)
		require.InDelta(t, 10, y[1], 1e-3, name)
		y = solution(t, s, []float64{1}, 0, []float64{0.5, 2})
		require.True(t, math.IsNaN(y[0]) && math.IsNaN(y[1]), name)
		r := s.Report()
		require.Equal(t, []int{2, 1, 0}, []int{r.Solutions, r.BlowUps, r.Limit}, name)
		require.Contains(t, r.String(), "1 blew up")
	}
}

// A point where the solution blows up is a divergence there: the density is no number in every tier, and other chains
// keep theirs.
func TestDivergence(t *testing.T) {
	s := ode.New(square, ode.Options{})
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		y0 := c.Sample("y0", dist.Normal(0, 1))
		y := ode.Solve(s, torch.Stack(0, y0), 0, []float64{1})
		c.Observe("y", dist.Normal(y.At(0).At(0), 1), 0.3)
	}, nil)
	require.NoError(t, err)
	points, err := infer.NewParams(program.Layout(), []float64{0.2, 1.5})
	require.NoError(t, err)
	fine, err := infer.NewParams(program.Layout(), []float64{0.2})
	require.NoError(t, err)
	f, _, err := infer.Compile(program.Target(), fine, nil, native.Options{Tier: native.VM})
	require.NoError(t, err)
	gradient, err := infer.NewGradient(program.Target())
	require.NoError(t, err)
	before := s.Report().BlowUps
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		e, err := gradient.ValueAndGrad(points, nil, 1)
		require.NoError(t, err)
		require.Equal(t, []bool{false, true}, e.Diverged())
		for k, x := range []float64{0.2, 1.5} {
			g := make([]float64, 1)
			v, err := f.Eval([]float64{x}, 1, g)
			require.NoError(t, err)
			require.Equal(t, k == 1, math.IsNaN(v))
		}
		return nil
	}))
	require.Equal(t, before+2, s.Report().BlowUps)
}

// dy/dt = −10⁴ (y − cos t) follows cos t. An explicit method is bound by stability to steps of some 3·10⁻⁴, whatever
// the tolerance: more than a thousand over one unit of time. An implicit one is not.
func TestStiff(t *testing.T) {
	f := func(at, y torch.Tensor, _ []torch.Tensor) torch.Tensor { return y.Sub(at.Cos()).Mul(-1e4) }
	explicit := ode.New(f, ode.Options{MaxSteps: 1000})
	require.True(t, math.IsNaN(solution(t, explicit, []float64{0}, 0, []float64{1})[0]))
	r := explicit.Report()
	require.Equal(t, []int{1, 1}, []int{r.Limit, r.Stiff})
	require.Contains(t, r.String(), "use ode.Options{Method: ode.SDIRK}")

	implicit := ode.New(f, ode.Options{Method: ode.SDIRK, MaxSteps: 1000})
	// The solution is cos t + 10⁻⁴ sin t but for terms of 10⁻⁸ once the start is forgotten.
	require.InDelta(t, math.Cos(1)+1e-4*math.Sin(1), solution(t, implicit, []float64{0}, 0, []float64{1})[0], 1e-6)
	require.Less(t, implicit.Report().Steps, 200)

	short := ode.New(logistic, ode.Options{MaxSteps: 3})
	require.True(t, math.IsNaN(solution(t, short, []float64{0.1}, 0, []float64{50}, 1, 5)[0]))
	require.Contains(t, short.Report().String(), "raise Options.MaxSteps")
}

// Robertson's problem of chemical kinetics (1966), as the demonstration of LSODE has it: its report (Radhakrishnan and
// Hindmarsh 1993, NASA Reference Publication 1327) prints these numbers at a tolerance of 1e-4.
func TestRobertson(t *testing.T) {
	s := ode.New(func(_, y torch.Tensor, p []torch.Tensor) torch.Tensor {
		a, b, c := p[0].Mul(y.At(0)), p[1].Mul(y.At(1)).Mul(y.At(2)), p[2].Mul(y.At(1).Square())
		return torch.Stack(0, b.Sub(a), a.Sub(b).Sub(c), c)
	}, ode.Options{Method: ode.SDIRK, ATol: 1e-10})
	y := solution(t, s, []float64{1, 0, 0}, 0, []float64{0.4, 4, 40}, 0.04, 1e4, 3e7)
	want := []float64{9.851726e-01, 3.386406e-05, 1.479357e-02, 9.055142e-01, 2.240418e-05, 9.446344e-02, 7.158050e-01,
		9.184616e-06, 2.841858e-01}
	for i, v := range want {
		require.InEpsilon(t, v, y[i], 5e-4)
	}
}

// Chains of very different systems solved together have the bits that each has alone.
func TestChainsAlone(t *testing.T) {
	rates := []float64{0.1, 40, 3, 0.7}
	for name, method := range methods {
		s := ode.New(logistic, ode.Options{Method: method})
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			together := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
				return []torch.Tensor{ode.Solve(s, []float64{0.3}, 0, []float64{0.5, 2}, in[0], 5)}, nil
			}, []torch.Tensor{torch.New(rates)}, nil))[0]
			all := together.Values()
			for k, r := range rates {
				require.Equal(t, ode.Solve(s, []float64{0.3}, 0, []float64{0.5, 2}, r, 5).Values(), all[2*k:2*k+2], name)
			}
			return nil
		}))
	}
}

func TestMistakes(t *testing.T) {
	fine := ode.New(logistic, ode.Options{})
	for _, c := range []struct {
		want   string
		system *ode.System
		y0     any
		start  any
		times  any
		params []any
	}{
		{"time 1 is 1 and comes after 2: times must not decrease", fine, []float64{1}, 0, []float64{2, 1}, []any{1, 5}},
		{"the first time, 1, is before the start, 3", fine, []float64{1}, 3, []float64{1, 4}, []any{1, 5}},
		{"time 0 is NaN: times must be finite", fine, []float64{1}, 0, []float64{math.NaN()}, []any{1, 5}},
		{"times have shape [0]", fine, []float64{1}, 0, []float64{}, []any{1, 5}},
		{"times have shape []", fine, []float64{1}, 0, 3, []any{1, 5}},
		{"the initial state has shape []", fine, 1, 0, []float64{1}, []any{1, 5}},
		{"the start has shape [1]", fine, []float64{1}, torch.Zeros(1), []float64{1}, []any{1, 5}},
		{"the right-hand side returned shape [1 1] for a state of shape [1]", ode.New(func(_, y torch.Tensor,
			_ []torch.Tensor) torch.Tensor {
			return y.Unsqueeze(0)
		}, ode.Options{}), []float64{1}, 0, []float64{1}, nil},
		{"Options.RTol is -1: it must be finite and greater than 0", ode.New(square, ode.Options{RTol: -1}), []float64{1}, 0,
			[]float64{1}, nil},
		{"Options.MaxSteps is -2", ode.New(square, ode.Options{MaxSteps: -2}), []float64{1}, 0, []float64{1}, nil},
		{"Options.Method is 7", ode.New(square, ode.Options{Method: 7}), []float64{1}, 0, []float64{1}, nil},
		{"the right-hand side is nil", ode.New(nil, ode.Options{}), []float64{1}, 0, []float64{1}, nil},
		{"the system is nil", nil, []float64{1}, 0, []float64{1}, nil},
		{"the right-hand side cannot be compiled: kelvin::read: it reads a value", ode.New(func(_, y torch.Tensor,
			_ []torch.Tensor) torch.Tensor {
			if y.At(0).Item() > 0 {
				return y
			}
			return y.Neg()
		}, ode.Options{}), []float64{1}, 0, []float64{1}, nil},
	} {
		err := torch.Do(func(*torch.Scope) error {
			ode.Solve(c.system, c.y0, c.start, c.times, c.params...)
			return nil
		})
		require.ErrorContains(t, err, c.want)
		var own *ode.Error
		require.ErrorAs(t, err, &own)
		require.ErrorContains(t, err, "failure_test.go", "the line of the caller")
	}
}

// Second derivatives are not known. A method that takes them is refused, and told what to use.
func TestSecondDerivatives(t *testing.T) {
	program, err := ppl.Compile(growth(ode.New(logistic, ode.Options{})), growthBatch())
	require.NoError(t, err)
	point, err := infer.NewParams(program.Layout(), []float64{0.1, 0.2, 0.3})
	require.NoError(t, err)
	_, err = curvature.Hessian(program.Target().LogPosterior, point, growthBatch(), curvature.Options{})
	require.ErrorContains(t, err, "only values and first derivatives are known")
}

// A tier that the environment asks for is one of models: a right-hand side is compiled all the same.
func TestEnvironment(t *testing.T) {
	for _, tier := range []string{"eager", "replay", "vm"} {
		t.Setenv("KELVIN_NATIVE", tier)
		y := solution(t, ode.New(logistic, ode.Options{}), []float64{0.4}, 0, []float64{1}, 1.3, 5)
		want, _ := logisticAt(1, 0, 0.4, 1.3, 5)
		require.InDelta(t, want, y[0], 1e-4, tier)
	}
}
