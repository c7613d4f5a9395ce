package lower_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// unknowns hands out parts of a point.
type unknowns struct {
	x  torch.Tensor
	at int
}

// dim is how many numbers a case may take.
const dim = 40

func (u *unknowns) real(shape ...int) torch.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	u.at += n
	return u.x.Slice(0, u.at-n, u.at).Reshape(shape...)
}

func (u *unknowns) pos(shape ...int) torch.Tensor  { return u.real(shape...).Exp() }
func (u *unknowns) unit(shape ...int) torch.Tensor { return u.real(shape...).Sigmoid() }
func (u *unknowns) simplex(n int) torch.Tensor     { return u.real(n).Softmax(-1) }

// spd is a positive definite matrix, lower a factor of one.
func (u *unknowns) lower(n int) torch.Tensor {
	return bijector.LowerCholesky().Forward(u.real(n * (n + 1) / 2))
}

func (u *unknowns) spd(n int) torch.Tensor {
	l := u.lower(n)
	return l.MatMul(l.Transpose())
}

// data are what a case may read: the batch.
type data struct{ y, counts, bits, class, unit, x torch.Tensor }

// density is a density of a case: what counts is its sum.
type density func(u *unknowns, d data) torch.Tensor

func logp(x torch.Tensor, of dist.Distribution) torch.Tensor { return of.LogProb(x).Sum() }

