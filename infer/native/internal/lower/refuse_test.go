package lower_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// source is a function of a point of two numbers and a batch of one tensor, [3] by default.
func source(f func(x, y torch.Tensor) torch.Tensor) lower.Source {
	return lower.Source{
		Dim:   2,
		Batch: []lower.Named{{Name: "y", Tensor: torch.New([]float64{1, 2, 3}).T()}},
		Evaluate: func(x *ts.Tensor, b []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
			v, g, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
				return f(x, torch.Of(b[0]))
			}, torch.Of(x))
			return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
		},
	}
}

// The rule for each: what a plan would get wrong is refused, with the operation and the reason.
func TestRefusals(t *testing.T) {
	kept := torch.New([]float64{0})
	held := torch.New([]float64{0, 0})
	calls := 0
	for name, c := range map[string]struct {
		f          func(x, y torch.Tensor) torch.Tensor
		op, reason string
	}{
		"a value read": {func(x, y torch.Tensor) torch.Tensor {
			return x.Sum().Mul(x.At(0).Item())
		}, "kelvin::read", "reads a value"},
		"values read": {func(x, y torch.Tensor) torch.Tensor {
			return x.Sum().Mul(torch.Must(torch.ToSlice[float64](x))[0])
		}, "kelvin::read", "reads a value"},
		"a value of the batch read": {func(x, y torch.Tensor) torch.Tensor {
			return x.Sum().Mul(y.At(0).Item())
		}, "kelvin::read", "reads a value"},
		"a branch that both points take": {func(x, y torch.Tensor) torch.Tensor {
			if x.At(0).Item() > -1e9 {
				return x.Square().Sum()
			}
			return x.Sum()
		}, "kelvin::read", "reads a value"},
		"nonzero": {func(x, y torch.Tensor) torch.Tensor {
			return x.Sum().Add(x.T().MustNonzero(false).MustSum(gotch.Double, false))
		}, "nonzero", "reads a value"},
		"masked_select": {func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustMaskedSelect(x.Gt(0).T(), false)).Sum()
		}, "masked_select", "reads a value"},
		"random numbers of libtorch": {func(x, y torch.Tensor) torch.Tensor {
			return x.Mul(torch.Of(x.T().MustRandnLike(false))).Sum()
		}, "randn_like", "random"},
		"random numbers of Kelvin": {func(x, y torch.Tensor) torch.Tensor {
			z := torch.Must(ts.KelvinRandom(0, 1, []uint64{1}, 0, []int64{1, 2}, int(gotch.Double.CKind()), -1))
			return x.Mul(torch.Of(z).Reshape(2)).Sum()
		}, "kelvin::random", "random"},
		"random numbers of Go": {func(x, y torch.Tensor) torch.Tensor {
			return x.Sum().Mul(rand.Float64())
		}, "", "by a way that is no tensor operation"},
		"a count of calls": {func(x, y torch.Tensor) torch.Tensor {
			calls++
			for range calls {
				x = x.Mul(1.5)
			}
			return x.Sum()
		}, "", "different operations"},
		"a tensor kept between calls": {func(x, y torch.Tensor) torch.Tensor {
			kept.T().MustAdd_(torch.Scalar(1).T())
			return x.Sum().Add(kept.Sum())
		}, "add_", "kept between calls"},
		"a tensor that is overwritten": {func(x, y torch.Tensor) torch.Tensor {
			held.T().Copy_(x.T().MustDetach(false))
			return x.Mul(held).Sum()
		}, "copy_", "kept between calls"},
		"float32": {func(x, y torch.Tensor) torch.Tensor {
			z := x.T().MustTotype(gotch.Float, false).MustSquare(false)
			return torch.Of(z.MustTotype(gotch.Double, false)).Sum()
		}, "", "float32"},
		"an operation that is not understood": {func(x, y torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustSinc(false)).Sum()
		}, "sinc", "not understood"},
		// Its parts are a copy, and then work on the memory itself, of which no part tells.
		"an operation whose parts are not all": {func(x, y torch.Tensor) torch.Tensor {
			ix := torch.New([]int{1})
			return torch.Of(y.T().MustIndexCopy(0, ix.T(), x.At(0).Reshape(1).T(), false)).Sum()
		}, "index_copy", "not understood"},
		"an index that depends on the parameters": {func(x, y torch.Tensor) torch.Tensor {
			ix := x.Gt(0).T().MustTotype(gotch.Int64, false)
			return torch.Of(y.T().MustIndexAdd(0, ix, x.T(), false)).Square().Sum()
		}, "index_add", "depends on the parameters"},
		"such an index to many elements": {func(x, y torch.Tensor) torch.Tensor {
			ix := x.Gt(0).T().MustTotype(gotch.Int64, false)
			return torch.Zeros(2000).Add(y.Sum()).IndexSelect(0, torch.Of(ix)).Sum().Mul(x.Sum())
		}, "index_select", "chooses from 2000"},
	} {
		t.Run(name, func(t *testing.T) {
			p := points(2, 2, 1, 9)
			_, err := lower.Compile(source(c.f), p[0], p[1], lower.Options{})
			require.Error(t, err)
			var r *lower.Refusal
			ok := errors.As(err, &r)
			require.True(t, ok, "%v is a refusal", err)
			assert.Contains(t, r.Op, c.op)
			assert.Contains(t, r.Reason, c.reason)
		})
	}
}

