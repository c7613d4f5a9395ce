package bijector_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/torch"
)

// one is a bijector on a vector of n numbers; free takes the free coordinates out of y, nil where all are.
type one struct {
	name string
	make func() bijector.Bijector
	n    int
	free func(y []float64) []float64
}

// lower takes the elements (i, j) of the lower triangle of a k x k matrix, from the diagonal moved down.
func lower(k, down int) func(y []float64) []float64 {
	return func(y []float64) (out []float64) {
		for i := 0; i < k; i++ {
			for j := 0; j <= i-down; j++ {
				out = append(out, y[i*k+j])
			}
		}
		return out
	}
}

// but takes all elements except the last.
func but(y []float64) []float64 { return y[:len(y)-1] }

// alongAxes are coordinates in the plane of vectors with sum 0, along orthogonal axes of length 1: axis i compares
// element i with the mean of those before (Helmert).
func alongAxes(y []float64) (out []float64) {
	before := y[0]
	for i := 1; i < len(y); i++ {
		n := float64(i)
		out = append(out, (before/n-y[i])*math.Sqrt(n/(n+1)))
		before += y[i]
	}
	return out
}

func some(b bijector.Bijector) func() bijector.Bijector {
	return func() bijector.Bijector { return b }
}

func all() []one {
	tensor := func(data ...float64) *ts.Tensor { return vec(data) }
	return []one{
		{"Identity", some(bijector.Identity()), 3, nil},
		{"Exp", some(bijector.Exp()), 3, nil},
		{"Softplus", some(bijector.Softplus()), 3, nil},
		{"Affine", some(bijector.Affine(1.5, -2)), 3, nil},
		{
			"Affine of tensors",
			func() bijector.Bijector { return bijector.Affine(tensor(1, 2, 3), tensor(0.5, -2, 4)) },
			3,
			nil,
		},
		{"Sigmoid", some(bijector.Sigmoid()), 3, nil},
		{"Interval", some(bijector.Interval(-3, 5)), 3, nil},
		{
			"Interval of tensors",
			func() bijector.Bijector { return bijector.Interval(tensor(-1, 0, 1), tensor(0, 2, 9)) },
			3,
			nil,
		},
		{
			"Interval of a number and a tensor",
			func() bijector.Bijector { return bijector.Interval(-2, tensor(0, 2, 9)) },
			3,
			nil,
		},
		{"GreaterThan", some(bijector.GreaterThan(-2)), 3, nil},
		{"GreaterThan of a tensor", func() bijector.Bijector { return bijector.GreaterThan(tensor(-1, 0, 1)) }, 3, nil},
		{"LessThan", some(bijector.LessThan(2)), 3, nil},
		{"LessThan of a tensor", func() bijector.Bijector { return bijector.LessThan(tensor(-1, 0, 1)) }, 3, nil},
		{"Ordered", some(bijector.Ordered()), 4, nil},
		{"Ordered of one", some(bijector.Ordered()), 1, nil},
		{"PositiveOrdered", some(bijector.PositiveOrdered()), 4, nil},
		{"PositiveOrdered of one", some(bijector.PositiveOrdered()), 1, nil},
		{"StickBreaking", some(bijector.StickBreaking()), 4, but},
		{"StickBreaking of two", some(bijector.StickBreaking()), 1, but},
		{"ZeroSum", some(bijector.ZeroSum()), 4, alongAxes},
		{"ZeroSum of two", some(bijector.ZeroSum()), 1, alongAxes},
		{"LowerCholesky", some(bijector.LowerCholesky()), 6, lower(3, 0)},
		{"LowerCholesky of one", some(bijector.LowerCholesky()), 1, lower(1, 0)},
		{"PositiveDefinite", some(bijector.PositiveDefinite()), 6, lower(3, 0)},
		{"CorrCholesky", some(bijector.CorrCholesky()), 10, lower(5, 1)},
		{"CorrCholesky of two", some(bijector.CorrCholesky()), 1, lower(2, 1)},
		{"Permute", some(bijector.Permute(2, 0, 3, 1)), 4, nil},
		{"Chain", func() bijector.Bijector {
			return bijector.Chain(bijector.Affine(0.3, 0.5), bijector.Permute(1, 2, 0), bijector.StickBreaking())
		}, 3, but},
		{"Chain that ends elementwise", func() bijector.Bijector {
			return bijector.Chain(bijector.Ordered(), bijector.Affine(1, -0.5), bijector.Softplus())
		}, 3, nil},
		{"Inverse", func() bijector.Bijector {
			return bijector.Chain(bijector.Softplus(), bijector.Inverse(bijector.Exp()))
		}, 3, nil},
		{"Inverse of a vector's", func() bijector.Bijector {
			return bijector.Chain(bijector.PositiveOrdered(), bijector.Inverse(bijector.Ordered()))
		}, 4, nil},
		{"Independent", some(bijector.Independent(bijector.Exp(), 1)), 3, nil},
	}
}

