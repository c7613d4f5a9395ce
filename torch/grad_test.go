package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// smooth are scalar functions of a vector of three positive numbers, with their values and gradients by hand.
var smooth = []struct {
	name  string
	f     func(x torch.Tensor) torch.Tensor
	value func(x []float64) float64
	grad  func(x []float64) []float64
}{
	{"sum of squares", func(x torch.Tensor) torch.Tensor { return sum(x.Square()) },
		total(func(x float64) float64 { return x * x }), each(func(x float64) float64 { return 2 * x })},
	{"log of a product", func(x torch.Tensor) torch.Tensor {
		return torch.Of(x.T().MustProd(gotch.Double,
			false).MustLog(false))
	},
		total(math.Log), each(func(x float64) float64 { return 1 / x })},
	{"exp", func(x torch.Tensor) torch.Tensor { return sum(torch.Of(x.T().MustExp(false))) }, total(math.Exp),
		each(math.Exp)},
	{"log1p", func(x torch.Tensor) torch.Tensor { return sum(torch.Of(x.T().MustLog1p(false))) },
		total(math.Log1p), each(func(x float64) float64 { return 1 / (1 + x) })},
	{"tanh", func(x torch.Tensor) torch.Tensor { return sum(torch.Of(x.T().MustTanh(false))) },
		total(math.Tanh), each(func(x float64) float64 { return 1 - math.Tanh(x)*math.Tanh(x) })},
	{"softplus", func(x torch.Tensor) torch.Tensor { return sum(torch.Of(x.T().MustSoftplus(false))) },
		total(
			func(x float64) float64 { return math.Log1p(math.Exp(x)) },
		), each(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) })},
	{"erf", func(x torch.Tensor) torch.Tensor { return sum(torch.Of(x.T().MustErf(false))) },
		total(math.Erf), each(func(x float64) float64 { return 2 / math.Sqrt(math.Pi) * math.Exp(-x*x) })},
	{"sin times x", func(x torch.Tensor) torch.Tensor { return sum(torch.Of(x.T().MustSin(false).MustMul(x.T(), false))) },
		total(
			func(x float64) float64 { return x * math.Sin(x) },
		), each(func(x float64) float64 { return math.Sin(x) + x*math.Cos(x) })},
	{"Euclidean norm", func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustNorm(false)) },
		norm, func(x []float64) []float64 { return []float64{x[0] / norm(x), x[1] / norm(x), x[2] / norm(x)} }},
	{"logsumexp", func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustLogsumexp([]int64{0}, false, false)) },
		func(x []float64) float64 { return math.Log(total(math.Exp)(x)) },
		func(x []float64) []float64 {
			s := total(math.Exp)(x)
			return each(func(x float64) float64 { return math.Exp(x) / s })(x)
		}},
	// log det of [[x0, x2], [x2, x1 + 9]]: with D = x0 (x1 + 9) - x2², the gradient is (x1 + 9, x0, -2 x2) / D.
	{"log determinant", func(x torch.Tensor) torch.Tensor {
		a, b, c := x.T().MustSelect(
			0,
			0,
			false,
		), x.T().MustSelect(0, 1, false).
			MustAddScalar(ts.FloatScalar(9), false),
			x.T().MustSelect(
				0,
				2,
				false,
			)
		return torch.Of(ts.MustStack([]*ts.Tensor{a, c, c, b}, 0).MustView([]int64{2, 2}, false).MustLogdet(false))
	}, func(x []float64) float64 { return math.Log(x[0]*(x[1]+9) - x[2]*x[2]) },
		func(x []float64) []float64 {
			d := x[0]*(x[1]+9) - x[2]*x[2]
			return []float64{(x[1] + 9) / d, x[0] / d, -2 * x[2] / d}
		}},
	// A normal log density with mean x0 and log sd x1 at the datum x2.
	{"normal log density", func(x torch.Tensor) torch.Tensor {
		mean, logSD, y := x.T().MustSelect(0, 0, false), x.T().MustSelect(0, 1, false), x.T().MustSelect(0, 2, false)
		z := y.MustSub(mean, false).MustDiv(logSD.MustExp(false), false)
		return torch.Of(z.MustSquare(false).MustMulScalar(ts.FloatScalar(-0.5), false).MustSub(logSD, false).
			MustSubScalar(ts.FloatScalar(0.5*math.Log(2*math.Pi)), false))
	}, func(x []float64) float64 {
		z := (x[2] - x[0]) / math.Exp(x[1])
		return -z*z/2 - x[1] - 0.5*math.Log(2*math.Pi)
	}, func(x []float64) []float64 {
		z := (x[2] - x[0]) / math.Exp(x[1])
		return []float64{z / math.Exp(x[1]), z*z - 1, -z / math.Exp(x[1])}
	}},
	// Through an index and a comparison: the largest element, squared.
	{"square of the largest",
		func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustMax(false).MustSquare(false)) },
		func(x []float64) float64 { return x[1] * x[1] }, func(x []float64) []float64 { return []float64{0, 2 * x[1], 0} }},
}

