package dist_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of docs/distributions.md anew")

// examples make a distribution of each constructor; p makes a parameter from which gradients are taken.
var examples = map[string]func(p func(v ...float64) torch.Tensor) dist.Distribution{
	"Bernoulli": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Bernoulli(p(0.3)) },
	"BernoulliLogitGLM": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.BernoulliLogitGLM(torch.Zeros(2, 1), p(0.3, 0.1).Slice(0, 0, 1), 0)
	},
	"BernoulliLogits": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.BernoulliLogits(p(0.3)) },
	"Beta":            func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Beta(p(2), p(3)) },
	"BetaBinomial": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.BetaBinomial(4, p(2), p(3))
	},
	"Binomial":       func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Binomial(4, p(0.3)) },
	"BinomialLogits": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.BinomialLogits(4, p(0.3)) },
	"Categorical":    func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Categorical(p(0.3, 0.7)) },
	"CategoricalLogitGLM": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.CategoricalLogitGLM(torch.Zeros(2, 1), p(0.3, 0.1).Reshape(1, 2), 0)
	},
	"CategoricalLogits": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.CategoricalLogits(p(0.3, 0.7))
	},
	"Cauchy":    func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Cauchy(p(0), p(1)) },
	"Chi2":      func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Chi2(p(3)) },
	"Delta":     func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Delta(p(3)) },
	"Dirichlet": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Dirichlet(p(1, 2)) },
	"DirichletMultinomial": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.DirichletMultinomial(3, p(1, 2))
	},
	"Exponential":  func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Exponential(p(1)) },
	"Flat":         func(func(v ...float64) torch.Tensor) dist.Distribution { return dist.Flat() },
	"FlatPositive": func(func(v ...float64) torch.Tensor) dist.Distribution { return dist.FlatPositive() },
	"Gamma":        func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Gamma(p(2), p(3)) },
	"GaussianRandomWalk": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.GaussianRandomWalk(3, p(1))
	},
	"GeneralizedNormal": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.GeneralizedNormal(p(0), p(1), p(2))
	},
	"Geometric":    func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Geometric(p(0.3)) },
	"Gumbel":       func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Gumbel(p(0), p(1)) },
	"HalfCauchy":   func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.HalfCauchy(p(1)) },
	"HalfNormal":   func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.HalfNormal(p(1)) },
	"InverseGamma": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.InverseGamma(p(2), p(1)) },
	"InverseGaussian": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.InverseGaussian(p(2), p(1))
	},
	"InverseWishartCholesky": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.InverseWishartCholesky(p(5), eye())
	},
	"LKJCholesky": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.LKJCholesky(2, p(2)) },
	"Laplace":     func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Laplace(p(0), p(1)) },
	"LogNormal":   func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.LogNormal(p(0), p(1)) },
	"Logistic":    func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Logistic(p(0), p(1)) },
	"LowRankMultivariateNormal": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.LowRankMultivariateNormal(p(0, 0), torch.Zeros(2, 1), p(1, 1))
	},
	"Matern": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Matern(2, 3, p(1), p(1)) },
	"Multinomial": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.Multinomial(3, p(0.3, 0.7))
	},
	"MultinomialLogits": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.MultinomialLogits(3, p(0.3, 0.7))
	},
	"MultivariateNormal": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.MultivariateNormal(p(0, 0), eye())
	},
	"MultivariateNormalCholesky": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.MultivariateNormalCholesky(p(0, 0), eye())
	},
	"MultivariateNormalPrecision": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.MultivariateNormalPrecision(p(0, 0), eye())
	},
	"MultivariateStudentT": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.MultivariateStudentT(p(3), p(0, 0), eye())
	},
	"NegativeBinomial": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.NegativeBinomial(p(2), p(1))
	},
	"NegativeBinomialLogits": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.NegativeBinomialLogits(p(2), p(1))
	},
	"NegativeBinomialProbs": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.NegativeBinomialProbs(p(2), p(0.3))
	},
	"Normal": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Normal(p(0), p(1)) },
	"NormalGLM": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.NormalGLM(torch.Zeros(2, 1), p(0.3, 0.1).Slice(0, 0, 1), 0, 1)
	},
	"OrderedLogistic": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.OrderedLogistic(p(0), p(-1, 1))
	},
	"Pareto":     func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Pareto(p(1), p(2)) },
	"Poisson":    func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Poisson(p(2)) },
	"PoissonLog": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.PoissonLog(p(2)) },
	"PoissonLogGLM": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.PoissonLogGLM(torch.Zeros(2, 1), p(0.3, 0.1).Slice(0, 0, 1), 0)
	},
	"RandomWalk": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.RandomWalk(1, 3, p(1)) },
	"SkewNormal": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.SkewNormal(p(0), p(1), p(2))
	},
	"StudentT": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.StudentT(p(3), p(0), p(1)) },
	"TruncatedNormal": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.TruncatedNormal(p(0), p(1), -1, 2)
	},
	"Uniform":  func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Uniform(p(0), p(1)) },
	"VonMises": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.VonMises(p(0), p(1)) },
	"Weibull":  func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.Weibull(p(1), p(2)) },
	"WishartCholesky": func(p func(v ...float64) torch.Tensor) dist.Distribution {
		return dist.WishartCholesky(p(5), eye())
	},
	"ZeroSumNormal": func(p func(v ...float64) torch.Tensor) dist.Distribution { return dist.ZeroSumNormal(3, p(1)) },
}