// free is y's free coordinates.
func (o one) freeOf(y []float64) []float64 {
	if o.free == nil {
		return y
	}
	return o.free(y)
}

// logDet sums the log-Jacobian of an elementwise map over the vector too.
func logDet(b bijector.Bijector, x *ts.Tensor) *ts.Tensor {
	return sum(b.LogAbsDetJacobian(torch.Of(x), b.Forward(torch.Of(x))).T())
}

// The inverse undoes the map, and the log-Jacobian is that of the numeric Jacobian of the free coordinates.
func TestRoundTripAndJacobian(t *testing.T) {
	inScope(t, func() {
		for _, o := range all() {
			b := o.make()
			for seed := uint64(0); seed < 4; seed++ {
				x := normals(seed, o.n)
				near(
					t,
					x,
					number(func(x torch.Tensor) torch.Tensor { return b.Inverse(b.Forward(x)) })(x),
					1e-13,
					o.name,
					" round trip",
				)

				rows := jacobian(func(x []float64) []float64 {
					return o.freeOf(number(func(x torch.Tensor) torch.Tensor { return b.Forward(x) })(x))
				}, x)
				m := mat.NewDense(len(rows), o.n, nil)
				for i, row := range rows {
					m.SetRow(i, row)
				}
				require.Equal(t, o.n, len(rows), o.name)
				want, _ := mat.LogDet(m)
				got := number(func(x torch.Tensor) torch.Tensor { return torch.Of(logDet(b, x.T())) })(x)
				near(t, []float64{want}, got, 1e-9, o.name, " log-Jacobian")
			}
		}
	})
}

// The gradients of y, of the log-Jacobian and of the inverse are those of finite differences.
func TestGradients(t *testing.T) {
	inScope(t, func() {
		for _, o := range all() {
			b := o.make()
			x := normals(7, o.n)
			y := b.Forward(torch.Of(vec(x))).T()
			weights := vec(normals(8, len(floats(y))), shapeOf(y)...)
			functions := map[string]func(x torch.Tensor) torch.Tensor{
				"forward":      func(x torch.Tensor) torch.Tensor { return b.Forward(x).Mul(weights).Sum() },
				"log-Jacobian": func(x torch.Tensor) torch.Tensor { return torch.Of(logDet(b, x.T())).Add(x.Sum()) },
				"inverse of forward": func(x torch.Tensor) torch.Tensor {
					return b.Inverse(b.Forward(x)).Mul(vec(normals(9, o.n))).Sum()
				},
			}
			for name, f := range functions {
				near(t, jacobian(number(f), x)[0], gradientOf(f, x), 1e-9, o.name, " ", name)
			}
		}
	})
}

// Under vmap values and gradients are those of the loop.
func TestVmapIsTheLoop(t *testing.T) {
	const k = 5
	inScope(t, func() {
		for _, o := range all() {
			b := o.make()
			f := func(x torch.Tensor) torch.Tensor {
				y := b.Forward(x).T()
				return torch.Of(logDet(
					b,
					x.T(),
				).MustAdd(sum(y.MustSin(false)), false).
					MustAdd(sum(b.Inverse(torch.Of(y)).T().MustCos(false)), false))
			}
			x := normals(11, k*o.n)
			values, grads, err := torch.VmapValueAndGrad(f, torch.Of(vec(x, k, o.n)))
			require.NoError(t, err, o.name)
			all, each := floats(values.T()), floats(grads.T())
			for i := 0; i < k; i++ {
				row := x[i*o.n : (i+1)*o.n]
				near(t, number(f)(row), all[i:i+1], 1e-13, o.name)
				near(t, gradientOf(f, row), each[i*o.n:(i+1)*o.n], 1e-12, o.name, " gradient")
			}
			mapped, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
				y := b.Forward(in[0]).T()
				return []torch.Tensor{torch.Of(y), b.Inverse(torch.Of(y)), b.LogAbsDetJacobian(in[0], torch.Of(y))}, nil
			}, []torch.Tensor{torch.Of(vec(x, k, o.n))}, nil)
			require.NoError(t, err, o.name)
			batch := vec(x, k, o.n)
			y := b.Forward(torch.Of(batch)).T()
			for i, want := range []*ts.Tensor{y, b.Inverse(torch.Of(y)).T(),
				b.LogAbsDetJacobian(torch.Of(batch), torch.Of(y)).T()} {
				require.Equal(t, shapeOf(want), shapeOf(mapped[i].T()), o.name)
				near(t, floats(want), floats(mapped[i].T()), 1e-13, o.name, i)
			}
		}
	})
}