func total(f func(float64) float64) func([]float64) float64 {
	return func(x []float64) float64 { return f(x[0]) + f(x[1]) + f(x[2]) }
}

func each(f func(float64) float64) func([]float64) []float64 {
	return func(x []float64) []float64 { return []float64{f(x[0]), f(x[1]), f(x[2])} }
}

func norm(x []float64) float64 { return math.Sqrt(x[0]*x[0] + x[1]*x[1] + x[2]*x[2]) }

// Values and gradients are those by hand, and those of central differences of the value, whose error is of the order of
// h² = 1e-10 for h = 1e-5 (and rounding of 1e-16/h = 1e-11).
func TestValueAndGrad(t *testing.T) {
	at := []float64{0.7, 1.9, 0.4}
	const h = 1e-5
	for _, c := range smooth {
		t.Run(c.name, func(t *testing.T) {
			inScope(t, func(s *torch.Scope) {
				x := vec(at)
				value, grad, err := torch.ValueAndGrad(c.f, x)
				require.NoError(t, err)
				assert.Equal(t, []int{}, shapeOf(value))
				assert.Equal(t, []int{3}, shapeOf(grad))
				near(t, []float64{c.value(at)}, floats(value), 1e-14)
				near(t, c.grad(at), floats(grad), 1e-14)
				assert.False(t, value.T().MustRequiresGrad())
				assert.False(t, grad.T().MustRequiresGrad())
				assert.False(t, x.T().MustRequiresGrad(), "the argument is not changed")
				assert.Equal(t, 3, s.Owned(), "only x, the value and the gradient are left")

				difference := make([]float64, 3)
				for i := range at {
					var f [2]float64
					for side := range f {
						moved := append([]float64{}, at...)
						moved[i] += h * float64(2*side-1)
						f[side] = floats(c.f(vec(moved)))[0]
					}
					difference[i] = (f[1] - f[0]) / (2 * h)
				}
				near(t, difference, floats(grad), 1e-8)
			})
		})
	}
}

// The rows of VmapValueAndGrad are the values and gradients of ValueAndGrad, also when there is one
// row, in float32 too.
func TestVmapValueAndGrad(t *testing.T) {
	at := []float64{0.7, 1.9, 0.4, 1.2, 3.1, 0.2, 0.3, 0.6, 0.5, 2.2, 2.5, 1.7}
	for _, c := range smooth {
		t.Run(c.name, func(t *testing.T) {
			for _, rows := range []int{1, 4} {
				inScope(t, func(s *torch.Scope) {
					values, grads, err := torch.VmapValueAndGrad(c.f, vec(at[:3*rows], rows, 3))
					require.NoError(t, err)
					assert.Equal(t, []int{rows}, shapeOf(values))
					assert.Equal(t, []int{rows, 3}, shapeOf(grads))
					assert.Equal(t, 2+1, s.Owned())
					for k := range rows {
						value, grad, err := torch.ValueAndGrad(c.f, vec(at[3*k:3*k+3]))
						require.NoError(t, err)
						near(t, floats(value), floats(values)[k:k+1], 1e-14)
						near(t, floats(grad), floats(grads)[3*k:3*k+3], 1e-14)
					}
				})
			}
		})
	}
	inScope(t, func(*torch.Scope) {
		x := torch.New([]float32{1, 2, 3, 4}, 2, 2)
		values, grads, err := torch.VmapValueAndGrad(
			func(x torch.Tensor) torch.Tensor {
				return torch.Of(x.T().MustSquare(false).MustSum(x.T().DType(), false))
			},
			x,
		)
		require.NoError(t, err)
		assert.Equal(t, gotch.Float, grads.T().DType())
		assert.Equal(t, []float64{5, 25}, floats(values))
		assert.Equal(t, []float64{2, 4, 6, 8}, floats(grads))
	})
}

// quadratic is xᵀA x/2 + y Σx³ for x of shape [2] and y of shape [], with A = [[3, 1], [1, 5]].
func quadratic(x, y torch.Tensor) torch.Tensor {
	a := vec([]float64{3, 1, 1, 5}, 2, 2)
	half := x.T().MustDot(a.T().MustMv(x.T(), false), false).MustMulScalar(ts.FloatScalar(0.5), false)
	cubes := sum(torch.Of(x.T().MustPowTensorScalar(ts.IntScalar(3), false)))
	return torch.Of(half.MustAdd(cubes.T().MustMul(y.T(), false), false))
}

