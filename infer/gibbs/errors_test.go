package gibbs_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/gibbs"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Every mistake in Blocks is an error that names the site, the block and what to do.
func TestErrorsOfBlocks(t *testing.T) {
	program := compiled(t, counts, countsData)
	discrete := gibbs.Block{Sites: []string{"z", "k"}, Method: gibbs.Discrete{}}
	rest := gibbs.Block{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}
	for _, c := range []struct {
		method infer.Method
		want   string
	}{
		{gibbs.Blocks{}, "there is no block"},
		{gibbs.Blocks{discrete, {Sites: []string{"mu"}}}, "gibbs.Blocks[1]: a block needs a Method"},
		{gibbs.Blocks{discrete, {Method: hmc.NUTS{}}}, "gibbs.Blocks[1]: a block needs a Method and the names of its Sites"},
		{gibbs.Blocks{discrete, {Sites: []string{"nu"}, Method: hmc.NUTS{}}},
			`gibbs.Blocks[1].Sites: there is no site "nu"; the sites are ["k" "mu" "sd" "z"]`},
		{gibbs.Blocks{discrete, {Sites: []string{"k", gibbs.Rest}, Method: hmc.NUTS{}}},
			`gibbs.Blocks[1].Sites: the site "k" is in block 0 already`},
		{gibbs.Blocks{discrete, {Sites: []string{"mu"}, Method: hmc.NUTS{}}}, `no block has the site "sd"`},
		{gibbs.Blocks{discrete, rest, rest}, "gibbs.Rest is in block 1 already"},
		{gibbs.Blocks{discrete, {Sites: []string{"mu", "sd"}, Method: hmc.NUTS{}}, rest}, "no site is left for gibbs.Rest"},
		{gibbs.Blocks{{Sites: []string{"k"}, Method: gibbs.Discrete{}}, rest},
			`gibbs.Blocks[1]: hmc.NUTS: the discrete site "z" has no gradient`},
		{gibbs.Blocks{{Sites: []string{"k", "z", "mu"}, Method: gibbs.Discrete{}}, rest},
			`gibbs.Discrete: the site "mu" is not discrete`},
		{gibbs.Blocks{discrete, {Sites: []string{gibbs.Rest}, Method: vi.Diag{}}}, "vi.Diag fits a distribution"},
		{gibbs.Blocks{discrete, {Sites: []string{gibbs.Rest}, Method: hmc.Exchange{Ladder: []float64{1, 2},
			Kernel: hmc.NUTS{}}}}, "replicas at other temperatures"},
		{gibbs.Blocks{discrete, {Sites: []string{gibbs.Rest}, Method: hmc.NUTS{MaxDepth: -1}}},
			"gibbs.Blocks[1]: hmc.NUTS: MaxDepth is -1"},
		{gibbs.Blocks{{Sites: []string{"k", "z"}, Method: gibbs.Discrete{Exact: 1}}, rest}, "gibbs.Discrete: Exact is 1"},
		{gibbs.Blocks{{Sites: []string{"k", "z"}, Method: gibbs.Discrete{Warmup: -2}}, rest}, "gibbs.Discrete: Warmup is -2"},
		{gibbs.Blocks{{Sites: []string{"k", "z"}, Method: gibbs.Discrete{Temperature: infer.Constant(0)}}, rest},
			"gibbs.Discrete: Temperature"},
		{hmc.NUTS{}, `hmc.NUTS: the discrete site "k" has no gradient: give infer.Sample the method ` +
			`gibbs.Blocks{{Sites: []string{"k", "z"}, Method: gibbs.Discrete{}}`},
		{evidence.SMC{}, `evidence.SMC: the discrete site "k" has no gradient`},
		{pathfinder.Pathfinder{}, `pathfinder.Pathfinder: the discrete site "k" has no gradient`},
		{optim.Adam{LR: infer.Constant(0.1)}, `optim.Adam: the discrete site "k" has no gradient`},
	} {
		_, err := infer.Sample(context.Background(), program, c.method, infer.Options{Chains: 1, Warmup: 5, Draws: 5})
		require.ErrorContains(t, err, c.want)
		require.ErrorIs(t, err, infer.ErrConfig)
	}
}

// A target of functions has Blocks, whose sites are compared with the first point, and nothing discrete.
func TestTargetOfFunctions(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"a": {}, "b": {2}})
	require.NoError(t, err)
	target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("a").Sub(p.Get("b").Sum()).Square().Add(p.Get("b").Square().Sum()).Div(-2), nil
	}, 1)
	program := infer.Handwritten(target, infer.Params{Layout: layout}, nil)
	o := infer.Options{Chains: 20, Warmup: 200, Draws: 400, Seed: 8}
	d := sampled(t, program, gibbs.Blocks{{Sites: []string{"a"}, Method: hmc.NUTS{}},
		{Sites: []string{"b"}, Method: hmc.NUTS{}}}, o)
	agrees(t, "a²", means(t, d, func(row []float64) float64 { return row[0] * row[0] }), 3)
	agrees(t, "ab", means(t, d, func(row []float64) float64 { return row[0] * row[1] }), 1)
	_, err = infer.Sample(context.Background(), program, gibbs.Blocks{{Sites: []string{"c"}, Method: hmc.NUTS{}}}, o)
	require.ErrorContains(t, err, `there is no site "c"; the sites are ["a" "b"]`)
	_, err = infer.Sample(context.Background(), program, gibbs.Discrete{}, o)
	require.ErrorContains(t, err, "it needs a model of ppl.CompileDiscrete")
}

// A start between whole numbers, or outside of the support, is named.
func TestStartOfDiscreteSites(t *testing.T) {
	program := compiled(t, func(c *ppl.Ctx) { c.Sample("z", dist.Bernoulli(0.3).Expand(2)) }, nil)
	for _, x := range [][]float64{{0, 0.5}, {0, 2}} {
		start, err := infer.NewParams(program.Layout(), x)
		require.NoError(t, err)
		_, err = infer.Sample(context.Background(), program, gibbs.Discrete{}, infer.Options{Start: start})
		require.ErrorContains(t, err, "site z has whole numbers of its support")
	}
}

// A model whose discrete site cannot be summed out is refused with the site, the reason, and the blocks to write.
func TestErrorOfCompile(t *testing.T) {
	_, _, data := selectionData(25, 8)
	_, err := ppl.Compile(selection(8), data)
	require.ErrorContains(t, err, `ppl.Compile: the discrete variable "g" cannot be summed out as the model is written: `)
	require.ErrorContains(t, err, `compile with ppl.CompileDiscrete and give the method `+
		`gibbs.Blocks{{Sites: []string{"g"}, Method: gibbs.Discrete{}}, {Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}}`)
}
