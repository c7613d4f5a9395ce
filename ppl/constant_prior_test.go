package ppl_test

import (
	"context"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// constant are priors with constant parameters on every kind of support and map.
func constant() map[string]dist.Distribution {
	eye := torch.New([]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, 3, 3)
	zero, ones := torch.Zeros(3), torch.Zeros(3).Add(1)
	return map[string]dist.Distribution{
		"Beta":                        dist.Beta(2, 3),
		"Beta, uniform":               dist.Beta(1, 1),
		"Cauchy":                      dist.Cauchy(0, 1),
		"Chi2":                        dist.Chi2(4),
		"Dirichlet":                   dist.Dirichlet(ones),
		"Exponential":                 dist.Exponential(1),
		"Gamma":                       dist.Gamma(2, 1),
		"GaussianRandomWalk":          dist.GaussianRandomWalk(3, 1),
		"GeneralizedNormal":           dist.GeneralizedNormal(0, 1, 2),
		"Gumbel":                      dist.Gumbel(0, 1),
		"HalfCauchy":                  dist.HalfCauchy(1),
		"HalfNormal":                  dist.HalfNormal(1),
		"Independent":                 dist.Independent(dist.Normal(zero, 1), 1),
		"InverseGamma":                dist.InverseGamma(3, 1),
		"InverseGaussian":             dist.InverseGaussian(1, 1),
		"InverseWishartCholesky":      dist.InverseWishartCholesky(5, eye),
		"LKJCholesky":                 dist.LKJCholesky(3, 1),
		"LKJCholesky of 2":            dist.LKJCholesky(2, 1),
		"Laplace":                     dist.Laplace(0, 1),
		"LogNormal":                   dist.LogNormal(0, 1),
		"Logistic":                    dist.Logistic(0, 1),
		"LowRankMultivariateNormal":   dist.LowRankMultivariateNormal(zero, eye, ones),
		"Mixture":                     dist.Mixture(ones.Div(3), dist.Normal(0, 1), dist.Normal(1, 1), dist.Normal(2, 1)),
		"MixtureSameFamily":           dist.MixtureSameFamily(ones.Div(3), dist.Normal(zero, 1)),
		"MultivariateNormal":          dist.MultivariateNormal(zero, eye),
		"MultivariateNormalCholesky":  dist.MultivariateNormalCholesky(zero, eye),
		"MultivariateNormalPrecision": dist.MultivariateNormalPrecision(zero, eye),
		"MultivariateStudentT":        dist.MultivariateStudentT(5, zero, eye),
		"Normal":                      dist.Normal(0, 1),
		"Pareto":                      dist.Pareto(1, 3),
		"SkewNormal":                  dist.SkewNormal(0, 1, 2),
		"StudentT":                    dist.StudentT(5, 0, 1),
		"Transformed":                 dist.Transformed(dist.Normal(0, 1), bijector.Affine(1, 2)),
		"Truncated":                   dist.Truncated(dist.Gamma(2, 1), 1, 3),
		"TruncatedNormal":             dist.TruncatedNormal(0, 1, -1, 2),
		"Uniform":                     dist.Uniform(-1, 2),
		"VonMises":                    dist.VonMises(0, 2),
		"Weibull":                     dist.Weibull(1, 2),
		"WishartCholesky":             dist.WishartCholesky(5, eye),
		"ZeroSumNormal":               dist.ZeroSumNormal(3, 2),
		"ImproperUniform, ZeroSum":    dist.ImproperUniform(support.ZeroSum, nil, []int{3}),
		"ImproperUniform, Ordered":    dist.ImproperUniform(support.Ordered, nil, []int{3}),
		"Flat":                        dist.Flat(3),
		"FlatPositive":                dist.FlatPositive(3),
	}
}

// A part of the density may be constant: the density of a uniform prior, the log Jacobian of a linear map. Its
// gradient is zero, so that of the whole is what differences of the whole give.
func TestConstantPriorsHaveGradients(t *testing.T) {
	data := infer.Batch{"y": torch.New([]float64{0.5, -1, 2})}
	for name, prior := range constant() {
		for _, beside := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				batch := infer.Batch{}
				if beside {
					batch = data
				}
				p, err := ppl.Compile(func(c *ppl.Ctx) {
					c.Sample("x", prior)
					if beside {
						mu := c.Sample("mu", dist.Normal(0, 5))
						c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
					}
				}, batch)
				require.NoError(t, err)
				at := make([]float64, p.Layout().Dim())
				for i := range at {
					at[i] = 0.3 - 0.17*float64(i)
				}
				value := func(weight float64, x []float64) (v float64, grad []float64) {
					g, err := infer.NewGradient(p.Target())
					require.NoError(t, err)
					require.NoError(t, torch.Do(func(*torch.Scope) error {
						e, err := g.ValueAndGrad(torch.Must(infer.NewParams(p.Layout(), x)), p.Batch(), weight)
						if err == nil {
							v, grad = e.Value.Item(), torch.Must(torch.ToSlice[float64](e.Grad))
						}
						return err
					}))
					return v, grad
				}
				for weight := range 2 {
					_, grad := value(float64(weight), at)
					for i := range at {
						const h = 1e-5 // the error of a difference is of order h², beside rounding over h
						up, down := append([]float64{}, at...), append([]float64{}, at...)
						up[i] += h
						down[i] -= h
						a, _ := value(float64(weight), up)
						b, _ := value(float64(weight), down)
						assert.InDelta(t, (a-b)/(2*h), grad[i], 1e-6, "element %d, Jacobian %d", i, weight)
					}
				}
				compiled, _, err := infer.Compile(p.Target(), torch.Must(infer.NewParams(p.Layout(), at)), p.Batch(),
					native.Options{})
				require.NoError(t, err)
				require.NotNil(t, compiled)
				for weight := range 2 {
					_, want := value(float64(weight), at)
					got := make([]float64, len(at))
					_, err := compiled.Eval(at, float64(weight), got)
					require.NoError(t, err)
					assert.InDeltaSlice(t, want, got, 1e-12, "compiled, Jacobian %d", weight) // rounding
				}
			})
		}
	}
}

