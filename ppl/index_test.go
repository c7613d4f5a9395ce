package ppl_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
)

// An index of the data that is not whole is an error that names the data and the line: when a model is compiled, in
// a prediction for other groups, and in the batches of a run.
func TestFractionalIndexOfData(t *testing.T) {
	model := func(c *ppl.Ctx) {
		var a torch.Tensor
		c.Plate("groups", 3, func(c *ppl.Ctx) { a = c.Sample("a", dist.Normal(0, 1)) })
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a.Take(c.Data("g")), 1), c.Data("y")) })
	}
	posterior, err := draws.New([]draws.Site{{Name: "a", Shape: []int{3}, Size: 3}}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, posterior.AppendChain(0, []float64{1, 2, 3}, nil))
	nan := math.NaN()
	for want, g := range map[string][]float64{
		`the index -0.5 at element 1 of shape [3] is not a whole number`: {0, -0.5, 2.9},
		`the index NaN at element 1 of shape [3] is not a whole number`:  {0, nan, 2},
		`the index 7 at element 1 of shape [3] is out of range`:          {0, 7, 2},
	} {
		batch := infer.Batch{"g": vec(g...), "y": vec(1, 0, 2)}
		_, err := ppl.Compile(model, batch)
		_, predicted := ppl.Predictive{Model: model, Batch: batch, Sites: []string{"y"}}.Posterior(posterior)
		for _, err := range []error{err, predicted} {
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, `; of the data, "g" has it`)
			require.ErrorContains(t, err, "(at ppl/index_test.go:")
		}
	}
	p, err := ppl.Compile(model, infer.Batch{"g": vec(0, 1, 2), "y": vec(1, 0, 2)})
	require.NoError(t, err)
	for _, tier := range []native.Tier{native.Auto, native.Eager} {
		for i, g := range [][]float64{{0, 1.5, 2}, {0, nan, 2}, {2, 1, 0}} {
			batch := infer.Batch{"g": vec(g...), "y": vec(1.5, 0, 2)}
			_, err = infer.Sample(context.Background(), p, sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{
				Batches: infer.Full(batch), Chains: 1, Warmup: 3, Draws: 3, Native: tier, Observer: infer.Silent})
			if i == 2 {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, infer.ErrConfig)
			require.ErrorContains(t, err, fmt.Sprintf(`batch tensor "g" has %v at element [1] of shape [3], and the model uses `+
				`it as an index`, g[1]))
		}
	}
}

// A discrete variable stands for its mean while a plate's size is looked for: that mean is not refused as an index.
func TestIndexWhileASizeIsFound(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1).Expand(2))
		c.Plate("data", 0, func(c *ppl.Ctx) {
			k := c.Sample("k", dist.Bernoulli(0.3))
			c.Observe("y", dist.Normal(a.Take(k), 1), c.Data("y"))
		})
	}, infer.Batch{"y": vec(1, 0, 2)})
	require.NoError(t, err)
	posterior, err := draws.New([]draws.Site{{Name: "a", Shape: []int{2}, Size: 2}}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, posterior.AppendChain(0, []float64{1, 2}, nil))
	_, err = p.Check(posterior, 1)
	require.NoError(t, err)
}

