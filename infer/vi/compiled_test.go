package vi_test

import (
	"context"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// scaledRegression is a regression of 6 data with an unknown standard deviation, so that there is a Jacobian. In the
// language the parts are evaluated with it; a target of functions has it apart.
func scaledRegression(t *testing.T, language bool) (infer.Program, infer.Batch) {
	t.Helper()
	batch := infer.Batch{"x": torch.Of(vector([]float64{-1.5, -1, -0.2, 0.4, 1.1, 1.3})),
		"y": torch.Of(vector([]float64{-2.1, -1.7, 0.2, 0.9, 1.4, 2.5}))}
	if language {
		program, err := ppl.Compile(func(c *ppl.Ctx) {
			w, scale := c.Sample("w", dist.Normal(0, 2).Expand(2)), c.Sample("scale", dist.HalfNormal(1))
			c.Plate("data", 6, func(c *ppl.Ctx) {
				c.Observe("y", dist.Normal(c.Data("x").Mul(w.At(1)).Add(w.At(0)), scale), c.Data("y"))
			})
		}, batch)
		require.NoError(t, err)
		return program, batch
	}
	l := layout(infer.Shapes{"log_scale": {}, "w": {2}})
	target := infer.FromParts(func(p infer.Params, b infer.Batch) (prior, likelihood torch.Tensor) {
		w, logScale := p.Get("w"), p.Get("log_scale")
		n := must(b.Size())
		prior = w.Square().Sum().Mul(-1. / 8).Sub(logScale.Mul(2).Exp().Mul(0.5))
		z := b.Get("x").Mul(w.At(1)).Add(w.At(0)).Sub(b.Get("y")).Div(logScale.Exp())
		return prior, z.Square().Mul(-0.5).Sub(logScale).Sum().Mul(6 / float64(n))
	}, 6)
	target.LogJacobian = func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return p.Get("log_scale"), nil }
	return infer.Handwritten(target, params(l, []float64{-0.3, 0.2, 0.5}, 0), batch), batch
}

// tryRun makes 60 updates of two chains: where they lead, and who evaluated their gradients.
func tryRun(t *testing.T, m infer.Method, language bool, size int, o infer.Options) ([]float64, string, error) {
	t.Helper()
	program, batch := scaledRegression(t, language)
	o.Chains, o.Warmup, o.Draws, o.Seed, o.Observer = 2, 60, 2, 3, infer.Silent
	if size > 0 {
		o.Batches = must(infer.Minibatches(batch, infer.MinibatchOptions{Size: size, Seed: 1}))
	}
	r, err := infer.Run(context.Background(), program, m, o)
	if err != nil {
		return nil, "", err
	}
	return values(r.State.(vi.State).Variational().Flat.T()), r.Draws.Attrs()["gradient"], nil
}

func compiledRun(t *testing.T, m infer.Method, language bool, size int, o infer.Options) ([]float64, string) {
	t.Helper()
	phi, gradient, err := tryRun(t, m, language, size, o)
	require.NoError(t, err)
	return phi, gradient
}

// The tiers have the same samples, and their gradients differ in rounding alone, by 1e-10 at most, which an update of
// Adam turns into a step that is off by as little: 60 of them stay within 1e-8. With batches of 4 each pass over the 6
// data has two shapes. A prior whose weight moves needs no new code. Dense has samples enough for its updates not to
// enlarge the differences.
func TestTiersGoTheSameWay(t *testing.T) {
	weight, temperature := infer.Linear(0.2, 1, 0, 30), infer.Constant(0.5)
	cases := map[string]infer.Method{
		"vi.Diag":          vi.Diag{},
		"vi.Diag, score":   vi.Diag{StickTheLanding: &no, Antithetic: true, Temperature: infer.Linear(2, 1, 0, 30)},
		"vi.Diag, weight":  vi.Diag{KLWeight: weight, Temperature: temperature},
		"vi.Diag, both":    vi.Diag{KLWeight: weight, Temperature: infer.Linear(2, 1, 0, 30)},
		"vi.Dense":         vi.Dense{Samples: 16},
		"vi.Dense, none":   vi.Dense{KLWeight: infer.Constant(0)},
		"vi.LowRank":       vi.LowRank{Samples: 1},
		"vi.LowRank, cold": vi.LowRank{Temperature: infer.Constant(0)},
	}
	for what, m := range cases {
		for _, language := range []bool{false, true} {
			for _, size := range []int{0, 4} {
				if (size == 4) != language && !testkit.Slow {
					continue
				}
				t.Run(name("%s, language %v, batches of %d", what, language, size), func(t *testing.T) {
					want, _ := compiledRun(t, m, language, size, infer.Options{Native: native.Eager})
					for _, tier := range []native.Tier{native.C, native.VM} {
						got, gradient := compiledRun(t, m, language, size, infer.Options{Native: tier})
						if what == "vi.Diag, both" {
							assert.Contains(t, gradient, "eager: ", "a weight and a temperature that move")
						} else {
							assert.Contains(t, gradient, string(tier)+" (")
						}
						within(t, want, got, 1e-8, string(tier))
					}
				})
			}
		}
	}
}

// A fit goes on in the tier that it began with, bit for bit, and refuses another.
func TestFitsGoOnInTheirTier(t *testing.T) {
	m := vi.Diag{KLWeight: infer.Linear(0.2, 1, 0, 30), Temperature: infer.Constant(0.5)}
	want, _ := compiledRun(t, m, true, 4, infer.Options{Native: native.VM})
	o := infer.Options{Native: native.VM, Checkpoint: &infer.Checkpoint{Dir: t.TempDir(), Every: 7, Resume: true}}
	o.Until = func(p infer.Progress) bool { return p.Step == 25 }
	compiledRun(t, m, true, 4, o)
	o.Until, o.Native = nil, native.Eager
	_, _, err := tryRun(t, m, true, 4, o)
	require.ErrorIs(t, err, infer.ErrCheckpoint)
	assert.ErrorContains(t, err, `"vm"`)
	o.Native = native.Auto
	got, gradient := compiledRun(t, m, true, 4, o)
	assert.Contains(t, gradient, "vm (")
	identical(t, want, got, "the fit that went on")
}
