package torch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// mapped is a function that is mapped over the first dimension of its inputs.
type mapped struct {
	name   string
	inputs []*input
	f      func(in []*ts.Tensor) []*ts.Tensor
}

// input makes one input of k rows. Numbers of a float input are differentiated.
type input struct {
	shape []int64 // of one row
	data  func(i int, x float64) float64
	ints  int64 // for an index: the numbers are 0 to ints-1
	bools bool
	spd   bool // symmetric positive definite matrices
}

func real(shape ...int64) *input { return &input{shape: shape} }

func positive(shape ...int64) *input {
	return &input{shape: shape, data: func(_ int, x float64) float64 { return 1.6 + x }}
}

func index(n int64, shape ...int64) *input { return &input{shape: shape, ints: n} }
func mask(shape ...int64) *input           { return &input{shape: shape, bools: true} }
func spd(n int64) *input                   { return &input{shape: []int64{n, n}, spd: true} }

// make is the input with k rows.
func (in *input) make(k int, from float64) *ts.Tensor {
	n := 1
	for _, s := range in.shape {
		n *= int(s)
	}
	shape := append([]int64{int64(k)}, in.shape...)
	data := numbers(k*n, from)
	switch {
	case in.ints > 0:
		at := make([]int64, k*n)
		for i, x := range data {
			at[i] = int64((x + 1) / 2 * float64(in.ints))
		}
		return ints(at, shape...)
	case in.bools:
		at := make([]bool, k*n)
		for i, x := range data {
			at[i] = x > 0
		}
		return torch.Must(torch.FromSlice(at, shape...))
	case in.data != nil:
		for i, x := range data {
			data[i] = in.data(i, x)
		}
	}
	x := vec(data, shape...)
	if in.spd {
		x = x.MustMatmul(x.MustTranspose(-2, -1, false), false)
		x = x.MustAdd(ts.MustEye(in.shape[0], gotch.Double, gotch.CPU), false)
	}
	return x
}

func (in *input) differentiable() bool { return in.ints == 0 && !in.bools }

// one makes the function of one input and one output.
func one(f func(x *ts.Tensor) *ts.Tensor) func([]*ts.Tensor) []*ts.Tensor {
	return func(in []*ts.Tensor) []*ts.Tensor { return []*ts.Tensor{f(in[0])} }
}

// two makes the function of two inputs and one output.
func two(f func(x, y *ts.Tensor) *ts.Tensor) func([]*ts.Tensor) []*ts.Tensor {
	return func(in []*ts.Tensor) []*ts.Tensor { return []*ts.Tensor{f(in[0], in[1])} }
}

func pair(a, b *ts.Tensor) []*ts.Tensor { return []*ts.Tensor{a, b} }

const f64 = gotch.Double

