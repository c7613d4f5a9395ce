package models_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// mode is where Adam, with steps that go to 0, ends from the point 0: the values of each site on the constrained side.
func mode(t *testing.T, m models.Model, steps int) map[string][]float64 {
	t.Helper()
	p := compile(t, m)
	start, err := infer.Zeros(p.Layout())
	require.NoError(t, err)
	// The mode on unconstrained space, with the Jacobian: what the closed forms are of.
	target := infer.AtTemperature(p.Target(), 1)
	adam := optim.Adam{LR: infer.Linear(0.1, 0, 0, steps), Beta2: 0.99}
	result, err := infer.Run(context.Background(), infer.Handwritten(target, start, m.Batch), adam,
		infer.Options{Chains: 1, Warmup: steps, Draws: infer.None})
	require.NoError(t, err)
	defer infer.Free(result.State)
	values, err := p.Constrain(result.State.Position(), m.Batch)
	require.NoError(t, err)
	out := map[string][]float64{}
	for name, v := range values {
		out[name] = floats(v)
	}
	return out
}

// ridge is (XᵀX/noise² + D⁻¹)⁻¹ Xᵀy/noise², where X has a first column of ones: the posterior mean of a linear
// regression with known noise, prior standard deviations given.
func ridge(x [][]float64, y []float64, noise, intercept, weights float64) []float64 {
	n, d := len(x), len(x[0])+1
	design := mat.NewDense(n, d, nil)
	for i, row := range x {
		design.SetRow(i, append([]float64{1}, row...))
	}
	var precision mat.Dense
	precision.Mul(design.T(), design)
	precision.Scale(1/(noise*noise), &precision)
	for j := range d {
		sd := weights
		if j == 0 {
			sd = intercept
		}
		precision.Set(j, j, precision.At(j, j)+1/(sd*sd))
	}
	var right, out mat.VecDense
	right.MulVec(design.T(), mat.NewVecDense(n, y))
	right.ScaleVec(1/(noise*noise), &right)
	if err := out.SolveVec(&precision, &right); err != nil {
		panic(err)
	}
	return out.RawVector().Data
}

// With known noise the posterior of a linear regression is normal, so that the mode is the mean in closed form.
func TestLinearRegressionWithKnownNoise(t *testing.T) {
	raw := spread(30, 3, 8)
	c := models.LinearRegression{Noise: 0.6, PriorScale: 1.5, InterceptScale: 0.7}
	for i := range 30 {
		r := raw[3*i : 3*i+3]
		c.X, c.Y = append(c.X, []float64{r[0], r[1] + 0.4*r[0]}), append(c.Y, 1+2*r[0]-r[1]+0.6*r[2])
	}
	m, err := c.Build()
	require.NoError(t, err)
	got := mode(t, m, 800)
	require.NotContains(t, got, "sigma")
	assert.InDeltaSlice(t, ridge(c.X, c.Y, 0.6, 0.7, 1.5), append(got["intercept"], got["w"]...), 1e-9)

	c.NoIntercept = true
	m, err = c.Build()
	require.NoError(t, err)
	require.Equal(t, "w[2]", compile(t, m).Layout().String())
}

