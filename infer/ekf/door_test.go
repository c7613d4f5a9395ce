package ekf_test

import (
	"context"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

// regression is a linear regression of a slope with a prior of standard deviation 5, and the exact filter for it.
func regression(t *testing.T) (*ppl.Program, ekf.GaussNewton) {
	t.Helper()
	const n, noise = 60, 0.7
	x, y := make([]float64, n), make([]float64, n)
	for i, z := range normals(5, n) {
		x[i] = math.Sin(float64(i))
		y[i] = 1.5*x[i] + noise*z
	}
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		w := c.Sample("w", dist.Normal(0, 5))
		c.Plate("data", n, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(c.Data("x").Mul(w), noise), c.Data("y")) })
	}, infer.Batch{"x": torch.Of(vector(x)), "y": torch.Of(vector(y))})
	require.NoError(t, err)
	return program, ekf.GaussNewton{
		Forward: func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("x").Mul(p.Get("w")) },
		Outer: func(z torch.Tensor, b infer.Batch) torch.Tensor {
			return b.Get("y").Sub(z).Square().Mul(-0.5 / (noise * noise))
		},
	}
}

func run(t *testing.T, program infer.Program, m infer.Method, batches infer.Batches) (*infer.Result, []draws.Note) {
	t.Helper()
	r, err := infer.Run(context.Background(), program, m, infer.Options{Chains: 2, Seed: 7, Batches: batches,
		Observer: infer.Silent})
	require.NoError(t, err)
	return r, r.Draws.Notes()
}

// Through the door a filter takes one datum at a time, in an order of the seed, unless the options say otherwise.
func TestRunTakesOneDatumAtATime(t *testing.T) {
	program, exact := regression(t)
	for _, m := range []infer.Method{ekf.Dense{}, ekf.Diag{}, exact} {
		one, _ := run(t, program, m, nil)
		assert.EqualValues(t, 60, one.Updates)
		given, _ := run(t, program, m,
			must(infer.Minibatches(program.Batch(), infer.MinibatchOptions{Size: 1, Seed: 7})))
		assert.Equal(t, values(given.Last.Flat.T()), values(one.Last.Flat.T()), "%T", m)
		all, _ := run(t, program, m, infer.Full(program.Batch()))
		assert.EqualValues(t, 1, all.Updates)
	}
}

// A filter that is exact has no note. The Fisher filters take all data of one batch in a step whose curvature is that
// at the prior's mean, the squares of residuals of 1.5 instead of 0.7: their standard deviation is less than half of
// the posterior's, and a note says so. A Gaussian that is not meant to be the posterior gets no note.
func TestNotesOfFilters(t *testing.T) {
	program, exact := regression(t)
	_, notes := run(t, program, exact, nil)
	assert.Empty(t, notes)
	for name, m := range map[string]infer.Method{"ekf.Dense": ekf.Dense{}, "ekf.Diag": ekf.Diag{}} {
		_, notes := run(t, program, m, infer.Full(program.Batch()))
		require.Len(t, notes, 1, name)
		assert.Equal(t, "far_from_posterior", notes[0].Kind)
		assert.Contains(t, notes[0].Advice, name+": ")
		assert.Contains(t, notes[0].Advice, "laplace.DenseHessian")
	}
	for name, m := range map[string]infer.Method{
		"LR": ekf.Dense{LR: infer.Constant(1)}, "prior": ekf.Dense{InitSD: 1},
		"walk": ekf.Diag{TransitionSD: infer.Constant(0.1)},
	} {
		_, notes := run(t, program, m, infer.Full(program.Batch()))
		assert.Empty(t, notes, name)
	}
}

// Data at a distance from the mean of a wide prior: the Fisher filters end far from the posterior, N(Σy/(n + 1/100),
// 1/(n + 1/100)) for a prior of standard deviation 10 and noise of 1, and the note says how far.
func TestNotesSayHowFarFiltersAre(t *testing.T) {
	said := regexp.MustCompile(`mean of the posterior is about (\S+) standard .* the standard deviation about (\S+) times`)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 3))
		y, sum := make([]float64, 50), 0.0
		for i := range y {
			y[i] = 4 + r.NormFloat64()
			sum += y[i]
		}
		program := must(ppl.Compile(func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
		}, infer.Batch{"y": torch.Of(vector(y))}))
		for _, m := range []infer.Method{ekf.Dense{}, ekf.Diag{}} {
			d := must(infer.Sample(context.Background(), program, m, infer.Options{Seed: seed, Chains: 1,
				Observer: infer.Silent}))
			mean, sd := stat.MeanStdDev(d.Element(0, 0), nil)
			require.Len(t, d.Notes(), 1)
			found := said.FindStringSubmatch(d.Notes()[0].Text)
			require.NotNil(t, found, d.Notes()[0].Text)
			// Moments of 1000 draws on either side have errors of 1/√2000, and the note two digits.
			assert.InEpsilon(t, math.Abs(mean-sum/50.01)/sd, must(strconv.ParseFloat(found[1], 64)), 0.15, "%T", m)
			assert.InEpsilon(t, 1/math.Sqrt(50.01)/sd, must(strconv.ParseFloat(found[2], 64)), 0.15, "%T", m)
		}
	}
}

// One gradient does not tell noise from distance, so that no rule for the step of a Fisher filter is right from a wide
// prior: the data 4 with noise 1 and 16 with noise 2 have the gradient 4 at 0. The filter's update is the same, and the
// posteriors from N(0, 10²) are N(3.96, 0.995²) and N(15.4, 1.96²).
func TestOneGradientDoesNotTellNoiseFromDistance(t *testing.T) {
	var ends [][]float64
	for _, c := range []struct{ y, noise float64 }{{4, 1}, {16, 2}} {
		program := must(ppl.Compile(func(x *ppl.Ctx) {
			mu := x.Sample("mu", dist.Normal(0, 10))
			x.Plate("data", 0, func(x *ppl.Ctx) { x.Observe("y", dist.Normal(mu, c.noise), x.Data("y")) })
		}, infer.Batch{"y": torch.Of(vector([]float64{c.y, c.y}))}))
		transform := must(ekf.Dense{}.Build(program.Target()))
		s, _ := update(t, transform, begin(t, transform, params(program.Layout(), []float64{0}, 0)),
			infer.Batch{"y": torch.Of(vector([]float64{c.y}))})
		ends = append(ends, append(values(s.Position().Flat.T()), values(s.(ekf.DenseState).Covariance.T())...))
	}
	within(t, ends[0], ends[1], 1e-12, "mean and variance")
}

// A filter takes data one by one, which data of two plates are not. It says so before the run, and in a loop of one's
// own.
func TestDataOfTwoPlates(t *testing.T) {
	batch := infer.Batch{"x": torch.Of(vector([]float64{1, 2, 3})), "y": torch.Of(vector([]float64{2, 4}))}
	program := must(ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 10))
		c.Plate("first", 0, func(c *ppl.Ctx) { c.Observe("x", dist.Normal(mu, 1), c.Data("x")) })
		c.Plate("second", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
	}, batch))
	_, exact := regression(t)
	for name, m := range map[string]infer.Method{"ekf.Dense": ekf.Dense{}, "ekf.Diag": ekf.Diag{},
		"ekf.GaussNewton": exact} {
		want := name + `: the batch cannot be cut into data (batch tensor "y" has 2 data, others 3): ` +
			`laplace.DenseHessian takes it as it is`
		for _, batches := range []infer.Batches{nil, infer.Full(batch)} {
			r, err := infer.Run(context.Background(), program, m, infer.Options{Batches: batches, Observer: infer.Silent})
			require.EqualError(t, err, "infer.Run: "+want)
			assert.Nil(t, r)
		}
		transform := must(m.Build(program.Target()))
		_, _, err := transform.Update(begin(t, transform, params(program.Layout(), []float64{0}, 0)), batch)
		require.EqualError(t, err, want)
	}
}
