package lower_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

const opDim = 24

// opCase is a function of a point of 24 numbers, of which it uses what it likes; ix are the whole numbers 2, 0, 1, 2 in
// the batch.
type opCase func(x, ix *ts.Tensor) *ts.Tensor

func view(x *ts.Tensor, shape ...int) *ts.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return x.MustNarrow(0, 0, int64(n), false).MustView(torch.Int64s(shape), false)
}

// positive is made of x, far from 0.
func positive(x *ts.Tensor) *ts.Tensor {
	return x.MustExp(false).MustAddScalar(ts.FloatScalar(0.1), false)
}

// inside is made of x, in (-0.9, 0.9): at the ends of (-1, 1) the rounding of the hyperbolic tangent alone would count.
func inside(x *ts.Tensor) *ts.Tensor {
	return x.MustTanh(false).MustMulScalar(ts.FloatScalar(0.9), false)
}

func unaryCase(f func(x *ts.Tensor) *ts.Tensor) opCase {
	return func(x, _ *ts.Tensor) *ts.Tensor { return f(x) }
}

var opCases = map[string]opCase{
	"exp":   unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustExp(false) }),
	"expm1": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustExpm1(false) }),
	"log":   unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustLog(false) }),
	"log1p": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustLog1p(false) }),
	"log2":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return positive(x).MustLog2(false) }),
	"log10": unaryCase(func(x *ts.Tensor) *ts.Tensor { return positive(x).MustLog10(false) }),
	"sqrt":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustSqrt(false) }),
	"rsqrt": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustRsqrt(false) }),
	"sin":   unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustSin(false) }),
	"cos":   unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustCos(false) }),
	"tan":   unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustTan(false) }),
	"asin":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return inside(x).MustAsin(false) }),
	"acos":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return inside(x).MustAcos(false) }),
	"atan":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustAtan(false) }),
	"sinh":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustSinh(false) }),
	"cosh":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustCosh(false) }),
	"tanh":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustTanh(false) }),
	"asinh": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustAsinh(false) }),
	"acosh": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return positive(x).MustAddScalar(ts.FloatScalar(1), false).MustAcosh(false)
	}),
	"atanh":      unaryCase(func(x *ts.Tensor) *ts.Tensor { return inside(x).MustAtanh(false) }),
	"lgamma":     unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustLgamma(false) }),
	"erf":        unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustErf(false) }),
	"erfc":       unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustErfc(false) }),
	"erfinv":     unaryCase(func(x *ts.Tensor) *ts.Tensor { return inside(x).MustErfinv(false) }),
	"abs":        unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustAbs(false) }),
	"sigmoid":    unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustSigmoid(false) }),
	"logsigmoid": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustLogSigmoid(false) }),
	"softplus":   unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustSoftplus(false) }),
	"relu":       unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustRelu(false) }),
	"silu":       unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustSilu(false) }),
	"gelu":       unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustGelu("none", false) }),
	"gelu tanh":  unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustGelu("tanh", false) }),
	"elu":        unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustElu(false) }),
	"leaky relu": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustLeakyRelu(false) }),
	"hardtanh":   unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustHardtanh(false) }),
	"reciprocal": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustReciprocal(false) }),
	"pow 3": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustPowTensorScalar(ts.FloatScalar(3), false)
	}),
	"pow -2": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustPowTensorScalar(ts.FloatScalar(-2), false)
	}),
	"pow 0.5": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustPowTensorScalar(ts.FloatScalar(0.5), false)
	}),
	"pow 1.7": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return positive(x).MustPowTensorScalar(ts.FloatScalar(1.7), false)
	}),
	"pow tensor": unaryCase(func(x *ts.Tensor) *ts.Tensor { return positive(x).MustPow(x, false) }),
	"2 to the x": unaryCase(func(x *ts.Tensor) *ts.Tensor { return ts.MustPowScalar(ts.FloatScalar(2), x) }),
	"clamp": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustClamp(ts.FloatScalar(-0.3), ts.FloatScalar(0.4), false)
	}),
	"minimum": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustMinimum(x.MustFlip([]int64{0}, false).MustMulScalar(ts.FloatScalar(0.5), false), false)
	}),
	"hypot":     unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustHypot(x.MustCos(false), false) }),
	"atan2":     unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustAtan2(x.MustCos(false), false) }),
	"xlogy":     unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustXlogy(positive(x), false) }),
	"logaddexp": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustLogaddexp(x.MustNeg(false), false) }),
	"where": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustExp(false).MustWhereSelf(x.MustGt(ts.FloatScalar(0), false), x.MustSin(false), false)
	}),

	"sum of rows": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustSumDimIntlist([]int64{1}, false, gotch.Double, false)
	}),
	"sum of columns": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustSumDimIntlist([]int64{0}, true, gotch.Double, false)
	}),
	"mean": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustMeanDim([]int64{0}, false, gotch.Double, false)
	}),
	"logsumexp": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustLogsumexp([]int64{1}, false, false)
	}),
	"logsumexp long": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustLogsumexp([]int64{0}, false, false)
	}),
	"softmax": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustSoftmax(1, gotch.Double, false)
	}),
	"log softmax": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustLogSoftmax(0, gotch.Double, false)
	}),
	"amax": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustAmax([]int64{1}, false, false)
	}),
	"argmax": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		y := view(x, 4, 6)
		top := y.MustArgmax([]int64{1}, true, false).MustTotype(gotch.Double, false)
		return top.MustMul(y, false).MustAdd(y.MustRound(false).MustArgmax([]int64{-1}, true, false), false)
	}),
	"index at the point": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		y := view(x, 4, 6).MustDetach(false)
		best := y.MustArgmax([]int64{1}, true, false)
		rows, last := y.MustArgmax([]int64{0}, false, false), y.MustNarrow(1, 0, 3, false)
		out := y.MustGather(1, best, false, false).MustMul(view(x, 4, 6), false)
		out = out.MustAdd(y.MustIndexSelect(0, rows, false).MustSum(gotch.Double, false), false)
		out = out.MustAdd(y.MustIndexSelect(1, rows.MustRemainder(ts.IntScalar(6), false), false).MustMax(false), false)
		return out.MustAdd(last.MustGather(0, last.MustArgmax([]int64{0}, true, false), false, false).MustSum(gotch.Double,
			false), false)
	}),
	"amin": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustAmin([]int64{0}, false, false)
	}),
	"var": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustVar(true, false) }),
	"cumsum": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustCumsum(0, gotch.Double, false)
	}),
	"cumsum of rows": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustCumsum(1, gotch.Double, false)
	}),
	"cumsum of columns": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 6, 4).MustCumsum(0, gotch.Double, false)
	}),
	"cumsum of few": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 8, 3).MustCumsum(1, gotch.Double, false)
	}),
	"norm": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustNorm(false) }),

	"cat": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		a := view(x, 4, 3)
		return ts.MustCat([]*ts.Tensor{a.MustExp(false), a.MustNarrow(1, 0, 2, false), a}, 1).MustSquare(false)
	}),
	"stack": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		a := view(x, 4, 3)
		return ts.MustStack([]*ts.Tensor{a.MustSin(false), a}, 2).MustLogsumexp([]int64{2}, false, false)
	}),
	"slices": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		first := x.MustSlice(0, []int64{0}, []int64{12}, 1, false)
		return x.MustSlice(0, []int64{1}, []int64{24}, 2, false).MustMul(first, false)
	}),
	"diagonal": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 4).MustDiagonal(0, 0, 1, false).MustExp(false)
	}),
	"diag embed": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4).MustDiagEmbed(0, 0, 1, false).MustMatmul(view(x, 4, 4), false)
	}),
	"tril": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 4).MustTril(-1, false).MustExp(false)
	}),
	"triu": unaryCase(func(x *ts.Tensor) *ts.Tensor { return view(x, 4, 4).MustTriu(1, false).MustSin(false) }),
	"flip": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustFlip([]int64{0, 1}, false).MustMul(view(x, 4, 6), false)
	}),
	"roll": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustRoll([]int64{2}, []int64{1}, false).MustMul(view(x, 4, 6), false)
	}),
	"repeat": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 2, 3).MustRepeat([]int64{2, 2}, false).MustSquare(false)
	}),
	"permuted": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		y := view(x, 2, 3, 4).MustPermute([]int64{2, 0, 1}, false).MustReshape([]int64{4, 6}, false)
		return y.MustCumsum(0, gotch.Double, false)
	}),
	"transposed and reshaped": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustTranspose(0, 1, false).MustReshape([]int64{24}, false).MustMul(x, false)
	}),

	"mv": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustMv(view(x, 6).MustSin(false), false)
	}),
	"mm": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustMm(view(x, 6, 4).MustSin(false), false)
	}),
	"bmm": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 2, 3, 4).MustBmm(view(x, 2, 4, 3).MustSin(false), false)
	}),
	"dot": unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustDot(x.MustExp(false), false) }),
	"matmul broadcasts": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 2, 3, 4).MustMatmul(view(x, 4, 2), false)
	}),
	"outer": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 5).MustOuter(view(x, 6).MustSin(false), false)
	}),
	"large product": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		a := x.MustOuter(x.MustCos(false), false)
		return a.MustMm(a.MustSin(false), false)
	}),
	"cholesky": unaryCase(func(x *ts.Tensor) *ts.Tensor { return spd(x).MustLinalgCholesky(false, false) }),
	"solve triangular": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		l := spd(x).MustLinalgCholesky(false, false)
		return l.MustLinalgSolveTriangular(view(x, 4, 2), false, true, false, false)
	}),
	"solve triangular from the right": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		l := spd(x).MustLinalgCholesky(false, false)
		return l.MustTranspose(0, 1, false).MustLinalgSolveTriangular(view(x, 2, 4), true, false, false, false)
	}),
	"cholesky solve": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return view(x, 4, 2).MustCholeskySolve(spd(x).MustLinalgCholesky(false, false), false, false)
	}),

	"index select": func(x, ix *ts.Tensor) *ts.Tensor {
		return view(x, 3, 8).MustIndexSelect(0, ix, false).MustSquare(false)
	},
	"index select of columns": func(x, ix *ts.Tensor) *ts.Tensor {
		return view(x, 6, 4).MustIndexSelect(1, ix, false).MustExp(false)
	},
	"gather": func(x, ix *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustGather(1, ix.MustUnsqueeze(1, false), false, false).MustExp(false)
	},
	"index add": func(x, ix *ts.Tensor) *ts.Tensor {
		return view(x, 3, 2).MustIndexAdd(0, ix, view(x, 4, 2).MustSin(false), false).MustSquare(false)
	},
	"scatter add": func(x, ix *ts.Tensor) *ts.Tensor {
		src := view(x, 1, 4).MustSin(false)
		return view(x, 3, 4).MustScatterAdd(0, ix.MustUnsqueeze(0, false), src, false).MustSquare(false)
	},
	"embedding": func(x, ix *ts.Tensor) *ts.Tensor {
		return ts.MustEmbedding(view(x, 4, 6), ix, -1, false, false).MustSin(false)
	},
	"nll loss": func(x, ix *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustLogSoftmax(1, gotch.Double, false).MustNllLoss(ix, ts.NewTensor(), 1, -100, false)
	},
	"cross entropy": func(x, ix *ts.Tensor) *ts.Tensor {
		return view(x, 4, 6).MustCrossEntropyLoss(ix, ts.NewTensor(), 2, -100, 0, false)
	},
	"mse loss": unaryCase(func(x *ts.Tensor) *ts.Tensor {
		return x.MustMseLoss(x.MustFlip([]int64{0}, false).MustSin(false), 1, false)
	}),
}