// What looks like the cases above and is none.
func TestNoRefusal(t *testing.T) {
	weights := torch.New([]float64{0.5, 2})
	single := torch.New([]float64{0.5, 2}).T().MustTotype(gotch.Float, false)
	for name, f := range map[string]func(x, y torch.Tensor) torch.Tensor{
		"a constant is read": func(x, y torch.Tensor) torch.Tensor {
			return x.Square().Sum().Mul(torch.Of(weights.T().MustSelect(0, 1, false)).Item())
		},
		"a float32 constant": func(x, y torch.Tensor) torch.Tensor { return x.Mul(torch.Of(single)).Square().Sum() },
		"a constant of its own": func(x, y torch.Tensor) torch.Tensor {
			return x.Mul(weights).Sum().Mul(y.Sum())
		},
		"a part is written": func(x, y torch.Tensor) torch.Tensor {
			z := x.T().MustZerosLike(false)
			z.MustSelect(0, 1, false).Copy_(x.At(0).Exp().T())
			return torch.Of(z).Mul(x).Sum()
		},
		"labels that are integers": func(x, y torch.Tensor) torch.Tensor {
			label := torch.Of(y.T().MustTotype(gotch.Int64, false).MustSubScalar(ts.IntScalar(1), false))
			logits := torch.Stack(-1, x.At(0), x.Sum(), x.At(1).Square())
			return dist.CategoricalLogits(logits).LogProb(label).Sum().Add(
				dist.OrderedLogistic(x.Sum(), torch.Stack(-1, x.At(0), x.At(0).Add(1))).LogProb(label).Sum())
		},
		"columns are written": func(x, y torch.Tensor) torch.Tensor {
			z := ts.MustZeros([]int64{2, 3}, gotch.Double, gotch.CPU)
			z.MustSelect(1, 2, false).Copy_(x.Exp().T())
			z.MustSelect(1, 0, false).Copy_(x.T())
			return torch.Of(z).Square().Sum()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(f)
			agrees(t, s, compile(t, s), points(4, 2, 1, 8))
		})
	}
}

// A batch of other numbers gives what eager evaluation gives: nothing of the first batch stays in a plan.
func TestBatchIsNoConstant(t *testing.T) {
	s := source(func(x, y torch.Tensor) torch.Tensor {
		return y.Log().Sum().Mul(x.At(0)).Sub(y.Add(1).Lgamma().Sum()).Add(y.MatMul(y.Mul(x.At(1))))
	})
	plan := compile(t, s)
	s.Batch[0].Tensor = torch.New([]float64{4, 0.5, 9}).T()
	agrees(t, s, plan, points(3, 2, 1, 8))
	for _, b := range plan.Buffers {
		for _, v := range b.Data {
			assert.NotContains(t, []float64{2, 3}, v, "a number of the first batch")
		}
	}
}

func TestGradientOnly(t *testing.T) {
	s := source(func(x, y torch.Tensor) torch.Tensor { return y.Mul(x.At(0)).Add(x.At(1)).LogSigmoid().Sum() })
	p := points(2, 2, 1, 9)
	full, err := lower.Compile(s, p[0], p[1], lower.Options{})
	require.NoError(t, err)
	plan, err := lower.Compile(s, p[0], p[1], lower.Options{GradientOnly: true})
	require.NoError(t, err)
	has := func(p *ir.Plan, op ir.Op) bool {
		for _, s := range p.Steps {
			for _, in := range s.Body {
				if in.Op == op {
					return true
				}
			}
		}
		return false
	}
	assert.True(t, has(full, ir.Log1p), "the value needs it")
	assert.False(t, has(plan, ir.Log1p), "the gradient does not")
	for _, b := range plan.Buffers {
		assert.NotEqual(t, ir.Value, b.Kind)
	}
	m, err := ir.NewMachine(plan, batchOf(t, s))
	require.NoError(t, err)
	grad := make([]float64, 2)
	m.Eval(p[0], 0, grad, nil)
	_, want, _ := eager(t, s, p[0], 0)
	compare(t, "gradient", grad, want, 0, false)
}

func TestValueOnly(t *testing.T) {
	s := source(func(x, y torch.Tensor) torch.Tensor { return y.Mul(x.At(0)).Add(x.At(1)).LogSigmoid().Sum() })
	p := points(2, 2, 1, 9)
	full, err := lower.Compile(s, p[0], p[1], lower.Options{})
	require.NoError(t, err)
	plan, err := lower.Compile(s, p[0], p[1], lower.Options{ValueOnly: true})
	require.NoError(t, err)
	size := func(p *ir.Plan) (n int) {
		for _, s := range ir.Leaves(p.Steps) {
			n += len(s.Body)
		}
		return n
	}
	assert.Less(t, size(plan), size(full), "the gradient needs more")
	for _, b := range plan.Buffers {
		assert.NotEqual(t, ir.Grad, b.Kind)
	}
	m, err := ir.NewMachine(plan, batchOf(t, s))
	require.NoError(t, err)
	value := m.Eval(p[0], 0, make([]float64, 2), nil)
	want, _, _ := eager(t, s, p[0], 0)
	assert.InDelta(t, want, value, 1e-12)
}

// A sum of an array of many pieces and one that covers all of it ends: it is done box by box.
func TestSumOfPiecesAndAll(t *testing.T) {
	s := source(func(x, y torch.Tensor) torch.Tensor {
		pieces := make([]any, 20)
		for i := range pieces {
			pieces[i] = x.At(i).Mul(float64(i + 1))
		}
		z := torch.Stack(-1, pieces...)
		return z.Add(x.Exp()).Square().Sum().Mul(y.Sum())
	})
	s.Dim = 20
	agrees(t, s, compile(t, s), points(4, 20, 1, 8))
}
