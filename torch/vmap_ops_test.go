package torch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// mapped is a function that is mapped over the first dimension of its inputs.
type mapped struct {
	name   string
	inputs []*input
	f      func(in []torch.Tensor) []torch.Tensor
}

// input makes one input of k rows. Numbers of a float input are differentiated.
type input struct {
	shape []int // of one row
	data  func(i int, x float64) float64
	ints  int // for an index: the numbers are 0 to ints-1
	bools bool
	spd   bool // symmetric positive definite matrices
}

func real(shape ...int) *input { return &input{shape: shape} }

func positive(shape ...int) *input {
	return &input{shape: shape, data: func(_ int, x float64) float64 { return 1.6 + x }}
}

func index(n int, shape ...int) *input { return &input{shape: shape, ints: n} }
func mask(shape ...int) *input         { return &input{shape: shape, bools: true} }
func spd(n int) *input                 { return &input{shape: []int{n, n}, spd: true} }

// make is the input with k rows.
func (in *input) make(k int, from float64) torch.Tensor {
	n := 1
	for _, s := range in.shape {
		n *= s
	}
	shape := append([]int{k}, in.shape...)
	data := numbers(k*n, from)
	switch {
	case in.ints > 0:
		at := make([]int, k*n)
		for i, x := range data {
			at[i] = int((x + 1) / 2 * float64(in.ints))
		}
		return ints(at, shape...)
	case in.bools:
		at := make([]bool, k*n)
		for i, x := range data {
			at[i] = x > 0
		}
		return torch.New(at, shape...)
	case in.data != nil:
		for i, x := range data {
			data[i] = in.data(i, x)
		}
	}
	x := vec(data, shape...)
	if in.spd {
		x = torch.Of(x.T().MustMatmul(x.T().MustTranspose(-2, -1, false), false))
		x = torch.Of(x.T().MustAdd(ts.MustEye(int64(in.shape[0]), gotch.Double, gotch.CPU), false))
	}
	return x
}

func (in *input) differentiable() bool { return in.ints == 0 && !in.bools }

// one makes the function of one input and one output.
func one(f func(x torch.Tensor) torch.Tensor) func([]torch.Tensor) []torch.Tensor {
	return func(in []torch.Tensor) []torch.Tensor { return []torch.Tensor{f(in[0])} }
}

// two makes the function of two inputs and one output.
func two(f func(x, y torch.Tensor) torch.Tensor) func([]torch.Tensor) []torch.Tensor {
	return func(in []torch.Tensor) []torch.Tensor { return []torch.Tensor{f(in[0], in[1])} }
}

func pair(a, b torch.Tensor) []torch.Tensor { return []torch.Tensor{a, b} }

const f64 = gotch.Double

