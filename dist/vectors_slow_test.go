//go:build slow

package dist_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/torch"
)

// numbers are the parameters of a line of testdata/vectors.csv.gz.
type numbers struct{ torch.Tensor }

func (p numbers) part(from, to int) torch.Tensor { return p.Slice(0, from, to) }

// tril is a 3 x 3 matrix of the lower triangle by rows that starts at a position.
func (p numbers) tril(from int) torch.Tensor { return lowerOf(p.part(from, from+6)) }

func lowerOf(t torch.Tensor) torch.Tensor {
	zero := t.Slice(0, 0, 1).Mul(0)
	return torch.Cat(0, t.Slice(0, 0, 1), zero, zero, t.Slice(0, 1, 3), zero, t.Slice(0, 3, 6)).Reshape(3, 3)
}

func (p numbers) spd(from int) torch.Tensor {
	l := p.tril(from)
	return l.MatMul(l.Transpose())
}

// ends truncates by the last two parameters.
func (p numbers) ends(d dist.Distribution) dist.Distribution {
	n := p.Numel()
	return dist.Truncated(d, p.At(n-2), p.At(n-1))
}

// vectorReference is how the families of testdata/vectors.csv.gz are made; the value is as in the file where of is nil.
type vectorReference struct {
	make func(p numbers, x torch.Tensor) dist.Distribution
	of   func(x torch.Tensor) torch.Tensor
}

func itself(x torch.Tensor) torch.Tensor { return x }

var design = [][]float64{{1, 0.5}, {-0.25, 2}, {3, -1}, {0.125, 0.75}}

func designMatrix() torch.Tensor {
	var flat []float64
	for _, row := range design {
		flat = append(flat, row...)
	}
	return torch.New(flat, 4, 2)
}

// correlationFactor is by its partial correlations.
func correlationFactor(x torch.Tensor) torch.Tensor {
	r := x.Tanh()
	left := x.Exp().Add(x.Neg().Exp()).Mul(0.5).Reciprocal() // √(1 − r²)
	a, b, c := r.Slice(0, 0, 1), r.Slice(0, 1, 2), r.Slice(0, 2, 3)
	sb, sc := left.Slice(0, 1, 2), left.Slice(0, 2, 3)
	return lowerOf(torch.Cat(0, a.Mul(0).Add(1), a, left.Slice(0, 0, 1), b, c.Mul(sb), sb.Mul(sc)))
}

var vectorReferences = map[string]vectorReference{
	"Dirichlet": {func(p numbers, _ torch.Tensor) dist.Distribution { return dist.Dirichlet(p.Tensor) },
		func(x torch.Tensor) torch.Tensor { return x.Softmax(-1) }},
	"Multinomial": {func(p numbers, x torch.Tensor) dist.Distribution {
		return dist.Multinomial(x.Sum().Item(), p.Tensor)
	}, itself},
	"MultinomialLogits": {func(p numbers, x torch.Tensor) dist.Distribution {
		return dist.MultinomialLogits(x.Sum().Item(), p.Tensor)
	}, itself},
	"DirichletMultinomial": {func(p numbers, x torch.Tensor) dist.Distribution {
		return dist.DirichletMultinomial(x.Sum().Item(), p.Tensor)
	}, itself},
	"MultivariateNormal": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.MultivariateNormal(p.part(0, 3), p.spd(3))
	}, itself},
	"MultivariateNormalPrecision": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.MultivariateNormalPrecision(p.part(0, 3), p.spd(3))
	}, itself},
	"MultivariateNormalCholesky": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.MultivariateNormalCholesky(p.part(0, 3), p.tril(3))
	}, itself},
	"MultivariateStudentT": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.MultivariateStudentT(p.At(0), p.part(1, 4), p.tril(4))
	}, itself},
	"LowRankMultivariateNormal": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.LowRankMultivariateNormal(p.part(0, 3), p.part(3, 9).Reshape(3, 2), p.part(9, 12))
	}, itself},
	"LKJCholesky": {func(p numbers, _ torch.Tensor) dist.Distribution { return dist.LKJCholesky(3, p.At(0)) },
		correlationFactor},
	"WishartCholesky": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.WishartCholesky(p.At(0), p.tril(1))
	}, lowerOf},
	"InverseWishartCholesky": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.InverseWishartCholesky(p.At(0), p.tril(1))
	}, lowerOf},
	"ZeroSumNormal": {func(p numbers, _ torch.Tensor) dist.Distribution { return dist.ZeroSumNormal(4, p.At(0)) },
		func(x torch.Tensor) torch.Tensor { return x.Sub(x.Mean()) }},
	"GaussianRandomWalk": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.GaussianRandomWalk(4, p.At(0))
	}, itself},
	"NormalGLM": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.NormalGLM(designMatrix(), p.part(0, 2), p.At(2), p.At(3))
	}, itself},
	"BernoulliLogitGLM": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.BernoulliLogitGLM(designMatrix(), p.part(0, 2), p.At(2))
	}, itself},
	"PoissonLogGLM": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.PoissonLogGLM(designMatrix(), p.part(0, 2), p.At(2))
	}, itself},
	"Independent": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.Independent(dist.Normal(p.part(0, 3), p.part(3, 6)), 1)
	}, itself},
	"Transformed": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.Transformed(dist.Normal(p.At(0), p.At(1)), bijector.Exp(), bijector.Affine(3, 1))
	}, itself},
	"Mixture": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.Mixture(p.part(0, 2), dist.Normal(p.At(2), p.At(3)), dist.Gamma(p.At(4), p.At(5)))
	}, itself},
	"MixtureSameFamily": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.MixtureSameFamily(p.part(0, 2), dist.Normal(p.part(2, 4), p.part(4, 6)))
	}, itself},
	"TruncatedPoisson": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.Poisson(p.At(0)), 2, 9)
	}, itself},
	"TruncatedGeometric": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.Geometric(p.At(0)), 1, 12)
	}, itself},
	"TruncatedNegativeBinomial": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.Truncated(dist.NegativeBinomial(p.At(0), p.At(1)), 2, 9)
	}, itself},
	"CategoricalLogitGLM": {func(p numbers, _ torch.Tensor) dist.Distribution {
		return dist.CategoricalLogitGLM(designMatrix(), p.part(0, 6).Reshape(2, 3), p.part(6, 9))
	}, itself},
}