// With CreateGraph gradients are differentiated again: all rows of the Hessian, over both inputs. By hand, at x = (2,
// -1) and y = 0.5: the gradient is (Ax + 3 y x², Σx³) and the Hessian [[A + 6 y diag x, 3x²], [3x²ᵀ, 0]]; the third
// derivative in x0 of what is at (0, 0) is 6 y.
func TestGradientsOfGradients(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x, y := torch.Must(torch.Leaf(vec([]float64{2, -1}))), torch.Must(torch.Leaf(scalar(0.5)))
		in := []torch.Tensor{x, y}
		o := &torch.GradOptions{CreateGraph: true}
		first := torch.Must(torch.Grad([]torch.Tensor{quadratic(x, y)}, in, o))
		near(t, []float64{3*2 - 1 + 1.5*4, 2 - 5 + 1.5}, floats(first[0]), 1e-15)
		near(t, []float64{7}, floats(first[1]), 1e-15)

		hessian := [][]float64{{3 + 6, 1, 12}, {1, 5 - 3, 3}, {12, 3, 0}}
		for row, component := range []torch.Tensor{torch.Of(first[0].T().MustSelect(0, 0, false)),
			torch.Of(first[0].T().MustSelect(0, 1, false)),
			first[1]} {
			second, err := torch.Grad([]torch.Tensor{component}, in, &torch.GradOptions{CreateGraph: true, AllowUnused: true})
			require.NoError(t, err)
			near(t, hessian[row], append(floats(second[0]), floats(second[1])...), 1e-15, "row ", row)
			if row == 0 {
				third := torch.Must(torch.Grad([]torch.Tensor{torch.Of(second[0].T().MustSelect(0, 0, false))}, in,
					&torch.GradOptions{KeepGraph: true}))
				near(t, []float64{6 * 0.5, 0}, floats(third[0]), 1e-15)
				near(t, []float64{6 * 2}, floats(third[1]), 1e-15)
				assert.False(t, third[0].T().MustRequiresGrad(), "without CreateGraph the gradients end there")
			}
		}
	})
}

// Weights give the vector-Jacobian product. For y = (x0 x1, x0², sin x1) it is vᵀJ with J = [[x1, x0], [2 x0, 0],
// [0, cos x1]]. Several outputs add up.
func TestGradWeights(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := torch.Must(torch.Leaf(vec([]float64{1.5, 0.25})))
		f := func() torch.Tensor {
			a, b := x.T().MustSelect(0, 0, false), x.T().MustSelect(0, 1, false)
			return torch.Of(ts.MustStack([]*ts.Tensor{a.MustMul(b, false), a.MustSquare(false), b.MustSin(false)}, 0))
		}
		v := []float64{2, -1, 3}
		grads, err := torch.Grad([]torch.Tensor{f()}, []torch.Tensor{x}, &torch.GradOptions{Weights: []torch.Tensor{vec(v)}})
		require.NoError(t, err)
		product := []float64{2*0.25 - 2*1.5, 2*1.5 + 3*math.Cos(0.25)}
		near(t, product, floats(grads[0]), 1e-15)

		grads, err = torch.Grad(
			[]torch.Tensor{f(), sum(x)},
			[]torch.Tensor{x},
			&torch.GradOptions{Weights: []torch.Tensor{vec(v), scalar(10)}},
		)
		require.NoError(t, err)
		near(t, []float64{product[0] + 10, product[1] + 10}, floats(grads[0]), 1e-15)

		// The product is linear in the weights, and differentiable in them: its gradient is J times the outer weights.
		w := torch.Must(torch.Leaf(vec(v)))
		grads = torch.Must(torch.Grad([]torch.Tensor{f()}, []torch.Tensor{x},
			&torch.GradOptions{Weights: []torch.Tensor{w}, CreateGraph: true}))
		forward := torch.Must(torch.Grad(grads, []torch.Tensor{w},
			&torch.GradOptions{Weights: []torch.Tensor{vec([]float64{1, 2})}}))
		near(t, []float64{0.25 + 2*1.5, 2 * 1.5, 2 * math.Cos(0.25)}, floats(forward[0]), 1e-15)

		_, err = torch.Grad([]torch.Tensor{f()}, []torch.Tensor{x},
			&torch.GradOptions{Weights: []torch.Tensor{vec(v), vec(v)}})
		assert.ErrorContains(t, err, "2 weights for 1 outputs")
		_, err = torch.Grad([]torch.Tensor{f()}, []torch.Tensor{x},
			&torch.GradOptions{Weights: []torch.Tensor{vec([]float64{1})}})
		assert.Contains(t, asError(t, err).Message, "shape")
	})
}