// spd is a positive definite matrix made of x.
func spd(x *ts.Tensor) *ts.Tensor {
	a := view(x, 4, 4)
	return a.MustMatmul(a.MustTranspose(0, 1, false), false).MustAdd(ts.MustEye(4, gotch.Double, gotch.CPU), false)
}

// TestOperations compares each operation and its derivative with eager evaluation; also where an operation has no
// finite value.
func TestOperations(t *testing.T) {
	for name, f := range opCases {
		t.Run(name, func(t *testing.T) {
			s := f.source()
			agrees(t, s, compile(t, s), opPoints())
		})
	}
}

// The recipe of CONTRIBUTING.md is a whole rule: without it the compiler refuses the operation, and with it each tier
// has its values and its gradient, at 0 too. The gradient needs no rule of its own: libtorch's is recorded with it.
func TestRecipe(t *testing.T) {
	s := unaryCase(func(x *ts.Tensor) *ts.Tensor { return x.MustSinc(false) }).source()
	p := points(2, s.Dim, 0.5, 1)
	_, err := lower.Compile(s, p[0], p[1], lower.Options{})
	require.EqualError(t, err, "sinc: the operation is not understood")
	defer lower.Recipe()()
	agreesEverywhere(t, s, compile(t, s), append(opPoints(), make([]float64, opDim)))
}

