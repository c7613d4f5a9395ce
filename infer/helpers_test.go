package infer_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// vec is a float64 tensor; without a shape it is a vector.
func vec(data []float64, shape ...int) torch.Tensor {
	return torch.New(data, shape...)
}

// floats are the values of a tensor, as float64.
func floats(t torch.Tensor) []float64 { return torch.Must(torch.ToSlice[float64](t)) }

// shapeOf is the shape of a tensor.
func shapeOf(t torch.Tensor) []int { return t.Shape() }

// sum is the sum of all elements, of shape [].
func sum(t torch.Tensor) torch.Tensor { return torch.Of(t.T().MustSum(t.T().DType(), false)) }

// scaled is c·t.
func scaled(t torch.Tensor, c float64) torch.Tensor {
	return torch.Of(t.T().MustMulScalar(ts.FloatScalar(c), false))
}

func layoutOf(t testing.TB, shapes infer.Shapes) *infer.Layout {
	t.Helper()
	l, err := infer.NewLayout(shapes)
	require.NoError(t, err)
	return l
}

func pointOf(t testing.TB, l *infer.Layout, flat ...float64) infer.Params {
	t.Helper()
	p, err := infer.NewParams(l, flat)
	require.NoError(t, err)
	return p
}

// in32 is the point in float32.
func in32(t testing.TB, p infer.Params) infer.Params {
	t.Helper()
	p, err := p.To(torch.CPU, gotch.Float)
	require.NoError(t, err)
	return p
}

func build(t testing.TB, m infer.Method, logPosterior infer.LogPosterior) infer.Transform {
	t.Helper()
	transform, err := m.Build(infer.Sum(logPosterior, 1))
	require.NoError(t, err)
	return transform
}

// ran is a run that must succeed.
func ran(t testing.TB, transform infer.Transform, p infer.Params, b infer.Batches, c infer.Options) *infer.Result {
	t.Helper()
	r, err := infertest.Run(context.Background(), transform, p, b, c)
	require.NoError(t, err)
	return r
}

func minibatches(t testing.TB, data infer.Batch, o infer.MinibatchOptions) infer.Batches {
	t.Helper()
	b, err := infer.Minibatches(data, o)
	require.NoError(t, err)
	return b
}

// numbers is a deterministic sequence without structure: n values in (-1, 1), from the fractional parts of multiples of
// the golden ratio's square root.
func numbers(n int, from float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		x := (from + float64(i) + 1) * 0.7861513777574233
		out[i] = 2*(x-math.Floor(x)) - 1
	}
	return out
}

// logistic is a logistic regression with an intercept on made-up data: sites b [] and w [d], labels as signs.
type logistic struct {
	n, d int
	x, y []float64
}

func newLogistic(n, d int) logistic {
	m := logistic{n: n, d: d, x: numbers(n*d, 0), y: numbers(n, 0.5)}
	for i, v := range m.y {
		m.y[i] = math.Copysign(1, v)
	}
	return m
}

func (m logistic) layout(t testing.TB) *infer.Layout {
	return layoutOf(t, infer.Shapes{"b": {}, "w": {m.d}})
}

func (m logistic) batch() infer.Batch {
	return infer.Batch{"x": vec(m.x, m.n, m.d), "y": vec(m.y)}
}

func (m logistic) batch32(t testing.TB) infer.Batch {
	t.Helper()
	out := infer.Batch{}
	for name, x := range m.batch() {
		moved, err := torch.To(x, torch.CPU, gotch.Float)
		require.NoError(t, err)
		out[name] = moved
	}
	return out
}

// logPosterior is the mean over data of the log posterior with prior N(0, I).
func (m logistic) logPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	x, y := b.Get("x").T(), b.Get("y").T()
	eta := x.MustMv(p.Get("w").T(), false).MustAdd(p.Get("b").T(), false)
	logLikelihood := eta.MustMul(y, false).MustLogSigmoid(false).MustMean(y.DType(), false)
	logPrior := scaled(p.Flat.Dot(p.Flat), -0.5/float64(m.n))
	return logPrior.Add(logLikelihood), infer.Aux{"eta": torch.Of(eta)}
}

