package gibbs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/gibbs"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// counts is a model with everything: continuous sites, labels in a plate, and a count without an end.
func counts(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 1))
	k := c.Sample("k", dist.Poisson(4))
	sd := c.Sample("sd", dist.LogNormal(0, 0.3))
	c.Plate("n", 0, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Bernoulli(0.4))
		c.Observe("y", dist.Normal(mu.Add(z.Mul(2)).Add(k.Mul(0.1)), sd), c.Data("y"))
	})
}

var countsData = infer.Batch{"y": vec([]float64{0.1, 2.2, -0.4, 1.9, 2.5})}

func rowsOf(d *draws.Draws) (rows [][]float64) {
	for c := range d.Chains() {
		for i := range d.Len(c) {
			rows = append(rows, append([]float64{}, d.Row(c, i)...))
		}
	}
	return rows
}

// A run that is stopped after a sweep, the first, the last or one around the end of its warm-up, and goes on has the
// draws of one that was not, bit for bit: with methods of every kind in the blocks, and with Blocks inside.
func TestResumeAtAnySweep(t *testing.T) {
	program := compiled(t, counts, countsData)
	for what, m := range map[string]infer.Method{
		"NUTS": gibbs.Blocks{{Sites: []string{"z", "k"}, Method: gibbs.Discrete{}},
			{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}},
		"nested": gibbs.Blocks{
			{Sites: []string{"mu", "z"}, Method: gibbs.Blocks{
				{Sites: []string{"mu"}, Method: hmc.HMC{Steps: 3, Persistence: 0.5}},
				{Sites: []string{"z"}, Method: gibbs.Discrete{}},
			}},
			{Sites: []string{"k"}, Method: gibbs.Discrete{Exact: 2}},
			{Sites: []string{"sd"}, Method: sgmcmc.SGHMC{LR: infer.Constant(0.02)}},
		},
	} {
		o := infer.Options{Chains: 2, Warmup: 12, Draws: 10, Seed: 9}
		whole := rowsOf(sampled(t, program, m, o))
		for _, cut := range []int{1, 2, 6, 12, 13, 21} {
			o := o
			o.Checkpoint = &infer.Checkpoint{Dir: t.TempDir(), Every: 1, Resume: true}
			ctx, cancel := context.WithCancel(context.Background())
			o.Observer = infer.ObserverFunc(func(p infer.Progress) {
				if p.Step == cut {
					cancel()
				}
			})
			_, err := infer.Sample(ctx, program, m, o)
			require.ErrorIs(t, err, context.Canceled)
			o.Observer = nil
			d, err := infer.Sample(context.Background(), program, m, o)
			require.NoError(t, err)
			assert.Equal(t, whole, rowsOf(d), fmt.Sprintf("%s, stopped after %d sweeps", what, cut))
			cancel()
		}
	}
}

// A chain has the same draws, bit for bit, whichever chains run beside it.
func TestChainsAreApart(t *testing.T) {
	program := compiled(t, counts, countsData)
	m := gibbs.Blocks{{Sites: []string{"z", "k"}, Method: gibbs.Discrete{}},
		{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}}
	start, err := infer.NewParams(program.Layout(), []float64{3, 0.1, 0.2, 0, 1, 0, 1, 1})
	require.NoError(t, err)
	o := infer.Options{Chains: 3, Warmup: 20, Draws: 20, Seed: 9, Start: start}
	all := rowsOf(sampled(t, program, m, o))
	o.Chains, o.FirstChain = 1, 1
	assert.Equal(t, all[20:40], rowsOf(sampled(t, program, m, o)))
}

// Blocks of other sites, or with other methods, do not go on from a checkpoint.
func TestCheckpointOfOtherBlocks(t *testing.T) {
	program := compiled(t, counts, countsData)
	o := infer.Options{Chains: 1, Warmup: 2, Draws: 2, Checkpoint: &infer.Checkpoint{Dir: t.TempDir(), Resume: true}}
	sampled(t, program, gibbs.Blocks{{Sites: []string{"z", "k"}, Method: gibbs.Discrete{}},
		{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}}, o)
	_, err := infer.Sample(context.Background(), program, gibbs.Blocks{{Sites: []string{"z", "k"},
		Method: gibbs.Discrete{}}, {Sites: []string{gibbs.Rest}, Method: hmc.HMC{}}}, o)
	require.ErrorIs(t, err, infer.ErrCheckpoint)
	require.ErrorContains(t, err, "hmc.HMC")
}

// Eager gradients, those of the virtual machine and native code make the same first draws, to rounding.
func TestTiersAgree(t *testing.T) {
	program := compiled(t, counts, countsData)
	m := gibbs.Blocks{{Sites: []string{"z", "k"}, Method: gibbs.Discrete{}},
		{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}}
	var want [][]float64
	for _, tier := range []native.Tier{native.Eager, native.VM, native.Replay, native.Auto} {
		rows := rowsOf(sampled(t, program, m, infer.Options{Chains: 2, Warmup: 10, Draws: 5, Seed: 9, Native: tier}))
		if want == nil {
			want = rows
		}
		for i := range rows {
			assert.InDeltaSlice(t, want[i], rows[i], 1e-5, fmt.Sprint(tier))
		}
	}
}
