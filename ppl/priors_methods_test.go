package ppl_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/gibbs"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/mcmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allMethods are the methods that take any model.
func allMethods() map[string]infer.Method {
	lr := infer.Constant(1e-4)
	return map[string]infer.Method{
		"NUTS": hmc.NUTS{}, "HMC": hmc.HMC{}, "MAMS": hmc.MAMS{}, "MCLMC": hmc.MCLMC{},
		"Exchange": hmc.Exchange{Ladder: []float64{1, 3}}, "SMC": evidence.SMC{},
		"SGLD": sgmcmc.SGLD{LR: lr}, "SGHMC": sgmcmc.SGHMC{LR: lr}, "PSGLD": sgmcmc.PSGLD{LR: lr},
		"BAOA": sgmcmc.BAOA{LR: lr}, "SGNHT": sgmcmc.SGNHT{LR: lr}, "ATMC": sgmcmc.ATMC{LR: lr},
		"SGLRW": sgmcmc.SGLRW{LR: lr}, "Symplectic": sgmcmc.SymplecticSGHMC{LR: lr, Momentum: infer.Constant(0.9)},
		"vi.Diag": vi.Diag{}, "vi.Dense": vi.Dense{}, "vi.LowRank": vi.LowRank{}, "SVI": svi.SVI{},
		"Pathfinder": pathfinder.Pathfinder{}, "DenseHessian": laplace.DenseHessian{},
		"DenseFisher": laplace.DenseFisher{}, "DiagFisher": laplace.DiagFisher{}, "ekf.Dense": ekf.Dense{},
		"ekf.Diag": ekf.Diag{}, "LBFGS": optim.LBFGS{}, "Adam": optim.Adam{}, "AdamW": optim.AdamW{},
		"SGD": optim.SGD{LR: lr}, "Slice": mcmc.Slice{}, "RandomWalk": mcmc.RandomWalk{}, "Barker": mcmc.Barker{},
		"Elliptical": mcmc.Elliptical{}, "Stretch": mcmc.Stretch{}, "Evolution": mcmc.DifferentialEvolution{},
		"Blocks": gibbs.Blocks{{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}},
		"MALA":   hmc.HMC{Steps: 1}, "AIS": evidence.AIS{}, "TI": evidence.TI{Rungs: 3},
	}
}

// forwardMethods are the methods that are given the likelihood of mu by itself.
func forwardMethods() map[string]infer.Method {
	forward := func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("y").Mul(0).Add(p.Get("mu").Sum()) }
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor { return dist.Normal(z, 1).LogProb(b.Get("y")) }
	network := func(_ infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
		return linear("mu", b.Get("y").Mul(0).Add(1).Unsqueeze(-1)).Squeeze(-1)
	}
	return map[string]infer.Method{
		"DenseGGN":        laplace.DenseGGN{Forward: forward, Outer: outer},
		"DiagGGN":         laplace.DiagGGN{Forward: forward, Outer: outer},
		"KFAC":            laplace.KFAC{Network: network, Layers: []laplace.Layer{{Weight: "mu"}}, Outer: outer},
		"ekf.GaussNewton": ekf.GaussNewton{Forward: forward, Outer: outer},
	}
}

// discrete are priors whose variable is summed out.
func discrete() map[string]dist.Distribution {
	return map[string]dist.Distribution{
		"Bernoulli":          dist.Bernoulli(0.3),
		"BernoulliLogits":    dist.BernoulliLogits(0.3),
		"BetaBinomial":       dist.BetaBinomial(3, 2, 1),
		"Binomial":           dist.Binomial(3, 0.3),
		"BinomialLogits":     dist.BinomialLogits(3, 0.3),
		"Categorical":        dist.Categorical(vec(1, 2, 3)),
		"CategoricalLogits":  dist.CategoricalLogits(vec(1, 2, 3)),
		"OrderedLogistic":    dist.OrderedLogistic(0.3, vec(-1, 1)),
		"Truncated(Poisson)": dist.Truncated(dist.Poisson(2), 0, 9),
		"ZeroInflated":       dist.ZeroInflated(0.3, dist.Binomial(3, 0.2)),
	}
}