// value is the log posterior at one point, written out in Go; the flat order is b, w.
func (m logistic) value(flat []float64) float64 {
	total := 0.0
	for i := range m.n {
		s := flat[0]
		for j := range m.d {
			s += flat[1+j] * m.x[i*m.d+j]
		}
		// log σ(s) = −log(1 + exp(−s))
		total -= math.Log1p(math.Exp(-m.y[i] * s))
	}
	for _, v := range flat {
		total -= 0.5 * v * v
	}
	return total / float64(m.n)
}

// bitsOf are the bit patterns of numbers: equal only for the same bits, also where they are NaN.
func bitsOf(v []float64) []uint64 {
	out := make([]uint64, len(v))
	for i, x := range v {
		out[i] = math.Float64bits(x)
	}
	return out
}

// sameBits asserts that two lists of numbers have the same bits.
func sameBits(t testing.TB, want, got []float64, what string) {
	t.Helper()
	if diff := cmp.Diff(bitsOf(want), bitsOf(got)); diff != "" {
		t.Fatalf("%s differ in their bits (-want +got):\n%s\nwant %v\ngot  %v", what, diff, want, got)
	}
}

// sameDraws asserts that two containers have the same layout and the same draws and statistics, bit for bit.
func sameDraws(t testing.TB, want, got *draws.Draws) {
	t.Helper()
	require.Equal(t, want.Sites(), got.Sites())
	require.Equal(t, want.Stats(), got.Stats())
	require.Equal(t, want.Chains(), got.Chains())
	for k := range want.Chains() {
		require.Equal(t, want.Len(k), got.Len(k), "draws of chain %d", k)
		for i := range want.Len(k) {
			sameBits(t, want.Row(k, i), got.Row(k, i), fmt.Sprintf("draw %d of chain %d", i, k))
		}
		for _, name := range want.Stats() {
			a, err := want.Stat(name, k)
			require.NoError(t, err)
			b, err := got.Stat(name, k)
			require.NoError(t, err)
			sameBits(t, a, b, fmt.Sprintf("statistic %s of chain %d", name, k))
		}
	}
}

// savedTensor is a tensor in comparable form. Float64 holds the values of all types that the tests use.
type savedTensor struct {
	Shape []int
	DType gotch.DType
	Bits  []uint64
}

// savedState is a state in comparable form: all that the next update depends on.
type savedState struct {
	Type    string
	Steps   int
	Streams torch.Streams
	Tensors map[string]savedTensor
}

func saved(s infer.State) savedState {
	parts := s.Save()
	out := savedState{Type: fmt.Sprintf("%T", s), Steps: parts.Steps, Streams: parts.Streams,
		Tensors: map[string]savedTensor{}}
	for name, x := range parts.Tensors {
		out.Tensors[name] = savedTensor{Shape: shapeOf(x), DType: x.T().DType(), Bits: bitsOf(floats(x))}
	}
	return out
}

// sameState asserts that two states are equal in everything that the next update depends on, bit for bit.
func sameState(t testing.TB, want, got infer.State) {
	t.Helper()
	if diff := cmp.Diff(saved(want), saved(got)); diff != "" {
		t.Fatalf("states differ (-want +got):\n%s", diff)
	}
}

// sameResult asserts that two runs ended with the same draws, statistics, state and counts.
func sameResult(t testing.TB, want, got *infer.Result) {
	t.Helper()
	sameDraws(t, want.Draws, got.Draws)
	sameState(t, want.State, got.State)
	require.Equal(t, want.Updates, got.Updates, "updates")
	require.Equal(t, want.Held, got.Held, "held updates")
}

// unscoped is the size of the tensors outside scopes that something refers to: the garbage of earlier tests is
// collected first, until two collections in a row find none.
func unscoped() int {
	last, same := int(-1), 0
	for same < 2 {
		// Finalizers run one after the other, after the collection that found them.
		done := make(chan struct{})
		runtime.SetFinalizer(&struct{ p *int }{new(int)}, func(any) { close(done) })
		runtime.GC()
		<-done
		if now := torch.UnscopedBytes(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}