// Shapes are those that ForwardShape and InverseShape say, with any batch, and the type is x's.
func TestShapesAndTypes(t *testing.T) {
	inScope(t, func() {
		for _, o := range all() {
			b := o.make()
			for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
				shape := []int{2, 3, o.n}
				x := vec(normals(3, 6*o.n), shape...).MustTotype(dtype, false)
				y := b.Forward(torch.Of(x)).T()
				l := b.LogAbsDetJacobian(torch.Of(x), torch.Of(y)).T()
				require.Equal(t, shapeOf(y), b.ForwardShape(shape), o.name)
				require.Equal(t, shape, b.InverseShape(shapeOf(y)), o.name)
				require.Equal(t, shape[:3-b.DomainEventDims()], shapeOf(l), o.name)
				require.Equal(t, shapeOf(y)[:len(shapeOf(y))-b.CodomainEventDims()], shapeOf(l), o.name)
				require.Equal(t, shape, shapeOf(b.Inverse(torch.Of(y)).T()), o.name)
				near(
					t,
					floats(x),
					floats(b.Inverse(torch.Of(y)).T()),
					map[gotch.DType]float64{gotch.Double: 1e-12, gotch.Float: 1e-3}[dtype],
					o.name,
				)
				if strings.Contains(o.name, "tensor") {
					continue // float64 parameters make the result float64
				}
				for _, out := range []*ts.Tensor{y, l, b.Inverse(torch.Of(y)).T()} {
					require.Equal(t, dtype, out.DType(), o.name)
				}
			}
		}
	})
}