// The graph is there for one gradient, unless it is kept.
func TestGradKeepGraph(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := torch.Must(torch.Leaf(vec([]float64{3})))
		y := sum(torch.Of(x.T().MustMul(x.T(), false).MustExp(false)))
		want := []float64{6 * math.Exp(9)}
		for range 3 {
			near(
				t,
				want,
				floats(torch.Must(torch.Grad([]torch.Tensor{y}, []torch.Tensor{x}, &torch.GradOptions{KeepGraph: true}))[0]),
				1e-15,
			)
		}
		near(t, want, floats(torch.Must(torch.Grad([]torch.Tensor{y}, []torch.Tensor{x}, nil))[0]), 1e-15)
		_, err := torch.Grad([]torch.Tensor{y}, []torch.Tensor{x}, nil)
		assert.Contains(t, asError(t, err).Message, "second time")
	})
}

// An input that does not matter is an error, or has gradient zero when that is asked for.
func TestGradAllowUnused(t *testing.T) {
	inScope(t, func(s *torch.Scope) {
		x, z := torch.Must(torch.Leaf(vec([]float64{1, 2}))), torch.Must(torch.Leaf(vec([]float64{5, 6, 7}, 3, 1)))
		_, err := torch.Grad([]torch.Tensor{sum(torch.Of(x.T().MustSquare(false)))}, []torch.Tensor{x, z}, nil)
		assert.Contains(t, asError(t, err).Message, "not have been used in the graph")
		before := s.Owned()
		grads, err := torch.Grad(
			[]torch.Tensor{sum(torch.Of(x.T().MustSquare(false)))},
			[]torch.Tensor{z, x},
			&torch.GradOptions{AllowUnused: true},
		)
		require.NoError(t, err)
		assert.Equal(t, before+2+2, s.Owned(), "the square, its sum, and one gradient for each input")
		assert.Equal(t, []int{3, 1}, shapeOf(grads[0]))
		assert.Equal(t, []float64{0, 0, 0}, floats(grads[0]))
		assert.Equal(t, []float64{2, 4}, floats(grads[1]))
	})
}

// What cannot be differentiated is an error that says why.
func TestGradErrors(t *testing.T) {
	identity := func(x torch.Tensor) torch.Tensor { return x }
	constant := func(torch.Tensor) torch.Tensor { return scalar(3) }
	inScope(t, func(*torch.Scope) {
		x := vec([]float64{1, 2}, 2, 1)
		for name, run := range map[string]func(f func(torch.Tensor) torch.Tensor, x torch.Tensor) error{
			"one": func(f func(torch.Tensor) torch.Tensor, x torch.Tensor) error {
				_, _, err := torch.ValueAndGrad(f, x)
				return err
			},
			"mapped": func(f func(torch.Tensor) torch.Tensor, x torch.Tensor) error {
				_, _, err := torch.VmapValueAndGrad(f, x)
				return err
			},
		} {
			err := run(identity, x)
			assert.ErrorIs(t, err, torch.ErrNotScalar, name)
			if name == "one" {
				assert.ErrorContains(t, err, "shape [2 1], expected []")
			} else {
				assert.ErrorContains(t, err, "shape [1], expected []")
			}
			err = run(constant, x)
			assert.ErrorIs(t, err, torch.ErrNoGradient, name)
			err = run(func(x torch.Tensor) torch.Tensor { return sum(torch.Of(x.T().MustDetach(false))) }, x)
			assert.ErrorIs(t, err, torch.ErrNoGradient, name)
			err = run(func(x torch.Tensor) (y torch.Tensor) {
				_ = torch.NoGrad(func() error { y = sum(x); return nil })
				return y
			}, x)
			assert.ErrorIs(t, err, torch.ErrNoGradient, name)
			err = run(func(torch.Tensor) torch.Tensor { return torch.Of(2) }, x)
			assert.ErrorIs(t, err, torch.ErrNoGradient, name)
			err = run(sum, ints([]int{1, 2}))
			assert.Contains(t, asError(t, err).Message, "floating point", name)
		}
		_, err := torch.Grad([]torch.Tensor{torch.Must(torch.Leaf(x))}, []torch.Tensor{x}, nil)
		assert.ErrorContains(t, err, "Grad(")
		_, err = torch.Grad([]torch.Tensor{torch.Of(x.T().MustExp(false))}, []torch.Tensor{x}, nil)
		assert.Contains(t, asError(t, err).Message, "does not require grad")
		leaf := torch.Must(torch.Leaf(x))
		_, err = torch.Grad([]torch.Tensor{torch.Of(leaf.T().MustExp(false))}, []torch.Tensor{leaf}, nil)
		assert.Contains(t, asError(t, err).Message, "scalar outputs")
	})
}

