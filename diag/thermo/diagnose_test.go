package thermo

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

var simulatedSites = []struct {
	name string
	dim  int
}{{"bias", 3}, {"kernel", 200}, {"dense", 40}}

// simulated has readings of three sites in four chains at the ends of ten cycles, with site i hotter by heat[i].
func simulated(t *testing.T, seed uint64, temperature float64, heat [3]float64) *Kinetic {
	rng := source(seed)
	var k Kinetic
	for range 10 {
		for chain := range 4 {
			for i, s := range simulatedSites {
				_, err := k.AddValue(s.name, chain, s.dim, heat[i]*exactTemperature(rng, s.dim, temperature),
					temperature)
				require.NoError(t, err)
			}
		}
	}
	return &k
}

// Exact simulation with everything measured is quiet in all but the few runs that P allows.
func TestDiagnoseSimulationQuiet(t *testing.T) {
	const runs = 300
	loud := 0
	for seed := range uint64(runs) {
		s := Simulation{Kinetic: simulated(t, seed, 0.1, [3]float64{1, 1, 1})}
		for i, site := range simulatedSites { // T_C of correlated Gaussian draws is T times a mean of squares
			squares := sample.Mapped(ar1(3*seed+uint64(i), 4, 100, 0.5), func(v float64) float64 { return 0.1 * v * v })
			s.Configurational = append(s.Configurational, SiteReadings{site.name, squares, 0.1})
		}
		trace := sample.Mapped(ar1(seed+1000, 4, 200, 0.5), func(v float64) float64 { return 0.3 + math.Sqrt(0.1)*v })
		xi, err := ATMC{Step: 0.01, Temperature: 0.1}.Summarise(trace)
		require.NoError(t, err)
		xi.Site = "kernel"
		s.Thermostats = []Thermostat{xi}
		r, err := Diagnose(s, Options{})
		require.NoError(t, err)
		if len(r.Findings) > 0 {
			t.Log(r)
			loud++
		}
	}
	// about 10 checks of probability 1e-4 in 300 runs, and the law of standard errors is not exact
	require.LessOrEqual(t, loud, 3)
}

// Each fault is found, at the site and with the word that it has.
func TestDiagnoseSimulationFinds(t *testing.T) {
	exact := [3]float64{1, 1, 1}
	r, err := Diagnose(Simulation{Kinetic: simulated(t, 1, 0.1, [3]float64{1, 0.5, 1})}, Options{}) // half the noise
	require.NoError(t, err)
	require.False(t, r.OK())
	require.Len(t, r.Of(codeCold), 1)
	require.Equal(t, "kernel", r.Of(codeCold)[0].Site)
	require.Equal(t, diag.Serious, r.Of(codeCold)[0].Severity)
	require.InDelta(t, 0.5, r.Of(codeCold)[0].Figure, 0.03)
	require.Len(t, r.Of(codeCoverage), 1)
	// 0.5/sqrt(3), one of three sites by a half
	require.Contains(t, r.Of(codeCoverage)[0].Message, "off by 29% beyond chance")
	require.Empty(t, r.Of(codeHot))
	require.Contains(t, r.String(), "kernel: momenta are colder than the target, T_K/T is 0.4")
	require.Equal(t, []string{"bias", "kernel", "dense"}, []string{r.Sites[0].Site, r.Sites[1].Site, r.Sites[2].Site})
	require.Equal(t, [2]int{4, 10}, [2]int{r.Chains, r.Draws})

	r, err = Diagnose(Simulation{Kinetic: simulated(t, 2, 1, [3]float64{2, 1, 1.05})}, Options{})
	require.NoError(t, err)
	hot := r.Of(codeHot)
	require.NotEmpty(t, hot)
	require.Equal(t, "bias", hot[0].Site)
	require.Equal(t, diag.Serious, hot[0].Severity)

	// A bias that is sure but small is not a problem; a tolerance of a thousandth makes it one.
	var k Kinetic
	for range 50 {
		_, err := k.AddValue("huge", 0, 10_000_000, 1.003, 1)
		require.NoError(t, err)
	}
	r, err = Diagnose(Simulation{Kinetic: &k}, Options{})
	require.NoError(t, err)
	require.True(t, r.OK(), r)
	require.Len(t, r.Of(codeHot), 1)
	r, err = Diagnose(Simulation{Kinetic: &k}, Options{Tolerance: 0.001})
	require.NoError(t, err)
	require.False(t, r.OK())

	// Momenta rescaled to the right temperature.
	var still Kinetic
	for range 50 {
		_, err := still.AddValue("w", 0, 30, 1, 1)
		require.NoError(t, err)
	}
	r, err = Diagnose(Simulation{Kinetic: &still}, Options{})
	require.NoError(t, err)
	require.Len(t, r.Of(codeSpread), 1)
	require.Empty(t, r.Of(codeCoverage))

	// Right on average, but hot in some cycles and cold in others: the scatter tells.
	rng := source(3)
	var swinging Kinetic
	for i := range 100 {
		_, err := swinging.AddValue("w", 0, 100, exactTemperature(rng, 100, []float64{0.6, 1.4}[i%2]), 1)
		require.NoError(t, err)
	}
	r, err = Diagnose(Simulation{Kinetic: &swinging}, Options{})
	require.NoError(t, err)
	require.Empty(t, r.Of(codeHot))
	require.Equal(t, diag.Serious, r.Of(codeCoverage)[0].Severity)
	require.Regexp(t, `off by (3[7-9]|4[0-3])% beyond chance`, r.Of(codeCoverage)[0].Message)

	// Readings after every update.
	var dense Kinetic
	for i, v := range ar1(4, 1, 400, 0.8)[0] {
		_, err := dense.AddValue("w", i/200, 1, v*v, 1)
		require.NoError(t, err)
	}
	r, err = Diagnose(Simulation{Kinetic: &dense}, Options{})
	require.NoError(t, err)
	require.Len(t, r.Of(codeCorrelated), 1)

	r, err = Diagnose(Simulation{Kinetic: simulated(t, 5, 1, exact),
		Configurational: []SiteReadings{{"kernel",
			sample.Mapped(ar1(6, 4, 100, 0.5), func(v float64) float64 { return 2 + v }), 1},
			{"bias", [][]float64{{1, 1, 1, 1, 1}}, 1}},
		Thermostats: []Thermostat{{Mean: 1, ExactMean: 2, Z: -9, VarianceRatio: 3, VarianceSE: 0.1}},
		Noise:       &NoiseShare{Mean: 3, Dominates: true, Message: "it dominates"}}, Options{})
	require.NoError(t, err)
	require.Equal(t, map[diag.Code]int{codeConfigurational: 1, codeFewReadings: 1, codeThermostat: 2,
		codeGradientNoise: 1}, codes(&r.Report))
	require.Equal(t, codeConfigurational, r.Findings[0].Code) // serious ones first
	require.Equal(t, "kernel", r.Findings[0].Site)
	require.Contains(t, r.String(), "kernel: parameters are hotter than the target")
	for _, f := range r.Findings {
		require.NotEmpty(t, f.Advice, f.Code)
	}
}

