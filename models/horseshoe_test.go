package models_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// square is (β/z)² at a local scale, for a global scale tau and a slab c², +Inf for none.
func square(local, tau, c2 float64) float64 {
	s := tau * tau * local * local
	if math.IsInf(c2, 1) {
		return s
	}
	return s * c2 / (c2 + s)
}

// overLocal is the mean of f over a half-Cauchy local scale: λ = tan u with u uniform, by midpoints.
func overLocal(f func(local float64) float64) float64 {
	const n = 200000
	sum := 0.0
	for i := range n {
		sum += f(math.Tan((float64(i) + 0.5) / n * math.Pi / 2))
	}
	return sum / n
}

// fixed gives the hyperparameters values, so that what is left has a law that one integral gives.
func fixed(m ppl.Model, tau, c2 float64) ppl.Model {
	v := ppl.Values{"b_global": torch.Scalar(tau)}
	if !math.IsInf(c2, 1) {
		v["b_slab"] = torch.Scalar(c2)
	}
	return ppl.Substitute(m, v)
}

var laws = []struct {
	name    string
	prior   models.Horseshoe
	tau, c2 float64
}{
	{"horseshoe", models.Horseshoe{}, 0.8, math.Inf(1)},
	{"regularised", models.Horseshoe{Slab: 2}, 1.5, 4},
}

// Draws from the prior have P(|β| < x) = E[2Φ(x/s) − 1] over the local scale, within four standard errors.
func TestPriorIsTheLaw(t *testing.T) {
	const n = 20000
	for _, c := range laws {
		model := fixed(func(m *ppl.Ctx) { c.prior.Sample(m, "b", 3) }, c.tau, c.c2)
		values, err := ppl.Predictive{Model: model, Batch: infer.Batch{}, Seed: 1, Sites: []string{"b"}}.Prior(n)
		require.NoError(t, err)
		b := torch.Must(torch.ToSlice[float64](values["b"]))
		require.Len(t, b, 3*n)
		for _, x := range []float64{0.01, 0.1, 0.5, 1.5, 5} {
			want := overLocal(func(local float64) float64 {
				return math.Erf(x / math.Sqrt(2*square(local, c.tau, c.c2)))
			})
			inside := 0.0
			for _, v := range b {
				if math.Abs(v) < x {
					inside++
				}
			}
			require.InDelta(t, want, inside/(3*n), 4*math.Sqrt(want*(1-want)/(3*n)), "%s at %v", c.name, x)
		}
	}
}

// With normal data y ~ Normal(β, 1) the posterior mean is y E[s²/(1 + s²)], the mean weighted by Normal(y; 0, 1 + s²).
func TestPosteriorMeans(t *testing.T) {
	y := []float64{0, 0.5, -1.5, 3, 6}
	data := torch.New(y)
	for _, c := range laws {
		model := fixed(func(m *ppl.Ctx) {
			b := c.prior.Sample(m, "b", len(y))
			m.Observe("y", dist.Normal(b, 1), m.Data("y"))
		}, c.tau, c.c2)
		program, err := ppl.Compile(model, infer.Batch{"y": data})
		require.NoError(t, err)
		posterior, err := infer.Sample(context.Background(), program, hmc.NUTS{TargetAccept: 0.95},
			infer.Options{Seed: 3, Chains: 4, Warmup: 1000, Draws: 2000})
		require.NoError(t, err)
		require.NotContains(t, posterior.Attrs()["gradient"], "eager")
		values, err := posterior.Values("b")
		require.NoError(t, err)
		for i, v := range y {
			weight := func(local float64) float64 {
				s := square(local, c.tau, c.c2)
				return math.Exp(-v*v/2/(1+s)) / math.Sqrt(1+s)
			}
			want := v * overLocal(func(local float64) float64 {
				s := square(local, c.tau, c.c2)
				return weight(local) * (1 - 1/(1+s))
			}) / overLocal(weight)
			var sum, n float64
			x := make([][]float64, len(values))
			for k, chain := range values {
				for _, b := range chain {
					sum, n, x[k] = sum+b[i], n+1, append(x[k], b[i])
				}
			}
			require.InDelta(t, want, sum/n, 4*diag.MCSEMean(x), "%s at %v", c.name, v)
		}
	}
}