// densities are the log density of every distribution, in its value where it is continuous and in its parameters.
var densities = map[string]density{
	"Bernoulli": func(u *unknowns, d data) torch.Tensor {
		return logp(d.bits, dist.Bernoulli(u.unit(6)))
	},
	"BernoulliLogits": func(u *unknowns, d data) torch.Tensor {
		return logp(d.bits, dist.BernoulliLogits(u.real(6)))
	},
	"Beta": func(u *unknowns, d data) torch.Tensor {
		return logp(u.unit(6), dist.Beta(u.pos(6), u.pos(6)))
	},
	"BetaBinomial": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts, dist.BetaBinomial(9, u.pos(6), u.pos(6)))
	},
	"Binomial": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts, dist.Binomial(9, u.unit(6)))
	},
	"BinomialLogits": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts, dist.BinomialLogits(9, u.real(6)))
	},
	"Categorical": func(u *unknowns, d data) torch.Tensor {
		return logp(d.class, dist.Categorical(u.simplex(3)))
	},
	"CategoricalLogits": func(u *unknowns, d data) torch.Tensor {
		return logp(d.class, dist.CategoricalLogits(u.real(6, 3)))
	},
	"Cauchy": func(u *unknowns, d data) torch.Tensor { return logp(u.real(6), dist.Cauchy(u.real(), u.pos())) },
	"Chi2":   func(u *unknowns, d data) torch.Tensor { return logp(u.pos(6), dist.Chi2(u.pos())) },
	"Delta": func(u *unknowns, d data) torch.Tensor {
		x := u.real(6)
		return logp(d.y, dist.Delta(d.y, x.Square()))
	},
	"Dirichlet": func(u *unknowns, d data) torch.Tensor {
		return logp(u.simplex(4), dist.Dirichlet(u.pos(4)))
	},
	"Exponential": func(u *unknowns, d data) torch.Tensor { return logp(u.pos(6), dist.Exponential(u.pos())) },
	"Gamma": func(u *unknowns, d data) torch.Tensor {
		return logp(u.pos(6), dist.Gamma(u.pos(), u.pos(6)))
	},
	"Geometric": func(u *unknowns, d data) torch.Tensor { return logp(d.counts, dist.Geometric(u.unit(6))) },
	"BernoulliLogitGLM": func(u *unknowns, d data) torch.Tensor {
		return logp(d.bits, dist.BernoulliLogitGLM(d.x, u.real(3), u.real()))
	},
	"PoissonLogGLM": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts, dist.PoissonLogGLM(d.x, u.real(3), u.real()))
	},
	"NormalGLM": func(u *unknowns, d data) torch.Tensor {
		return logp(d.y, dist.NormalGLM(d.x, u.real(3), u.real(), u.pos()))
	},
	"CategoricalLogitGLM": func(u *unknowns, d data) torch.Tensor {
		return logp(d.class, dist.CategoricalLogitGLM(d.x, u.real(3, 3), u.real(3)))
	},
	"Gumbel": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.Gumbel(u.real(), u.pos()))
	},
	"HalfCauchy": func(u *unknowns, d data) torch.Tensor { return logp(u.pos(6), dist.HalfCauchy(u.pos())) },
	"HalfNormal": func(u *unknowns, d data) torch.Tensor { return logp(u.pos(6), dist.HalfNormal(u.pos())) },
	"ImproperUniform": func(u *unknowns, d data) torch.Tensor {
		x := u.pos(6)
		return logp(x, dist.ImproperUniform(support.Positive, []int{6}, nil)).Add(x.Log().Sum())
	},
	"Flat": func(u *unknowns, d data) torch.Tensor {
		x := u.real(6)
		return logp(x, dist.Flat(6)).Add(x.Square().Sum())
	},
	"FlatPositive": func(u *unknowns, d data) torch.Tensor {
		x := u.pos(6)
		return logp(x, dist.FlatPositive(6)).Add(x.Sum())
	},
	"Independent": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(2, 3), dist.Independent(dist.Normal(u.real(2, 3), u.pos(3)), 1))
	},
	"InverseGamma": func(u *unknowns, d data) torch.Tensor {
		return logp(u.pos(6), dist.InverseGamma(u.pos(), u.pos(6)))
	},
	"Laplace": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.Laplace(u.real(), u.pos()))
	},
	"LKJCholesky": func(u *unknowns, d data) torch.Tensor {
		return logp(bijector.CorrCholesky().Forward(u.real(6)), dist.LKJCholesky(4, u.pos()))
	},
	"Logistic": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.Logistic(u.real(), u.pos()))
	},
	"LogNormal": func(u *unknowns, d data) torch.Tensor {
		return logp(u.pos(6), dist.LogNormal(u.real(), u.pos()))
	},
	"LowRankMultivariateNormal": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(4), dist.LowRankMultivariateNormal(u.real(4), u.real(4, 2), u.pos(4)))
	},
	"Mixture": func(u *unknowns, d data) torch.Tensor {
		return logp(d.y, dist.Mixture(u.simplex(2), dist.Normal(u.real(), u.pos()), dist.Cauchy(u.real(), u.pos())))
	},
	"MixtureSameFamily": func(u *unknowns, d data) torch.Tensor {
		return logp(d.y, dist.MixtureSameFamily(u.simplex(3), dist.Normal(u.real(3), u.pos(3))))
	},
	"Multinomial": func(u *unknowns, d data) torch.Tensor {
		return logp(torch.New([]float64{2, 3, 4}), dist.Multinomial(9, u.simplex(3)))
	},
	"MultinomialLogits": func(u *unknowns, d data) torch.Tensor {
		return logp(torch.New([]float64{2, 3, 4}), dist.MultinomialLogits(9, u.real(3)))
	},
	"MultivariateNormal": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(3), dist.MultivariateNormal(u.real(3), u.spd(3)))
	},
	"MultivariateNormalPrecision": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(3), dist.MultivariateNormalPrecision(u.real(3), u.spd(3)))
	},
	"MultivariateNormalCholesky": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(2, 3), dist.MultivariateNormalCholesky(u.real(3), u.lower(3)))
	},
	"NegativeBinomial": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts, dist.NegativeBinomial(u.pos(6), u.pos()))
	},
	"NegativeBinomialProbs": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts, dist.NegativeBinomialProbs(u.pos(), u.unit(6)))
	},
	"NegativeBinomialLogits": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts, dist.NegativeBinomialLogits(u.pos(), u.real(6)))
	},
	"Normal": func(u *unknowns, d data) torch.Tensor { return logp(u.real(6), dist.Normal(u.real(), u.pos())) },
	"OrderedLogistic": func(u *unknowns, d data) torch.Tensor {
		return logp(d.class, dist.OrderedLogistic(u.real(6), bijector.Ordered().Forward(u.real(2))))
	},
	"Pareto": func(u *unknowns, d data) torch.Tensor {
		scale := u.pos()
		return logp(u.pos(6).Add(1).Mul(scale), dist.Pareto(scale, u.pos()))
	},
	"Poisson":    func(u *unknowns, d data) torch.Tensor { return logp(d.counts, dist.Poisson(u.pos(6))) },
	"PoissonLog": func(u *unknowns, d data) torch.Tensor { return logp(d.counts, dist.PoissonLog(u.real(6))) },
	"RandomWalk": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.RandomWalk(1, 6, u.pos())).Add(logp(u.real(6), dist.RandomWalk(2, 6, u.pos())))
	},
	"Matern": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.Matern(2, 3, u.pos(), u.pos()))
	},
	"GaussianRandomWalk": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.GaussianRandomWalk(6, u.pos()))
	},
	"DirichletMultinomial": func(u *unknowns, d data) torch.Tensor {
		return logp(torch.New([]float64{2, 0, 5, 2}), dist.DirichletMultinomial(9, u.pos(4)))
	},
	"SkewNormal": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.SkewNormal(u.real(), u.pos(), u.real()))
	},
	"InverseGaussian": func(u *unknowns, d data) torch.Tensor {
		return logp(u.pos(6), dist.InverseGaussian(u.pos(), u.pos()))
	},
	"GeneralizedNormal": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.GeneralizedNormal(u.real(), u.pos(), u.pos()))
	},
	"WishartCholesky": func(u *unknowns, d data) torch.Tensor {
		return logp(u.lower(3), dist.WishartCholesky(u.pos().Add(2), u.lower(3)))
	},
	"InverseWishartCholesky": func(u *unknowns, d data) torch.Tensor {
		return logp(u.lower(3), dist.InverseWishartCholesky(u.pos().Add(2), u.lower(3)))
	},
	"ZeroSumNormal": func(u *unknowns, d data) torch.Tensor {
		return logp(bijector.ZeroSum().Forward(u.real(2, 4)), dist.ZeroSumNormal(5, u.pos(2)))
	},
	"MultivariateStudentT": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(2, 3), dist.MultivariateStudentT(u.pos(), u.real(3), u.lower(3)))
	},
	"StudentT": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6), dist.StudentT(u.pos(), u.real(), u.pos()))
	},
	"Transformed": func(u *unknowns, d data) torch.Tensor {
		return logp(u.pos(6), dist.Transformed(dist.Normal(u.real(), u.pos()), bijector.Affine(u.real(), 2), bijector.Exp()))
	},
	"Truncated": func(u *unknowns, d data) torch.Tensor {
		return logp(u.pos(6), dist.Truncated(dist.Logistic(u.real(), u.pos()), 0, 50))
	},
	"incomplete gamma functions": func(u *unknowns, d data) torch.Tensor {
		return logp(u.pos(6), dist.Truncated(dist.Gamma(u.pos(6), u.pos()), 0, 90)).Add(
			dist.InverseGamma(u.pos().Mul(8), 1).(dist.CDFer).CDF(u.pos(6)).Sum())
	},
	"Censored": func(u *unknowns, d data) torch.Tensor {
		return logp(d.unit.Mul(3).AtLeast(0.2).AtMost(2.5), dist.Censored(dist.Gamma(u.pos(), u.unit(6).Mul(9)), 0.2, 2.5))
	},
	"Censored counts": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts.AtMost(3), dist.Censored(dist.NegativeBinomial(u.pos(6), u.pos()), 0, 3))
	},
	"Binned": func(u *unknowns, d data) torch.Tensor {
		return logp(d.class, dist.Binned(dist.Logistic(u.real(6), u.pos()), torch.New([]float64{-1, 0.5})))
	},
	"tails of the skew normal distribution": func(u *unknowns, d data) torch.Tensor {
		skew := dist.SkewNormal(u.real(6).Tanh(), u.unit().Add(0.5), u.real().Tanh().Mul(3))
		return weighed(dist.LogCDF(skew, d.y)).Add(weighed(dist.LogSurvival(skew, d.y)))
	},
	"incomplete beta functions": func(u *unknowns, d data) torch.Tensor {
		x, beta := u.unit(6), dist.Beta(u.pos(6), u.pos())
		return weighed(dist.LogCDF(beta, x)).Add(weighed(dist.LogSurvival(beta, x))).Add(
			weighed(dist.LogInterval(dist.Binomial(9, u.unit(6)), -1, d.counts)))
	},
	"TruncatedNormal": func(u *unknowns, d data) torch.Tensor {
		return logp(u.unit(6), dist.TruncatedNormal(u.real(), u.pos(), 0, u.pos().Add(1)))
	},
	"Uniform": func(u *unknowns, d data) torch.Tensor {
		return logp(u.unit(6), dist.Uniform(0, u.pos(6).Add(1)))
	},
	"VonMises": func(u *unknowns, d data) torch.Tensor {
		return logp(u.real(6).Tanh(), dist.VonMises(u.real(), u.pos()))
	},
	"Weibull": func(u *unknowns, d data) torch.Tensor { return logp(u.pos(6), dist.Weibull(u.pos(), u.pos())) },
	"ZeroInflated": func(u *unknowns, d data) torch.Tensor {
		return logp(d.counts, dist.ZeroInflated(u.unit(), dist.Poisson(u.pos(6))))
	},
}