// records says whether this thread records gradients.
func records(t testing.TB, x torch.Tensor) bool {
	t.Helper()
	y := torch.Must(torch.Leaf(x)).T().MustMulScalar(ts.FloatScalar(2), false)
	return y.MustRequiresGrad()
}

// NoGrad ends what it began and nothing else: inner ends leave the outer in force. Gradients are taken inside it all
// the same, and leave it in force.
func TestNoGradNests(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec([]float64{3})
		assert.True(t, records(t, x))
		require.NoError(t, torch.NoGrad(func() error {
			assert.False(t, records(t, x))
			require.NoError(t, torch.NoGrad(func() error {
				assert.False(t, records(t, x))
				return nil
			}))
			assert.False(t, records(t, x), "the end of the inner one")
			ts.NoGrad(func() { assert.False(t, records(t, x)) })
			assert.False(t, records(t, x), "the end of gotch's")
			_, grad, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
				assert.True(t, records(t, x))
				return sum(torch.Of(x.T().MustSquare(false)))
			}, x)
			require.NoError(t, err)
			assert.Equal(t, []float64{6}, floats(grad))
			_, grads, err := torch.VmapValueAndGrad(torch.Tensor.Square, x)
			require.NoError(t, err)
			assert.Equal(t, []float64{6}, floats(grads))
			assert.False(t, records(t, x), "the end of a gradient")
			_, _, err = torch.ValueAndGrad(func(torch.Tensor) torch.Tensor {
				return torch.Of(x.T().MustView([]int64{9},
					false))
			}, x)
			asError(t, err)
			assert.False(t, records(t, x), "the end of a gradient that failed")
			return nil
		}))
		assert.True(t, records(t, x))
		asError(t, torch.NoGrad(func() error { x.T().MustView([]int64{9}, false); return nil }))
		assert.True(t, records(t, x), "the end by an error")
		assert.Panics(t, func() { ts.NoGrad(func() { x.T().MustView([]int64{9}, false) }) })
		assert.True(t, records(t, x), "the end of gotch's by an error")
		guard := ts.NewNoGradGuard()
		inner := ts.NewNoGradGuard()
		inner.Drop()
		assert.False(t, records(t, x))
		guard.Drop()
		assert.True(t, records(t, x))
	})
}

// A scope gives the thread back recording gradients or not, as it found it: a guard of gotch's that was forgotten ends
// with it.
func TestScopeRestoresGradientMode(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec([]float64{3})
		inScope(t, func(*torch.Scope) {
			ts.NewNoGradGuard()
			assert.False(t, records(t, x))
		})
		assert.True(t, records(t, x))
		require.NoError(t, torch.NoGrad(func() error {
			inScope(t, func(*torch.Scope) {
				previous, err := ts.GradSetEnabled(true)
				require.NoError(t, err)
				assert.False(t, previous)
				assert.True(t, records(t, x))
			})
			assert.False(t, records(t, x))
			return nil
		}))
		assert.True(t, records(t, x))
	})
}

// Gradients of gotch's own, which accumulate in the leaves, still work, and zeroing them.
func TestBackward(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := torch.Must(torch.Leaf(vec([]float64{3, 4})))
		for i := range 2 {
			sum(torch.Of(x.T().MustSquare(false))).T().MustBackward()
			k := float64(i + 1)
			assert.Equal(t, []float64{6 * k, 8 * k}, floats(torch.Of(x.T().MustGrad(false))))
		}
		x.T().ZeroGrad()
		assert.Equal(t, []float64{0, 0}, floats(torch.Of(x.T().MustGrad(false))))
		// Several inputs at once used to corrupt memory.
		y := torch.Must(torch.Leaf(vec([]float64{5})))
		grads, err := ts.RunBackward([]*ts.Tensor{sum(torch.Of(x.T().MustMul(y.T(), false))).T()},
			[]*ts.Tensor{y.T(), x.T()}, false, false)
		require.NoError(t, err)
		assert.Equal(t, []float64{7}, floats(torch.Of(grads[0])))
		assert.Equal(t, []float64{5, 5}, floats(torch.Of(grads[1])))
	})
}
