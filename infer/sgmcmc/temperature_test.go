package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Three sites with constraints. On unconstrained space their densities are those of log x, log s and the logits of a
// stick-breaking map, times a Jacobian that no temperature changes.
const gammaShape, gammaRate, halfScale = 3.0, 2.0, 1.5

var simplex = []float64{2, 3, 4}

func constrained(c *ppl.Ctx) {
	c.Sample("x", dist.Gamma(gammaShape, gammaRate))
	c.Sample("s", dist.HalfNormal(halfScale))
	c.Sample("w", dist.Dirichlet(vector(simplex)))
}

// tempered are the exact means of the statistics of p^(1/T): x is Gamma((a − 1)/T + 1, b/T), s is half-normal of scale
// σ√T, and w is Dirichlet with (α − 1)/T + 1.
func tempered(temperature float64) []float64 {
	a, b := (gammaShape-1)/temperature+1, gammaRate/temperature
	out := []float64{a / b, mathext.Digamma(a) - math.Log(b),
		halfScale * math.Sqrt(2*temperature/math.Pi),
		math.Log(halfScale*math.Sqrt(temperature)) + (mathext.Digamma(0.5)+math.Ln2)/2}
	total := 0.0
	for _, alpha := range simplex {
		total += (alpha-1)/temperature + 1
	}
	for _, alpha := range simplex {
		alpha = (alpha-1)/temperature + 1
		out = append(out, alpha/total, mathext.Digamma(alpha)-mathext.Digamma(total))
	}
	return out
}

var temperedNames = []string{"x", "log x", "s", "log s", "w₀", "log w₀", "w₁", "log w₁", "w₂", "log w₂"}

// temperedStatistics adds the statistics of each chain to sums.
func temperedStatistics(t *testing.T, program *ppl.Program, p infer.Params, sums [][]float64) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		v, err := program.Constrain(p, nil)
		if err != nil {
			return err
		}
		x, s, w := values(v["x"].T()), values(v["s"].T()), values(v["w"].T())
		for k := range x {
			for i, v := range []float64{x[k], s[k], w[3*k], w[3*k+1], w[3*k+2]} {
				sums[2*i][k] += v
				sums[2*i+1][k] += math.Log(v)
			}
		}
		return nil
	}))
}

// sampled are the means of the statistics of a run of SGHMC, over draws of many chains, and the standard deviation of
// each chain's mean.
func sampled(t *testing.T, program *ppl.Program, target infer.Target, lr, temperature float64, burnIn, thin, draws,
	chains int) [][]float64 {
	transform, err := sgmcmc.SGHMC{LR: infer.Constant(lr), Alpha: infer.Constant(2),
		Temperature: infer.Constant(temperature)}.Build(target)
	require.NoError(t, err)
	s := begin[infer.State](t, transform, must(must(infer.Zeros(program.Layout())).Repeat(chains)), 11)
	sums := make([][]float64, len(temperedNames))
	for i := range sums {
		sums[i] = make([]float64, chains)
	}
	for step := range burnIn + thin*draws {
		next, info := update(t, transform, s, nil)
		require.Nil(t, info.Diverged)
		require.Equal(t, temperature, info.Temperature)
		infer.Free(s)
		if s = next; step >= burnIn && (step-burnIn)%thin == thin-1 {
			temperedStatistics(t, program, s.Position(), sums)
		}
	}
	infer.Free(s)
	for _, row := range sums {
		for k := range row {
			row[k] /= float64(draws)
		}
	}
	return sums
}

// At temperature T a constrained site has the law p^(1/T) of its density, whatever the map to unconstrained space: the
// Jacobian is not tempered. The law of SGHMC at step ε is off by cε + O(ε²), so 2m(ε/2) − m(ε) is off by O(ε²) only; at
// ελ/α ≈ 0.06 in each curvature λ that is below 2 % of a standard deviation. The rest is the error of Monte Carlo.
func TestConstrainedSitesAtATemperature(t *testing.T) {
	program := must(ppl.Compile(constrained, nil))
	const chains, draws = 1000, 8
	for temperature, lr := range map[float64]float64{0.25: 0.08, 1: 0.04, 4: 0.015} {
		t.Run(name("T = %g", temperature), func(t *testing.T) {
			target := program.Target()
			// The slowest curvature is 0.5 at T = 0.25 and about 2T at the others: some 25 updates at step ε to forget half.
			coarse := sampled(t, program, target, lr, temperature, 200, 40, draws, chains)
			fine := sampled(t, program, target, lr/2, temperature, 400, 80, draws, chains)
			for i, want := range tempered(temperature) {
				m1, v1 := stat.MeanVariance(coarse[i], nil)
				m2, v2 := stat.MeanVariance(fine[i], nil)
				se := math.Sqrt((v1 + 4*v2) / chains)
				sd := math.Sqrt(v2 * draws) // of one draw, when draws are nearly independent
				assert.InDelta(t, want, 2*m2-m1, 4.5*se+0.02*sd, "E[%s]: %g and %g at the two steps", temperedNames[i],
					m1, m2)
			}
		})
	}
}

