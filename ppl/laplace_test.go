package ppl_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// tiles is the graph of a grid, with an area alone at its end.
func tiles(rows, columns int) *dist.Graph {
	g := &dist.Graph{Neighbours: make([][]int, rows*columns+1)}
	join := func(i, j int) {
		g.Neighbours[i], g.Neighbours[j] = append(g.Neighbours[i], j), append(g.Neighbours[j], i)
	}
	for i := range rows * columns {
		if (i+1)%columns > 0 {
			join(i, i+1)
		}
		if i+columns < rows*columns {
			join(i, i+columns)
		}
	}
	return g
}

// densityAt is the log density of a program and its gradient.
func densityAt(t *testing.T, p *ppl.Program, x []float64) (float64, []float64) {
	gradient, err := infer.NewGradient(p.Target())
	require.NoError(t, err)
	var value float64
	var grad []float64
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		point, err := infer.NewParams(p.Layout(), x)
		require.NoError(t, err)
		e, err := gradient.ValueAndGrad(point, p.Batch(), 0)
		require.NoError(t, err)
		value = e.Values[0]
		grad = e.Grad.Values()
		return nil
	}))
	return value, grad
}

// latentModels are models of 13 counts or binary data with each law of a latent variable.
func latentModels() map[string]ppl.Model {
	graph, connected := tiles(3, 4), &dist.Graph{Neighbours: tiles(1, 13).Neighbours[:13]}
	x := make([]float64, 13)
	for i := range x {
		x[i] = float64(i) / 3
	}
	squares := torch.New(x).Unsqueeze(1).Sub(torch.New(x).Unsqueeze(0)).Square()
	torch.Detach(squares)
	kernel := func(scale, reach torch.Tensor) torch.Tensor {
		return squares.Div(reach.Square()).Mul(-0.5).Exp().Mul(scale.Square()).
			Add(torch.New(make([]float64, 13)).Add(1e-6).Diag())
	}
	counts := func(f func(c *ppl.Ctx, scale torch.Tensor) torch.Tensor) ppl.Model {
		return func(c *ppl.Ctx) {
			mean := c.Sample("mean", dist.Normal(0, 2))
			scale := c.Sample("scale", dist.HalfNormal(1))
			eta := f(c, scale).Add(mean)
			c.Observe("y", dist.PoissonLog(eta), c.Data("y"))
		}
	}
	return map[string]ppl.Model{
		"ICAR": counts(func(c *ppl.Ctx, s torch.Tensor) torch.Tensor { return c.Sample("f", graph.ICAR(s)) }),
		"BYM2": counts(func(c *ppl.Ctx, s torch.Tensor) torch.Tensor {
			rho := c.Sample("rho", dist.Beta(1, 1))
			return c.Sample("f", graph.BYM2(s, rho)).Slice(0, 0, 13)
		}),
		"CAR": counts(func(c *ppl.Ctx, s torch.Tensor) torch.Tensor {
			return c.Sample("f", connected.CAR(c.Sample("alpha", dist.Beta(2, 2)), s))
		}),
		"RandomWalk1": counts(func(c *ppl.Ctx, s torch.Tensor) torch.Tensor {
			return c.Sample("f", dist.RandomWalk(1, 13, s))
		}),
		"RandomWalk2": counts(func(c *ppl.Ctx, s torch.Tensor) torch.Tensor {
			return c.Sample("f", dist.RandomWalk(2, 13, s))
		}),
		"Matern": counts(func(c *ppl.Ctx, s torch.Tensor) torch.Tensor {
			f := c.Sample("f", dist.Matern(2, 10, c.Sample("range", dist.LogNormal(1, 0.5)), s))
			return f.Slice(0, 3, 16)
		}),
		"groups": func(c *ppl.Ctx) { // a mean that is not 0, several data of an element, and another parameter
			mean := c.Sample("mean", dist.Normal(0, 2))
			scale := c.Sample("scale", dist.HalfNormal(1))
			var f torch.Tensor
			c.Plate("groups", 4, func(c *ppl.Ctx) { f = c.Sample("f", dist.Normal(mean, scale)) })
			phi := c.Sample("phi", dist.Gamma(2, 0.5))
			eta := f.IndexSelect(0, torch.New([]int64{0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 0}))
			c.Observe("y", dist.NegativeBinomial(eta.Exp(), phi), c.Data("y"))
		},
		"process": counts(func(c *ppl.Ctx, s torch.Tensor) torch.Tensor {
			return c.Sample("f", dist.MultivariateNormal(0.3, kernel(s, c.Sample("reach", dist.LogNormal(0, 0.5)))))
		}),
		"factor": func(c *ppl.Ctx) { // binary data, and the factor of the covariance
			mean, scale := c.Sample("mean", dist.Normal(0, 2)), c.Sample("scale", dist.HalfNormal(1))
			reach := c.Sample("reach", dist.LogNormal(0, 0.5))
			f := c.Sample("f", dist.MultivariateNormalCholesky(mean, kernel(scale, reach).Cholesky()))
			c.Observe("y", dist.BernoulliLogits(f), c.Data("y").AtMost(1))
		},
		"outliers": func(c *ppl.Ctx) { // whose likelihood is not concave
			scale, reach := c.Sample("scale", dist.HalfNormal(1)), c.Sample("reach", dist.LogNormal(0, 0.5))
			f := c.Sample("f", dist.MultivariateNormal(1, kernel(scale, reach)))
			c.Observe("y", dist.StudentT(4, f, 0.5), c.Data("y"))
		},
	}
}

