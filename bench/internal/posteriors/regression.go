package posteriors

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// flatRegression is y ~ N(X beta, sigma) with beta flat, and sigma half-Cauchy of a scale, or flat for 0. The
// columns are those of X.
//
// They are neither centred nor scaled, so that the coefficients are correlated by up to 0.999 and more. The
// chains therefore move in theta = R beta/√n, with X = Q R, in which they are not correlated (Stan User's
// Guide, "The QR reparameterization"):
//
//	X beta = √n Q theta, theta flat, beta = √n R⁻¹ theta
//
// The map is linear, so that the posterior of beta is the same.
func flatRegression(d *Data, y []float64, scale float64, columns ...[]float64) Posterior {
	n, k := len(y), len(columns)
	if n < k {
		d.fail("%d data are too few for %d coefficients", n, k)
	}
	x := mat.NewDense(n, k, nil)
	for j, c := range columns {
		x.SetCol(j, c)
	}
	var qr mat.QR
	var thin, r, back mat.Dense
	qr.Factorize(x)
	qr.RTo(&r)
	if err := back.Inverse(r.Slice(0, k, 0, k)); err != nil {
		d.fail("the columns of the regression depend on each other: %v", err)
	}
	thin.Mul(x, &back)
	root := math.Sqrt(float64(n))
	thin.Scale(root, &thin)
	back.Scale(root, &back)
	prior := flat(support.Positive, 0)
	if scale > 0 {
		prior = dist.HalfCauchy(scale)
	}
	inverse := d.tensor(back.RawMatrix().Data, k, k)
	return Posterior{
		Orthogonal: &Orthogonal{Q: rows(&thin), Back: rows(&back), Y: y, Scale: scale},
		Model: func(c *ppl.Ctx) {
			theta := c.Sample("theta", flat(support.Real, k))
			c.Deterministic("beta", inverse.MatMul(theta))
			sigma := c.Sample("sigma", prior)
			c.Plate("data", n, func(c *ppl.Ctx) {
				c.Observe("y", dist.NormalGLM(c.Data("q"), theta, 0, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"q": d.tensor(thin.RawMatrix().Data, n, k), "y": d.tensor(y, n)},
	}
}

// rows is a matrix row by row.
func rows(m *mat.Dense) [][]float64 {
	n, _ := m.Dims()
	out := make([][]float64, n)
	for i := range out {
		out[i] = m.RawRowView(i)
	}
	return out
}

// What the models share.

// flat is a flat prior on n numbers, or on one for n = 0.
func flat(on support.Support, n int) dist.Distribution {
	if n == 0 {
		return dist.ImproperUniform(on, nil, nil)
	}
	return dist.ImproperUniform(on, []int{n}, nil)
}

// each is f at every index.
func each(n int, f func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

func ones(n int) []float64 { return each(n, func(int) float64 { return 1 }) }

func product(a, b []float64) []float64 {
	return each(len(a), func(i int) float64 { return a[i] * b[i] })
}

func sum(x torch.Tensor) torch.Tensor { return x.Sum() }

// kidscoreInteraction is the regression of children's test scores (posteriordb, kidscore_interaction; Gelman and Hill
// 2007, chapter 3):
//
//	beta flat, sigma ~ HalfCauchy(2.5)
//	kid_score ~ N(beta_1 + beta_2 mom_hs + beta_3 mom_iq + beta_4 mom_hs·mom_iq, sigma)
func kidscoreInteraction(d *Data) Posterior {
	n := d.count("N", 1)
	school, iq := d.vector("mom_hs", n), d.vector("mom_iq", n)
	return flatRegression(d, d.vector("kid_score", n), 2.5, ones(n), school, iq, product(school, iq))
}

// kidscoreMomIQ is the regression of children's test scores on their mothers' (posteriordb, kidscore_momiq; Gelman and
// Hill 2007, chapter 3):
//
//	beta flat, sigma ~ HalfCauchy(2.5)
//	kid_score ~ N(beta_1 + beta_2 mom_iq, sigma)
func kidscoreMomIQ(d *Data) Posterior {
	n := d.count("N", 1)
	return flatRegression(d, d.vector("kid_score", n), 2.5, ones(n), d.vector("mom_iq", n))
}

// logearnInteraction is the regression of log earnings (posteriordb, logearn_interaction; Gelman and Hill 2007,
// chapter 4):
//
//	beta, sigma flat
//	log earn ~ N(beta_1 + beta_2 height + beta_3 male + beta_4 height·male, sigma)
func logearnInteraction(d *Data) Posterior {
	n := d.count("N", 1)
	earn, height, male := d.positive("earn", n), d.vector("height", n), d.vector("male", n)
	logs := each(n, func(i int) float64 { return math.Log(earn[i]) })
	return flatRegression(d, logs, 0, ones(n), height, male, product(height, male))
}

// logmesquiteLogvas is the regression of the logarithm of the weight of mesquite bushes on volume, area and shape
// (posteriordb, logmesquite_logvas; Gelman and Hill 2007, chapter 4), with d1 and d2 for diam1 and diam2:
//
//	beta, sigma flat
//	log weight ~ N(beta · x, sigma)
//	x = [1, log(d1 d2 canopy_height), log(d1 d2), log(d1/d2), log total_height, log density, group]
func logmesquiteLogvas(d *Data) Posterior {
	n := d.count("N", 1)
	logs := func(name string) []float64 {
		v := d.positive(name, n)
		return each(n, func(i int) float64 { return math.Log(v[i]) })
	}
	d1, d2, canopy := logs("diam1"), logs("diam2"), logs("canopy_height")
	volume := each(n, func(i int) float64 { return d1[i] + d2[i] + canopy[i] })
	area := each(n, func(i int) float64 { return d1[i] + d2[i] })
	shape := each(n, func(i int) float64 { return d1[i] - d2[i] })
	return flatRegression(d, logs("weight"), 0,
		ones(n), volume, area, shape, logs("total_height"), logs("density"), d.vector("group", n))
}

// nes is the regression of party identification (posteriordb, nes; Gelman and Hill 2007, chapter 4):
//
//	beta, sigma flat
//	partyid7 ~ N(beta · x, sigma)
//	x = [1, real_ideo, race_adj, age = 2, age = 3, age = 4, educ1, gender, income], age = age_discrete
func nes(d *Data) Posterior {
	n := d.count("N", 1)
	age := d.vector("age_discrete", n)
	group := func(g float64) []float64 {
		return each(n, func(i int) float64 {
			if age[i] == g {
				return 1
			}
			return 0
		})
	}
	return flatRegression(d, d.vector("partyid7", n), 0, ones(n), d.vector("real_ideo", n),
		d.vector("race_adj", n), group(2), group(3), group(4), d.vector("educ1", n), d.vector("gender", n),
		d.vector("income", n))
}

// blr is a linear regression (posteriordb, blr):
//
//	beta ~ N(0, 10), sigma ~ HalfN(10), y ~ N(X beta, sigma)
func blr(d *Data) Posterior {
	n, k := d.count("N", 1), d.count("D", 1)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			beta := c.Sample("beta", dist.Normal(0, 10).Expand(k))
			sigma := c.Sample("sigma", dist.HalfNormal(10))
			c.Plate("data", n, func(c *ppl.Ctx) {
				c.Observe("y", dist.NormalGLM(c.Data("x"), beta, 0, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"x": d.tensor(d.matrix("X", n, k), n, k), "y": d.vectorTensor("y", n)},
		// The columns of X are correlated: a diagonal metric takes seven times the gradients.
		Method: hmc.NUTS{Metric: hmc.LowRank},
	}
}

// kilpisjarvi is the trend of summer temperatures (posteriordb, kilpisjarvi):
//
//	alpha ~ N(pmualpha, psalpha), beta ~ N(pmubeta, psbeta), sigma > 0 flat
//	y ~ N(alpha + beta x, sigma)
//
// Since all x are near 4000, alpha and beta are correlated by −0.99999. The chains therefore move in the height of the
// line at the mean of x, centre = alpha + beta x̄, in the place of alpha. Given beta that is a shift, which leaves the
// density as it is.
func kilpisjarvi(d *Data) Posterior {
	n := d.count("N", 1)
	meanAlpha, sdAlpha := d.number("pmualpha"), d.number("psalpha")
	meanBeta, sdBeta := d.number("pmubeta"), d.number("psbeta")
	x := d.vector("x", n)
	mean := stat.Mean(x, nil)
	centred := each(n, func(i int) float64 { return x[i] - mean })
	return Posterior{
		Model: func(c *ppl.Ctx) {
			centre := c.Sample("centre", flat(support.Real, 0))
			beta := c.Sample("beta", dist.Normal(meanBeta, sdBeta))
			sigma := c.Sample("sigma", flat(support.Positive, 0))
			alpha := c.Deterministic("alpha", beta.Mul(-mean).Add(centre))
			c.Factor("alpha_prior", dist.Normal(meanAlpha, sdAlpha).LogProb(alpha))
			c.Plate("years", n, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(c.Data("x").Mul(beta).Add(centre), sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"x": d.tensor(centred, n), "y": d.vectorTensor("y", n)},
	}
}