// The density is the sum of those of the sites, in closed form at 0 of unconstrained space, where all scales are 1.
func TestDensity(t *testing.T) {
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		b := models.Horseshoe{Global: torch.Scalar(0.5), Slab: 3, SlabDF: 6}.Sample(c, "b", 2)
		c.Factor("f", b.Sum())
	}, infer.Batch{})
	require.NoError(t, err)
	require.Equal(t, "b_global[] b_local[2] b_raw[2] b_slab[]", program.Layout().String())
	halfCauchy := func(scale float64) float64 { return math.Log(2 / math.Pi / scale / (1 + 1/scale/scale)) }
	// InverseGamma(3, 27) at 1, z = (1, -2), and β = z/√2.
	want := halfCauchy(0.5) + 2*halfCauchy(1) + 3*math.Log(27) - math.Log(2) - 27 - math.Log(2*math.Pi) - 2.5 -
		1/math.Sqrt2
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		p := torch.Must(infer.NewParams(program.Layout(), []float64{0, 0, 0, 1, -2, 0}))
		target := program.Target()
		logp, _ := target.Weigh(infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1})(p, infer.Batch{})
		require.InDelta(t, want, logp.Item(), 1e-12)
		return nil
	}))
}

// In a plate each of its members has coefficients of its own.
func TestPlate(t *testing.T) {
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		c.Plate("groups", 3, func(c *ppl.Ctx) {
			b := models.Horseshoe{Slab: 1}.Sample(c, "b", 2)
			require.Equal(t, []int{3, 2}, b.Shape())
		})
	}, infer.Batch{})
	require.NoError(t, err)
	require.Equal(t, "b_global[3] b_local[3 2] b_raw[3 2] b_slab[3]", program.Layout().String())
}

// The expected number of coefficients that are not shrunk is D a/(1 + a), a = τ √n/σ (Piironen and Vehtari 2017,
// equation 3.11): with τ of GlobalScale it is what was asked for.
func TestGlobalScale(t *testing.T) {
	tau, err := models.GlobalScale(5, 200, 1.7, 80)
	require.NoError(t, err)
	v, ok := tau.Number()
	require.True(t, ok)
	a := v * math.Sqrt(80) / 1.7
	require.InDelta(t, 5, 200*a/(1+a), 1e-12)
	for _, c := range []struct {
		relevant    float64
		features, n int
		want        string
	}{
		{0, 10, 5, "relevant is 0: it must be greater than 0 and less than the number of features, which is 10"},
		{10, 10, 5, "relevant is 10"},
		{math.NaN(), 10, 5, "relevant is NaN"},
		{1, 10, 0, "n is 0: it must be at least 1"},
	} {
		_, err := models.GlobalScale(c.relevant, c.features, 1, c.n)
		require.ErrorContains(t, err, "models.GlobalScale: "+c.want)
	}
}

func TestHorseshoeErrors(t *testing.T) {
	for want, h := range map[string]models.Horseshoe{
		"Slab is -1: it must be greater than 0, or 0 for no slab": {Slab: -1},
		"Slab is NaN": {Slab: math.NaN()},
		"SlabDF is +Inf: it must be greater than 0":    {Slab: 1, SlabDF: math.Inf(1)},
		"dist.HalfCauchy: scale is -2: it must be":     {Global: -2},
		"dist.HalfCauchy: scale is a string: a number": {Global: "1"},
	} {
		_, err := ppl.Compile(func(c *ppl.Ctx) { h.Sample(c, "b", 2) }, infer.Batch{})
		require.ErrorContains(t, err, want)
	}
	_, err := ppl.Compile(func(c *ppl.Ctx) { models.Horseshoe{}.Sample(c, "b", 0) }, infer.Batch{})
	require.ErrorContains(t, err, `model, site "b" (Horseshoe): 0 coefficients are asked for: there must be at least 1`)
}