// The modes of the public data are near the published estimates: the priors and, for scales, the Jacobian move them by
// a part of the standard error.
func TestPublishedEstimates(t *testing.T) {
	build := func(m models.Model, err error) map[string][]float64 {
		require.NoError(t, err)
		return mode(t, m, 1000)
	}
	// Dobson: −60.717 + 34.270·dose, hence 0.969 at dose 1.8 and 3.427 for each 0.1. The prior of 10 moves the mode by
	// about (0.29/10)² of it.
	beetles := build(models.Beetles())
	assert.InDelta(t, 3.427, beetles["w"][0], 0.005)
	assert.InDelta(t, 0.969, beetles["intercept"][0], 0.002)
	// Anscombe: 3.00 + 0.500 x.
	anscombe := build(models.Anscombe())
	assert.InDelta(t, 3.0, anscombe["intercept"][0], 0.05)
	assert.InDelta(t, 0.5, anscombe["w"][0], 0.005)
	// The mode of log sigma in the posterior maximises −n log σ − RSS/(2σ²) + log σ − log(1 + (σ/2.5)²), RSS = 13.763.
	best, at := math.Inf(-1), 0.0
	for s := 0.5; s < 3; s += 1e-4 {
		if v := -10*math.Log(s) - 13.763/(2*s*s) - math.Log1p(s*s/6.25); v > best {
			best, at = v, s
		}
	}
	assert.InDelta(t, at, anscombe["sigma"][0], 2e-3)
	// Moran: 1.05 + 1.41 y − 0.77 y', by other estimators than least squares: within one standard
	// error, √((1 − 0.75²)/112).
	m, err := models.Lynx()
	lynx := build(m, err)
	se := math.Sqrt((1 - 0.75*0.75) / 112)
	assert.InDelta(t, 1.05, lynx["alpha"][0], 0.1)
	assert.InDelta(t, 1.41, lynx["beta"][0], se)
	assert.InDelta(t, -0.77, lynx["beta"][1], se)
	// Given sigma, the mode of the coefficients is that of a linear regression on the two years before.
	series := append([]float64{}, floats(m.Batch["lags"])[1], floats(m.Batch["lags"])[0])
	series = append(series, floats(m.Batch["y"])...)
	var before [][]float64
	for i := 2; i < len(series); i++ {
		before = append(before, []float64{series[i-1], series[i-2]})
	}
	sigma := lynx["sigma"][0]
	coefficients := append(lynx["alpha"], lynx["beta"]...)
	assert.InDeltaSlice(t, ridge(before, series[2:], sigma, 10, 10), coefficients, 1e-6)
	// Given the coefficients, that of log sigma is where −n + RSS/σ² + 1 − 2σ²/(2.5² + σ²) is 0.
	rss := 0.0
	for i, row := range before {
		r := series[i+2] - coefficients[0] - coefficients[1]*row[0] - coefficients[2]*row[1]
		rss += r * r
	}
	assert.InDelta(t, 0, -112+rss/(sigma*sigma)+1-2*sigma*sigma/(6.25+sigma*sigma), 1e-6)
	// Breslow: w = (0.311 ± 0.099, −0.974 ± 0.437), and an intercept of 3.338 where the features are
	// centred, ± about 0.08.
	salmonella := build(models.Salmonella())
	assert.InDelta(t, 0.311, salmonella["w"][0], 0.099/2)
	assert.InDelta(t, -0.974, salmonella["w"][1], 0.437/2)
	assert.InDelta(t, 3.338, salmonella["intercept"][0], 0.08)
}

// The lynx series as R's help of it summarises it: 114 years, from 39 to 6991, with mean 1538.0 and median 771.
func TestLynxIsTheSeries(t *testing.T) {
	m, err := models.Lynx()
	require.NoError(t, err)
	y := append(floats(m.Batch["lags"])[:2], floats(m.Batch["y"])...)
	require.Len(t, y, 114)
	least, greatest, total := math.Inf(1), 0.0, 0.0
	for _, v := range y {
		furs := math.Pow(10, v)
		least, greatest, total = math.Min(least, furs), math.Max(greatest, furs), total+furs
	}
	assert.InDelta(t, 39, least, 1e-9)
	assert.InDelta(t, 6991, greatest, 1e-9)
	assert.InDelta(t, 1538.018, total/114, 1e-3)
}

// schoolMoments are the posterior means and standard deviations of mu and tau: the effects are integrated out, y_j ~
// N(mu, tau² + sigma_j²), and mu is normal given tau, so that one integral, over tau, is left.
func schoolMoments(y, sigma []float64) (mu, sdMu, tau, sdTau float64) {
	var z, m1, m2, t1, t2 float64
	const n = 400000
	for i := range n {
		// tau = 5 tan(πp/2) for p from 0 to 1 makes its half-Cauchy prior uniform.
		s := 5 * math.Tan(math.Pi/2*(float64(i)+0.5)/n)
		precision, weighted := 1.0/25, 0.0
		logp := -0.5 * math.Log(25)
		for j := range y {
			v := s*s + sigma[j]*sigma[j]
			precision, weighted = precision+1/v, weighted+y[j]/v
			logp += -0.5*math.Log(v) - y[j]*y[j]/(2*v)
		}
		mean := weighted / precision
		w := math.Exp(logp - 0.5*math.Log(precision) + mean*weighted/2)
		z, m1, m2 = z+w, m1+w*mean, m2+w*(mean*mean+1/precision)
		t1, t2 = t1+w*s, t2+w*s*s
	}
	mu, tau = m1/z, t1/z
	return mu, math.Sqrt(m2/z - mu*mu), tau, math.Sqrt(t2/z - tau*tau)
}

// The posterior moments that the doc comment of EightSchools names.
func TestEightSchoolsMomentsAreAsDocumented(t *testing.T) {
	m, err := models.EightSchools()
	require.NoError(t, err)
	mu, sdMu, tau, sdTau := schoolMoments(floats(m.Batch["y"]), floats(m.Batch["sigma"]))
	t.Logf("mu %.4f ± %.4f, tau %.4f ± %.4f", mu, sdMu, tau, sdTau)
	assert.InDeltaSlice(t, []float64{4.40, 3.32, 3.60, 3.22}, []float64{mu, sdMu, tau, sdTau}, 0.005)
}

