package sgmcmc_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// An estimated β does on average what the true one does: the injected variance is linear in it, and the estimate is
// unbiased and independent of the noise that follows. So the law is that of exact gradients.
func TestEstimatedBetaMakesUpForGradientNoise(t *testing.T) {
	seed := seeds()
	for _, temperature := range []float64{0.25, 4} {
		for _, e := range []experiment{
			{setting: setting{eps: 0.35}},
			{setting: setting{eps: 0.35, alpha: 1.5, sigma: 1.4}, momenta: true},
		} {
			e.precision, e.temperature = targets()[0], temperature
			exact := e.law().covariance()
			e.noise, e.chains, e.copies, e.draws, e.seed = 1.2*temperature, 2, 256, 300, seed()
			wide := e.law().covariance() // without β
			e.estimate = &sgmcmc.Estimate{Batches: 40, Every: 50}
			t.Run(e.String(), func(t *testing.T) {
				m := e.run(t)
				m.tells(t, exact, wide, "the one without beta")
				m.check(t, exact)
			})
		}
	}
}

// linear is the log posterior Σ c·mean over the batch of x: its gradient in site a is mean x, in site b 3 mean x in
// each of two elements, whatever the point.
func linear(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	mean := b.Get("x").T().MustMean(p.Flat.T().DType(), false)
	a := p.Get("a").T().MustSum(p.Flat.T().DType(), false)
	c := p.Get("b").T().MustSum(p.Flat.T().DType(), false).MustMulScalar(ts.FloatScalar(3), false)
	return torch.Of(a.MustAdd(c, false).MustMul(mean, false)), nil
}

var linearData = []float64{1, -2, 4, 0.5, -1.5, 3, 2.5, -4}

func linearRun(t testing.TB, rows int) (infer.Params, infer.Batches) {
	t.Helper()
	p := params(layout(infer.Shapes{"a": {1}, "b": {2}}), make([]float64, 3*max(rows, 1)), rows)
	b, err := infer.Minibatches(infer.Batch{"x": torch.Of(vector(linearData))}, infer.MinibatchOptions{Size: 1, Seed: 2})
	require.NoError(t, err)
	return p, b
}

// Over an epoch of batches of one, each datum is seen once: the estimate is the unbiased variance of the data.
func TestGradientVarianceOfAnEpoch(t *testing.T) {
	var mean, square, raw float64
	n := float64(len(linearData))
	for _, x := range linearData {
		mean += x / n
		raw += x * x / n
	}
	for _, x := range linearData {
		square += (x - mean) * (x - mean)
	}
	v := square / (n - 1)
	for _, rows := range []int{0, 3} {
		want := []float64{v, 9 * v, 9 * v}
		// Site b has gradients 3 times as large, and d = 2 elements: the ratio of the root mean squares is 3.
		mass := []float64{1, math.Sqrt(1e-7+9*raw) / math.Sqrt(1e-7+raw), math.Sqrt(1e-7+9*raw) / math.Sqrt(1e-7+raw)}
		for range max(rows, 1) - 1 {
			want, mass = append(want, want[:3]...), append(mass, mass[:3]...)
		}
		estimate := &sgmcmc.Estimate{Batches: len(linearData)}
		c := infer.Options{Warmup: 1, Draws: infer.None}
		lr, cold := infer.Constant(0.1), infer.Constant(0)
		check := func(m infer.Method, variance func(infer.State) torch.Tensor) {
			t.Helper()
			p, b := linearRun(t, rows)
			r, err := infertest.Run(context.Background(), build(t, m, linear), p, b, c)
			require.NoError(t, err)
			within(t, want, values(variance(r.State).T()), 1e-13, "variance")
		}
		check(sgmcmc.SGLD{LR: lr, EstimateBeta: estimate},
			func(s infer.State) torch.Tensor { return s.(sgmcmc.SGLDState).Variance })
		check(sgmcmc.SGHMC{LR: lr, EstimateBeta: estimate},
			func(s infer.State) torch.Tensor { return s.(sgmcmc.SGHMCState).Variance })
		check(sgmcmc.SymplecticSGHMC{LR: lr, EstimateBeta: estimate, EstimateMass: estimate, Temperature: cold},
			func(s infer.State) torch.Tensor {
				within(t, mass, values(s.(sgmcmc.SymplecticSGHMCState).Mass.T()), 1e-12, "mass")
				return s.(sgmcmc.SymplecticSGHMCState).Variance
			})
	}
}