// The number of data changes the scale of the log posterior and of the step, not the law: the same run with the
// mean over N = 50 data as LogPosterior, at ε' = √N ε, α' = α/√N.
func TestTheNumberOfDataDoesNotChangeTheLaw(t *testing.T) {
	const n = 50
	program := must(ppl.Compile(constrained, nil))
	whole := program.Target()
	mean := infer.Target{Data: n, LogJacobian: whole.LogJacobian,
		LogPosterior: func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			value, aux := whole.LogPosterior(p, b)
			return value.Mul(1. / n), aux
		}}
	root := math.Sqrt(n)
	for _, temperature := range []float64{0.25, 1, 4} {
		a := must(sgmcmc.SGHMC{LR: infer.Constant(0.05), Alpha: infer.Constant(2),
			Temperature: infer.Constant(temperature)}.Build(whole))
		b := must(sgmcmc.SGHMC{LR: infer.Constant(0.05 * root), Alpha: infer.Constant(2 / root),
			Temperature: infer.Constant(temperature)}.Build(mean))
		start := must(must(infer.Zeros(program.Layout())).Repeat(3))
		x, y := begin[infer.State](t, a, start, 5), begin[infer.State](t, b, start, 5)
		for range 200 {
			x, _ = update(t, a, x, nil)
			y, _ = update(t, b, y, nil)
		}
		within(t, values(x.Position().Flat.T()), values(y.Position().Flat.T()), 1e-9, name("T = %g", temperature))
		kinetic := func(m infer.Transform, s infer.State) []float64 {
			var out []float64
			for _, row := range must(m.(infer.Thermal).KineticTemperatures(s)) {
				out = append(out, row...)
			}
			return out
		}
		within(t, kinetic(a, x), kinetic(b, y), 1e-8, "kinetic temperatures, on the user's scale")
	}
}

// At T = 0 there is no Jacobian: samplers and optimisers find the mode of the densities that the user wrote, (a − 1)/b
// and (α − 1)/Σ(α − 1).
func TestZeroTemperatureFindsTheModeWithoutJacobian(t *testing.T) {
	program := must(ppl.Compile(func(c *ppl.Ctx) {
		c.Sample("x", dist.Gamma(gammaShape, gammaRate))
		c.Sample("w", dist.Dirichlet(vector(simplex)))
	}, nil))
	lr := infer.Constant(0.1)
	for what, m := range map[string]infer.Method{
		"SGLD": sgmcmc.SGLD{LR: lr, Temperature: zero}, "SGHMC": sgmcmc.SGHMC{LR: lr, Alpha: infer.Constant(3),
			Temperature: zero},
		"BAOA": sgmcmc.BAOA{LR: lr, Temperature: zero}, "symplectic": sgmcmc.SymplecticSGHMC{LR: lr, Temperature: zero},
		"ATMC": sgmcmc.ATMC{LR: lr, Temperature: zero}, "SGD": optim.SGD{LR: lr}, "LBFGS": optim.LBFGS{},
	} {
		transform := must(m.Build(program.Target()))
		s := begin[infer.State](t, transform, must(infer.Zeros(program.Layout())), 1)
		for range 1200 {
			s, _ = update(t, transform, s, nil)
		}
		v := must(program.Constrain(s.Position(), nil))
		within(t, []float64{(gammaShape - 1) / gammaRate}, values(v["x"].T()), 1e-6, what+": x")
		within(t, []float64{1. / 6, 2. / 6, 3. / 6}, values(v["w"].T()), 1e-6, what+": w")
	}
}