// Far from 0, where naive formulas overflow or cancel, values and log-Jacobians are those of the formulas' limits.
func TestEdges(t *testing.T) {
	inScope(t, func() {
		for _, x := range []float64{-700, -30, 30, 700} {
			at := vec([]float64{x})
			e := math.Exp(-math.Abs(x))
			l1p := math.Log1p(e)
			// log(1 + eˣ) and the log-Jacobians from it.
			softplus := max(x, 0) + l1p
			check := func(b bijector.Bijector, y, l float64) {
				relative(t, []float64{y}, floats(b.Forward(torch.Of(at)).T()), 1e-15*max(1, math.Abs(x)), b.Name(), x)
				relative(
					t,
					[]float64{l},
					floats(b.LogAbsDetJacobian(torch.Of(at), b.Forward(torch.Of(at))).T()),
					1e-15,
					b.Name(),
					x,
				)
			}
			check(bijector.Exp(), math.Exp(x), x)
			check(bijector.Softplus(), softplus, min(x, 0)-l1p)
			if x < 0 {
				check(bijector.Sigmoid(), e/(1+e), x-2*l1p)
			} else {
				check(bijector.Sigmoid(), 1/(1+e), -x-2*l1p)
			}
			for _, b := range []bijector.Bijector{bijector.Exp(), bijector.Softplus()} {
				relative(t, []float64{x}, floats(b.Inverse(b.Forward(torch.Of(at))).T()), 1e-13, b.Name(), x)
			}
			// The gradients stay finite and right: that of log |dy/dx| is −tanh(x/2) for the sigmoid, σ(−x) for softplus.
			near(
				t,
				[]float64{-math.Tanh(x / 2)},
				gradientOf(func(x torch.Tensor) torch.Tensor { return torch.Of(logDet(bijector.Sigmoid(), x.T())) }, []float64{x}),
				1e-15,
				x,
			)
			near(
				t,
				[]float64{1 / (1 + math.Exp(x))},
				gradientOf(func(x torch.Tensor) torch.Tensor { return torch.Of(logDet(bijector.Softplus(), x.T())) }, []float64{x}),
				1e-15,
				x,
			)

			// Two of a simplex: z = σ(x), so y = (σ(x), σ(−x)) and log |det| = log z + log(1 − z).
			small, large := e/(1+e), 1/(1+e)
			if x > 0 {
				small, large = large, small
			}
			b := bijector.StickBreaking()
			y := b.Forward(torch.Of(at)).T()
			relative(t, []float64{small, large}, floats(y), 1e-13, x)
			relative(t, []float64{-math.Abs(x) - 2*l1p}, floats(b.LogAbsDetJacobian(torch.Of(at), torch.Of(y)).T()), 1e-15, x)
			relative(t, []float64{x}, floats(b.Inverse(torch.Of(y)).T()), 1e-13, x)

			// A 2 x 2 correlation factor: (tanh x, 1/cosh x), log |det| = −2 log cosh x.
			b = bijector.CorrCholesky()
			y = b.Forward(torch.Of(at)).T()
			logCosh := math.Abs(x) + math.Log1p(e*e) - math.Ln2
			relative(t, []float64{1, 0, math.Tanh(x), math.Exp(-logCosh)}, floats(y), 1e-13, x)
			relative(t, []float64{-2 * logCosh}, floats(b.LogAbsDetJacobian(torch.Of(at), torch.Of(y)).T()), 1e-15, x)
			relative(t, []float64{x}, floats(b.Inverse(torch.Of(y)).T()), 1e-13, x)
			near(
				t,
				[]float64{-2 * math.Tanh(x)},
				gradientOf(func(x torch.Tensor) torch.Tensor { return torch.Of(logDet(b, x.T())) }, []float64{x}),
				1e-15,
				x,
			)
		}
	})
}

// Several elements near the edge at once: the round trip through the simplex and the correlation factor is exact, and
// so is the log-Jacobian, which is −∞-free. The simplex's is Σ log y; a correlation factor's is a sum over log sech².
func TestVectorEdges(t *testing.T) {
	inScope(t, func() {
		b := bijector.StickBreaking()
		x := []float64{-300, 30, -30, 300}
		y := b.Forward(torch.Of(vec(x))).T()
		// The first takes e^−300·¼; the second all but e^−30; and so on, so that each next one is smaller still.
		logs := make([]float64, 5)
		left := 0.0
		for i, v := range x {
			z := v - math.Log(float64(4-i))
			logs[i] = left - math.Log1p(math.Exp(-math.Abs(z))) + min(z, 0)
			left += -math.Log1p(math.Exp(-math.Abs(z))) + min(-z, 0)
		}
		logs[4] = left
		total := 0.0
		want := make([]float64, 5)
		for i, l := range logs {
			want[i] = math.Exp(l)
			total += l
		}
		relative(t, want, floats(y), 1e-12)
		relative(t, []float64{total}, floats(b.LogAbsDetJacobian(torch.Of(vec(x)), torch.Of(y)).T()), 1e-14)
		relative(t, x, floats(b.Inverse(torch.Of(y)).T()), 1e-13)

		b = bijector.CorrCholesky()
		x = []float64{30, -20, 300, 0, -250, 60}
		y = b.Forward(torch.Of(vec(x))).T()
		relative(t, x[:3], floats(b.Inverse(torch.Of(y)).T())[:3], 1e-12)
		near(t, x, floats(b.Inverse(torch.Of(y)).T()), 1e-11)
		// Rows have length 1.
		near(
			t,
			[]float64{1, 1, 1, 1},
			floats(y.MustSquare(false).MustSumDimIntlist([]int64{-1}, false, double, false)),
			1e-14,
		)
		// Weights 1; 1.5, 1; 2, 1.5, 1.
		sech := func(x float64) float64 {
			return -2 * (math.Abs(x) + math.Log1p(math.Exp(-2*math.Abs(x))) - math.Ln2)
		}
		det := sech(30) + 1.5*sech(20) + sech(300) + 2*sech(0) + 1.5*sech(250) + sech(60)
		relative(t, []float64{det}, floats(b.LogAbsDetJacobian(torch.Of(vec(x)), torch.Of(y)).T()), 1e-14)
		for _, g := range gradientOf(func(x torch.Tensor) torch.Tensor { return torch.Of(sum(b.Inverse(b.Forward(x)).T())) },
			normals(5, 6)) {
			require.InDelta(t, 1, g, 1e-10)
		}
	})
}