// both is a test density that goes through a bijector: forward, and back again. Each element has a weight of its own,
// so that no two may change places, and a logarithm, which keeps the digits of large ones.
func both(b bijector.Bijector, shape ...int) density {
	return func(u *unknowns, _ data) torch.Tensor {
		x := u.real(shape...)
		y := b.Forward(x)
		back := b.Inverse(y)
		change := bijector.LogDensityChange(b, x, y).Sum()
		return weighed(y.Abs().Log1p().Add(y.Tanh())).Add(weighed(back.Square())).Add(change)
	}
}

// weighed is the sum of the elements of x, each with another weight.
func weighed(x torch.Tensor) torch.Tensor {
	n := x.Numel()
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1 + 0.3*float64(i)
	}
	return x.Reshape(-1).Mul(torch.New(weights)).Sum()
}

// maps are all bijectors.
var maps = map[string]density{
	"Identity": both(bijector.Identity(), 4), "Exp": both(bijector.Exp(), 4), "Softplus": both(bijector.Softplus(), 4),
	"Sigmoid": both(bijector.Sigmoid(), 4), "Affine": both(bijector.Affine(2, 3), 4),
	"Interval": both(bijector.Interval(-1, 4), 4), "GreaterThan": both(bijector.GreaterThan(2), 4),
	"LessThan": both(bijector.LessThan(2), 4), "Ordered": both(bijector.Ordered(), 2, 4),
	"PositiveOrdered": both(bijector.PositiveOrdered(), 4), "StickBreaking": both(bijector.StickBreaking(), 2, 4),
	"ZeroSum":    both(bijector.ZeroSum(), 2, 4),
	"UnitVector": both(bijector.UnitVector(), 4), "Permute": both(bijector.Permute(2, 0, 1), 3),
	"LowerCholesky": both(bijector.LowerCholesky(), 6), "PositiveDefinite": both(bijector.PositiveDefinite(), 6),
	"CorrCholesky": both(bijector.CorrCholesky(), 6),
	"Chain":        both(bijector.Chain(bijector.Exp(), bijector.Affine(1, 2)), 4),
	"Inverse":      both(bijector.Chain(bijector.Exp(), bijector.Inverse(bijector.Softplus())), 4),
	"Independent":  both(bijector.Independent(bijector.Exp(), 1), 2, 3),
}

