package ekf_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/torch"
)

// wide is a regression whose prior is wide and whose noise is small: the curvature of a datum, in units of the prior,
// is beyond the digits of the type.
type wide struct {
	dtype     gotch.DType
	d         int
	sd, noise float64
}

func (c wide) String() string {
	return fmt.Sprintf("%v, %d parameters, sd %g, noise %g", c.dtype, c.d, c.sd, c.noise)
}

func (c wide) eps() float64 {
	if c.dtype == gotch.Float {
		return 0x1p-23
	}
	return 0x1p-52
}

const wideData = 200

// data are inputs and y = x·w + noise, as numbers of the type.
func (c wide) data() (x, y []float64) {
	x, y = normals(1, wideData*c.d), normals(2, wideData)
	w := normals(3, c.d)
	for i := range y {
		y[i] *= c.noise
		for j := range c.d {
			if c.dtype == gotch.Float {
				x[i*c.d+j] = float64(float32(x[i*c.d+j]))
			}
			y[i] += x[i*c.d+j] * w[j]
		}
		if c.dtype == gotch.Float {
			y[i] = float64(float32(y[i]))
		}
	}
	return x, y
}

// run is the state after all data, size at a time.
func (c wide) run(t testing.TB, m infer.Method, x, y []float64, size, n int) ekf.DenseState {
	t.Helper()
	transform := build(t, m, nil)
	s := begin(t, transform, must(params(layout(infer.Shapes{"w": {c.d}}), make([]float64, c.d), 0).To(torch.CPU,
		c.dtype)))
	for from := 0; from < n; from += size {
		order := make([]int, size)
		for i := range order {
			order[i] = from + i
		}
		batch := infer.Batch{}
		for name, v := range rows(x, y, order) {
			batch[name] = must(torch.To(v, torch.CPU, c.dtype))
		}
		s, _ = update(t, transform, s, batch)
	}
	return s.(ekf.DenseState)
}

// kappa bounds the rows of a root's update, sd·|x|/noise. Rounding leaves ε·kappa of a row in what is orthogonal to it,
// relative to the root; a filter of the covariance itself loses ε·kappa².
func (c wide) kappa() float64 { return c.sd * math.Sqrt(float64(c.d)) / c.noise }

// meanTol is for a mean whose standard deviations are up to sd: ε·kappa of these in each of d columns of the root, and
// a sum of 200 rounded terms.
func (c wide) meanTol(kappa, sd float64, mean []float64) float64 {
	return c.eps() * (kappa*math.Sqrt(float64(c.d))*sd + wideData*largest(mean))
}

// wideCases are beyond the digits of the covariance of the data in units of the prior, kappa² ε > 1, or near.
var wideCases = []wide{
	{gotch.Double, 10, 1e4, 0.01}, {gotch.Double, 10, 1e6, 0.01},
	{gotch.Float, 10, 10, 0.01}, {gotch.Float, 10, 100, 0.1}, {gotch.Float, 30, 30, 0.01},
}

// The posterior of linear regression, by 200 updates of one datum, of two, and by batches of more data than parameters.
func TestGaussNewtonWithAWidePrior(t *testing.T) {
	for _, c := range wideCases {
		x, y := c.data()
		design := mat.NewDense(wideData, c.d, x)
		var gram mat.SymDense
		gram.SymOuterK(1/(c.noise*c.noise), design.T())
		posterior := inverse(plus(&gram, 1/(c.sd*c.sd), identity(c.d, 1)))
		rhs := times(design.T(), y)
		for j := range rhs {
			rhs[j] /= c.noise * c.noise
		}
		mean := times(posterior, rhs)
		for _, size := range []int{1, 2, 100} {
			s := c.run(t, ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(c.noise), InitSD: c.sd}, x, y, size, wideData)
			what := fmt.Sprintf("%v, batches of %d", c, size)
			most := mat.Max(posterior)
			within(t, mean, values(s.Params.Flat.T()), c.meanTol(c.kappa(), math.Sqrt(most), mean), what+": mean")
			within(t, entries(posterior), values(s.Covariance.T()), c.eps()*c.kappa()*most, what+": covariance")
			assert.Equal(t, c.dtype, s.Root.T().DType())
		}
	}
}

// With fewer data than parameters the mean moves in the span of the inputs alone: XᵀA⁻¹y with A = XXᵀ + (noise/sd)² I.
// Rounding elsewhere would not be held back by data.
func TestGaussNewtonWithAWidePriorAndFewData(t *testing.T) {
	const n = 5
	for _, c := range wideCases {
		x, y := c.data()
		x, y = x[:n*c.d], y[:n]
		design := mat.NewDense(n, c.d, x)
		var gram mat.SymDense
		gram.SymOuterK(1, design)
		mean := times(design.T(), times(inverse(plus(&gram, c.noise*c.noise/c.sd/c.sd, identity(n, 1))), y))
		s := c.run(t, ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(c.noise), InitSD: c.sd}, x, y, 1, n)
		within(t, mean, values(s.Params.Flat.T()), c.eps()*(c.kappa()*c.noise+wideData*largest(mean)), c.String())
	}
}