// 0 is the middle: the uniform simplex and the identity correlation.
func TestZero(t *testing.T) {
	inScope(t, func() {
		near(
			t,
			[]float64{.2, .2, .2, .2, .2},
			floats(bijector.StickBreaking().Forward(torch.Of(vec(make([]float64, 4)))).T()),
			1e-15,
		)
		require.Equal(
			t,
			[]float64{1, 0, 0, 0, 1, 0, 0, 0, 1},
			floats(bijector.CorrCholesky().Forward(torch.Of(vec(make([]float64, 3)))).T()),
		)
		require.Equal(
			t,
			[]float64{1, 0, 0, 1},
			floats(bijector.LowerCholesky().Forward(torch.Of(vec(make([]float64, 3)))).T()),
		)
	})
}

// A vector of no numbers is the one probability vector, and the one correlation factor, of size 1.
func TestSizeOne(t *testing.T) {
	inScope(t, func() {
		none := vec(nil, 2, 0)
		for _, b := range []bijector.Bijector{bijector.StickBreaking(), bijector.CorrCholesky()} {
			y := b.Forward(torch.Of(none)).T()
			require.Equal(t, []float64{1, 1}, floats(y), b.Name())
			require.Equal(t, b.ForwardShape([]int{2, 0}), shapeOf(y), b.Name())
			require.Equal(t, []float64{0, 0}, floats(b.LogAbsDetJacobian(torch.Of(none), torch.Of(y)).T()), b.Name())
			require.Equal(t, []int{2, 0}, shapeOf(b.Inverse(torch.Of(y)).T()), b.Name())
		}
	})
}

// Gradients flow to the parameters, and are those of finite differences.
func TestParameterGradients(t *testing.T) {
	makers := map[string]func(p *ts.Tensor) bijector.Bijector{
		"Affine loc":   func(p *ts.Tensor) bijector.Bijector { return bijector.Affine(p, 2) },
		"Affine scale": func(p *ts.Tensor) bijector.Bijector { return bijector.Affine(2, p) },
		"low":          func(p *ts.Tensor) bijector.Bijector { return bijector.Interval(p, 7) },
		"high":         func(p *ts.Tensor) bijector.Bijector { return bijector.Interval(-7, p) },
		"GreaterThan":  func(p *ts.Tensor) bijector.Bijector { return bijector.GreaterThan(p) },
		"LessThan":     func(p *ts.Tensor) bijector.Bijector { return bijector.LessThan(p) },
	}
	inScope(t, func() {
		x := vec(normals(4, 3))
		for name, f := range makers {
			value := func(p torch.Tensor) torch.Tensor {
				b := f(p.T())
				y := b.Forward(torch.Of(x)).T()
				return torch.Of(sum(y.MustSquare(false)).MustAdd(sum(b.LogAbsDetJacobian(torch.Of(x), torch.Of(y)).T()), false))
			}
			at := []float64{0.7, -1.2, 2.5}
			near(t, jacobian(number(value), at)[0], gradientOf(value, at), 1e-9, name)
		}
	})
}

// The second derivatives of the log-Jacobians are right at 0 too, where |x| in a formula would lose them.
func TestCurvatureAtZero(t *testing.T) {
	inScope(t, func() {
		for want, b := range map[float64]bijector.Bijector{-0.5: bijector.Sigmoid(), -0.25: bijector.Softplus(),
			-2: bijector.CorrCholesky()} {
			x := torch.Must(torch.Leaf(torch.Of(vec([]float64{0}))))
			g := torch.Must(torch.Grad([]torch.Tensor{torch.Of(logDet(b, x.T()))}, []torch.Tensor{x},
				&torch.GradOptions{CreateGraph: true}))
			h := torch.Must(torch.Grad([]torch.Tensor{torch.Of(sum(g[0].T()))}, []torch.Tensor{x}, nil))
			near(t, []float64{want}, floats(h[0].T()), 1e-14, fmt.Sprint(b.Name()))
		}
	})
}
