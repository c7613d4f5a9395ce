package sgmcmc_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/diag"
	diagthermo "github.com/kelvin-ppl/kelvin/diag/thermo"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// diagonal is the normal target with sites of 1, 10 and 40 elements and precisions 0.5, 1 and 2.
func diagonal(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	var out torch.Tensor
	for site, precision := range map[string]float64{"a": 0.5, "b": 1, "c": 2} {
		x := p.Get(site).T().MustFlatten(0, -1, false)
		term := x.MustDot(x, false).MustMulScalar(ts.FloatScalar(-precision/2), false)
		if out == (torch.Tensor{}) {
			out = torch.Of(term)
		} else {
			out = out.Add(term)
		}
	}
	return out, nil
}

// measured runs 32 chains at temperature T and reads temperatures every 12 updates, when friction has left less than
// e⁻¹² of the momenta at one reading to those at the next.
func measured(t testing.TB, m infer.Method, temperature float64, seed uint64) (diagthermo.Simulation, []infer.Reading) {
	t.Helper()
	const chains, settle, every, readings = 32, 120, 12, 60
	l := layout(infer.Shapes{"a": {1}, "b": {2, 5}, "c": {40}})
	gradient, err := infer.NewGradient(infer.Sum(diagonal, 1))
	require.NoError(t, err)
	thermometer := &infer.Thermometer{
		When:     func(updates int) bool { return updates > settle && updates%every == 0 },
		Gradient: gradient,
		Next:     func() (infer.Batch, error) { return nil, nil },
	}
	_, err = infertest.Run(context.Background(), build(t, m, diagonal), params(l, make([]float64, chains*l.Dim()), chains),
		infer.Full(nil),
		infer.Options{Warmup: int(settle + every*readings), Draws: infer.None, Seed: seed, Observer: thermometer})
	require.NoError(t, err)
	require.NoError(t, thermometer.Err)
	require.Len(t, thermometer.Readings, readings)

	s := diagthermo.Simulation{Kinetic: &diagthermo.Kinetic{}}
	for i, site := range l.Sites {
		configurational := diagthermo.SiteReadings{Site: site.Name, Target: temperature, Readings: make([][]float64,
			chains)}
		for _, r := range thermometer.Readings {
			assert.Equal(t, temperature, r.Temperature)
			for k := range chains {
				_, err := s.Kinetic.AddValue(site.Name, k, site.Size, r.Kinetic[k][i], temperature)
				require.NoError(t, err)
				configurational.Readings[k] = append(configurational.Readings[k], r.Configurational[k][i])
			}
		}
		s.Configurational = append(s.Configurational, configurational)
	}
	return s, thermometer.Readings
}

// BAOA has momenta of exactly N(0, Tσ²) and parameters of exactly N(0, T/λ) on a normal target at any stable
// step: kinetic temperatures are χ², inside their intervals with probability 0.99, and configurational
// temperatures T on average.
func TestTemperaturesOfAnExactSampler(t *testing.T) {
	for i, temperature := range []float64{0.25, 1, 4} {
		t.Run(name("T %g", temperature), func(t *testing.T) {
			m := sgmcmc.BAOA{LR: infer.Constant(0.8), Alpha: infer.Constant(2 * 1.3 * 1.3), Sigma: 1.3,
				Temperature: infer.Constant(temperature)}
			s, _ := measured(t, m, temperature, uint64(11+i))
			r, err := s.Kinetic.Result()
			require.NoError(t, err)
			n := float64(r.Readings) // 32·60·3
			assert.InDelta(t, 0.99, r.Fraction, 4*math.Sqrt(0.99*0.01/n), r)
			assert.True(t, r.Exact(1e-4), r)
			assert.Less(t, math.Abs(r.LagZ), 4.0, "successive readings are independent")
			report, err := diagthermo.Diagnose(s, diagthermo.Options{})
			require.NoError(t, err)
			assert.Empty(t, report.Findings)
			for _, c := range report.Configurational {
				assert.Less(t, math.Abs(c.Z), 4.0, "configurational %s: %s", c.Site, c)
			}
		})
	}
}

// A step that is too large, and half the noise that there should be, are flagged as serious.
func TestBrokenSamplersAreFlagged(t *testing.T) {
	const temperature = 0.5
	T := infer.Constant(temperature)
	for _, c := range []struct {
		name   string
		method infer.Method
		hot    bool
	}{
		// λ = 2: ελ = 0.7 of the friction 1, where explicit Euler has about 1/(1 − 0.7) times the variance.
		{"step too large", sgmcmc.SGHMC{LR: infer.Constant(0.35), Temperature: T}, true},
		// β = α/(Tε) makes the injected variance Tε(2α − α), for gradients that have no noise.
		{"noise halved", sgmcmc.SGHMC{LR: infer.Constant(0.05), Alpha: infer.Constant(4),
			Beta: 4 / (temperature * 0.05), Temperature: T}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := measured(t, c.method, temperature, 5)
			report, err := diagthermo.Diagnose(s, diagthermo.Options{})
			require.NoError(t, err)
			require.NotEmpty(t, report.Findings)
			assert.Equal(t, diag.Serious, report.Findings[0].Severity)
			assert.Equal(t, c.hot, report.Kinetic.Ratio > 1, report.Kinetic)
			assert.False(t, report.Kinetic.Exact(1e-4))
		})
	}
}