var latentCounts = []float64{1, 0, 3, 2, 5, 4, 1, 0, 0, 2, 7, 3, 1}

// The gradient is that of the log density: central differences, extrapolated from two steps, agree to 1e-6.
func TestMarginalLaplaceGradient(t *testing.T) {
	for name, m := range latentModels() {
		t.Run(name, func(t *testing.T) {
			p, err := ppl.MarginalLaplace(m, infer.Batch{"y": torch.New(latentCounts)}, "f")
			require.NoError(t, err)
			source := rand.New(rand.NewPCG(1, 2))
			for range 2 {
				x := make([]float64, p.Layout().Dim())
				for i := range x {
					x[i] = 0.5 * source.NormFloat64()
				}
				value, grad := densityAt(t, p, x)
				require.False(t, math.IsNaN(value) || math.IsInf(value, 0))
				for i := range x {
					difference := func(h float64) float64 {
						at := append([]float64{}, x...)
						at[i] += h
						above, _ := densityAt(t, p, at)
						at[i] -= 2 * h
						below, _ := densityAt(t, p, at)
						return (above - below) / (2 * h)
					}
					want := (4*difference(1e-3) - difference(2e-3)) / 3
					require.InDelta(t, want, grad[i], 1e-6*(1+math.Abs(want)), "%s", p.Layout().Sites[i].Name)
				}
			}
		})
	}
}

// With normal data the approximation is exact: the density is that of the data as a multivariate normal vector.
func TestMarginalLaplaceExact(t *testing.T) {
	graph := &dist.Graph{Neighbours: tiles(3, 4).Neighbours[:12]}
	y := make([]float64, 12)
	for i := range y {
		y[i] = math.Sin(float64(i) * 1.7)
	}
	for name, f := range map[string]func(scale any) dist.Distribution{
		"ICAR": func(s any) dist.Distribution { return graph.ICAR(s) },
		"CAR":  func(s any) dist.Distribution { return graph.CAR(0.7, s) },
		"BYM2": func(s any) dist.Distribution { return graph.BYM2(s, 0.4) },
		"walk": func(s any) dist.Distribution { return dist.RandomWalk(1, 12, s) },
		"grid": func(s any) dist.Distribution { return dist.Matern(3, 4, 2, s) },
		"independent": func(s any) dist.Distribution {
			return dist.Independent(dist.Normal(0.4, s).Expand(12), 1)
		},
	} {
		model := func(c *ppl.Ctx) {
			scale := c.Sample("scale", dist.HalfNormal(1))
			x := c.Sample("f", f(scale))
			c.Observe("y", dist.Normal(x.Slice(0, 0, 12), 0.3), c.Data("y"))
		}
		p, err := ppl.MarginalLaplace(model, infer.Batch{"y": torch.New(y)}, "f")
		require.NoError(t, err, name)
		at := func(scale float64) float64 { // log N(y; mean, C + 0.3² I)
			value := 0.0
			require.NoError(t, torch.Do(func(*torch.Scope) error {
				d := f(scale)
				mean := d.Mean()
				c := covarianceOf(t, d)
				cut := mat.NewSymDense(12, nil)
				r := mat.NewVecDense(12, nil)
				for i := range 12 {
					for j := i; j < 12; j++ {
						cut.SetSym(i, j, c.At(i, j))
					}
					cut.SetSym(i, i, c.At(i, i)+0.09)
					r.SetVec(i, y[i]-mean.At(i).Item())
				}
				var chol mat.Cholesky
				require.True(t, chol.Factorize(cut))
				z := mat.NewVecDense(12, nil)
				require.NoError(t, chol.SolveVecTo(z, r))
				value = -mat.Dot(r, z)/2 - chol.LogDet()/2 - 6*math.Log(2*math.Pi)
				value += dist.HalfNormal(1).LogProb(torch.Of(scale)).Item()
				return nil
			}))
			return value
		}
		for _, scale := range []float64{0.4, 1.5} {
			value, _ := densityAt(t, p, []float64{math.Log(scale)})
			require.InDelta(t, at(scale), value, 1e-7, name)
		}
	}
}

