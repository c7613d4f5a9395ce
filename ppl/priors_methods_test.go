package ppl_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
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
		"SGD": optim.SGD{LR: lr},
	}
}

// Each method takes some priors with constant parameters, and each prior some methods; all of them in the slow tests.
func TestMethodsTakeConstantPriors(t *testing.T) {
	crossed(t, func(prior, method int) bool { return (prior+method)%20 == 0 })
}

// refused are the words of what a method rightly refuses: no data where it takes them one by one, a sphere of one
// dimension, a prior whose mode has no curvature.
var refused = []string{"the batch is empty", "dimension is 1", "not positive definite", "no Gaussian approximation"}

// crossed runs methods on priors with constant parameters, alone and beside data. Draws are in the support.
func crossed(t *testing.T, takes func(prior, method int) bool) {
	priors, methods := constant(), allMethods()
	for i, name := range slices.Sorted(maps.Keys(priors)) {
		proper := priors[name].Name() != "ImproperUniform"
		for _, beside := range []bool{false, true} {
			batch := infer.Batch{}
			if beside {
				batch["y"] = vec(0.5, -1, 2)
			}
			p, err := ppl.Compile(func(c *ppl.Ctx) {
				c.Sample("x", priors[name])
				if beside {
					mu := c.Sample("mu", dist.Normal(0, 1))
					c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
				}
			}, batch)
			require.NoError(t, err, name)
			for j, method := range slices.Sorted(maps.Keys(methods)) {
				if !takes(i, j) {
					continue
				}
				about := fmt.Sprintf("%s under %s, beside data: %v", name, method, beside)
				d, err := infer.Sample(context.Background(), p, methods[method], infer.Options{Chains: 1, Warmup: 20, Draws: 5,
					Seed: 1, Native: native.Eager, Observer: infer.Silent})
				assert.NotErrorIs(t, err, torch.ErrNoGradient, about)
				if err != nil {
					known := slices.ContainsFunc(refused, func(w string) bool { return strings.Contains(err.Error(), w) })
					assert.True(t, known || !proper, "%s: %v", about, err)
				} else if proper {
					inside(t, priors[name], d, about)
				}
			}
		}
	}
}

func inside(t *testing.T, d dist.Distribution, of *draws.Draws, about string) {
	values, err := of.Values("x")
	require.NoError(t, err, about)
	for _, row := range values[0] {
		x := torch.Must(torch.FromSlice(row, append(d.BatchShape(), d.EventShape()...)...))
		assert.NoError(t, d.Support().Check(x), about)
	}
}
