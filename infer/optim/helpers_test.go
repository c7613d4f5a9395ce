package optim_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// See package infertest.
var (
	values    = infertest.Values
	vector    = infertest.Vector
	params    = infertest.Params
	build     = infertest.Build
	within    = infertest.Within
	identical = infertest.Identical
	spread    = infertest.Spread
	name      = infertest.Name
)

func must[T any](v T, err error) T { return infertest.Must(v, err) }

var nan = math.NaN()

func begin(t testing.TB, transform infer.Transform, p infer.Params) infer.State {
	t.Helper()
	return infertest.Begin[infer.State](t, transform, p, 0)
}

func update(t testing.TB, transform infer.Transform, s infer.State, b infer.Batch) (infer.State, infer.Info) {
	t.Helper()
	return infertest.Update(t, transform, s, b)
}

// wells is a log posterior of two sites whose gradient is known and not linear: −Σ(¼cx⁴ − cx), with the batch tensor c;
// its gradient is c(1 − x³). The mode is at 1.
type wells struct {
	layout *infer.Layout
	c      []float64
}

func newWells() wells {
	return wells{layout: must(infer.NewLayout(infer.Shapes{"u": {3}, "v": {2, 1}})), c: []float64{0.5, 0.75, 1, 1.25,
		1.5}}
}

func (w wells) batch() infer.Batch {
	return infer.Batch{"u": torch.Of(vector(w.c[:3])), "v": torch.Of(vector(w.c[3:], 2, 1))}
}

func (w wells) logPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	site := func(name string) torch.Tensor {
		x, c := p.Get(name).T(), b.Get(name).T()
		quarter := x.MustSquare(false).MustSquare(false).MustMulScalar(ts.FloatScalar(0.25), false)
		return torch.Of(x.MustSub(quarter, false).MustMul(c, false).MustSum(gotch.Double, false))
	}
	u := site("u")
	return u.Add(site("v")), infer.Aux{"u": u}
}

// gradient is the gradient at several points, one after the other.
func (w wells) gradient(x []float64) []float64 {
	g := make([]float64, len(x))
	for i, v := range x {
		g[i] = w.c[i%len(w.c)] * (1 - v*v*v)
	}
	return g
}

// value is the density at one point.
func (w wells) value(x []float64) (logp float64) {
	for i, v := range x {
		logp += w.c[i] * (v - v*v*v*v/4)
	}
	return logp
}

// methods are the methods of the tests of what they have in common.
func methods() map[string]infer.Method {
	lr, decay := infer.Polynomial(0.1, 1, 0.33), 0.2
	return map[string]infer.Method{
		"optim.SGD":   optim.SGD{LR: lr, Momentum: 0.8, Dampening: 0.3, WeightDecay: 0.1},
		"optim.Adam":  optim.Adam{LR: lr, WeightDecay: 0.1},
		"optim.AdamW": optim.AdamW{LR: lr, WeightDecay: &decay},
		"optim.LBFGS": optim.LBFGS{History: 4},
	}
}
