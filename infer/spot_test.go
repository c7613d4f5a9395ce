package infer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// changer changes something in a run, where it is asked for the fifth time whether it is due; it never is, so that
// updates are fused as without an observer.
type changer struct {
	calls  int
	change func()
}

func (*changer) Observe(infer.Progress) {}

func (c *changer) Due() bool {
	if c.calls++; c.calls == 5 {
		c.change()
	}
	return false
}

// captured is a model of 40 data with a scale that is a variable of the program, and its minibatches of 7, of which the
// last one is smaller.
func captured(t *testing.T, scale *float64) (*ppl.Program, func() infer.Batches) {
	data := infer.Batch{"y": vec(numbers(40, 3))}
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		mu, tau := c.Sample("mu", dist.Normal(0, 1)), c.Sample("tau", dist.LogNormal(0, 1))
		c.Plate("rows", 40, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, tau.Mul(*scale)), c.Data("y")) })
	}, data)
	require.NoError(t, err)
	return p, func() infer.Batches {
		return torch.Must(infer.Minibatches(data, infer.MinibatchOptions{Size: 7, Seed: 1}))
	}
}

// spotCase is a run that compiles its gradients.
type spotCase struct {
	name   string
	method infer.Method
	o      infer.Options
	parts  bool // minibatches
}

func spotCases() []spotCase {
	lr := infer.Constant(0.01)
	return []spotCase{
		{"NUTS", hmc.NUTS{}, infer.Options{}, false},
		{"NUTS, replayed", hmc.NUTS{}, infer.Options{Native: native.Replay, Warmup: 100, Draws: 100, Chains: 2}, false},
		{"exchange", hmc.Exchange{Ladder: []float64{1, 2}}, infer.Options{Warmup: 300, Draws: 300}, false},
		{"SGLD", sgmcmc.SGLD{LR: lr}, infer.Options{}, false},
		{"SGLD, minibatches", sgmcmc.SGLD{LR: lr}, infer.Options{}, true},
		{"SGLD, interpreted", sgmcmc.SGLD{LR: lr}, infer.Options{Native: native.VM}, true},
		{"SGLD, replayed", sgmcmc.SGLD{LR: lr}, infer.Options{Native: native.Replay}, true},
		{"SGNHT, not fused", sgmcmc.SGNHT{LR: lr}, infer.Options{}, true},
		{"Adam", optim.Adam{LR: lr}, infer.Options{Warmup: 2000}, false},
		{"variational", vi.Diag{}, infer.Options{Warmup: 1000, Draws: 100}, false},
		{"the mode", laplace.DenseHessian{}, infer.Options{Warmup: 3000, Draws: 100}, false},
	}
}

// A variable that changes in a run is noticed wherever the run has compiled what the model was.
func TestChangedModelIsNoticed(t *testing.T) {
	for _, c := range spotCases() {
		scale := 1.
		p, batches := captured(t, &scale)
		o := c.o
		if c.parts {
			o.Batches = batches()
		}
		o.Seed, o.Observer = 1, &changer{change: func() { scale = 2 }}
		d, err := infer.Sample(context.Background(), p, c.method, o)
		require.NoError(t, err, c.name)
		require.Equal(t, 2., scale, c.name)
		found := torch.Must(diag.Diagnose(d, diag.DiagnoseOptions{})).Of("model_changed")
		if assert.Len(t, found, 1, "%s: %s", c.name, d.Attrs()["gradient"]) {
			assert.Equal(t, diag.Serious, found[0].Severity)
			assert.Contains(t, found[0].Message, "was no longer what was compiled", c.name)
			assert.Contains(t, found[0].Advice, "Native: native.Eager", c.name)
		}
	}
}

// Of a model that stays nothing is said, and its draws are those of a run that compares nothing, whatever the seed.
func TestUnchangedModelIsNoFinding(t *testing.T) {
	testkit.Long(t)
	cases := spotCases()
	for seed := range uint64(20) {
		c := cases[int(seed)%len(cases)]
		scale := 1.
		p, batches := captured(t, &scale)
		o := c.o
		if c.parts {
			o.Batches = batches()
		}
		o.Seed, o.Observer = seed, infer.Silent
		d, err := infer.Sample(context.Background(), p, c.method, o)
		require.NoError(t, err, c.name)
		require.Empty(t, torch.Must(diag.Diagnose(d, diag.DiagnoseOptions{})).Of("model_changed"), c.name)
	}
	y := torch.Must(torch.FromSliceOn(gotch.CPU, gotch.Float, numbers(1000, 3), 1000))
	target := infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return b.Get("y").Sub(p.Get("w").Mul(1e3)).Square().Mean().Neg(), nil
	}, 1000)
	start := in32(t, pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0.1))
	for seed := range uint64(20) {
		d, err := infer.Sample(context.Background(), infer.Handwritten(target, start, infer.Batch{"y": y}),
			sgmcmc.SGLD{LR: infer.Constant(1e-8)}, infer.Options{Seed: seed, Chains: 2, Observer: infer.Silent})
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(d.Attrs()["gradient"]), "replay")
		require.Empty(t, torch.Must(diag.Diagnose(d, diag.DiagnoseOptions{})).Of("model_changed"))
	}
}