// notPriors are the distributions of which ppl.Compile takes none as a prior, and what it says.
func notPriors() map[string]refusal {
	endless, rows := "whose support is not finite", "several variables that are summed out are declared in a plate"
	vector := "its values are not single numbers"
	return map[string]refusal{
		"BernoulliLogitGLM":      {dist.BernoulliLogitGLM(torch.Zeros(3, 2), torch.Zeros(2), 0.5), rows},
		"CategoricalLogitGLM":    {dist.CategoricalLogitGLM(torch.Zeros(3, 2), torch.Zeros(2, 2), 0.5), rows},
		"Delta":                  {dist.Delta(3), "it must be of numbers that can be varied a little"},
		"DirichletMultinomial":   {dist.DirichletMultinomial(3, vec(1, 2)), vector},
		"Geometric":              {dist.Geometric(0.3), endless},
		"Multinomial":            {dist.Multinomial(3, vec(1, 2)), vector},
		"MultinomialLogits":      {dist.MultinomialLogits(3, vec(1, 2)), vector},
		"NegativeBinomial":       {dist.NegativeBinomial(3, 2), endless},
		"NegativeBinomialLogits": {dist.NegativeBinomialLogits(3, 0.5), endless},
		"NegativeBinomialProbs":  {dist.NegativeBinomialProbs(3, 0.5), endless},
		"Poisson":                {dist.Poisson(3), endless},
		"PoissonLog":             {dist.PoissonLog(1), endless},
		"PoissonLogGLM":          {dist.PoissonLogGLM(torch.Zeros(3, 2), torch.Zeros(2), 0.5), endless},
	}
}

type refusal struct {
	dist.Distribution
	says string
}

