package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

func vec(v ...float64) torch.Tensor { return torch.New(v) }
func scalar(v float64) torch.Tensor { return torch.Scalar(v) }
func matrix(rows, columns int, v ...float64) torch.Tensor {
	return torch.New(v, rows, columns)
}

func floats(t *testing.T, x torch.Tensor) []float64 {
	t.Helper()
	v, err := torch.ToSlice[float64](x)
	require.NoError(t, err)
	return v
}

// whole is the log density of a program on unconstrained space, on the scale of the sum over data.
func whole(p *ppl.Program) infer.LogPosterior {
	return func(point infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Target().Parts(point, b, infer.Weights{Prior: 1, Likelihood: 1, Jacobian: 1})
	}
}

// compiled is the program of a model, and its log posterior in plain numbers.
func compiled(t *testing.T, m ppl.Model, batch infer.Batch) (
	*ppl.Program, func(batch infer.Batch, x ...float64) float64) {
	t.Helper()
	p, err := ppl.Compile(m, batch)
	require.NoError(t, err)
	return p, func(batch infer.Batch, x ...float64) float64 {
		t.Helper()
		v, _ := evaluate(t, p, whole(p), batch, x...)
		return v[0]
	}
}

// evaluate is a log density and its gradient at K points.
func evaluate(t *testing.T, p *ppl.Program, f infer.LogPosterior, batch infer.Batch, x ...float64) (
	values, grad []float64) {
	t.Helper()
	return infertest.Evaluate(t, p.Layout(), f, batch, x...)
}

// traced is the log joint density of one run of a model.
func traced(t *testing.T, m ppl.Model, batch infer.Batch) float64 {
	t.Helper()
	tr, err := ppl.TraceModel(m, batch, 1)
	require.NoError(t, err)
	v, err := tr.LogProb()
	require.NoError(t, err)
	return floats(t, v)[0]
}

func sumNormal(x []float64, loc, scale float64) float64 {
	s := 0.0
	for _, v := range x {
		s += normal(v, loc, scale)
	}
	return s
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// dtypeInt is the type of labels.
const dtypeInt = gotch.Int64

func scalarOf(v float64) *ts.Scalar { return ts.FloatScalar(v) }