// groups are the operations of which models are made.
func groups() []mapped {
	none := ts.None
	return []mapped{
		// Linear algebra.
		{"matmul", []*input{real(3, 4), real(4, 2)}, two(func(x, y *ts.Tensor) *ts.Tensor { return x.MustMatmul(y, false) })},
		{"mm", []*input{real(3, 4), real(4, 2)}, two(func(x, y *ts.Tensor) *ts.Tensor { return x.MustMm(y, false) })},
		{"mv", []*input{real(3, 4), real(4)}, two(func(x, y *ts.Tensor) *ts.Tensor { return x.MustMv(y, false) })},
		{"dot", []*input{real(4), real(4)}, two(func(x, y *ts.Tensor) *ts.Tensor { return x.MustDot(y, false) })},
		{"outer", []*input{real(3), real(4)}, two(func(x, y *ts.Tensor) *ts.Tensor { return x.MustOuter(y, false) })},
		{"bmm", []*input{real(2, 3, 4), real(2, 4, 2)}, two(func(x, y *ts.Tensor) *ts.Tensor { return x.MustBmm(y, false) })},
		{"linear", []*input{real(5, 4), real(3, 4), real(3)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{ts.MustLinear(in[0], in[1], in[2])}
		}},
		{"cholesky", []*input{spd(3)}, one(func(x *ts.Tensor) *ts.Tensor { return x.MustLinalgCholesky(false, false) })},
		{"triangular solve", []*input{spd(3), real(3, 2)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustTril(0, false).MustLinalgSolveTriangular(y, false, true, false, false)
		})},
		{
			"solve",
			[]*input{spd(3), real(3, 2)},
			two(func(x, y *ts.Tensor) *ts.Tensor { return ts.MustLinalgSolve(x, y, true) }),
		},
		{"cholesky solve", []*input{real(3, 2), spd(3)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustCholeskySolve(y.MustLinalgCholesky(false, false), false, false)
		})},
		{"inverse", []*input{spd(3)}, one(func(x *ts.Tensor) *ts.Tensor { return ts.MustLinalgInv(x) })},
		{"det", []*input{spd(3)}, one(func(x *ts.Tensor) *ts.Tensor { return x.MustDet(false) })},
		{"slogdet", []*input{spd(3)}, one(func(x *ts.Tensor) *ts.Tensor { _, log := x.MustSlogdet(false); return log })},
		// Eigenvectors have no sign: their squares do not either.
		{"eigh", []*input{spd(3)}, func(in []*ts.Tensor) []*ts.Tensor {
			values, vectors := in[0].MustLinalgEigh("L", false)
			return pair(values, vectors.MustSquare(false))
		}},
		{"einsum", []*input{real(2, 3), real(3, 4), real(4)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{ts.MustEinsum("ij,jk,k->ik", in, nil)}
		}},
		{"trace, diagonal, kron", []*input{real(3, 3), real(2, 2)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{in[0].MustDiagonal(1, 0, 1, false), in[0].MustTrace(false), in[0].MustKron(in[1], false)}
		}},

		// Special functions.
		{"lgamma, digamma", []*input{positive(4)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustLgamma(false).MustAdd(x.MustDigamma(false), false)
		})},
		{
			"erf, erfc",
			[]*input{real(4)},
			one(func(x *ts.Tensor) *ts.Tensor { return x.MustErf(false).MustMul(x.MustErfc(false), false) }),
		},
		{"log1p, expm1", []*input{positive(4)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustLog1p(false).MustMul(x.MustExpm1(false), false)
		})},
		{"log, sqrt, pow", []*input{positive(4), positive(4)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustLog(false).MustMul(y.MustSqrt(false), false).MustAdd(x.MustPow(y, false), false)
		})},
		{"trigonometry", []*input{real(4), real(4)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustSin(false).MustMul(y.MustCos(false), false).MustAdd(x.MustAtan2(y, false), false)
		})},
		{"sigmoid, tanh, relu", []*input{real(4)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustSigmoid(false).MustMul(x.MustTanh(false), false).MustAdd(x.MustRelu(false), false)
		})},
		{"softplus, logsigmoid", []*input{real(4)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustSoftplus(false).MustMul(x.MustLogSigmoid(false), false)
		})},
		{
			"logsumexp",
			[]*input{real(3, 4)},
			one(func(x *ts.Tensor) *ts.Tensor { return x.MustLogsumexp([]int64{1}, false, false) }),
		},
		{"softmax, log softmax", []*input{real(3, 4)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustSoftmax(0, f64, false).MustMul(x.MustLogSoftmax(-1, f64, false), false)
		})},
		{"clamp, abs, maximum", []*input{real(4), real(4)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustClamp(ts.FloatScalar(-0.5), ts.FloatScalar(0.5), false).
				MustMul(x.MustAbs(false), false).
				MustMaximum(y, false)
		})},

		// Indexing.
		{
			"index select",
			[]*input{real(5, 2), index(5, 3)},
			two(func(x, i *ts.Tensor) *ts.Tensor { return x.MustIndexSelect(0, i, false) }),
		},
		{
			"gather",
			[]*input{real(3, 4), index(4, 3, 2)},
			two(func(x, i *ts.Tensor) *ts.Tensor { return x.MustGather(1, i, false, false) }),
		},
		{"scatter add", []*input{real(4), index(4, 6), real(6)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{in[0].MustScatterAdd(0, in[1], in[2], false)}
		}},
		{"narrow, select, slice", []*input{real(4, 5)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{
				in[0].MustNarrow(1, 1, 3, false),
				in[0].MustSelect(0, -1, false),
				in[0].MustSlice(0, []int64{0}, []int64{4}, 2, false),
			}
		}},
		{"cumsum, cumprod", []*input{real(3, 4)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustCumsum(1, f64, false).MustMul(x.MustCumprod(0, f64, false), false)
		})},
		{"diag", []*input{real(4), real(3, 3)}, func(in []*ts.Tensor) []*ts.Tensor {
			return pair(in[0].MustDiag(0, false), in[1].MustDiag(-1, false))
		}},
		{
			"tril, triu",
			[]*input{real(3, 3)},
			one(func(x *ts.Tensor) *ts.Tensor { return x.MustTril(0, false).MustMul(x.MustTriu(-1, false), false) }),
		},
		{"where", []*input{mask(4), real(4), real(4)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{in[1].MustWhereSelf(in[0], in[2], false)}
		}},
		{
			"masked fill",
			[]*input{real(4), mask(4)},
			two(func(x, m *ts.Tensor) *ts.Tensor { return x.MustMaskedFill(m, ts.FloatScalar(-3), false) }),
		},
		{"comparison", []*input{real(4), real(4)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustMul(x.MustGtTensor(y, false).MustTotype(f64, false), false).MustAdd(y, false)
		})},

		// Reductions.
		{"sum, mean", []*input{real(3, 4)}, func(in []*ts.Tensor) []*ts.Tensor {
			x := in[0]
			return []*ts.Tensor{
				sum(x),
				x.MustSumDimIntlist([]int64{-1}, true, f64, false),
				x.MustMean(f64, false),
				x.MustMeanDim([]int64{0}, false, f64, false),
			}
		}},
		{"max, amax", []*input{real(3, 4)}, func(in []*ts.Tensor) []*ts.Tensor {
			values, at := in[0].MustMaxDim(1, false, false)
			return []*ts.Tensor{
				in[0].MustMax(false),
				values,
				at,
				in[0].MustAmax([]int64{0}, false, false),
				in[0].MustArgmax([]int64{1}, false, false),
			}
		}},
		{"var, std", []*input{real(3, 4)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{
				in[0].MustVar(true, false),
				in[0].MustVarDim([]int64{1}, false, true, false),
				in[0].MustStd(false, false),
			}
		}},
		{"norm", []*input{real(3, 4)}, func(in []*ts.Tensor) []*ts.Tensor {
			return pair(in[0].MustNorm(false), in[0].MustNormScalaroptDim(ts.FloatScalar(3), []int64{1}, false, false))
		}},
		{"prod", []*input{real(4)}, one(func(x *ts.Tensor) *ts.Tensor { return x.MustProd(f64, false) })},
		{"sort", []*input{real(5)}, func(in []*ts.Tensor) []*ts.Tensor { return pair(in[0].MustSort(0, true, false)) }},

		// Losses. The reduction 1 is the mean, 2 the sum.
		{"binary cross-entropy with logits", []*input{real(6), mask(6)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustBinaryCrossEntropyWithLogits(y.MustTotype(f64, false), none, none, 2, false)
		})},
		{"cross-entropy", []*input{real(6, 3), index(3, 6)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustCrossEntropyLoss(y, none, 1, -100, 0, false)
		})},
		{"negative log likelihood", []*input{real(6, 3), index(3, 6)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustLogSoftmax(1, f64, false).MustNllLoss(y, none, 2, -100, false)
		})},
		{"mean squared and Huber loss", []*input{real(6), real(6)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			return x.MustMseLoss(y, 1, false).MustAdd(x.MustHuberLoss(y, 1, 0.7, false), false)
		})},

		// Networks.
		{"conv1d", []*input{real(2, 3, 8), real(4, 3, 3), real(4)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{ts.MustConv1d(in[0], in[1], in[2], []int64{1}, []int64{1}, []int64{1}, 1)}
		}},
		{"conv2d", []*input{real(2, 3, 6, 6), real(4, 3, 3, 3), real(4)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{ts.MustConv2d(in[0], in[1], in[2], []int64{2, 2}, []int64{1, 1}, []int64{1, 1}, 1)}
		}},
		{"max pooling", []*input{real(2, 3, 6, 6)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustMaxPool2d([]int64{2, 2}, []int64{2, 2}, []int64{0, 0}, []int64{1, 1}, false, false)
		})},
		{"average pooling", []*input{real(2, 3, 6, 6)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustAvgPool2d([]int64{2, 2}, []int64{2, 2}, []int64{0, 0}, false, true, []int64{4}, false)
		})},
		{
			"embedding",
			[]*input{real(5, 3), index(5, 2, 4)},
			two(func(w, i *ts.Tensor) *ts.Tensor { return ts.MustEmbedding(w, i, -1, false, false) }),
		},
		{"layer norm", []*input{real(3, 4), real(4), real(4)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{ts.MustLayerNorm(in[0], []int64{4}, in[1], in[2], 1e-5, false)}
		}},

		// Shapes.
		{
			"cat, stack",
			[]*input{real(3, 2), real(3, 2)},
			func(in []*ts.Tensor) []*ts.Tensor { return pair(ts.MustCat(in, -1), ts.MustStack(in, 1)) },
		},
		{"expand, reshape, view", []*input{real(3, 1, 2)}, one(func(x *ts.Tensor) *ts.Tensor {
			return x.MustExpand([]int64{3, 4, 2}, false, false).
				MustReshape([]int64{-1, 2}, false).
				MustMul(x.MustView([]int64{1, 6}, false).MustNarrow(1, 0, 2, false), false)
		})},
		{"transpose, permute", []*input{real(3, 4, 2)}, func(in []*ts.Tensor) []*ts.Tensor {
			return pair(in[0].MustTranspose(0, -1, false), in[0].MustPermute([]int64{2, 0, 1}, false))
		}},
		{"squeeze, unsqueeze, flatten", []*input{real(3, 1, 2)}, func(in []*ts.Tensor) []*ts.Tensor {
			return []*ts.Tensor{in[0].MustSqueezeDim(1, false), in[0].MustUnsqueeze(-1, false), in[0].MustFlatten(0, -1, false)}
		}},
		{"flip, roll", []*input{real(3, 4)}, func(in []*ts.Tensor) []*ts.Tensor {
			return pair(in[0].MustFlip([]int64{0}, false), in[0].MustRoll([]int64{1}, []int64{1}, false))
		}},
		{"split, unbind, chunk", []*input{real(4, 3)}, func(in []*ts.Tensor) []*ts.Tensor {
			return append(append(in[0].MustSplit(3, 0, false), in[0].MustUnbind(1, false)...), in[0].MustChunk(2, 0, false)...)
		}},
		{"in place", []*input{real(4), real(4)}, two(func(x, y *ts.Tensor) *ts.Tensor {
			z := x.MustMul(y, false)
			z.MustAdd_(x)
			z.MustMulScalar_(ts.FloatScalar(3))
			return z
		})},
	}
}