// Every distribution of docs/distributions.md is among the priors here, or is refused with the reason.
func TestPriorsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/distributions.md")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(priors())), slices.Collect(maps.Keys(discrete()))) {
		known[strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" ,(", r) })[0]] = true
	}
	rows := regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z0-9]*)` \\|").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(rows), 50)
	refusals := notPriors()
	for _, row := range rows {
		name := row[1]
		r, no := refusals[name]
		assert.True(t, known[name] != no, "%s is a prior: %v, is refused: %v", name, known[name], no)
		if !no {
			continue
		}
		for _, beside := range []bool{false, true} {
			batch := infer.Batch{}
			if beside {
				batch["y"] = vec(0.5, -1, 2)
			}
			_, err := ppl.Compile(besides(r.Distribution, beside, false), batch)
			assert.ErrorContains(t, err, r.says, name)
			assert.ErrorContains(t, err, `site "x"`, name)
		}
	}
}

// What cannot be summed out can be sampled, but for vectors of counts.
func TestDiscretePriorsAreSampled(t *testing.T) {
	all := discrete()
	for name, r := range notPriors() {
		if r.says != "its values are not single numbers" && name != "Delta" {
			all[name] = r.Distribution
		}
	}
	for name, prior := range all {
		for _, batch := range []infer.Batch{{}, {"y": vec(0.5, -1, 2)}} {
			p, err := ppl.CompileDiscrete(func(c *ppl.Ctx) {
				x := c.Sample("x", prior)
				if len(batch) > 0 {
					c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(x.Mul(0.1).Sum(), 1), c.Data("y")) })
				}
			}, batch)
			require.NoError(t, err, name)
			d, err := infer.Sample(context.Background(), p, gibbs.Discrete{}, infer.Options{Chains: 1, Warmup: 20, Draws: 5,
				Seed: 1, Observer: infer.Silent})
			require.NoError(t, err, name)
			inside(t, prior, d, name)
		}
	}
}

// priors are the distributions whose variables are coordinates.
func priors() map[string]dist.Distribution {
	all := constant()
	all["NormalGLM"] = dist.NormalGLM(torch.Zeros(3, 2), torch.Zeros(2), 0.5, 1)
	all["Matern"] = dist.Matern(2, 2, 1, 1)
	all["RandomWalk"] = dist.RandomWalk(1, 4, 1)
	all["statespace"] = statespace.New(4, 1, statespace.LocalLevel{Scale: 1, Spread: 1})
	return all
}

// Each method takes some priors with constant parameters, and each prior some methods; all of them in the slow tests.
func TestMethodsTakeConstantPriors(t *testing.T) {
	crossed(t, func(prior, method int) bool { return (prior+method)%20 == 0 })
}

// The filters take a datum that is all there is.
func TestFiltersTakeOneDatum(t *testing.T) {
	for _, plate := range []bool{true, false} {
		p, err := ppl.Compile(func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 1))
			observe := func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) }
			if plate {
				c.Plate("n", 0, observe)
			} else {
				observe(c)
			}
		}, infer.Batch{"y": vec(3)})
		require.NoError(t, err)
		for _, method := range []infer.Method{ekf.Dense{}, ekf.Diag{}, laplace.DenseFisher{}, laplace.DiagFisher{}} {
			d, err := infer.Sample(context.Background(), p, method, infer.Options{Seed: 1, Observer: infer.Silent})
			require.NoError(t, err, "%T, in a plate: %v", method, plate)
			assert.Positive(t, d.MinLen(), "%T", method)
		}
	}
}

// refused are the words of what a method rightly refuses: no data where it takes them one by one, or data that depend
// on each other by what is summed out; a sphere of one dimension; a prior whose mode has no curvature; sites outside of
// the layers of a network; a prior that is not normal, where the method turns around one.
var refused = []string{"the batch is empty", "needs all of the data", "dimension is 1", "not positive definite",
	"no Gaussian approximation", "laplace.KFAC: ", "the prior is no normal distribution"}

// crossed runs methods on priors with constant parameters, alone and beside data. Draws are in the support.
func crossed(t *testing.T, takes func(prior, method int) bool) {
	priors, sums := priors(), discrete()
	maps.Copy(priors, sums)
	for i, name := range slices.Sorted(maps.Keys(priors)) {
		for _, beside := range []bool{false, true} {
			methods, batch := allMethods(), infer.Batch{}
			if beside {
				batch["y"] = vec(0.5, -1, 2)
				maps.Copy(methods, forwardMethods())
			}
			p, err := ppl.Compile(besides(priors[name], beside, sums[name] != nil), batch)
			require.NoError(t, err, name)
			for j, method := range slices.Sorted(maps.Keys(methods)) {
				if takes(i, j) {
					runs(t, p, priors[name], methods[method], fmt.Sprintf("%s under %s, beside data: %v", name, method, beside))
				}
			}
		}
	}
}

// besides is a model of a prior, and of data that have a mean of their own. A prior that is summed out has that
// mean beside it always.
func besides(prior dist.Distribution, data, sum bool) ppl.Model {
	m := func(c *ppl.Ctx) {
		x := c.Sample("x", prior)
		if !data && !sum {
			return
		}
		mean := c.Sample("mu", dist.Independent(dist.Normal(torch.Zeros(1, 1), 1), 2)).At(0, 0)
		if sum {
			mean = mean.Add(x.Mul(0.1))
		}
		if data {
			c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mean, 1), c.Data("y")) })
		}
	}
	if sum {
		return ppl.Enumerate(m)
	}
	return m
}

func runs(t *testing.T, p *ppl.Program, prior dist.Distribution, method infer.Method, about string) {
	chains := 1
	switch method.(type) {
	case mcmc.Stretch, mcmc.DifferentialEvolution: // which move many points by one another
		chains = 24
	}
	d, err := infer.Sample(context.Background(), p, method, infer.Options{Chains: chains, Warmup: 20, Draws: 5, Seed: 1,
		Native: native.Eager, Observer: infer.Silent})
	assert.NotErrorIs(t, err, torch.ErrNoGradient, about)
	proper := prior.Name() != "ImproperUniform"
	if err != nil {
		known := slices.ContainsFunc(refused, func(w string) bool { return strings.Contains(err.Error(), w) })
		assert.True(t, known || !proper, "%s: %v", about, err)
	} else if _, err := d.Values("x"); err == nil && proper {
		inside(t, prior, d, about)
	}
}

func inside(t *testing.T, d dist.Distribution, of *draws.Draws, about string) {
	values, err := of.Values("x")
	require.NoError(t, err, about)
	for _, row := range values[0] {
		x := torch.New(row, append(d.BatchShape(), d.EventShape()...)...)
		assert.NoError(t, d.Support().Check(x), about)
	}
}
