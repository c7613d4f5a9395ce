package evidence_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Where the evidence is not defined the error says why: of an improper prior, at which site.
func TestUndefined(t *testing.T) {
	y, err := torch.FromSlice([]float64{1, 2})
	require.NoError(t, err)
	ctx := context.Background()
	flat, err := ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Flat())
		c.Observe("y", dist.Normal(mu, 1), c.Data("y"))
	}, infer.Batch{"y": y})
	require.NoError(t, err)
	r, err := infer.Run(ctx, flat, hmc.NUTS{}, infer.Options{Warmup: 50, Draws: 50})
	require.NoError(t, err)
	_, err = evidence.Bridge(flat, r.Unconstrained, evidence.BridgeOptions{})
	require.ErrorContains(t, err, `site "mu"`)
	unknown := infer.Handwritten(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Sum().Neg(), nil
	}, 1), start(t), nil)
	for _, m := range []infer.Method{evidence.TI{}, evidence.SMC{}, evidence.AIS{}} {
		_, err := evidence.Run(ctx, flat, m, infer.Options{})
		require.ErrorContains(t, err, `site "mu"`)
		require.ErrorContains(t, err, "improper")
		_, err = evidence.Run(ctx, unknown, m, infer.Options{})
		require.ErrorContains(t, err, "tell its prior and likelihood apart")
	}
	_, err = evidence.Run(ctx, unknown, evidence.TI{Path: path.Path{Full: true}}, infer.Options{})
	require.ErrorContains(t, err, "the full path has no normalizer and cannot be drawn from")
	r, err = infer.Run(ctx, unknown, hmc.NUTS{}, infer.Options{Warmup: 100, Draws: 500})
	require.NoError(t, err)
	_, err = evidence.Bridge(unknown, r.Unconstrained, evidence.BridgeOptions{})
	require.ErrorContains(t, err, "does not say that its prior is normalized")
	z, err := evidence.Bridge(unknown, r.Unconstrained, evidence.BridgeOptions{Unnormalized: true})
	require.NoError(t, err)
	require.InDelta(t, math.Log(math.Pi), z.LogZ, 3*z.SE) // ∫ exp(−x² − y²) = π
}

func start(t *testing.T) infer.Params {
	t.Helper()
	l, err := infer.NewLayout(infer.Shapes{"x": {2}})
	require.NoError(t, err)
	p, err := infer.Zeros(l)
	require.NoError(t, err)
	return p
}

func TestBadConfigurations(t *testing.T) {
	p := program(t, infertest.EvidenceGaussian(3))
	two := path.Path{Full: true, Reference: &path.Harmonic{}}
	short := &path.Harmonic{Mean: []float64{0}, Precision: []float64{1}}
	for want, m := range map[string]infer.Method{
		"evidence.TI: Ladder is of 1 rungs":                     evidence.TI{Ladder: []float64{1}},
		"evidence.TI: Ladder[1] is 0 after 0":                   evidence.TI{Ladder: []float64{0, 0, 1}},
		"evidence.SMC: Ladder is from 0.1 to 1":                 evidence.SMC{Ladder: []float64{0.1, 1}},
		"evidence.AIS: Ladder[1] is 2":                          evidence.AIS{Ladder: []float64{0, 2}},
		"evidence.TI: Rungs is 1":                               evidence.TI{Rungs: 1},
		"evidence.SMC: ESS is 1":                                evidence.SMC{ESS: 1},
		"evidence.SMC: Moves is -1":                             evidence.SMC{Moves: -1},
		"evidence.SMC: MostMoves is 2":                          evidence.SMC{MostMoves: 2},
		"evidence.SMC: TargetAccept is 1":                       evidence.SMC{TargetAccept: 1},
		"path.Path: Full, Normalizer, Reference is 2 of them":   evidence.SMC{Path: two},
		"path.Harmonic: Mean is of length 1":                    evidence.TI{Path: path.Path{Reference: short}},
		"the method is a hmc.NUTS: it must be evidence.TI, SMC": hmc.NUTS{},
	} {
		_, err := evidence.Run(context.Background(), p, m, infer.Options{})
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, infer.ErrConfig)
	}
	_, err := evidence.Run(context.Background(), p, evidence.SMC{}, infer.Options{Group: 1, Draws: 20})
	require.ErrorContains(t, err, "Options.Group")
	_, err = evidence.Run(context.Background(), p, evidence.SMC{}, infer.Options{Draws: 1})
	require.ErrorContains(t, err, "number of particles")
	_, err = evidence.Bridge(p, nil, evidence.BridgeOptions{})
	require.ErrorIs(t, err, infer.ErrConfig)
	other, err := draws.New([]draws.Site{{Name: "z", Shape: []int{3}, Size: 3}}, nil, 1)
	require.NoError(t, err)
	_, err = evidence.Bridge(p, other, evidence.BridgeOptions{})
	require.ErrorContains(t, err, "infer.Result.Unconstrained")
	_, err = evidence.Laplace(p, &infer.Result{})
	require.ErrorContains(t, err, "package laplace")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = evidence.Run(ended, p, evidence.SMC{}, infer.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// A likelihood that is 0 for half of the prior: Z is ½. The integral has no start, SMC and the stepping stones have.
func TestExcludedByTheData(t *testing.T) {
	k := infertest.Evidence{Name: "half", Dim: 1, Prior: []float64{1}, LogZ: -math.Ln2}
	k.Likelihood = func(x torch.Tensor) torch.Tensor { return x.Sum().Gt(0).Log() }
	p := program(t, k)
	z, err := evidence.Run(context.Background(), p, evidence.SMC{MostMoves: 4}, infer.Options{Draws: 200})
	require.NoError(t, err)
	require.InDelta(t, k.LogZ, z.LogZ, 3*z.SE)
	z, err = evidence.Run(context.Background(), p, evidence.TI{Rungs: 4}, infer.Options{Warmup: 50, Draws: 200})
	require.NoError(t, err)
	require.InDelta(t, k.LogZ, z.LogZ, 3*z.SE)
	require.Contains(t, z.String(), "stepping stones")
}
