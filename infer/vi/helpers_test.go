package vi_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// See package infertest.
var (
	values    = infertest.Values
	vector    = infertest.Vector
	layout    = infertest.Layout
	params    = infertest.Params
	build     = infertest.Build
	within    = infertest.Within
	identical = infertest.Identical
	same      = infertest.Same
	spread    = infertest.Spread
	name      = infertest.Name
)

func must[T any](v T, err error) T { return infertest.Must(v, err) }

func begin(t testing.TB, transform infer.Transform, p infer.Params, seed uint64) vi.State {
	t.Helper()
	return infertest.Begin[vi.State](t, transform, p, seed)
}

func update(t testing.TB, transform infer.Transform, s vi.State, b infer.Batch) (vi.State, infer.Info) {
	t.Helper()
	return infertest.Update(t, transform, s, b)
}

var no = false

// fitted is the state after a number of updates from p.
func fitted(t testing.TB, transform infer.Transform, p infer.Params, b infer.Batch, steps int, seed uint64) vi.State {
	t.Helper()
	r, err := infertest.Run(context.Background(), transform, p, infer.Full(b),
		infer.Options{Warmup: steps, Draws: infer.None, Seed: seed})
	require.NoError(t, err)
	require.Zero(t, r.Held)
	return r.State.(vi.State)
}

// climb is SGD whose step is the gradient itself: it shows the gradient as the difference of two states.
var climb = optim.SGD{LR: infer.Constant(1)}

// methods are the three methods around an optimiser, with S samples.
func methods(o infer.Method, samples int, temperature float64, stick *bool) map[string]infer.Method {
	temp := infer.Constant(temperature)
	return map[string]infer.Method{
		"vi.Diag": vi.Diag{Optimizer: o, Samples: samples, Temperature: temp, StickTheLanding: stick,
			InitScale: math.Exp(-0.3)},
		"vi.Dense": vi.Dense{Optimizer: o, Samples: samples, Temperature: temp, StickTheLanding: stick,
			InitScale: 0.7},
		"vi.LowRank": vi.LowRank{Optimizer: o, Samples: samples, Temperature: temp, StickTheLanding: stick,
			InitScale: 0.7, Rank: 2},
	}
}

// normal is a normal log density with mean m and precision Λ, normalised at T = 1.
type normal struct {
	m         []float64
	precision *mat.SymDense
}

// correlated is one of dimension d in which all elements are correlated.
func correlated(d int) normal {
	c := spread(d * d)
	p := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			v := 0.0
			for k := range d {
				v += c[i*d+k] * c[j*d+k]
			}
			if i == j {
				v += 0.5
			}
			p.SetSym(i, j, v)
		}
	}
	return normal{m: spread(3 * d)[2*d:], precision: p}
}

func (n normal) layout() *infer.Layout { return layout(infer.Shapes{"x": {len(n.m)}}) }

// logDet is log|Λ|.
func (n normal) logDet() float64 {
	v, _ := mat.LogDet(n.precision)
	return v
}

// covariance is TΛ⁻¹, row by row.
func (n normal) covariance(temperature float64) []float64 {
	var inverse mat.Dense
	if err := inverse.Inverse(n.precision); err != nil {
		panic(err)
	}
	inverse.Scale(temperature, &inverse)
	return inverse.RawMatrix().Data
}

func (n normal) logPosterior() infer.LogPosterior {
	d := len(n.m)
	m, precision := vector(n.m), vector(mat.DenseCopyOf(n.precision).RawMatrix().Data, d, d)
	constant := 0.5*n.logDet() - 0.5*float64(d)*math.Log(2*math.Pi)
	return func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Flat.Sub(must(torch.To(torch.Of(m), gotch.CPU, p.Flat.T().DType()))).T()
		own := must(torch.To(torch.Of(precision), gotch.CPU, p.Flat.T().DType()))
		return torch.Of(own.T().MustMv(x, false).MustDot(x, false).MustMulScalar(ts.FloatScalar(-0.5),
			false).MustAddScalar(ts.FloatScalar(constant), false)), nil
	}
}

// place overwrites the variational parameters of a state, [K, P] or [P], and its mean with them.
func place(t testing.TB, s vi.State, phi []float64) {
	t.Helper()
	v := s.Variational()
	require.NoError(t, torch.CopyFrom(v.Flat, phi))
	require.NoError(t, torch.CopyFrom(s.Mean.Flat, must(v.Site("mean"))))
}

// repeated is k copies of a slice, one after the other.
func repeated(v []float64, k int) []float64 {
	var out []float64
	for range k {
		out = append(out, v...)
	}
	return out
}

// moments are the mean and its standard error of each of m columns.
func moments(v []float64, m int) (mean, se []float64) {
	n := float64(len(v) / m)
	mean, se = make([]float64, m), make([]float64, m)
	for i, x := range v {
		mean[i%m] += x / n
	}
	for i, x := range v {
		se[i%m] += (x - mean[i%m]) * (x - mean[i%m]) / (n - 1)
	}
	for i := range se {
		se[i] = math.Sqrt(se[i] / n)
	}
	return mean, se
}