// Injected noise is √max(ε(2aT − εV), 0) z, hand-written from the stream that a method without β reads. Elements whose
// gradient has more noise than is wanted get no injected noise.
func TestEstimatedNoiseGolden(t *testing.T) {
	p, b := linearRun(t, 0)
	const eps, temperature = 0.2, 0.9
	estimate := &sgmcmc.Estimate{Batches: 8}
	with := build(t, sgmcmc.SGLD{LR: infer.Constant(eps), Temperature: infer.Constant(temperature),
		EstimateBeta: estimate}, linear)
	s := begin[sgmcmc.SGLDState](t, with, p, 7)
	_, _, err := with.Update(s, must(b.Next()))
	require.EqualError(t, err, "sgmcmc.SGLD: EstimateBeta is given and nothing was estimated yet: call Prepare "+
		"before Update, as infer.Run does: invalid configuration")
	prepared, err := with.(infer.Preparer).Prepare(s, true, b.Next)
	require.NoError(t, err)
	s = prepared.(sgmcmc.SGLDState)
	batch := must(b.Next())
	next, info := update(t, with, s, batch)

	streams := torch.NewStreams(7, 1)
	z := values(must(streams.Normal([]int{3}, gotch.Double, torch.CPU)).T())
	x := values(batch.Get("x").T())[0]
	v := values(s.Variance.T())
	want := make([]float64, 3)
	clipped := 0.0
	for i := range want {
		g := x
		if i > 0 {
			g = 3 * x
		}
		variance := eps * (2*temperature - eps*v[i])
		if variance < 0 {
			clipped++
		}
		want[i] = eps*g + math.Sqrt(max(variance, 0))*z[i]
	}
	within(t, want, values(next.Params.Flat.T()), 1e-14, "θ")
	assert.Equal(t, 2.0, clipped, "the case has clipped elements and others")
	assert.InDeltaSlice(t, []float64{2.0 / 3}, info.Stats["clipped"], 1e-15)

	// Twice from one state is the same twice, and the state stays.
	again, _ := update(t, with, s, batch)
	identical(t, values(next.Params.Flat.T()), values(again.Params.Flat.T()), "θ")
	// At temperature 0 there is no noise to make up for, but the statistic.
	cold := build(t, sgmcmc.SGLD{LR: infer.Constant(eps), Temperature: infer.Constant(0), EstimateBeta: estimate},
		linear)
	_, info = update(t, cold, s, batch)
	assert.Equal(t, []float64{0}, info.Stats["clipped"])
}

// Masses change momenta by √(M'/M), so that the kinetic temperature of every site stays.
func TestMomentaAreTransported(t *testing.T) {
	for _, momentum := range []infer.Schedule{nil, infer.Constant(0.8)} {
		p, b := linearRun(t, 2)
		m := sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.1), Momentum: momentum,
			EstimateMass: &sgmcmc.Estimate{Batches: 3}}
		transform := build(t, m, linear)
		s := begin[sgmcmc.SymplecticSGHMCState](t, transform, p, 3)
		thermal := transform.(infer.Thermal)
		before, err := thermal.KineticTemperatures(s)
		require.NoError(t, err)
		state, err := transform.(infer.Preparer).Prepare(s, true, b.Next)
		require.NoError(t, err)
		first := state.(sgmcmc.SymplecticSGHMCState)
		assert.Equal(t, torch.Tensor{}, s.Mass, "the old state stays")
		after, err := thermal.KineticTemperatures(first)
		require.NoError(t, err)
		for k := range before {
			within(t, before[k], after[k], 1e-14, "kinetic temperatures")
		}
		assert.NotEqual(t, values(s.Momenta.T()), values(first.Momenta.T()))
		// Once more, now from masses that are not 1.
		state, err = transform.(infer.Preparer).Prepare(first, true, b.Next)
		require.NoError(t, err)
		second := state.(sgmcmc.SymplecticSGHMCState)
		mass, m0, m2 := values(second.Mass.T()), values(s.Momenta.T()), values(second.Momenta.T())
		for i := range m0 {
			m0[i] *= math.Sqrt(mass[i])
		}
		within(t, m0, m2, 1e-14, "momenta")
	}
}

