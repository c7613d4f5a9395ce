package evidence_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/torch"
)

// foreign is a program that is not of the language: it cannot map named draws back.
type foreign struct{ infer.Program }

func (f foreign) Target() infer.Target {
	t := f.Program.Target()
	t.Program = nil
	return t
}

// A Gamma(3, 2) prior of a Poisson rate: log Z is 3 log 2 − log Γ(3) + log Γ(3 + Σy) − (3 + Σy) log(2 + n) − Σ log y!.
// Named draws give it as those on unconstrained space do, cut, merged and stored too. They were taken for the others,
// without a word.
func TestBridgeTakesNamedDraws(t *testing.T) {
	counts := []float64{3, 1, 4, 2, 0, 5, 3, 2, 2, 1, 4, 3}
	lgamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	sum, n, factorials := 0.0, float64(len(counts)), 0.0
	for _, y := range counts {
		sum += y
		factorials += lgamma(y + 1)
	}
	want := 3*math.Log(2) - lgamma(3) + lgamma(3+sum) - (3+sum)*math.Log(2+n) - factorials
	y, err := torch.FromSlice(counts)
	require.NoError(t, err)
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		rate := c.Sample("rate", dist.Gamma(3, 2))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Poisson(rate), c.Data("y")) })
	}, infer.Batch{"y": y})
	require.NoError(t, err)
	ctx := context.Background()
	checkpoint := &infer.Checkpoint{Dir: t.TempDir(), Resume: true}
	o := infer.Options{Seed: 1, Warmup: 500, Draws: 500, Observer: infer.Silent, Checkpoint: checkpoint}
	r, err := infer.Run(ctx, p, hmc.NUTS{}, o)
	require.NoError(t, err)
	near := func(what string, d *draws.Draws) *evidence.Result {
		t.Helper()
		z, err := evidence.Bridge(p, d, evidence.BridgeOptions{})
		require.NoError(t, err, what)
		require.InDelta(t, want, z.LogZ, 3*z.SE, what)
		require.Less(t, z.SE, 0.02, what)
		return z
	}
	exact := near("unconstrained", r.Unconstrained)
	same := func(what string, d *draws.Draws) {
		t.Helper()
		require.InDelta(t, exact.LogZ, near(what, d).LogZ, 1e-9, what)
	}
	same("named", r.Draws)
	resumed, err := infer.Sample(ctx, p, hmc.NUTS{}, o)
	require.NoError(t, err)
	same("of the checkpoint", resumed)

	csv, err := store.WriteCSV(filepath.Join(t.TempDir(), "run"), &store.Inference{Posterior: r.Draws},
		store.CSVOptions{})
	require.NoError(t, err)
	stored, err := store.Open(csv...)
	require.NoError(t, err)
	same("of a file", stored.Posterior)

	head, err := r.Draws.Slice(0, 400)
	require.NoError(t, err)
	thin, err := r.Draws.Thin(2)
	require.NoError(t, err)
	twice, err := r.Draws.Merge(r.Draws)
	require.NoError(t, err)
	site, err := r.Draws.Select("rate")
	require.NoError(t, err)
	for what, d := range map[string]*draws.Draws{"slice": head, "thinned": thin, "merged": twice, "selected": site} {
		near(what, d)
	}

	_, err = evidence.Bridge(foreign{p}, r.Draws, evidence.BridgeOptions{})
	require.ErrorIs(t, err, infer.ErrLayout)
	require.ErrorContains(t, err, "give infer.Result.Unconstrained")
	z, err := evidence.Bridge(foreign{p}, r.Unconstrained, evidence.BridgeOptions{})
	require.NoError(t, err)
	require.Equal(t, exact.LogZ, z.LogZ)
}

// A deterministic value among named draws is no variable; supports that depend on variables go back too. With a and b
// uniform on 0 < b < a < 1, of density 1/a, and y = 1 a success of probability b: Z = E[b] = E[a]/2 = 1/4.
func TestBridgeOfSupportsThatMove(t *testing.T) {
	y, err := torch.FromSlice([]float64{1})
	require.NoError(t, err)
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Uniform(0, 1))
		b := c.Sample("b", dist.Uniform(0, a))
		c.Deterministic("odds", b.Div(b.Neg().Add(1)))
		c.Observe("y", dist.Bernoulli(b), c.Data("y"))
	}, infer.Batch{"y": y})
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Seed: 1, Observer: infer.Silent})
	require.NoError(t, err)
	z, err := evidence.Bridge(p, d, evidence.BridgeOptions{})
	require.NoError(t, err)
	require.InDelta(t, math.Log(0.25), z.LogZ, 3*z.SE)
	require.Less(t, z.SE, 0.05)
}