// Three data with mean 0.5 about effects x with sum 0 and a normal prior of sd 2: the common mean takes 0.5 up, and x
// is 4/5 of what is left.
func TestEveryMethodTakesAConstantJacobian(t *testing.T) {
	batch := infer.Batch{"y": torch.New([]float64{0.5, -1, 2})}
	for _, tier := range []native.Tier{native.Auto, native.Eager} {
		if tier == native.Eager && !testkit.Slow {
			continue
		}
		for name, m := range map[string]infer.Method{
			"NUTS": hmc.NUTS{}, "HMC": hmc.HMC{}, "MAMS": hmc.MAMS{}, "MCLMC": hmc.MCLMC{},
			"Exchange": hmc.Exchange{Ladder: []float64{1, 3}},
			"SMC":      evidence.SMC{}, "SGLD": sgmcmc.SGLD{LR: infer.Constant(0.01)}, "Diag": vi.Diag{}, "Dense": vi.Dense{},
			"SVI": svi.SVI{}, "Pathfinder": pathfinder.Pathfinder{}, "Hessian": laplace.DenseHessian{},
			"LBFGS": optim.LBFGS{}, "Adam": optim.Adam{},
		} {
			t.Run(name, func(t *testing.T) {
				p, err := ppl.Compile(func(c *ppl.Ctx) {
					mu := c.Sample("mu", dist.Normal(0, 5))
					x := c.Sample("x", dist.ZeroSumNormal(3, 2))
					c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu.Add(x), 1), c.Data("y")) })
				}, batch)
				require.NoError(t, err)
				d, err := infer.Sample(context.Background(), p, m, infer.Options{Seed: 1, Native: tier,
					Observer: infer.Silent})
				require.NoError(t, err)
				mean, err := d.Mean("x")
				require.NoError(t, err)
				for i, want := range []float64{0, -1.2, 1.2} {
					// 4000 draws of sd 0.73; those of stochastic gradients have a twentieth of the effective size.
					assert.InDelta(t, want, mean[i], 0.15, "element %d", i)
				}
			})
		}
	}
}