// A run with estimates that is killed goes on with them, bit for bit.
func TestEstimatesAreInCheckpoints(t *testing.T) {
	dir := t.TempDir()
	m := sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.01), EstimateMass: &sgmcmc.Estimate{Batches: 5},
		EstimateBeta: &sgmcmc.Estimate{Batches: 5, Every: 7}}
	dtype := gotch.Double
	whole := func(c *infer.Checkpoint, steps int) *infer.Result {
		p, b := linearRun(t, 2)
		p, err := p.To(torch.CPU, dtype)
		require.NoError(t, err)
		r, err := infertest.Run(context.Background(), build(t, m, linear), p, b,
			infer.Options{Warmup: infer.None, Draws: steps, Seed: 5, Checkpoint: c})
		require.NoError(t, err)
		return r
	}
	for _, dtype = range []gotch.DType{gotch.Double, gotch.Float} {
		want := whole(nil, 30)
		// within an epoch of 8 and at its end, between estimates of β and at one
		for _, stop := range []int{3, 8, 14, 17} {
			dir := dir + name("/%v %d", dtype, stop)
			whole(&infer.Checkpoint{Dir: dir}, stop)
			got := whole(&infer.Checkpoint{Dir: dir, Resume: true}, 30)
			for k := range 2 {
				for i := range 30 {
					identical(t, want.Draws.Row(k, i), got.Draws.Row(k, i), "draws")
				}
			}
			identical(t, values(want.State.Save().Shared["mass"].T()), values(got.State.Save().Shared["mass"].T()), "mass")
		}
	}
}

// Each estimate keeps its own time: in 24 updates, three passes over 8 batches, masses are estimated 3 times and β
// before updates 0, 3, 6, ..., 21, and neither fires the other.
func TestEstimatesKeepTheirTimes(t *testing.T) {
	p, b := linearRun(t, 0)
	evaluations := 0
	counted := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		evaluations++
		return linear(p, b)
	}
	m := sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.01), EstimateMass: &sgmcmc.Estimate{Batches: 5},
		EstimateBeta: &sgmcmc.Estimate{Batches: 2, Every: 3}}
	_, err := infertest.Run(context.Background(), build(t, m, counted), p, b, infer.Options{Warmup: 24, Draws: infer.None})
	require.NoError(t, err)
	assert.Equal(t, 24+3*5+8*2, evaluations)
}

// The time of an update is h whatever the parametrisation, so that time averages agree: ℓ = h² and μ = 1 − hγ.
func TestTimeStepsOfBothParametrisations(t *testing.T) {
	p, b := linearRun(t, 0)
	cycle := infer.Cosine(1, 4)
	for _, m := range []sgmcmc.SymplecticSGHMC{
		{LR: infer.Constant(0.2), Gamma: infer.Constant(0.5), Cycle: cycle},
		{LR: infer.Constant(0.04), Momentum: infer.Constant(0.9), Cycle: cycle},
	} {
		transform := build(t, m, linear)
		s := begin[infer.State](t, transform, p, 1)
		for i := range 5 {
			next, info := update(t, transform, s, must(b.Next()))
			assert.InDelta(t, 0.2*cycle(i), info.TimeStep, 1e-15)
			s = next
		}
	}
}