// opPoints are of normal numbers, some far out, and of positive ones, for logarithms and roots.
func opPoints() [][]float64 {
	at := append(points(3, opDim, 0.7, 6), points(2, opDim, 4, 7)...)
	for _, x := range points(2, opDim, 0.7, 8) {
		for i := range x {
			x[i] = math.Abs(x[i])
		}
		at = append(at, x)
	}
	return at
}

// source is the sum of a function's elements, weighted so that no two of them count alike.
func (f opCase) source() lower.Source {
	return lower.Source{
		Dim:   opDim,
		Batch: []lower.Named{{Name: "ix", Tensor: torch.New([]int{2, 0, 1, 2}).T()}},
		Evaluate: func(x *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
			v, g, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
				y := torch.Of(f(x.T(), b[0])).Reshape(-1)
				w := make([]float64, y.Numel())
				for i := range w {
					w[i] = math.Sin(float64(i + 1))
				}
				return y.Mul(torch.New(w)).Sum().Add(x.Sum().Mul(0))
			}, torch.Of(x))
			return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
		},
	}
}

// The derivative of digamma is the trigamma function, of which libtorch's own is right to 1e-9 only: the gradient is
// compared with Σ 1/(x+k)², of which the terms from k = 10,000 on are their integral to 1e-12.
func TestDigamma(t *testing.T) {
	s := source(func(x, y torch.Tensor) torch.Tensor { return x.Exp().Digamma().Sum() })
	m, err := ir.NewMachine(compile(t, s), batchOf(t, s))
	require.NoError(t, err)
	grad := make([]float64, 2)
	x := []float64{-0.7, 1.3}
	value := m.Eval(x, 1, grad, nil)
	want, _, _ := eager(t, s, x, 1)
	assert.InDelta(t, want, value, 1e-12)
	for i, v := range x {
		sum, at := 0.0, math.Exp(v)
		for k := range 10000 {
			sum += 1 / (at + float64(k)) / (at + float64(k))
		}
		sum += 1 / (at + 10000 - 0.5)
		assert.InDelta(t, sum*at, grad[i], 1e-10)
	}
}