// densitySource is a case as the recorder evaluates it.
func densitySource(f density) lower.Source {
	tensor := func(v []float64, shape ...int) *ts.Tensor { return torch.New(v, shape...).T() }
	s := lower.Source{Dim: dim, Batch: []lower.Named{
		{Name: "y", Tensor: tensor([]float64{-1.2, 0.3, 2.5, 0.1, -0.7, 1.4}, 6)},
		{Name: "counts", Tensor: tensor([]float64{0, 1, 2, 3, 0, 7}, 6)},
		{Name: "bits", Tensor: tensor([]float64{0, 1, 1, 0, 1, 0}, 6)},
		{Name: "class", Tensor: tensor([]float64{0, 2, 1, 1, 0, 2}, 6)},
		{Name: "unit", Tensor: tensor([]float64{0.1, 0.5, 0.9, 0.3, 0.7, 0.2}, 6)},
		{Name: "x", Tensor: tensor([]float64{
			1, 0.5, -0.3, 2, 0.1, 0.7, -1, 0.2, 0.4, 1, -2, 0.6, 0.3, 1, 1, 0.9, -0.8, 2,
		}, 6, 3)},
	}}
	s.Evaluate = func(x *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
		d := data{torch.Of(b[0]), torch.Of(b[1]), torch.Of(b[2]), torch.Of(b[3]), torch.Of(b[4]), torch.Of(b[5])}
		v, g, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
			u := &unknowns{x: x}
			return f(u, d).Add(x.Sum().Mul(0))
		}, torch.Of(x))
		if err != nil {
			return nil, nil, nil, err
		}
		return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, nil
	}
	return s
}

