package sgmcmc_test

import (
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
)

// quartic is a log posterior of three sites whose gradient is known, not linear, and couples two of them: with the
// batch tensor c,
//
//	log p = −¼Σa⁴ + ½bΣa − (b − 1)² − ½Σc(w − ½)²
//	∂/∂a = −a³ + ½b    ∂/∂b = ½Σa − 2(b − 1)    ∂/∂w = −c(w − ½)
type quartic struct {
	layout *infer.Layout
	c      []float64
}

func newQuartic() quartic {
	return quartic{layout: layout(infer.Shapes{"w": {2, 3}, "b": {}, "a": {2}}), c: []float64{0.25, 0.5, 0.75, 1, 1.25,
		1.5}}
}

func (q quartic) batch() infer.Batch { return infer.Batch{"c": torch.Of(vector(q.c, 2, 3))} }

func (q quartic) logPosterior(p infer.Params, batch infer.Batch) (torch.Tensor, infer.Aux) {
	a, b, w, c := p.Get("a").T(), p.Get("b").T(), p.Get("w").T(), batch.Get("c").T()
	sum := func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustSum(gotch.Double, false)) }
	times := func(x torch.Tensor, v float64) torch.Tensor {
		return torch.Of(x.T().MustMulScalar(ts.FloatScalar(v), false))
	}
	logp := times(sum(torch.Of(a.MustSquare(false).MustSquare(false))),
		-0.25).Add(times(torch.Of(b.MustMul(sum(torch.Of(a)).T(), false)), 0.5)).Sub(b.MustSubScalar(ts.FloatScalar(1),
		false).MustSquare(false)).Sub(times(sum(torch.Of(w.MustSubScalar(ts.FloatScalar(0.5),
		false).MustSquare(false).MustMul(c, false))), 0.5)).T()
	return torch.Of(logp), infer.Aux{"sum": sum(torch.Of(w))}
}

// value is log p and its gradient at one point, whose flat vector is a[0] a[1] b w[0,0] ... w[1,2].
func (q quartic) value(x []float64) (logp float64, g []float64) {
	a, b, w := x[:2], x[2], x[3:]
	g = make([]float64, len(x))
	for i, v := range a {
		logp += -0.25*math.Pow(v, 4) + 0.5*b*v
		g[i] = -v*v*v + 0.5*b
		g[2] += 0.5 * v
	}
	logp -= (b - 1) * (b - 1)
	g[2] -= 2 * (b - 1)
	for i, v := range w {
		logp -= 0.5 * q.c[i] * (v - 0.5) * (v - 0.5)
		g[3+i] = -q.c[i] * (v - 0.5)
	}
	return logp, g
}

// rows are the values and gradients at several points, one after the other.
func (q quartic) rows(x []float64) (logp, g []float64) {
	d := q.layout.Dim()
	for ; len(x) > 0; x = x[d:] {
		l, row := q.value(x[:d])
		logp, g = append(logp, l), append(g, row...)
	}
	return logp, g
}

// norms are the Euclidean norms of consecutive rows of d numbers.
func norms(x []float64, d int) []float64 {
	var out []float64
	for ; len(x) > 0; x = x[d:] {
		square := 0.0
		for _, v := range x[:d] {
			square += v * v
		}
		out = append(out, math.Sqrt(square))
	}
	return out
}
