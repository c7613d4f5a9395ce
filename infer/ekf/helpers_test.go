package ekf_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// See package infertest.
var (
	values   = infertest.Values
	vector   = infertest.Vector
	layout   = infertest.Layout
	params   = infertest.Params
	build    = infertest.Build
	within   = infertest.Within
	normals  = infertest.Normals
	inverse  = infertest.Inverse
	logDet   = infertest.LogDet
	plus     = infertest.Plus
	times    = infertest.Times
	entries  = infertest.Entries
	identity = infertest.Identity
)

func must[T any](v T, err error) T { return infertest.Must(v, err) }

func begin(t testing.TB, transform infer.Transform, p infer.Params) infer.State {
	t.Helper()
	return infertest.Begin[infer.State](t, transform, p, 0)
}

func update(t testing.TB, transform infer.Transform, s infer.State, b infer.Batch) (infer.State, infer.Info) {
	t.Helper()
	return infertest.Update(t, transform, s, b)
}

// spd is a symmetric positive definite matrix: a product of random matrices plus the identity.
func spd(seed int, d int) *mat.SymDense {
	a := mat.NewDense(d, d, normals(seed, d*d))
	var m mat.SymDense
	m.SymOuterK(0.5, a)
	for i := range d {
		m.SetSym(i, i, m.At(i, i)+1)
	}
	return &m
}

// logistic is the mean log likelihood of a logistic regression on site "w", and logisticEach that of each datum.
func logistic(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	return logisticEach(p, b).Mean(), nil
}

func logisticEach(p infer.Params, b infer.Batch) torch.Tensor {
	z := b.Get("x").MatMul(p.Get("w")).T()
	sign := b.Get("y").T().MustMulScalar(ts.FloatScalar(2), false).MustSubScalar(ts.FloatScalar(1), false)
	return torch.Of(z).Mul(sign).LogSigmoid()
}

// logisticData are inputs [n, d] and labels of both kinds.
func logisticData(seed int, n, d int) (x, y []float64, b infer.Batch) {
	x = normals(seed, n*d)
	y = make([]float64, n)
	for i, u := range normals(seed+1000, n) {
		if x[i*d]+u > 0 {
			y[i] = 1
		}
	}
	return x, y, infer.Batch{"x": torch.Of(vector(x, n, d)), "y": torch.Of(vector(y))}
}

// logisticScores are the gradients (y − σ(xᵀw)) x of the data, and the mean log likelihood, in plain Go.
func logisticScores(w, x, y []float64) (each [][]float64, mean []float64, value float64) {
	d, n := len(w), len(y)
	mean = make([]float64, d)
	for i := range n {
		row := x[i*d : (i+1)*d]
		z := 0.0
		for j := range w {
			z += row[j] * w[j]
		}
		s := 1 / (1 + math.Exp(-z))
		g := make([]float64, d)
		for j := range g {
			g[j] = (y[i] - s) * row[j]
			mean[j] += g[j] / float64(n)
		}
		each = append(each, g)
		value += (y[i]*math.Log(s) + (1-y[i])*math.Log(1-s)) / float64(n)
	}
	return each, mean, value
}