// The kinetic temperature of each method, from the momenta in its state and the mass that it moves with.
func TestKineticTemperatures(t *testing.T) {
	l := layout(infer.Shapes{"a": {1}, "b": {2, 5}, "c": {40}})
	p := params(l, scaled(0.3, spread(2*51)), 2)
	lr := infer.Constant(0.1)
	xi := 0.5
	for _, c := range []struct {
		name   string
		method infer.Method
		mass   func(site int, m float64) float64 // m²/M of one momentum
	}{
		{"SGHMC", sgmcmc.SGHMC{LR: lr, Sigma: 2}, func(_ int, m float64) float64 { return m * m / 4 }},
		{"BAOA", sgmcmc.BAOA{LR: lr, Sigma: 2}, func(_ int, m float64) float64 { return m * m / 4 }},
		{"SGNHT", sgmcmc.SGNHT{LR: lr, Sigma: 2, Xi: &xi}, func(_ int, m float64) float64 { return m * m / 4 }},
		{"symplectic", sgmcmc.SymplecticSGHMC{LR: lr, Mass: map[string]float64{"b": 3}}, func(site int,
			m float64) float64 {
			if site == 1 {
				return m * m / 3
			}
			return m * m
		}},
		{"momentum", sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.01), Momentum: infer.Constant(0.9)}, func(_ int,
			m float64) float64 {
			return 0.01 * m * m
		}},
		{"ATMC", sgmcmc.ATMC{LR: lr, Mass: 2}, func(_ int, m float64) float64 { return m * m / 2 }},
		{"relativistic", sgmcmc.ATMC{LR: lr, Mass: 2, Speed: 0.7}, func(_ int,
			m float64) float64 {
			return m * m / (2 * math.Sqrt(1+m*m/(4*0.49)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			transform := build(t, c.method, diagonal)
			s, _ := update(t, transform, begin[infer.State](t, transform, p, 4), nil)
			got, err := transform.(infer.Thermal).KineticTemperatures(s)
			require.NoError(t, err)
			m := values(s.Save().Tensors["momenta"].T())
			for k := range 2 {
				want := make([]float64, 3)
				for i, site := range l.Sites {
					for e := site.Offset; e < site.Offset+site.Size; e++ {
						want[i] += c.mass(i, m[k*51+e]) / float64(site.Size)
					}
				}
				within(t, want, got[k], 1e-13, "kinetic temperatures")
			}
			_, err = transform.(infer.Thermal).KineticTemperatures(sgmcmc.PSGLDState{})
			require.ErrorContains(t, err, "it was made by another method")
		})
	}
}

// A thermometer without a gradient, or on a method without momenta, reads what there is; errors end it and not the run.
func TestThermometer(t *testing.T) {
	p := params(layout(infer.Shapes{"a": {1}, "b": {2, 5}, "c": {40}}), scaled(0.3, spread(51)), 0)
	runs := func(m infer.Method, th *infer.Thermometer) {
		_, err := infertest.Run(context.Background(), build(t, m, diagonal), p, infer.Full(nil),
			infer.Options{Warmup: 6, Draws: infer.None, Observer: th})
		require.NoError(t, err)
	}
	seen := 0
	th := &infer.Thermometer{When: infer.Cycles{Length: 3}.Ends,
		Then: infer.ObserverFunc(func(infer.Progress) { seen++ })}
	runs(sgmcmc.SGHMC{LR: infer.Constant(0.1)}, th)
	require.Len(t, th.Readings, 2)
	assert.Equal(t, 6, seen)
	assert.EqualValues(t, 3, th.Readings[0].Updates)
	assert.Len(t, th.Readings[0].Kinetic, 1)
	assert.Len(t, th.Readings[0].Kinetic[0], 3)
	assert.Nil(t, th.Readings[0].Configurational)

	gradient, err := infer.NewGradient(infer.Sum(diagonal, 1))
	require.NoError(t, err)
	th = &infer.Thermometer{Gradient: gradient, Next: func() (infer.Batch, error) { return nil, nil }, Batches: 3}
	runs(sgmcmc.SGLD{LR: infer.Constant(1e-9), Temperature: infer.Constant(0)}, th)
	require.Len(t, th.Readings, 6)
	assert.Nil(t, th.Readings[0].Kinetic)
	x := scaled(0.3, spread(51))
	assert.InDelta(t, 0.5*x[0]*x[0], th.Readings[0].Configurational[0][0], 1e-8, "θ·Λθ/d")

	th = &infer.Thermometer{Gradient: gradient, Next: func() (infer.Batch, error) { return nil, context.Canceled }}
	runs(sgmcmc.SGLD{LR: infer.Constant(1e-9)}, th)
	require.EqualError(t, th.Err, "thermometer: infer.ConfigurationalTemperatures: batch 0: context canceled")
	assert.Empty(t, th.Readings)
	_, err = infer.ConfigurationalTemperatures(gradient, p, th.Next, 0)
	require.EqualError(t, err, "infer.ConfigurationalTemperatures: n is 0: it must be at least 1")
}