// groups are the operations of which models are made.
func groups() []mapped {
	none := ts.None
	return []mapped{
		// Linear algebra.
		{"matmul", []*input{real(3, 4), real(4, 2)}, two(func(x,
			y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustMatmul(y.T(), false))
		})},
		{"mm", []*input{real(3, 4), real(4, 2)}, two(func(x,
			y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustMm(y.T(), false))
		})},
		{"mv", []*input{real(3, 4), real(4)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustMv(y.T(),
				false))
		})},
		{"dot", []*input{real(4), real(4)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustDot(y.T(),
				false))
		})},
		{"outer", []*input{real(3), real(4)},
			two(func(x, y torch.Tensor) torch.Tensor { return torch.Of(x.T().MustOuter(y.T(), false)) })},
		{"bmm", []*input{real(2, 3, 4), real(2, 4, 2)}, two(func(x,
			y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustBmm(y.T(), false))
		})},
		{"linear", []*input{real(5, 4), real(3, 4), real(3)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(ts.MustLinear(in[0].T(), in[1].T(), in[2].T()))}
		}},
		{"cholesky", []*input{spd(3)},
			one(func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustLinalgCholesky(false, false)) })},
		{"triangular solve", []*input{spd(3), real(3, 2)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustTril(0, false).MustLinalgSolveTriangular(y.T(), false, true, false, false))
		})},
		{
			"solve",
			[]*input{spd(3), real(3, 2)},
			two(func(x, y torch.Tensor) torch.Tensor { return torch.Of(ts.MustLinalgSolve(x.T(), y.T(), true)) }),
		},
		{"cholesky solve", []*input{real(3, 2), spd(3)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustCholeskySolve(y.T().MustLinalgCholesky(false, false), false, false))
		})},
		{"inverse", []*input{spd(3)}, one(func(x torch.Tensor) torch.Tensor { return torch.Of(ts.MustLinalgInv(x.T())) })},
		{"det", []*input{spd(3)}, one(func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustDet(false)) })},
		{"slogdet", []*input{spd(3)}, one(func(x torch.Tensor) torch.Tensor {
			_,
				log := x.T().MustSlogdet(false)
			return torch.Of(log)
		})},
		// Eigenvectors have no sign: their squares do not either.
		{"eigh", []*input{spd(3)}, func(in []torch.Tensor) []torch.Tensor {
			values, vectors := in[0].T().MustLinalgEigh("L", false)
			return pair(torch.Of(values), torch.Of(vectors.MustSquare(false)))
		}},
		{"einsum", []*input{real(2, 3), real(3, 4), real(4)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(ts.MustEinsum("ij,jk,k->ik", raw.Pointers(in), nil))}
		}},
		{"trace, diagonal, kron", []*input{real(3, 3), real(2, 2)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(in[0].T().MustDiagonal(1, 0, 1, false)), torch.Of(in[0].T().MustTrace(false)),
				torch.Of(in[0].T().MustKron(in[1].T(), false))}
		}},

		// Special functions.
		{"lgamma, digamma", []*input{positive(4)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustLgamma(false).MustAdd(x.T().MustDigamma(false), false))
		})},
		{
			"erf, erfc",
			[]*input{real(4)},
			one(func(x torch.Tensor) torch.Tensor {
				return torch.Of(x.T().MustErf(false).MustMul(x.T().MustErfc(false), false))
			}),
		},
		{"log1p, expm1", []*input{positive(4)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustLog1p(false).MustMul(x.T().MustExpm1(false), false))
		})},
		{"log, sqrt, pow", []*input{positive(4), positive(4)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustLog(false).MustMul(y.T().MustSqrt(false), false).MustAdd(x.T().MustPow(y.T(), false),
				false))
		})},
		{"trigonometry", []*input{real(4), real(4)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustSin(false).MustMul(y.T().MustCos(false), false).MustAdd(x.T().MustAtan2(y.T(), false),
				false))
		})},
		{"sigmoid, tanh, relu", []*input{real(4)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustSigmoid(false).MustMul(x.T().MustTanh(false), false).MustAdd(x.T().MustRelu(false), false))
		})},
		{"softplus, logsigmoid", []*input{real(4)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustSoftplus(false).MustMul(x.T().MustLogSigmoid(false), false))
		})},
		{
			"logsumexp",
			[]*input{real(3, 4)},
			one(func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustLogsumexp([]int64{1}, false, false)) }),
		},
		{"softmax, log softmax", []*input{real(3, 4)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustSoftmax(0, f64, false).MustMul(x.T().MustLogSoftmax(-1, f64, false), false))
		})},
		{"clamp, abs, maximum", []*input{real(4), real(4)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustClamp(ts.FloatScalar(-0.5), ts.FloatScalar(0.5), false).
				MustMul(x.T().MustAbs(false), false).
				MustMaximum(y.T(), false))
		})},

		// Indexing.
		{
			"index select",
			[]*input{real(5, 2), index(5, 3)},
			two(func(x, i torch.Tensor) torch.Tensor { return torch.Of(x.T().MustIndexSelect(0, i.T(), false)) }),
		},
		{
			"gather",
			[]*input{real(3, 4), index(4, 3, 2)},
			two(func(x, i torch.Tensor) torch.Tensor { return torch.Of(x.T().MustGather(1, i.T(), false, false)) }),
		},
		{"scatter add", []*input{real(4), index(4, 6), real(6)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(in[0].T().MustScatterAdd(0, in[1].T(), in[2].T(), false))}
		}},
		{"narrow, select, slice", []*input{real(4, 5)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{
				torch.Of(in[0].T().MustNarrow(1, 1, 3, false)),
				torch.Of(in[0].T().MustSelect(0, -1, false)),
				torch.Of(in[0].T().MustSlice(0, []int64{0}, []int64{4}, 2, false)),
			}
		}},
		{"cumsum, cumprod", []*input{real(3, 4)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustCumsum(1, f64, false).MustMul(x.T().MustCumprod(0, f64, false), false))
		})},
		{"diag", []*input{real(4), real(3, 3)}, func(in []torch.Tensor) []torch.Tensor {
			return pair(torch.Of(in[0].T().MustDiag(0, false)), torch.Of(in[1].T().MustDiag(-1, false)))
		}},
		{
			"tril, triu",
			[]*input{real(3, 3)},
			one(func(x torch.Tensor) torch.Tensor {
				return torch.Of(x.T().MustTril(0, false).MustMul(x.T().MustTriu(-1, false), false))
			}),
		},
		{"where", []*input{mask(4), real(4), real(4)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(in[1].T().MustWhereSelf(in[0].T(), in[2].T(), false))}
		}},
		{
			"masked fill",
			[]*input{real(4), mask(4)},
			two(func(x, m torch.Tensor) torch.Tensor {
				return torch.Of(x.T().MustMaskedFill(m.T(), ts.FloatScalar(-3), false))
			}),
		},
		{"comparison", []*input{real(4), real(4)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustMul(x.T().MustGtTensor(y.T(), false).MustTotype(f64, false), false).MustAdd(y.T(), false))
		})},

		// Reductions.
		{"sum, mean", []*input{real(3, 4)}, func(in []torch.Tensor) []torch.Tensor {
			x := in[0]
			return []torch.Tensor{
				sum(x),
				torch.Of(x.T().MustSumDimIntlist([]int64{-1}, true, f64, false)),
				torch.Of(x.T().MustMean(f64, false)),
				torch.Of(x.T().MustMeanDim([]int64{0}, false, f64, false)),
			}
		}},
		{"max, amax", []*input{real(3, 4)}, func(in []torch.Tensor) []torch.Tensor {
			values, at := in[0].T().MustMaxDim(1, false, false)
			return []torch.Tensor{
				torch.Of(in[0].T().MustMax(false)),
				torch.Of(values),
				torch.Of(at),
				torch.Of(in[0].T().MustAmax([]int64{0}, false, false)),
				torch.Of(in[0].T().MustArgmax([]int64{1}, false, false)),
			}
		}},
		{"var, std", []*input{real(3, 4)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{
				torch.Of(in[0].T().MustVar(true, false)),
				torch.Of(in[0].T().MustVarDim([]int64{1}, false, true, false)),
				torch.Of(in[0].T().MustStd(false, false)),
			}
		}},
		{"norm", []*input{real(3, 4)}, func(in []torch.Tensor) []torch.Tensor {
			return pair(torch.Of(in[0].T().MustNorm(false)), torch.Of(in[0].T().MustNormScalaroptDim(ts.FloatScalar(3),
				[]int64{1}, false, false)))
		}},
		{"prod", []*input{real(4)}, one(func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustProd(f64, false)) })},
		{"sort", []*input{real(5)}, func(in []torch.Tensor) []torch.Tensor {
			values, indices := in[0].T().MustSort(0, true, false)
			return pair(torch.Of(values), torch.Of(indices))
		}},

		// Losses. The reduction 1 is the mean, 2 the sum.
		{"binary cross-entropy with logits", []*input{real(6), mask(6)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustBinaryCrossEntropyWithLogits(y.T().MustTotype(f64, false), none, none, 2, false))
		})},
		{"cross-entropy", []*input{real(6, 3), index(3, 6)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustCrossEntropyLoss(y.T(), none, 1, -100, 0, false))
		})},
		{"negative log likelihood", []*input{real(6, 3), index(3, 6)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustLogSoftmax(1, f64, false).MustNllLoss(y.T(), none, 2, -100, false))
		})},
		{"mean squared and Huber loss", []*input{real(6), real(6)}, two(func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustMseLoss(y.T(), 1, false).MustAdd(x.T().MustHuberLoss(y.T(), 1, 0.7, false), false))
		})},

		// Networks.
		{"conv1d", []*input{real(2, 3, 8), real(4, 3, 3), real(4)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(ts.MustConv1d(in[0].T(), in[1].T(), in[2].T(), []int64{1}, []int64{1}, []int64{1},
				1))}
		}},
		{"conv2d", []*input{real(2, 3, 6, 6), real(4, 3, 3, 3), real(4)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(ts.MustConv2d(in[0].T(), in[1].T(), in[2].T(), []int64{2, 2}, []int64{1, 1},
				[]int64{1, 1}, 1))}
		}},
		{"max pooling", []*input{real(2, 3, 6, 6)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustMaxPool2d([]int64{2, 2}, []int64{2, 2}, []int64{0, 0}, []int64{1, 1}, false, false))
		})},
		{"average pooling", []*input{real(2, 3, 6, 6)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustAvgPool2d([]int64{2, 2}, []int64{2, 2}, []int64{0, 0}, false, true, []int64{4}, false))
		})},
		{
			"embedding",
			[]*input{real(5, 3), index(5, 2, 4)},
			two(func(w, i torch.Tensor) torch.Tensor {
				return torch.Of(ts.MustEmbedding(w.T(), i.T(), -1, false, false))
			}),
		},
		{"layer norm", []*input{real(3, 4), real(4), real(4)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(ts.MustLayerNorm(in[0].T(), []int64{4}, in[1].T(), in[2].T(), 1e-5, false))}
		}},

		// Shapes.
		{
			"cat, stack",
			[]*input{real(3, 2), real(3, 2)},
			func(in []torch.Tensor) []torch.Tensor {
				return pair(torch.Cat(-1, in), torch.Stack(1, in))
			},
		},
		{"expand, reshape, view", []*input{real(3, 1, 2)}, one(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustExpand([]int64{3, 4, 2}, false, false).
				MustReshape([]int64{-1, 2}, false).
				MustMul(x.T().MustView([]int64{1, 6}, false).MustNarrow(1, 0, 2, false), false))
		})},
		{"transpose, permute", []*input{real(3, 4, 2)}, func(in []torch.Tensor) []torch.Tensor {
			return pair(torch.Of(in[0].T().MustTranspose(0, -1, false)),
				torch.Of(in[0].T().MustPermute([]int64{2, 0, 1}, false)))
		}},
		{"squeeze, unsqueeze, flatten", []*input{real(3, 1, 2)}, func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(in[0].T().MustSqueezeDim(1, false)), torch.Of(in[0].T().MustUnsqueeze(-1, false)),
				torch.Of(in[0].T().MustFlatten(0, -1, false))}
		}},
		{"flip, roll", []*input{real(3, 4)}, func(in []torch.Tensor) []torch.Tensor {
			return pair(torch.Of(in[0].T().MustFlip([]int64{0}, false)),
				torch.Of(in[0].T().MustRoll([]int64{1}, []int64{1}, false)))
		}},
		{"split, unbind, chunk", []*input{real(4, 3)}, func(in []torch.Tensor) []torch.Tensor {
			return raw.All(append(append(in[0].T().MustSplit(3, 0, false), in[0].T().MustUnbind(1, false)...),
				in[0].T().MustChunk(2, 0, false)...))
		}},
		{"in place", []*input{real(4), real(4)}, two(func(x, y torch.Tensor) torch.Tensor {
			z := x.T().MustMul(y.T(), false)
			z.MustAdd_(x.T())
			z.MustMulScalar_(ts.FloatScalar(3))
			return torch.Of(z)
		})},
	}
}

