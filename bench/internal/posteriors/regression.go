package posteriors

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/mat"
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
	inverse := d.tensor(back.RawMatrix().Data, int64(k), int64(k))
	return Posterior{
		Orthogonal: &Orthogonal{Q: rows(&thin), Back: rows(&back), Y: y, Scale: scale},
		Model: func(c *ppl.Ctx) {
			theta := c.Sample("theta", flat(support.Real, k))
			c.Deterministic("beta", torch.Of(inverse).MatMul(theta))
			sigma := c.Sample("sigma", prior)
			c.Plate("data", int64(n), func(c *ppl.Ctx) {
				c.Observe("y", dist.NormalGLM(c.Data("q"), theta, 0, sigma), c.Data("y"))
			})
		},
		Batch: infer.Batch{"q": d.tensor(thin.RawMatrix().Data, int64(n), int64(k)), "y": d.tensor(y, int64(n))},
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
	return dist.ImproperUniform(on, []int64{int64(n)}, nil)
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