// Data that the model replaces, or of which it calculates a whole number, are no wrong index; where they are used as
// they are, the error names the one of several that is wrong.
func TestConvertBatchOfIndices(t *testing.T) {
	nan := math.NaN()
	model := func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1).Expand(9))
		g := c.Data("g")
		of := a.Take(torch.Where(g.Eq(g), g, 0.0)).Add(a.Take(c.Data("dose").Mul(2))).Add(a.Take(c.Data("z")))
		c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(of, 1), c.Data("y")) })
	}
	for _, first := range []infer.Batch{
		{"g": vec(0, 1, 2), "dose": vec(0, 1, 2), "z": vec(2, 1, 0), "y": vec(1, 0, 2)},
		{"g": vec(0, nan, 2), "dose": vec(0, 1, 2), "z": vec(2, 1, 0), "y": vec(1, 0, 2)},
	} {
		p, err := ppl.Compile(model, first)
		require.NoError(t, err)
		for _, test := range []struct {
			g, dose, z []float64
			want       string
		}{
			{g: []float64{0, 1, nan}, dose: []float64{0, 1.5, 2}, z: []float64{0, 1, 2}},
			{g: []float64{0, 1, 0.5}, dose: []float64{0, 1.5, 2}, z: []float64{0, 1, 2}, want: `"g" has 0.5 at element [2]`},
			{g: []float64{0, 1, nan}, dose: []float64{0, 1.5, 2}, z: []float64{0, 1, nan}, want: `"z" has NaN at element [2]`},
			{g: []float64{0, 1, nan}, dose: []float64{0, 1.25, 2}, z: []float64{0, 1, 2}, want: `batch tensor "dose" has 1.25`},
		} {
			_, err := p.ConvertBatch(infer.Batch{"g": vec(test.g...), "dose": vec(test.dose...), "z": vec(test.z...),
				"y": vec(1.5, 0, 2)})
			if test.want == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, infer.ErrConfig)
			require.ErrorContains(t, err, test.want)
		}
	}
}

// An index that the model computes, and cuts off, makes no index of the data.
func TestComputedIndexIsNotOfTheData(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		u := c.Sample("u", dist.Uniform(0, 4))
		a := c.Sample("a", dist.Normal(0, 1).Expand(4))
		c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a.Take(u), 1), c.Data("y")) })
	}, infer.Batch{"y": vec(1, 2, 3)})
	require.NoError(t, err)
	_, err = p.ConvertBatch(infer.Batch{"y": vec(1, 2, 3.5)})
	require.NoError(t, err)
}

// Where no data are an index, looking for one takes one run of the model, not one for each column.
func TestCompileOfManyColumns(t *testing.T) {
	runs := func(columns int) (n int) {
		batch := infer.Batch{"y": vec(1, 0, 1)}
		for j := range columns {
			batch[fmt.Sprint("x", j)] = vec(0, 1, float64(j))
		}
		_, err := ppl.Compile(func(c *ppl.Ctx) {
			n++
			eta := c.Sample("w", dist.Normal(0, 1))
			for j := range columns {
				eta = eta.Add(c.Data(fmt.Sprint("x", j)))
			}
			c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.BernoulliLogits(eta), c.Data("y")) })
		}, batch)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, runs(1), runs(9))
}

// An error of an index names the data that have it at its element, and no others that have the same number.
func TestErrorOfIndexNamesItsData(t *testing.T) {
	count := torch.Must(torch.To(vec(7, 1, 2), torch.CPU, gotch.Int64))
	_, err := ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1).Expand(3))
		c.Plate("n", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.Normal(a.Take(c.Data("g")), c.Data("count").Add(1)), c.Data("y"))
		})
	}, infer.Batch{"g": vec(0, 7, 2), "count": count, "y": vec(1, 0, 2)})
	require.ErrorContains(t, err, `the index 7 at element 1 of shape [3] is out of range`)
	require.ErrorContains(t, err, `; of the data, "g" has it`)
}

// Data whose difference, or sum, is an index are found though all are looked at in one run.
func TestDifferencesOfDataAreIndices(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1).Expand(9))
		of := a.Take(c.Data("year").Sub(c.Data("first"))).Add(
			a.Take(c.Data("i").Add(c.Data("j")).Add(c.Data("k")).Add(c.Data("l"))))
		c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(of, 1), c.Data("y")) })
	}, infer.Batch{"year": vec(2000, 2001, 2002), "first": vec(2000), "i": vec(0, 1, 2), "j": vec(0, 1, 2),
		"k": vec(0, 1, 2), "l": vec(0, 1, 2), "y": vec(1, 0, 2)})
	require.NoError(t, err)
	for name, of := range map[string]float64{"year": 2000, "i": 0, "k": 0} {
		b := maps.Clone(p.Batch())
		b[name] = vec(of, of+1.5, of+2)
		_, err := p.ConvertBatch(b)
		require.ErrorContains(t, err, fmt.Sprintf("batch tensor %q has %v at element [1]", name, of+1.5))
	}
}