// The power of the checks to see a temperature that is off by a factor: for sites of d momenta and n readings, the
// share of runs in which the mean test has P < 1e-4, against the probability of that by χ².
func TestKineticPower(t *testing.T) {
	const runs = 400
	for _, d := range []int{1, 10, 100} {
		for _, n := range []int{10, 100} {
			for _, ratio := range []float64{0.5, 0.8, 0.95, 1.1, 2} {
				rng := source(uint64(d*n) + uint64(100*ratio))
				found := 0
				law := distuv.ChiSquared{K: float64(d * n)}
				low, high := law.Quantile(0.5e-4), law.Quantile(1-0.5e-4)
				for range runs {
					readings := make([]KineticReading, n)
					for i := range readings { // a sum of χ² of d is drawn as a gamma
						v := ratio * 2 / float64(d) * distuv.Gamma{Alpha: float64(d) / 2, Beta: 1, Src: rng}.Rand()
						readings[i] = KineticReading{Dim: d, Target: 1, Value: v}
					}
					r, err := kineticResult(readings, 0)
					require.NoError(t, err)
					if r.PRatio < 1e-4 {
						found++
					}
				}
				want := law.CDF(low/ratio) + 1 - law.CDF(high/ratio)
				require.InDelta(t, want, float64(found)/runs, 4*math.Sqrt(want*(1-want)/runs)+1e-9)
				t.Logf("d %4d, readings %4d, T_K/T %.2f: found in %5.1f%% of runs, %5.1f%% by χ²", d, n, ratio,
					100*float64(found)/runs, 100*want)
			}
		}
	}
}

func TestDiagnoseSimulationErrors(t *testing.T) {
	r, err := Diagnose(Simulation{}, Options{})
	require.NoError(t, err)
	require.Equal(t, "no kinetic temperatures.\nNo problems found.\n", r.String())
	for _, opt := range []Options{{P: -1}, {P: 1}, {P: nan}, {Tolerance: -1}, {Tolerance: nan}} {
		_, err = Diagnose(Simulation{}, opt)
		require.ErrorIs(t, err, draws.ErrRange)
	}
	_, err = Diagnose(Simulation{Configurational: []SiteReadings{{"w", nil, 1}}}, Options{})
	require.ErrorIs(t, err, draws.ErrSize)
	require.EqualError(t, err, `diag/thermo: mean temperature: no chains of site "w"`)
	var b bytes.Buffer
	require.NoError(t, r.Format(&b))
	require.Equal(t, r.String(), b.String())
	require.ErrorContains(t, r.Format(brokenWriter{}), "diag: write report: broken")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }
