package infer_test

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// A checkpoint of a model that was changed since is refused, though data, sites and options are the same: its draws
// would be of two posteriors. The error has both log densities for a datum, of N(0, sd²) and 6 data N(a, 1) where
// a = -0.3. The run of the old model goes on.
func TestCheckpointOfAnotherModel(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	data := infer.Batch{"x": vec(x)}
	program := func(sd float64) *ppl.Program {
		p, err := ppl.Compile(func(c *ppl.Ctx) {
			a := c.Sample("a", dist.Normal(0, sd))
			c.Plate("n", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(a, 1), c.Data("x")) })
		}, data)
		require.NoError(t, err)
		return p
	}
	density := func(sd float64) float64 {
		normal := func(z, sd float64) float64 { return -0.5*z*z/(sd*sd) - math.Log(sd*math.Sqrt(2*math.Pi)) }
		sum := normal(-0.3, sd)
		for _, v := range x {
			sum += normal(v+0.3, 1)
		}
		return sum / 6
	}
	for name, c := range map[string]struct {
		method infer.Method
		o      infer.Options
	}{
		"NUTS": {hmc.NUTS{}, infer.Options{}},
		"SGLD": {sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{Warmup: 10, Thin: 1}},
		"SGLD, minibatches": {sgmcmc.SGLD{LR: infer.Constant(0.01)}, infer.Options{Warmup: 10, Thin: 1,
			Batches: minibatches(t, data, infer.MinibatchOptions{Size: 3})}},
		"Laplace": {laplace.DenseHessian{}, infer.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sample := func(sd float64, n int) error {
				o := c.o
				o.Chains, o.Draws, o.Seed, o.Checkpoint = 1, n, 3, &infer.Checkpoint{Dir: dir, Resume: true, Every: 10}
				_, err := infer.Sample(context.Background(), program(sd), c.method, o)
				return err
			}
			require.NoError(t, sample(5, 20))
			err := sample(4, 30)
			require.ErrorIs(t, err, infer.ErrCheckpoint)
			require.ErrorContains(t, err, "it is of another model: at one point its log density for a datum is ")
			if name != "SGLD, minibatches" {
				assert.ErrorContains(t, err, fmt.Sprintf("%.9g", density(5)))
				assert.ErrorContains(t, err, fmt.Sprintf("%.9g", density(4)))
			}
			require.NoError(t, sample(5, 30))
		})
	}
}

// targeted is a program with another target.
type targeted struct {
	infer.Program
	target infer.LogPosterior
}

func (p targeted) Target() infer.Target { return infer.Target{LogPosterior: p.target} }

// A log posterior that is not the same twice, as one with dropout, and one whose float32 data are added in the order of
// a map, have checkpoints that go on.
func TestCheckpointOfAModelThatIsNotTheSameTwice(t *testing.T) {
	data, w := infer.Batch{}, map[string]float64{}
	for j := range 8 {
		name := fmt.Sprint("x", j)
		data[name], w[name] = torch.Of(vec(scattered(1000, float64(j+3))).T().MustTotype(gotch.Float, false)), float64(j)
	}
	program, err := ppl.Compile(func(c *ppl.Ctx) { c.Sample("a", dist.Normal(0, 1)) }, data)
	require.NoError(t, err)
	for name, f := range map[string]infer.LogPosterior{
		"noise": func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			a := p.Get("a")
			return a.Square().Mul(-0.5).Add(a.Mul(0.1 * rand.NormFloat64())), nil
		},
		"dropout": func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			a := p.Get("a")
			if rand.Float64() < 0.3 {
				return a.Square().Mul(-0.5), nil
			}
			return a.Square().Mul(-0.5).Add(a), nil
		},
		"float32": func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			sum := torch.Of(0.0)
			for name, v := range w {
				sum = sum.Add(b.Get(name).Mul(v))
			}
			return p.Get("a").Square().Mul(-0.5).Sub(sum.Square().Mean()), nil
		},
	} {
		dir := t.TempDir()
		for n := 10; n <= 100; n += 10 {
			_, err := infer.Sample(context.Background(), targeted{program, f}, sgmcmc.SGLD{LR: infer.Constant(0.01)},
				infer.Options{Chains: 1, Warmup: 10, Thin: 1, Draws: n, Native: native.Eager,
					Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true}})
			require.NoError(t, err, "%s, %d draws", name, n)
		}
	}
}

// scattered are n numbers from -3 to 3.
func scattered(n int, by float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = 3 * math.Sin(float64(i)*by)
	}
	return x
}

// What fails where a checkpoint looks at a model is none of the run: dy/dt = y²e^-a blows up before 0.9 where a is
// below -0.1, which N(3, 0.1) never is.
func TestCheckpointsAreNoSolutions(t *testing.T) {
	system := ode.New(func(_, y torch.Tensor, p []torch.Tensor) torch.Tensor { return y.Square().Mul(p[0]) },
		ode.Options{})
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(3, 0.1))
		c.Observe("z", dist.Normal(ode.Solve(system, []float64{1}, 0, []float64{0.9}, a.Neg().Exp()).Sum(), 1), 1.1)
	}, nil)
	require.NoError(t, err)
	start, err := infer.NewParams(program.Layout(), []float64{3})
	require.NoError(t, err)
	for _, c := range []*infer.Checkpoint{nil, {Dir: t.TempDir()}} {
		d, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Chains: 1, Warmup: 50, Draws: 50,
			Seed: 1, Start: start, Checkpoint: c})
		require.NoError(t, err)
		assert.Empty(t, d.Notes())
	}
}