// Old states can be freed: what states share stays.
func TestFreedStatesLeaveEstimates(t *testing.T) {
	p, b := linearRun(t, 0)
	transform := build(t, sgmcmc.SGLD{LR: infer.Constant(0.01), EstimateBeta: &sgmcmc.Estimate{Batches: 2}}, linear)
	state, err := transform.(infer.Preparer).Prepare(begin[sgmcmc.SGLDState](t, transform, p, 1), true, b.Next)
	require.NoError(t, err)
	next, _, err := transform.Update(state, must(b.Next()))
	require.NoError(t, err)
	infer.Free(state)
	_, _, err = transform.Update(next, must(b.Next()))
	require.NoError(t, err)
}

// A chain whose gradients are not finite keeps what it had; the other gets its own.
func TestEstimatesOfABrokenChain(t *testing.T) {
	broken := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		value, aux := linear(p, b)
		return value.Add(p.Get("a").Log().T().MustSum(p.Flat.T().DType(), false)), aux
	}
	_, b := linearRun(t, 0)
	p := params(layout(infer.Shapes{"a": {1}, "b": {2}}), []float64{-1, 0, 0, 1, 0, 0}, 2)
	m := sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.01), EstimateMass: &sgmcmc.Estimate{},
		EstimateBeta: &sgmcmc.Estimate{}}
	transform := build(t, m, broken)
	state, err := transform.(infer.Preparer).Prepare(begin[sgmcmc.SymplecticSGHMCState](t, transform, p, 1), true,
		b.Next)
	require.NoError(t, err)
	s := state.(sgmcmc.SymplecticSGHMCState)
	assert.Equal(t, []float64{1, 1, 1}, values(s.Mass.T())[:3])
	assert.Equal(t, []float64{0, 0, 0}, values(s.Variance.T())[:3])
	for i, v := range values(s.Mass.T())[3:] {
		assert.GreaterOrEqual(t, v, 1.0)
		assert.Positive(t, values(s.Variance.T())[3+i])
	}
}

func TestEstimateErrors(t *testing.T) {
	lr := infer.Constant(0.1)
	refused(t, []mistake{
		{sgmcmc.SGLD{LR: lr, Beta: 1, EstimateBeta: &sgmcmc.Estimate{}}, "Beta",
			"sgmcmc.SGLD: Beta is 1: it must be 0 when EstimateBeta is given, which finds it"},
		{sgmcmc.SGHMC{LR: lr, EstimateBeta: &sgmcmc.Estimate{Batches: 1}}, "EstimateBeta.Batches",
			"sgmcmc.SGHMC: EstimateBeta.Batches is 1: it must be at least 2"},
		{sgmcmc.SGHMC{LR: lr, EstimateBeta: &sgmcmc.Estimate{Every: -1}}, "EstimateBeta.Every",
			"sgmcmc.SGHMC: EstimateBeta.Every is -1: it must be at least 0"},
		{sgmcmc.SymplecticSGHMC{LR: lr, EstimateMass: &sgmcmc.Estimate{Batches: -1}}, "EstimateMass.Batches",
			"sgmcmc.SymplecticSGHMC: EstimateMass.Batches is -1: it must be at least 1"},
		{sgmcmc.SymplecticSGHMC{LR: lr, Mass: map[string]float64{"a": 2}, EstimateMass: &sgmcmc.Estimate{}}, "Mass",
			"sgmcmc.SymplecticSGHMC: Mass is map[a:2]: it must be nil when EstimateMass is given, which finds it"},
	}...)
	p, _ := linearRun(t, 0)
	transform := build(t, sgmcmc.SGLD{LR: lr, EstimateBeta: &sgmcmc.Estimate{}}, linear)
	stuck := errors.New("no more data")
	_, err := transform.(infer.Preparer).Prepare(begin[sgmcmc.SGLDState](t, transform, p, 1), true, func() (infer.Batch,
		error) {
		return nil, stuck
	})
	require.EqualError(t, err, "sgmcmc.SGLD: estimating β: minibatch 1 of 32: no more data")
	require.ErrorIs(t, err, stuck)
}