func largest(v []float64) float64 {
	m := 0.0
	for _, x := range v {
		m = max(m, math.Abs(x))
	}
	return m
}

// The Fisher filter's equations in numbers of 400 bits, by the formula of Sherman and Morrison: with one datum to a
// batch P' = P − P g gᵀP/(1 + gᵀPg) and μ' = μ + P'g.
func TestDenseWithAWidePrior(t *testing.T) {
	bit := func(v float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(v) }
	zero := func() *big.Float { return bit(0) }
	for _, c := range wideCases {
		x, y := c.data()
		d, kappa := c.d, 0.0
		mu, p := make([]*big.Float, d), make([]*big.Float, d*d)
		for i := range mu {
			mu[i] = zero()
		}
		for i := range p {
			p[i] = zero()
			if i%(d+1) == 0 {
				p[i] = bit(c.sd * c.sd)
			}
		}
		for i := range wideData {
			r, norm := bit(y[i]), 0.0
			for j := range d {
				r.Sub(r, zero().Mul(bit(x[i*d+j]), mu[j]))
			}
			r.Quo(r, bit(c.noise*c.noise))
			g, pg, total := make([]*big.Float, d), make([]*big.Float, d), bit(1)
			for j := range d {
				g[j] = zero().Mul(r, bit(x[i*d+j]))
				v, _ := g[j].Float64()
				norm = math.Hypot(norm, v)
			}
			kappa = max(kappa, c.sd*norm)
			for j := range d {
				pg[j] = zero()
				for k := range d {
					pg[j].Add(pg[j], zero().Mul(p[j*d+k], g[k]))
				}
				total.Add(total, zero().Mul(pg[j], g[j]))
			}
			for j := range d {
				mu[j].Add(mu[j], zero().Quo(pg[j], total)) // P'g = Pg/(1 + gᵀPg)
				for k := range d {
					p[j*d+k].Sub(p[j*d+k], zero().Quo(zero().Mul(pg[j], pg[k]), total))
				}
			}
		}
		mean, cov := make([]float64, d), make([]float64, d*d)
		for j := range mu {
			mean[j], _ = mu[j].Float64()
		}
		for j := range p {
			cov[j], _ = p[j].Float64()
		}
		s := c.run(t, ekf.Dense{LR: one, PerDatum: curvature.Likelihood(linear, gaussianOuter(c.noise)), InitSD: c.sd}, x, y,
			1, wideData)
		within(t, mean, values(s.Params.Flat.T()), c.meanTol(kappa, math.Sqrt(largest(cov)), mean), c.String()+": mean")
		within(t, cov, values(s.Covariance.T()), c.eps()*kappa*largest(cov), c.String()+": covariance")
	}
}

// A likelihood that is not log-concave has no factor. While the prior outweighs it the update is P'⁻¹ = P⁻¹ + F, and
// then the error can be asked for.
func TestGaussNewtonWithNegativeCurvature(t *testing.T) {
	x, y := normals(1, 6), normals(2, 3)
	batch := rows(x, y, []int{0, 1, 2})
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor { // second derivative 0.2 − 1.2 z² at z = 0, and so on
		square := z.Square()
		return square.Mul(0.1).Sub(square.Square().Mul(0.1))
	}
	mu := []float64{0.1, -0.2}
	precision := identity(2, 1)
	rhs := make([]float64, 2)
	negative := 0
	for i := range 3 {
		row := x[2*i : 2*i+2]
		z := row[0]*mu[0] + row[1]*mu[1]
		h := -0.2 + 1.2*z*z
		if h < 0 {
			negative++
		}
		precision.SymRankOne(precision, h, mat.NewVecDense(2, row))
		for j := range rhs {
			rhs[j] += (0.2*z - 0.4*z*z*z) * row[j]
		}
	}
	assert.Positive(t, negative)
	cov := inverse(precision)
	want := times(cov, rhs)
	for j := range want {
		want[j] += mu[j]
	}
	l := layout(infer.Shapes{"w": {2}})
	transform := build(t, ekf.GaussNewton{Forward: linear, Outer: outer}, nil)
	s, _ := update(t, transform, begin(t, transform, params(l, mu, 0)), batch)
	within(t, entries(cov), values(s.(ekf.DenseState).Covariance.T()), 1e-13, "covariance")
	within(t, want, values(s.Position().Flat.T()), 1e-13, "mean")

	transform = build(t, ekf.GaussNewton{Forward: linear, Outer: outer, InitSD: 10}, nil)
	_, _, err := transform.Update(begin(t, transform, params(l, mu, 0)), batch)
	assert.ErrorIs(t, err, curvature.ErrIndefinite)
}