// gradients of the outputs that can be differentiated, each weighted with its own fixed numbers.
func gradients(t *testing.T, outputs, inputs []torch.Tensor, weights []torch.Tensor) []torch.Tensor {
	t.Helper()
	var ys, ws, xs []torch.Tensor
	for i, y := range outputs {
		if y.T().MustRequiresGrad() {
			ys, ws = append(ys, y), append(ws, weights[i])
		}
	}
	for _, x := range inputs {
		if x.T().MustRequiresGrad() {
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
				inputs := make([]torch.Tensor, len(c.inputs))
				for i, in := range c.inputs {
					inputs[i] = in.make(rows, float64(100*i))
					if in.differentiable() {
						inputs[i] = torch.Must(torch.Leaf(inputs[i]))
					}
				}
				outputs, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) { return c.f(in), nil }, inputs, nil)
				require.NoError(t, err)
				weights := make([]torch.Tensor, len(outputs))
				for i, y := range outputs {
					shape := shapeOf(y)
					n, err := torch.Numel(y)
					require.NoError(t, err)
					weights[i] = vec(numbers(n, float64(1000*i)), shape...)
				}
				grads := gradients(t, outputs, inputs, weights)

				for k := range int(rows) {
					row := func(list []torch.Tensor) []torch.Tensor {
						out := make([]torch.Tensor, len(list))
						for i, x := range list {
							out[i] = torch.Of(x.T().MustSelect(0, int64(k), false))
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
						require.Equal(t, out[i].T().DType(), y.T().DType())
						near(t, floats(out[i]), floats(y), tol, "row ", k, " output ", i)
					}
					for i, g := range gradients(t, out, in, row(weights)) {
						near(t, floats(g), floats(torch.Of(grads[i].T().MustSelect(0, int64(k), false))), tol, "row ", k, " gradient ", i)
					}
				}
			})
		})
	}
}
