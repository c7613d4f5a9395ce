package models

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// AutoRegression is the autoregression of order K of a series, given its first K numbers:
//
//	alpha ~ N(0, PriorScale²), beta_k ~ N(0, PriorScale²), sigma ~ HalfCauchy(NoiseScale)
//	y_t ~ N(alpha + Σ_k beta_k y_{t−k}, sigma²),  t > K
//
// The latent variables are "alpha" and "sigma", of shape [], and "beta", [K]; they need not make the series stationary.
// The batch has "y", [T−K], and "lags", [T−K, K], the numbers before each, the nearest first; it can be split into
// minibatches. (Stan User's Guide, "Autoregressive models", whose priors these are.)
//
// Given sigma, the posterior of (alpha, beta) is normal; see [LinearRegression].
type AutoRegression struct {
	Y          []float64 // T numbers, one after the other
	Order      int       // K, at least 1 and less than T
	PriorScale float64   // standard deviation of alpha and beta; 0 means 10
	NoiseScale float64   // scale of the prior of sigma; 0 means 2.5
}

// Build checks the data and scales; an error names the field.
func (c AutoRegression) Build() (Model, error) {
	f := &fields{config: "models.AutoRegression"}
	f.numbers("Y", c.Y, -1, finite, "finite")
	f.atLeast("Order", c.Order, 1)
	if c.Order >= len(c.Y) {
		f.fail("Order", c.Order, "it must be less than the %d numbers of Y", len(c.Y))
	}
	coefficients := f.scale("PriorScale", c.PriorScale, 10)
	noises := f.scale("NoiseScale", c.NoiseScale, 2.5)
	if f.err != nil {
		return Model{}, f.err
	}
	y := f.vector("Y", c.Y[c.Order:], -1, finite, "finite")
	lags, n, k := f.matrix("Y", lag(c.Y, c.Order))
	return f.model("autoregression", func(m *ppl.Ctx) {
		alpha := m.Sample("alpha", dist.Normal(0, coefficients))
		beta := m.Sample("beta", dist.Normal(0, coefficients).Expand(k))
		sigma := m.Sample("sigma", dist.HalfCauchy(noises))
		m.Plate("time", n, func(m *ppl.Ctx) {
			m.Observe("y", dist.NormalGLM(m.Data("lags"), beta, alpha, sigma), m.Data("y"))
		})
	}, infer.Batch{"y": y, "lags": lags})
}

// lynx are the furs of lynx from the Mackenzie River in each year from 1821 to 1934 (Elton and Nicholson 1942, The
// ten-year cycle in numbers of the lynx in Canada, Journal of Animal Ecology 11, 215–244, table 4).
var lynx = []float64{
	269, 321, 585, 871, 1475, 2821, 3928, 5943, 4950, 2577, 523, 98, 184, 279, 409, 2285, 2685, 3409, 1824, 409, 151, 45,
	68, 213,
	546, 1033, 2129, 2536, 957, 361, 377, 225, 360, 731, 1638, 2725, 2871, 2119, 684, 299, 236, 245, 552, 1623, 3311, 6721,
	4254,
	687, 255, 473, 358, 784, 1594, 1676, 2251, 1426, 756, 299, 201, 229, 469, 736, 2042, 2811, 4431, 2511, 389, 73, 39, 49,
	59,
	188, 377, 1292, 4031, 3495, 587, 105, 153, 387, 758, 1307, 3465, 6991, 6313, 3794, 1836, 345, 382, 808, 1388, 2713,
	3800, 3091,
	2985, 3790, 674, 81, 80, 108, 229, 399, 1132, 2432, 3574, 2935, 1537, 529, 485, 662, 1000, 1590, 2657, 3396,
}

// Lynx is [AutoRegression] of order 2 of the decimal logarithms of the Canadian lynx series (Elton and Nicholson 1942).
//
// The posterior is centred near the least-squares fit y_t = 1.06 + 1.38 y_{t−1} − 0.75 y_{t−2} with a residual variance
// of 0.052. Moran (1953, The statistical analysis of the Canadian lynx cycle, Australian Journal of Zoology 1, 163–173)
// has 1.05, 1.41 and −0.77, within a standard error of these, and 0.0459.
func Lynx() (Model, error) {
	c := AutoRegression{Order: 2}
	for _, furs := range lynx {
		c.Y = append(c.Y, math.Log10(furs))
	}
	m, err := c.Build()
	return named("lynx", m, err)
}
