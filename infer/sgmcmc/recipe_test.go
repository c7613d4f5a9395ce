package sgmcmc_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Matthews is the limit of BAOAB at high friction (Leimkuhler and Matthews 2013): SGLD whose noise is that of two
// neighbouring updates.
//
//	θ' = θ + ε g(θ) + √(τε/2) (z + z'),  τ = T/N
//
// On a Gaussian target of precision λ it has no bias: the variance is τ/λ at every stable step, ελ < 2.
type Matthews struct {
	LR          infer.Schedule // step size ε; required
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
}

// MatthewsState is the state of [Matthews].
type MatthewsState struct {
	method.State
	Noise torch.Tensor // z, of the shape of θ
}

// Defaults are those of the options of a run.
func (c Matthews) Defaults() infer.Options { return infer.Options{Warmup: 2000, Thin: 5} }

// Build checks the configuration and binds it to a target.
func (c Matthews) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: "sgmcmc.Matthews"}
	check.LR(c.LR, "below 2/λ, with λ the largest curvature of the mean log posterior")
	check.Schedule("Temperature", &c.Temperature, 1, false)
	return method.Build(check, target, method.Algorithm[MatthewsState]{
		LR: c.LR, Temperature: c.Temperature,
		Parts: func(s *MatthewsState) []method.Part { return []method.Part{{Name: "noise", Tensor: &s.Noise}} },
		Start: func(s *MatthewsState, m *method.Move) { s.Noise = m.Normal(s.Params.Flat) },
		Program: func(_ *MatthewsState, p *fuse.Program, m *method.Move) {
			z, scale := fuse.Part(0), math.Sqrt(m.Tau*m.LR/2)
			p.Add(fuse.Theta, fuse.Grad.Times(m.LR), z.Times(scale), fuse.Noise.Times(scale))
			p.Combine(z, fuse.Noise.Times(1))
		},
	})
}

// The recipe of CONTRIBUTING.md is a whole method, in 40 lines of code with what its file begins with: it keeps the
// contract, its updates are fused, and its law is the exact one, here at three quarters of the largest step.
func TestRecipe(t *testing.T) {
	text := string(must(os.ReadFile("recipe_test.go")))
	from, to := strings.Index(text, "// Matthews is"), strings.Index(text, "// The recipe of")
	lines := 8 // package, import, five of them, and the bracket
	for line := range strings.Lines(text[from:to]) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	assert.LessOrEqual(t, lines, 40)

	q := newQuartic()
	lr, temperature := infer.Polynomial(0.2, 1, 0.33), infer.Linear(1, 0.5, 0, 10)
	infertest.Contract(t, map[string]infer.Method{"Matthews": Matthews{LR: lr, Temperature: temperature}},
		infertest.Ground{Posterior: infertest.Walled(q.logPosterior), Layout: q.layout, Batch: q.batch(), Tolerance: 1e-11,
			Run: infer.Options{Warmup: 20, Draws: 13, Thin: 3}, Stops: []int{1, 20, 34}})
	assertSameDraws(t, fusedRun(t, Matthews{LR: lr}, 3, 16, native.Eager, infer.Options{}).Unconstrained,
		fusedRun(t, Matthews{LR: lr}, 3, 16, native.Require, infer.Options{}).Unconstrained, 1e-11)

	const chains, lambda, cold = 20000, 2.0, 0.5
	g := newGaussian(scalar(lambda), 1)
	transform := build(t, Matthews{LR: infer.Constant(1.5 / lambda), Temperature: infer.Constant(cold)}, g.logPosterior)
	batch, err := g.batches(0, 1).Next()
	require.NoError(t, err)
	s := begin[infer.State](t, transform, params(g.layout, make([]float64, chains), chains), 1)
	for range 60 {
		s, _ = update(t, transform, s, batch)
	}
	x := values(s.Position().Flat.T())
	for i := range x {
		x[i] -= g.mean[0]
	}
	hasVariance(t, cold/lambda, x, "τ/λ")
}