// covarianceOf is B Q⁻¹ Bᵀ, with B the axes of unconstrained space and Q of the density there, which is quadratic:
// Qᵢⱼ = (q(eᵢ + eⱼ) − q(eᵢ) − q(eⱼ))/2, q(z) = 2 (log p(0) − log p(z)).
func covarianceOf(t *testing.T, d dist.Distribution) *mat.Dense {
	b, err := bijector.For(d.Support())
	require.NoError(t, err)
	n := int(d.EventShape()[0])
	m := int(b.InverseShape([]int{n})[0])
	axes := mat.NewDense(n, m, nil)
	q := func(z []float64) float64 {
		x := b.Forward(torch.New(z)).Add(d.Mean())
		return 2 * d.LogProb(d.Mean()).Sub(d.LogProb(x)).Item()
	}
	axis := func(all ...int) []float64 {
		z := make([]float64, m)
		for _, i := range all {
			z[i] = 1
		}
		return z
	}
	precision := mat.NewSymDense(m, nil)
	for i := range m {
		axes.SetCol(i, b.Forward(torch.New(axis(i))).Values())
		precision.SetSym(i, i, q(axis(i)))
		for j := range i {
			precision.SetSym(i, j, (q(axis(i, j))-q(axis(i))-q(axis(j)))/2)
		}
	}
	var chol mat.Cholesky
	require.True(t, chol.Factorize(precision))
	var inverse mat.SymDense
	require.NoError(t, chol.InverseTo(&inverse))
	var out mat.Dense
	out.Product(axes, &inverse, axes.T())
	return &out
}

// Draws of the variable are from N(f̂, H⁻¹): those of a model whose posterior is normal have its moments.
func TestMarginalLaplaceDraws(t *testing.T) {
	graph := &dist.Graph{Neighbours: tiles(2, 3).Neighbours[:6]}
	y := []float64{1, -1, 2, 0, 0.5, -2}
	model := func(c *ppl.Ctx) {
		scale := c.Sample("scale", dist.LogNormal(0, 1e-3)) // all but known
		f := c.Sample("f", graph.ICAR(scale))
		c.Deterministic("twice", f.Mul(2))
		c.Observe("y", dist.Normal(f, 0.5), c.Data("y"))
	}
	p, err := ppl.MarginalLaplace(model, infer.Batch{"y": torch.New(y)}, "f")
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Seed: 3, Draws: 1500,
		Observer: infer.Silent})
	require.NoError(t, err)
	// On vectors of sum 0 the precision is R + 4 I, whose inverse there is that of R + 4 I less the mean's 1/(4·6).
	h := mat.NewSymDense(6, nil)
	for i, all := range graph.Neighbours {
		h.SetSym(i, i, float64(len(all))+4)
		for _, j := range all {
			h.SetSym(i, j, -1)
		}
	}
	var chol mat.Cholesky
	require.True(t, chol.Factorize(h))
	var c mat.SymDense
	require.NoError(t, chol.InverseTo(&c))
	mean := 0.0
	for _, v := range y {
		mean += v / 6
	}
	f, err := d.Values("f")
	require.NoError(t, err)
	twice, err := d.Values("twice")
	require.NoError(t, err)
	n := 0.0
	var sum, squares [6]float64
	for k, chain := range f {
		for m, row := range chain {
			total := 0.0
			n++
			for i, v := range row {
				total += v
				sum[i] += v
				squares[i] += v * v
				require.InDelta(t, 2*v, twice[k][m][i], 1e-12)
			}
			require.InDelta(t, 0, total, 1e-9)
		}
	}
	for i := range 6 {
		want := 0.0
		for j := range 6 {
			want += c.At(i, j) * 4 * (y[j] - mean)
		}
		variance := c.At(i, i) - 1.0/24
		require.InDelta(t, want, sum[i]/n, 5*math.Sqrt(variance/n))
		require.InDelta(t, variance, squares[i]/n-sum[i]/n*sum[i]/n, 5*variance*math.Sqrt(2/n))
	}
	loo, err := p.LOO(d)
	require.NoError(t, err)
	require.Len(t, loo.Pointwise, 6)
	predicted, err := p.Predict(d, 1)
	require.NoError(t, err)
	require.Equal(t, 6000, predicted.Total())
	_, err = p.Check(d, 1)
	require.NoError(t, err)
}