// The language's own non-centred form of the centred model is the non-centred model: the same layout and density.
func TestReparamOfTheCentredSchoolsIsTheOtherForm(t *testing.T) {
	centred, err := models.EightSchoolsCentred()
	require.NoError(t, err)
	free, err := models.EightSchools()
	require.NoError(t, err)
	through := centred
	through.Model = ppl.Reparam(centred.Model, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred})
	a, b := compile(t, free), compile(t, through)
	require.Equal(t, a.Layout().String(), b.Layout().String())
	at, err := infer.NewParams(a.Layout(), spread(5, a.Layout().Dim(), 2))
	require.NoError(t, err)
	values, grads := evaluate(t, whole(a), at, free.Batch)
	others, slopes := evaluate(t, whole(b), at, through.Batch)
	assert.InDeltaSlice(t, values, others, 1e-11)
	assert.InDeltaSlice(t, grads, slopes, 1e-11)
	// The effects are there under their name in both.
	x, err := a.Constrain(at, free.Batch)
	require.NoError(t, err)
	y, err := b.Constrain(at, through.Batch)
	require.NoError(t, err)
	assert.InDeltaSlice(t, floats(x["theta"]), floats(y["theta"]), 1e-12)
}

// The centred radon model against the sum by hand: with z = (level − mean)/tau, its density is that of z over tau for
// each county.
func TestCentredRadon(t *testing.T) {
	c, err := models.SimulateRadon(5, 30, 2)
	require.NoError(t, err)
	c.Centred = true
	m, err := c.Build()
	require.NoError(t, err)
	require.True(t, m.Modeless)
	p := compile(t, m)
	require.Equal(t, "floor_slope[] intercept[] level[5] sigma[] tau[] uranium_slope[]", p.Layout().String())
	require.EqualValues(t, 30, p.Data())
	hand := func(at point, b data) dual {
		tau, _ := positive(at.one("tau"))
		var z []dual
		for j, u := range c.Uranium {
			z = append(z, at["level"][j].sub(at.one("intercept")).sub(at.one("uranium_slope").times(u)).div(tau))
		}
		return radonByHand(at, b, c.Uranium, z).sub(tau.log().times(5))
	}
	for k := range uint64(5) {
		row := spread(1, p.Layout().Dim(), k)
		at, err := infer.NewParams(p.Layout(), row)
		require.NoError(t, err)
		value, grad := evaluate(t, whole(p), at, m.Batch)
		want, slope := handAt(hand, p.Layout(), row, m.Batch)
		assert.LessOrEqual(t, off(want, value[0]), 1e-10)
		for i := range grad {
			assert.LessOrEqual(t, off(slope[i], grad[i]), 1e-8)
		}
	}
}

// The mode of a linear regression, of the density of w, intercept and sigma, without the Jacobian. Given sigma the
// coefficients are those of ridge regression, which for centred x are apart; and sigma is where the derivative of
// −n log σ − R/(2σ²) − log(1 + (σ/2.5)²) is 0, with R the sum of squared residuals: n/σ = R/σ³ − 2σ/(2.5² + σ²). With
// the Jacobian, log σ, there would be n − 1 in the place of n.
func TestModeOfLinearRegression(t *testing.T) {
	x, y := []float64{-2, -1, 0, 1, 2}, []float64{-2.9, -1.2, 1.1, 2.9, 5.1}
	n := float64(len(x))
	var sxx, sxy, sy float64
	for i := range x {
		sxx, sxy, sy = sxx+x[i]*x[i], sxy+x[i]*y[i], sy+y[i]
	}
	w, intercept, sigma := 0.0, 0.0, 1.0
	for range 200 {
		v := sigma * sigma
		w, intercept = sxy/(sxx+v/100), sy/(n+v/100)
		residuals := 0.0
		for i := range x {
			residuals += math.Pow(y[i]-intercept-w*x[i], 2)
		}
		sigma = math.Sqrt(residuals / (n + 2*v/(2.5*2.5+v)))
	}
	m, err := models.LinearRegression{X: [][]float64{{-2}, {-1}, {0}, {1}, {2}}, Y: y}.Build()
	require.NoError(t, err)
	mode, err := infer.Sample(context.Background(), compile(t, m), optim.LBFGS{},
		infer.Options{Chains: 1, Observer: infer.Silent})
	require.NoError(t, err)
	for name, want := range map[string]float64{"w": w, "intercept": intercept, "sigma": sigma} {
		assert.InDelta(t, want, must(mode.Mean(name))[0], 1e-6, name)
	}
	assert.InDelta(t, 0.13, sigma, 0.005, "what the example prints")
}