// built are the constructors that take other distributions or a support: the page has sentences for them.
var built = []string{"Binned", "Censored", "ImproperUniform", "Independent", "Mixture", "MixtureSameFamily",
	"Transformed", "Truncated", "ZeroInflated"}

func eye() torch.Tensor { return torch.New([]float64{1, 0, 0, 1}, 2, 2) }

// constructors are the names and parameters of the public functions that make a distribution.
func constructors(t *testing.T) map[string]string {
	found := map[string]string{}
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil || len(f.Type.Results.List) != 1 {
				continue
			}
			if of, ok := f.Type.Results.List[0].Type.(*ast.Ident); !ok || of.Name != "Distribution" {
				continue
			}
			var names []string
			for _, field := range f.Type.Params.List {
				for _, name := range field.Names {
					names = append(names, name.Name)
				}
			}
			found[f.Name.Name] = strings.Join(names, ", ")
		}
	}
	return found
}

// pageRow is the line of the table that tells of a distribution.
func pageRow(name, params string) (line string) {
	leaves := func(v ...float64) torch.Tensor {
		if len(v) == 1 {
			return torch.Must(torch.Leaf(torch.Scalar(v[0])))
		}
		return torch.Must(torch.Leaf(torch.New(v)))
	}
	numbers := func(v ...float64) torch.Tensor {
		if len(v) == 1 {
			return torch.Of(v[0])
		}
		return torch.New(v)
	}
	d := examples[name](numbers)
	var has []string
	if _, ok := d.(dist.CDFer); ok {
		has = append(has, "CDF")
	}
	if _, ok := d.(dist.ICDFer); ok {
		has = append(has, "quantile")
	}
	if _, ok := d.(dist.Enumerable); ok {
		has = append(has, "summed out")
	}
	if !strings.HasPrefix(name, "Flat") && examples[name](leaves).Sample(torch.NewSource(1, 0)).T().MustRequiresGrad() {
		has = append(has, "gradient of draws")
	}
	if params != "" {
		params = "`" + params + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, params, d.Support(), strings.Join(has, ", "))
}

// Whole numbers have no gradient: a draw that carries one, of zeros, would count as one that has it, and a guide's
// parameters would never move.
func TestDiscreteDrawsHaveNoGradient(t *testing.T) {
	leaf := func(v ...float64) torch.Tensor {
		return torch.Must(torch.Leaf(torch.New(v)))
	}
	scoped(t, func() {
		made := map[string]dist.Distribution{
			"Truncated":              dist.Truncated(dist.Poisson(leaf(2)), 0, 9),
			"Truncated 2":            dist.Truncated(dist.Geometric(leaf(0.2)), 1, 9),
			"ZeroInflated":           dist.ZeroInflated(leaf(0.2), dist.Poisson(leaf(2))),
			"ZeroInflated geometric": dist.ZeroInflated(leaf(0.2), dist.Geometric(leaf(0.2))),
			"Mixture":                dist.Mixture(leaf(0.3, 0.7), dist.Geometric(0.2), dist.Poisson(2)),
			"MixtureSameFamily":      dist.MixtureSameFamily(leaf(0.3, 0.7), dist.Geometric(leaf(0.2, 0.3))),
			"Independent":            dist.Independent(dist.Geometric(leaf(0.2, 0.3)), 1),
		}
		for name, example := range examples {
			made[name] = example(leaf)
		}
		for name, d := range made {
			if d.Validate() == nil && d.Support().Discrete() {
				require.False(t, d.Sample(torch.NewSource(1, 0)).T().MustRequiresGrad(), name)
			}
		}
	})
}

// The page lists every constructor, with what its distributions have: go test ./dist -run TestPage -update writes it.
func TestPage(t *testing.T) {
	found := constructors(t)
	var table strings.Builder
	table.WriteString("| distribution | parameters | a draw with those of the test is | has |\n|---|---|---|---|\n")
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if slices.Contains(built, name) {
				continue
			}
			require.Contains(t, examples, name, "give the constructor an example here")
			table.WriteString(pageRow(name, found[name]))
		}
		return nil
	}))
	const path, begin = "../docs/distributions.md", "<!-- go test ./dist -run TestPage -update writes from here -->\n"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	head, _, ok := strings.Cut(string(page), begin)
	require.True(t, ok)
	want := head + begin + "\n" + table.String()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	page, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(page))
	for _, name := range built {
		require.Contains(t, head, "dist."+name+"(")
	}
}
