package models_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// must is the value of a call that cannot fail here; tests use it where an error is a mistake of the test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func all(t testing.TB) []models.Model {
	t.Helper()
	list, err := models.All()
	require.NoError(t, err)
	return list
}

func compile(t testing.TB, m models.Model) *ppl.Program {
	t.Helper()
	p, err := m.Compile()
	require.NoError(t, err)
	return p
}

func floats(x torch.Tensor) []float64 { return must(torch.ToSlice[float64](x)) }

// evaluate is the log posterior and its gradient at a point, or at K after one another: K values, K gradients.
func evaluate(t testing.TB, f infer.LogPosterior, p infer.Params, b infer.Batch) (values, grads []float64) {
	t.Helper()
	g, err := infer.NewGradient(infer.Sum(f, 1))
	require.NoError(t, err)
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		e, err := g.ValueAndGrad(p, b, 0)
		if err != nil {
			return err
		}
		values, grads = e.Values, floats(e.Grad)
		return nil
	}))
	return values, grads
}

// whole is the log density of a program on unconstrained space, on the scale of the sum over data.
func whole(p *ppl.Program) infer.LogPosterior {
	return func(point infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Target().Parts(point, b, infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1})
	}
}

// spread is k points of d standard normal numbers.
func spread(k, d int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 17))
	out := make([]float64, k*d)
	for i := range out {
		out[i] = rng.NormFloat64()
	}
	return out
}

// off is |want − got| over max(1, |want|).
func off(want, got float64) float64 {
	if math.IsNaN(got) {
		return math.Inf(1)
	}
	return math.Abs(want-got) / math.Max(1, math.Abs(want))
}
