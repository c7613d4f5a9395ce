package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// methods are all samplers, in the forms that their updates have, for the sites of [quartic].
func methods() map[string]infer.Method {
	lr, temperature, alpha := infer.Polynomial(0.2, 1, 0.33), infer.Linear(1, 0.5, 0, 10), infer.Constant(1.5)
	return map[string]infer.Method{
		"SGLD":  sgmcmc.SGLD{LR: lr, Temperature: temperature, Beta: 0.3},
		"PSGLD": sgmcmc.PSGLD{LR: lr, Temperature: temperature, Decay: 0.9, Eps: 0.1},
		"SGLRW": sgmcmc.SGLRW{LR: lr, Temperature: temperature},
		"SGHMC": sgmcmc.SGHMC{LR: lr, Temperature: temperature, Beta: 0.3, Sigma: 1.3, Alpha: alpha},
		"BAOA":  sgmcmc.BAOA{LR: lr, Temperature: temperature, Alpha: alpha, Sigma: 1.3},
		"SGNHT": sgmcmc.SGNHT{LR: lr, Temperature: temperature, Alpha: alpha, Beta: 0.3, Sigma: 1.3},
		"SGNHT, per parameter": sgmcmc.SGNHT{LR: lr, Temperature: temperature, Alpha: alpha, Beta: 0.3, Sigma: 1.3,
			PerParameter: true},
		"SymplecticSGHMC": sgmcmc.SymplecticSGHMC{LR: lr, Temperature: temperature, Gamma: alpha, Beta: 0.3,
			Cycle: infer.Cosine(1, 7)},
		"SymplecticSGHMC with Momentum": sgmcmc.SymplecticSGHMC{LR: lr, Temperature: temperature,
			Momentum: infer.Constant(0.8), Cycle: infer.Cosine(1, 7)},
		"SymplecticSGHMC with masses": sgmcmc.SymplecticSGHMC{LR: lr, Temperature: temperature, Gamma: alpha, Beta: 0.2,
			Mass: map[string]float64{"a": 0.5, "w": 3}},
		"ATMC":              sgmcmc.ATMC{LR: lr, Temperature: temperature, Friction: infer.Constant(0.8), Mass: 1.3},
		"ATMC relativistic": sgmcmc.ATMC{LR: lr, Temperature: temperature, Speed: 0.7, Xi: 0.2},
	}
}

func TestContract(t *testing.T) {
	q, all := newQuartic(), methods()
	momenta := must(torch.Leaf(torch.Of(vector(spread(q.layout.Dim())))))
	all["SGHMC with given momenta"] = sgmcmc.SGHMC{LR: infer.Constant(0.1), Momenta: momenta}
	all["ATMC with given momenta"] = sgmcmc.ATMC{LR: infer.Constant(0.1), Momenta: momenta}
	infertest.Contract(t, all, infertest.Ground{Posterior: infertest.Walled(q.logPosterior), Layout: q.layout,
		Batch: q.batch(), Tolerance: 1e-11, Run: infer.Options{Warmup: 20, Draws: 13, Thin: 3},
		Stops: []int{1, 20, 34, 58}})
}

// Steps are small, so that all samplers have a longer warm-up than others, and keep every fifth update.
func TestDefaultsOfARun(t *testing.T) {
	for what, m := range methods() {
		assert.Equal(t, infer.Options{Warmup: 2000, Thin: 5}, m.(infer.Defaulter).Defaults(), what)
	}
}

// logarithms has a density that is not a number where an element is negative, and of −∞ where one is 0.
func logarithms(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	return torch.Of(p.Flat.Log().T().MustSum(gotch.Double, false)), nil
}

// roots is −√(x²), whose value is finite everywhere and whose gradient is 0/0 at 0.
func roots(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	return torch.Of(p.Flat.Square().Sqrt().Neg().T().MustSum(gotch.Double, false)), nil
}

// A chain is held, and tells its density and the norm of its gradient, whichever of the two is not finite, and how.
func TestWhatIsNotFiniteHoldsAChain(t *testing.T) {
	l := layout(infer.Shapes{"a": {1}, "w": {1}})
	for _, c := range []struct {
		what          string
		f             infer.LogPosterior
		bad           []float64
		density, norm float64
	}{
		{"the density is NaN", logarithms, []float64{-1, 2}, nan, math.Sqrt(1 + 0.25)},
		{"the density is infinite", logarithms, []float64{0, 2}, math.Inf(-1), math.Inf(1)},
		{"only the gradient is NaN", roots, []float64{0, 2}, -2, nan},
	} {
		for what, method := range methods() {
			transform := build(t, method, c.f)
			s := begin[infer.State](t, transform, params(l, append([]float64{0.5, 2}, c.bad...), 2), 2)
			next, info := update(t, transform, s, nil)
			assert.Equal(t, []bool{false, true}, info.Diverged, "%s, %s", what, c.what)
			for told, v := range map[string][2]float64{"density": {c.density, info.LogPosterior[1]},
				"norm": {c.norm, info.GradNorm[1]}} {
				assert.True(t, v[0] == v[1] || math.IsNaN(v[0]) && math.IsNaN(v[1]) || math.Abs(v[0]-v[1]) < golden,
					"%s, %s: %s: want %v, got %v", what, c.what, told, v[0], v[1])
			}
			for name, x := range next.Save().Tensors {
				n := len(values(x.T())) / 2
				identical(t, values(s.Save().Tensors[name].T())[n:], values(x.T())[n:], name+" of the chain that is held")
			}
		}
	}
}

// An update that lacks what an estimate makes says what to call.
func TestUpdatesNeedTheirEstimates(t *testing.T) {
	q := newQuartic()
	lr, e := infer.Constant(0.1), &sgmcmc.Estimate{Batches: 4}
	for what, method := range map[string]infer.Method{"SGLD": sgmcmc.SGLD{LR: lr, EstimateBeta: e},
		"SGHMC": sgmcmc.SGHMC{LR: lr, EstimateBeta: e}, "SymplecticSGHMC": sgmcmc.SymplecticSGHMC{LR: lr, EstimateBeta: e}} {
		transform := build(t, method, q.logPosterior)
		s := begin[infer.State](t, transform, params(q.layout, spread(q.layout.Dim()), 0), 1)
		_, _, err := transform.Update(s, q.batch())
		require.EqualError(t, err, "sgmcmc."+what+": EstimateBeta is given and nothing was estimated yet: call Prepare "+
			"before Update, as infer.Run does: invalid configuration")
	}
	s := begin[sgmcmc.SGHMCState](t, build(t, sgmcmc.SGHMC{LR: lr}, q.logPosterior),
		params(q.layout, spread(q.layout.Dim()), 0), 1)
	s.Momenta = torch.Tensor{}
	_, _, err := build(t, sgmcmc.SGHMC{LR: lr}, q.logPosterior).Update(s, q.batch())
	require.EqualError(t, err, "sgmcmc.SGHMC: the state has no momenta: Init makes states: invalid configuration")
}