// vectorFamily is how a family is made; Truncated families are those of numbers by name.
func vectorFamily(t *testing.T, name string) vectorReference {
	if f, ok := vectorReferences[name]; ok {
		return f
	}
	for _, f := range scalarFamilies {
		if name == "Truncated"+f.name {
			return vectorReference{func(p numbers, _ torch.Tensor) dist.Distribution {
				params := make([]any, len(f.domains))
				for i := range params {
					params[i] = p.At(i)
				}
				return p.ends(f.make(params...))
			}, itself}
		}
	}
	require.Fail(t, "no such family", name)
	return vectorReference{}
}

// TestVectorReference compares every family of vectors and matrices, and of what is made of others, with
// testdata/vectors.csv.gz, and logs the worst error of each.
func TestVectorReference(t *testing.T) {
	lines := map[string][][]string{}
	for _, line := range readTable(t, "vectors.csv.gz") {
		lines[line[0]] = append(lines[line[0]], line)
	}
	for name, lines := range lines {
		t.Run(name, func(t *testing.T) {
			e := errors{family: name, worst: map[int]*worst{}}
			for _, line := range lines {
				compareLine(t, &e, line)
			}
			e.check(t)
		})
	}
}

// Every distribution of docs/distributions.md is in one of the two files, but for those without a density of their own.
func TestEveryDistributionIsCompared(t *testing.T) {
	compared := map[string]bool{"Delta": true, "Flat": true, "FlatPositive": true}
	for _, file := range []string{"reference.csv.gz", "vectors.csv.gz"} {
		for _, line := range readTable(t, file) {
			compared[line[0]] = true
		}
	}
	for name := range examples {
		require.True(t, compared[name], name)
	}
}

func compareLine(t *testing.T, e *errors, line []string) {
	nx, err := strconv.Atoi(line[1])
	require.NoError(t, err)
	np, err := strconv.Atoi(line[2])
	require.NoError(t, err)
	var all []float64
	for _, v := range line[3 : 3+nx+np] {
		x, err := strconv.ParseFloat(v, 64)
		require.NoError(t, err)
		all = append(all, x)
	}
	scoped(t, func() { compareVector(t, e, all[:nx], all[nx:], line[3+nx+np:]) })
}

func compareVector(t *testing.T, e *errors, x, p []float64, want []string) {
	f := vectorFamily(t, e.family)
	xs, ps := torch.Must(torch.Leaf(torch.Of(scalarVec(x...)))), torch.Must(torch.Leaf(torch.Of(scalarVec(p...))))
	d := f.make(numbers{ps}, xs)
	value := f.of(xs)
	if len(x) == 1 {
		value = value.At(0)
	}
	logp := d.LogProb(value).Sum().T()
	got := append(scalarRead(logp), make([]float64, 0, len(want))...)
	for _, g := range scalarGrad(logp, []torch.Tensor{xs, ps}) {
		got = append(got, g...)
	}
	if want[len(got)] != "-" {
		got = append(got, scalarRead(d.Mean().T())...)
	} else {
		got = append(got, make([]float64, len(x))...)
	}
	if want[len(got)] != "-" {
		got = append(got, scalarRead(d.Variance().T())...)
	} else {
		got = append(got, make([]float64, len(x))...)
	}
	if c, ok := d.(dist.CDFer); ok && want[len(got)] != "-" {
		got = append(got, c.CDF(value).Item())
	}
	for i, v := range got {
		if want[i] == "-" {
			continue
		}
		figure := "log density"
		switch k := i - 1 - len(x) - len(p); {
		case i > 0 && i <= len(x):
			figure = fmt.Sprintf("gradient in value %d", i-1)
		case i > 0 && k < 0:
			figure = fmt.Sprintf("gradient in parameter %d", i-1-len(x))
		case k >= 2*len(x):
			figure = "CDF"
		case k >= len(x):
			figure = fmt.Sprintf("variance %d", k-len(x))
		case k >= 0:
			figure = fmt.Sprintf("mean %d", k)
		}
		e.add(t, figure, want[i], v, x, p)
	}
}