// A regression, forward and backward, is one loop over its data.
func TestRegressionIsOneLoop(t *testing.T) {
	const n, d = 200, 8
	x, y := make([]float64, n*d), make([]float64, n)
	for i := range x {
		x[i] = math.Sin(float64(3*i + 1))
	}
	for i := range y {
		y[i] = float64(i % 2)
	}
	s := lower.Source{
		Dim: d,
		Batch: []lower.Named{
			{Name: "x", Tensor: torch.New(x, n, d).T()}, {Name: "y", Tensor: torch.New(y).T()},
		},
		Evaluate: func(w *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
			v, g, err := torch.ValueAndGrad(func(w torch.Tensor) torch.Tensor {
				eta := torch.Of(b[0]).MatMul(w)
				return torch.Of(b[1]).Mul(eta).Sub(eta.Softplus()).Sum().Sub(w.Square().Sum().Mul(0.5))
			}, torch.Of(w))
			return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
		},
	}
	plan := compile(t, s)
	agrees(t, s, plan, points(4, d, 1, 3))
	long := 0
	for _, step := range plan.Steps {
		assert.Equal(t, ir.Loop, step.Kind)
		if ir.Iterations(step.Sizes) >= n {
			long++
			for _, in := range step.Body {
				if in.Op == ir.Load {
					assert.Contains(t, []int{0, 1}, in.At.Strides[0], "columns are laid out for unit stride")
				}
			}
		}
	}
	assert.Equal(t, 1, long)
}

// The sums by index of a gradient have a loop of their own, so that the loop over the data can run in vectors.
func TestScatterStandsAlone(t *testing.T) {
	const n, groups = 100, 5
	which, y := make([]int, n), make([]float64, n)
	for i := range which {
		which[i], y[i] = i*7%groups, math.Cos(float64(i))
	}
	s := lower.Source{
		Dim: groups,
		Batch: []lower.Named{
			{Name: "which", Tensor: torch.New(which).T()}, {Name: "y", Tensor: torch.New(y).T()},
		},
		Evaluate: func(x *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
			v, g, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
				return torch.Of(b[1]).Sub(x.IndexSelect(0, torch.Of(b[0])).Exp()).Square().Sum()
			}, torch.Of(x))
			return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
		},
	}
	plan := compile(t, s)
	agrees(t, s, plan, points(4, groups, 1, 3))
	scatters := 0
	for _, step := range plan.Steps {
		adds, computes := 0, 0
		for _, in := range step.Body {
			switch {
			case in.Op == ir.ScatterAdd:
				adds++
			case in.Op > ir.Coord && !in.Op.Writes():
				computes++
			}
		}
		if scatters += adds; adds > 0 {
			assert.Zero(t, computes)
		}
	}
	assert.Equal(t, 1, scatters)
}