// constructors are the exported functions of a package that return a type of its own.
func constructors(t *testing.T, dir, result string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() || fn.Type.Results == nil || len(fn.Type.Results.List) != 1 {
				continue
			}
			if id, ok := fn.Type.Results.List[0].Type.(*ast.Ident); ok && id.Name == result {
				out = append(out, fn.Name.Name)
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

func TestDistributions(t *testing.T) {
	for _, name := range append(constructors(t, "../../../../dist", "Distribution"), "incomplete gamma functions") {
		t.Run(name, func(t *testing.T) { caseOf(t, densities, name) })
	}
}

func TestBijectors(t *testing.T) {
	for _, name := range constructors(t, "../../../../dist/bijector", "Bijector") {
		t.Run(name, func(t *testing.T) { caseOf(t, maps, name) })
	}
}

// farthest are the scales of points beyond which rounding decides what eager evaluation gives, where that is below 60.
var farthest = map[string]float64{
	// Terms as large as the size, here exp(177), cancel. The exact derivative is -1e-37; eager evaluation gives 0, and
	// compiled code 0 or what is left of its roundings.
	"NegativeBinomial": 8,
	// The probability of [0, 50] is a difference of logarithms that eager evaluation rounds to 0 at the scale exp(84), and
	// has to three digits at exp(25).
	"Truncated": 8,
	// Of an interval far below or above the mean the density is a difference of terms as large as the concentration.
	"incomplete gamma functions": 4,
}

// decided are the cases of which rounding decides the result far out, or whether there is one. Up to the scale 3 they
// are compared as the others.
var decided = []string{
	// They take a matrix apart which they made of its factors: far out it is singular but for its rounding.
	// TestFarOutEagerIsExact has exact values.
	"MultivariateNormal", "MultivariateNormalPrecision", "LowRankMultivariateNormal", "PositiveDefinite",
	// See cancelling.
	"GreaterThan", "LessThan", "Interval", "Chain",
}

// cancelling are the cases that add a number to exp(x), or to something as small, and take it away again. Of x few
// digits are left at the scale 8, and none at 60. Where gcc makes vectors of a loop it may cancel the two numbers, and
// then has all digits: C is compared at the scale 8 alone, within what rounding decides.
var cancelling = []string{"GreaterThan", "LessThan", "Interval", "Chain"}

func caseOf(t *testing.T, table map[string]density, name string) {
	f, ok := table[name]
	require.True(t, ok, "%s is new: give it a case", name)
	s := densitySource(f)
	plan := compile(t, s)
	far, ok := farthest[name]
	if !ok {
		far = 60 // exponentials of such numbers overflow and vanish
	}
	near := points(70, dim, 0.5, 4)
	for i, x := range points(30, dim, min(3, far), 5) {
		near[i] = x
	}
	by := everywhere(t, s, plan)
	// Near the origin rounding decides nothing. Densities with exp(exp(x)) overflow at some points of the scale 3.
	n := agreeWithin(t, s, plan, near, by, sensitivity)
	assert.Equal(t, n.finite, n.compared, "%+v", n)
	assert.GreaterOrEqual(t, n.compared, n.points*4/5, "%+v", n)

	leeway := sensitivity
	if slices.Contains(decided, name) {
		leeway = func(t testing.TB, s lower.Source, x []float64, weight, value float64, grad []float64) slack {
			a, b := sensitivity(t, s, x, weight, value, grad), uncertain(t, s, plan, x, weight)
			b.value, b.grad = max(a.value, b.value), max(a.grad, b.grad)
			return b
		}
	}
	if slices.Contains(cancelling, name) {
		uncompiled := map[string]evaluation{"reference": by["reference"], "vm": by["vm"]}
		agreeWithin(t, s, plan, points(30, dim, far, 6), uncompiled, leeway)
		far = 8
	}
	// Far out some densities are infinite or NaN at most points, where compiled code must be so too. That is not enough
	// to tell that its numbers are right: a fifth of the points and more has finite ones.
	n = agreeWithin(t, s, plan, append(points(30, dim, far, 6), points(30, dim, far/6, 7)...), by, leeway)
	if !slices.Contains(decided, name) {
		assert.Equal(t, n.finite, n.compared, "%+v", n)
	}
	assert.GreaterOrEqual(t, n.compared, n.points/5, "%+v", n)
	assert.NotEmpty(t, plan.Steps, fmt.Sprintf("%s computes something", name))
}
