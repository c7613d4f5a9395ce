package thermo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// langevin samples exp(-U/T), U = Σ λ θ²/2, by a kick, half a drift, friction and noise, and half a drift
// (Leimkuhler and Matthews 2013), which is exact for this target at every stable step. noise is the share of the
// injected variance, and gradient the variance of the noise of gradients. With euler it is symplectic Euler, whose
// step biases the momenta.
func langevin(t *testing.T, h, temperature, noise, gradient float64, euler bool) Simulation {
	const chains, readings, gap, d, friction = 4, 60, 25, 24, 1.0
	rng := source(200)
	s := Simulation{Kinetic: &Kinetic{}}
	for _, name := range []string{"a", "b"} {
		s.Configurational = append(s.Configurational, SiteReadings{name, make([][]float64, chains), temperature})
	}
	lambda := func(i int) float64 { return 1 + 3*float64(i)/d }
	for chain := range chains {
		theta, m, g := make([]float64, d), make([]float64, d), make([]float64, d)
		for i := range d {
			theta[i], m[i] = math.Sqrt(temperature/lambda(i))*rng.NormFloat64(),
				math.Sqrt(temperature)*rng.NormFloat64()
		}
		for k := range 40 + readings {
			for range gap {
				for i := range d {
					force := lambda(i)*theta[i] + math.Sqrt(gradient)*rng.NormFloat64()
					if euler {
						m[i] = (1-h*friction)*m[i] - h*force +
							math.Sqrt(2*h*friction*temperature*noise)*rng.NormFloat64()
						theta[i] += h * m[i]
						continue
					}
					c := math.Exp(-h * friction)
					m[i] -= h * force
					theta[i] += h / 2 * m[i]
					m[i] = c*m[i] + math.Sqrt(temperature*(1-c*c)*noise)*rng.NormFloat64()
					theta[i] += h / 2 * m[i]
				}
			}
			if k < 40 { // warm-up
				continue
			}
			for i := range d {
				g[i] = lambda(i) * theta[i]
			}
			for site, part := range [][2]int{{0, 4}, {4, d}} {
				_, err := s.Kinetic.Add(s.Configurational[site].Site, chain, m[part[0]:part[1]], nil, temperature)
				require.NoError(t, err)
				v, err := ConfigurationalTemperature(theta[part[0]:part[1]], g[part[0]:part[1]])
				require.NoError(t, err)
				s.Configurational[site].Readings[chain] = append(s.Configurational[site].Readings[chain], v)
			}
		}
	}
	return s
}

// Quiet on an exact sampler; half the noise, noisy gradients and a large step of symplectic Euler are found, each with
// its sign. The temperature of a sampler whose noise is halved is halved; gradient noise V adds h V/(2γ), nearly.
func TestDiagnoseSampler(t *testing.T) {
	for _, c := range []struct {
		name                   string
		h, noise, gradient     float64
		euler                  bool
		ratio, ratioTolerance  float64 // of site b, NaN where it is not known
		hot, cold, config, any bool
	}{
		{name: "exact", h: 0.4, noise: 1, ratio: 1, ratioTolerance: 0.04},
		{name: "half the noise", h: 0.4, noise: 0.5, ratio: 0.5, ratioTolerance: 0.03, cold: true, config: true,
			any: true},
		{name: "gradient noise", h: 0.1, noise: 1, gradient: 1, ratio: 1 + 0.1/2/0.1, ratioTolerance: 0.12, hot: true,
			config: true, any: true},
		{name: "large step", h: 0.7, noise: 1, euler: true, ratio: nan, hot: true, any: true},
	} {
		s := langevin(t, c.h, 0.1, c.noise, c.gradient, c.euler)
		r, err := Diagnose(s, Options{})
		require.NoError(t, err)
		require.Equal(t, !c.any, r.OK(), "%s: %s", c.name, r)
		require.Equal(t, c.hot, len(r.Of(codeHot)) > 0, "%s: %s", c.name, r)
		require.Equal(t, c.cold, len(r.Of(codeCold)) > 0, "%s: %s", c.name, r)
		require.Equal(t, c.any, len(r.Of(codeCoverage)) > 0, "%s: %s", c.name, r)
		if !math.IsNaN(c.ratio) {
			require.InDelta(t, c.ratio, r.Sites[1].Ratio, c.ratioTolerance, c.name)
			require.InDelta(t, c.ratio, r.Configurational[1].Mean/0.1, c.ratioTolerance+0.02, c.name)
			require.Equal(t, c.config, len(r.Of(codeConfigurational)) > 0, c.name)
		}
		t.Logf("%s:\n%s", c.name, r)
	}
}