// gradients of the outputs that can be differentiated, each weighted with its own fixed numbers.
func gradients(t *testing.T, outputs, inputs []*ts.Tensor, weights []*ts.Tensor) []*ts.Tensor {
	t.Helper()
	var ys, ws, xs []*ts.Tensor
	for i, y := range outputs {
		if y.MustRequiresGrad() {
			ys, ws = append(ys, y), append(ws, weights[i])
		}
	}
	for _, x := range inputs {
		if x.MustRequiresGrad() {
			xs = append(xs, x)
		}
	}
	grads, err := torch.Grad(ys, xs, &torch.GradOptions{Weights: ws})
	require.NoError(t, err)
	return grads
}

// Mapping a function gives the values and the gradients of a loop over the rows, up to the rounding of products that
// sum in another order: 1e-12 is some thousand units of rounding.
func TestVmapEqualsLoop(t *testing.T) {
	const rows, tol = 3, 1e-12
	for _, c := range groups() {
		t.Run(c.name, func(t *testing.T) {
			inScope(t, func(*torch.Scope) {
				inputs := make([]*ts.Tensor, len(c.inputs))
				for i, in := range c.inputs {
					inputs[i] = in.make(rows, float64(100*i))
					if in.differentiable() {
						inputs[i] = torch.Must(torch.Leaf(inputs[i]))
					}
				}
				outputs, err := torch.Vmap(func(in []*ts.Tensor) ([]*ts.Tensor, error) { return c.f(in), nil }, inputs, nil)
				require.NoError(t, err)
				weights := make([]*ts.Tensor, len(outputs))
				for i, y := range outputs {
					shape := shapeOf(y)
					n, err := torch.Numel(y)
					require.NoError(t, err)
					weights[i] = vec(numbers(n, float64(1000*i)), shape...)
				}
				grads := gradients(t, outputs, inputs, weights)

				for k := range int64(rows) {
					row := func(list []*ts.Tensor) []*ts.Tensor {
						out := make([]*ts.Tensor, len(list))
						for i, x := range list {
							out[i] = x.MustSelect(0, k, false)
						}
						return out
					}
					in := row(inputs)
					for i := range in {
						if c.inputs[i].differentiable() {
							in[i] = torch.Must(torch.Leaf(in[i]))
						}
					}
					out := c.f(in)
					require.Len(t, outputs, len(out))
					for i, y := range row(outputs) {
						require.Equal(t, shapeOf(out[i]), shapeOf(y))
						require.Equal(t, out[i].DType(), y.DType())
						near(t, floats(out[i]), floats(y), tol, "row ", k, " output ", i)
					}
					for i, g := range gradients(t, out, in, row(weights)) {
						near(t, floats(g), floats(grads[i].MustSelect(0, k, false)), tol, "row ", k, " gradient ", i)
					}
				}
			})
		})
	}
}