// The mean of draws is that of the posterior to the first order: of counts it differs from the mode by some per cent of
// the count's inverse, of which a quarter is allowed, and four standard errors. Exact means are sums over a grid.
func TestMarginalLaplaceMean(t *testing.T) {
	y := []float64{4, 9, 20}
	p, err := ppl.MarginalLaplace(func(c *ppl.Ctx) {
		scale := c.Sample("scale", dist.LogNormal(0, 1e-3)) // all but known
		c.Observe("y", dist.PoissonLog(c.Sample("f", dist.Normal(0, scale).Expand(3)).Add(1)), c.Data("y"))
	}, infer.Batch{"y": torch.New(y)}, "f")
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Seed: 3, Draws: 1500,
		Observer: infer.Silent})
	require.NoError(t, err)
	values, err := d.Values("f")
	require.NoError(t, err)
	for i, count := range y {
		var exact, total, square, mode, n, mean float64
		highest := math.Inf(-1)
		density := func(f float64) float64 { return count*f - math.Exp(f+1) - f*f/2 }
		for f := -4.0; f < 6; f += 1e-3 {
			if v := density(f); v > highest {
				highest, mode = v, f
			}
		}
		for f := -4.0; f < 6; f += 1e-3 {
			w := math.Exp(density(f) - highest)
			total, exact, square = total+w, exact+w*f, square+w*f*f
		}
		exact /= total
		for _, chain := range values {
			for _, row := range chain {
				mean += row[i]
				n++
			}
		}
		se := math.Sqrt((square/total - exact*exact) / n)
		require.InDelta(t, exact, mean/n, math.Abs(mode-exact)/4+4*se)
		require.Greater(t, math.Abs(mode-exact), math.Abs(mode-exact)/4+4*se) // which tells the two apart
	}
}

func TestMarginalLaplaceErrors(t *testing.T) {
	batch := infer.Batch{"y": torch.New(latentCounts)}
	scale := func(c *ppl.Ctx) torch.Tensor { return c.Sample("scale", dist.HalfNormal(1)) }
	for want, m := range map[string]ppl.Model{
		`no latent variable "f"`: func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, scale(c)), c.Data("y")) },
		"no latent variable beside": func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(c.Sample("f", dist.RandomWalk(1, 13, 1)), 1), c.Data("y"))
		},
		"another latent variable has a law that depends on": func(c *ppl.Ctx) {
			f := c.Sample("f", dist.RandomWalk(1, 13, scale(c)))
			c.Observe("y", dist.Normal(f, c.Sample("noise", dist.LogNormal(f.At(0), 1))), c.Data("y"))
		},
		"depends on element 0": func(c *ppl.Ctx) {
			f := c.Sample("f", dist.Normal(0, scale(c)).Expand(13))
			c.Observe("y", dist.Normal(f.CumSum(0), 1), c.Data("y"))
		},
		"cannot be integrated out": func(c *ppl.Ctx) {
			s := scale(c)
			c.Observe("y", dist.Normal(c.Sample("f", dist.StudentT(3, 0, s).Expand(13)), 1), c.Data("y"))
		},
		"it is a Go function": func(c *ppl.Ctx) {
			f := c.Sample("f", dist.RandomWalk(1, 13, scale(c)))
			c.Observe("y", dist.Normal(f, 1), c.Data("y"))
			c.Density("more", func(x, grad [][]float64) float64 {
				grad[0][0] = -x[0][0]
				return -x[0][0] * x[0][0] / 2
			}, f.At(0))
		},
	} {
		_, err := ppl.MarginalLaplace(m, batch, "f")
		require.ErrorContains(t, err, want, fmt.Sprint(want))
	}
}
