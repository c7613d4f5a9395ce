package ppl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// discreteModel has one of each kind: a count, labels in a plate, and a scale.
func discreteModel(c *ppl.Ctx) {
	k := c.Sample("k", dist.Poisson(3))
	sd := c.Sample("sd", dist.LogNormal(0, 1))
	c.Plate("n", 0, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Categorical(torch.New([]float64{0.5, 0.3, 0.2})))
		c.Observe("y", dist.Normal(z.Add(k), sd), c.Data("y"))
	})
}

// The log density of a program with discrete coordinates is that of the definitions, and the same where a coordinate is
// beside a whole number. Values go there and back.
func TestCompileDiscrete(t *testing.T) {
	y := []float64{1, 4}
	program, err := ppl.CompileDiscrete(discreteModel, infer.Batch{"y": torch.New(y)})
	require.NoError(t, err)
	assert.Equal(t, []string{"k", "z"}, program.Discrete())
	assert.Equal(t, "k[] sd[] z[2]", program.Layout().String())
	assert.Contains(t, program.String(), "; k, z discrete, as coordinates")
	for _, c := range []struct {
		site      string
		low, high float64
		ok        bool
	}{{"k", 0, math.Inf(1), true}, {"z", 0, 2, true}, {"sd", 0, 0, false}, {"no", 0, 0, false}} {
		low, high, ok := program.Ends(c.site)
		assert.Equal(t, []any{c.low, c.high, c.ok}, []any{low, high, ok}, c.site)
	}
	target := program.Target()
	_, err = infer.NewGradient(target)
	require.ErrorContains(t, err, `the discrete site "k" has no gradient`)
	target.Program = nil // its values, by a method that does not ask for gradients
	gradient, err := infer.NewGradient(target)
	require.NoError(t, err)
	normal := func(x, mean, sd float64) float64 {
		return -0.5*(x-mean)*(x-mean)/(sd*sd) - math.Log(sd) - 0.5*math.Log(2*math.Pi)
	}
	for _, x := range [][]float64{{2, 0.3, 1, 2}, {2.2, 0.3, 0.9, 5}} {
		p, err := infer.NewParams(program.Layout(), x)
		require.NoError(t, err)
		e, err := gradient.ValueAndGrad(p, program.Batch(), 0)
		require.NoError(t, err)
		sd := math.Exp(0.3)
		want := 2*math.Log(3) - 3 - math.Log(2) + math.Log(0.3) + math.Log(0.2) + normal(0.3, 0, 1) - 0.3 +
			normal(1, 3, sd) + normal(4, 4, sd)
		assert.InDelta(t, want/2, e.Values[0], 1e-12)
		grad, err := torch.ToSlice[float64](e.Grad)
		require.NoError(t, err)
		assert.Equal(t, []float64{0, 0, 0}, []float64{grad[0], grad[2], grad[3]}, "discrete coordinates have no gradient")
	}
	values := ppl.Values{"k": torch.New([]int{5}, []int{}...),
		"sd": torch.New([]float64{1}, []int{}...), "z": torch.New([]int{2, 0})}
	p, err := program.Init(program.Batch(), ppl.FromValues(values), 1, 1)
	require.NoError(t, err)
	x, err := p.Values()
	require.NoError(t, err)
	assert.Equal(t, []float64{5, 0, 2, 0}, x)
	for _, how := range []ppl.Initial{ppl.FromUniform, ppl.FromPrior} {
		p, err := program.Init(program.Batch(), how, 4, 1)
		require.NoError(t, err)
		x, err := p.Values()
		require.NoError(t, err)
		for i, v := range x {
			if i%4 != 1 {
				assert.Equal(t, math.Trunc(v), v)
			}
		}
	}
}

// Rows are the terms in a plate, one number for each row.
func TestRows(t *testing.T) {
	program, err := ppl.CompileDiscrete(discreteModel, infer.Batch{"y": torch.New([]float64{1, 4})})
	require.NoError(t, err)
	p, err := infer.NewParams(program.Layout(), []float64{2, 0, 1, 2})
	require.NoError(t, err)
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		rows := program.Rows(p, program.Batch(), "n", 2).Values()
		half := 0.5 * math.Log(2*math.Pi)
		assert.InDeltaSlice(t, []float64{math.Log(0.3) - 2 - half, math.Log(0.2) - half}, rows, 1e-12)
		return nil
	}))
}

// What cannot be summed out, and why, is said with what to write; a vector of counts cannot be a coordinate.
func TestErrorsOfDiscreteModels(t *testing.T) {
	_, err := ppl.Compile(discreteModel, infer.Batch{"y": torch.New([]float64{1, 4})})
	require.ErrorContains(t, err, `the discrete variables ["k" "z"] cannot be summed out`)
	require.ErrorContains(t, err, `gibbs.Blocks{{Sites: []string{"k", "z"}, Method: gibbs.Discrete{}}, `+
		`{Sites: []string{gibbs.Rest}, Method: hmc.NUTS{}}}`)
	_, err = ppl.CompileDiscrete(func(c *ppl.Ctx) {
		c.Sample("m", dist.Multinomial(3, torch.New([]float64{0.5, 0.5})))
	}, nil)
	require.ErrorContains(t, err, `ppl.CompileDiscrete: model, site "m" (Multinomial)`)
	require.ErrorContains(t, err, "cannot be a coordinate")
}
