package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/torch"
)

// branches are sums over branches of which the one that is not taken has no derivative, with the gradient by hand and
// the sums of the rows of the Hessian.
var branches = []struct {
	name         string
	x            []float64
	f            func(x torch.Tensor) torch.Tensor
	grad, second []float64
}{
	{"log", []float64{-1, 2}, func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), x.Log(), 0) },
		[]float64{0, 0.5}, []float64{0, -0.25}},
	{"sqrt", []float64{-1, 4}, func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), x.Sqrt(), 0) },
		[]float64{0, 0.25}, []float64{0, -1. / 32}},
	{"the other branch", []float64{0, 4}, func(x torch.Tensor) torch.Tensor { return torch.Where(x.Le(0), x, x.Sqrt()) },
		[]float64{1, 0.25}, []float64{0, -1. / 32}},
	{"1/x", []float64{0, 4}, func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), torch.Of(1).Div(x), 0) },
		[]float64{0, -1. / 16}, []float64{0, 1. / 32}},
	{"exp that overflows", []float64{800, 1},
		func(x torch.Tensor) torch.Tensor { return torch.Where(x.Lt(10), x.Exp(), x) },
		[]float64{1, math.E}, []float64{0, math.E}},
	{"power", []float64{-1, 4}, func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), x.Pow(1.5), 0) },
		[]float64{0, 3}, []float64{0, 0.375}},
	{"power of itself", []float64{-1, 2}, func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(0), x.Pow(x), 0) },
		[]float64{0, 4 * (1 + math.Ln2)}, []float64{0, 4 * ((1+math.Ln2)*(1+math.Ln2) + 0.5)}},
	{"Box-Cox", []float64{0, 1}, func(x torch.Tensor) torch.Tensor {
		return torch.Where(x.Abs().Lt(1e-9), x.Mul(0).Add(math.Ln2), torch.Of(2).Pow(x).Sub(1).Div(x))
	}, []float64{0, 2*math.Ln2 - 1}, []float64{0, 2*math.Ln2*math.Ln2 - 4*math.Ln2 + 2}},
	{"generalised extreme value", []float64{0, 1}, func(x torch.Tensor) torch.Tensor {
		return torch.Where(x.Abs().Lt(1e-9), x.Mul(0).Sub(0.7), x.Mul(0.7).Add(1).Log().Div(x).Neg())
	}, []float64{0, math.Log(1.7) - 0.7/1.7}, []float64{0, 0.49/2.89 + 1.4/1.7 - 2*math.Log(1.7)}},
	{"norm at 0", []float64{0, 0}, norm2, []float64{0, 0}, []float64{0, 0}},
	{"norm", []float64{3, 4}, norm2, []float64{0.6, 0.8}, []float64{0.032, -0.024}},
	{"logistic", []float64{-800}, func(x torch.Tensor) torch.Tensor {
		return torch.Where(x.Gt(-700), torch.Of(1).Div(x.Neg().Exp().Add(1)), x.Exp())
	}, []float64{0}, []float64{0}},
	{"nested", []float64{-1, 0, 4}, func(x torch.Tensor) torch.Tensor {
		positive := torch.Where(x.Gt(1), x.Sqrt().Log(), torch.Of(1).Div(x))
		return torch.Where(x.Gt(0), positive, torch.Where(x.Lt(0), x.Neg().Sqrt(), 0))
	}, []float64{-0.5, 0, 0.125}, []float64{-0.25, 0, -1. / 32}},
	{"inputs that broadcast", []float64{1}, func(x torch.Tensor) torch.Tensor { // √u log u, u = c/x
		u := vec([]float64{-1, 2, 4}).Div(x)
		return torch.Where(u.Gt(0), u.Sqrt().Mul(u.Log()), 0)
	}, []float64{-math.Sqrt2*(math.Ln2/2+1) - 2*(math.Ln2+1)},
		[]float64{math.Sqrt2*(0.75*math.Ln2+2) + 2*(1.5*math.Ln2+2)}},
	{"condition that broadcasts", []float64{-1, 4}, func(x torch.Tensor) torch.Tensor {
		rows := vec([]float64{1, -1}, 2, 1).Gt(0) // the first of two rows
		return torch.Where(rows, torch.Where(x.Gt(0), x.Log(), x), x.Square())
	}, []float64{-1, 8.25}, []float64{2, 2 - 1./16}},
	{"a gradient of 0", []float64{0, 1}, func(x torch.Tensor) torch.Tensor {
		return torch.Where(x.Gt(-1), x.Expm1(), x.Sqrt()).Square()
	}, []float64{0, 2 * math.E * math.Expm1(1)}, []float64{2, 2 * math.E * (2*math.E - 1)}},
	{"min", []float64{800, 1}, func(x torch.Tensor) torch.Tensor { return x.Exp().Min(5) },
		[]float64{0, math.E}, []float64{0, math.E}},
	{"min of a number", []float64{0, 4}, func(x torch.Tensor) torch.Tensor { return torch.Of(5).Min(torch.Of(1).Div(x)) },
		[]float64{0, -1. / 16}, []float64{0, 1. / 32}},
	{"min of two", []float64{0, 4}, func(x torch.Tensor) torch.Tensor { return x.Reciprocal().Min(x.Add(5)) },
		[]float64{1, -1. / 16}, []float64{0, 1. / 32}},
	{"max", []float64{0, 2}, func(x torch.Tensor) torch.Tensor { return x.Log().Max(-5) },
		[]float64{0, 0.5}, []float64{0, -0.25}},
	{"max of two", []float64{0, 2}, func(x torch.Tensor) torch.Tensor { return x.Log().Max(x.Square().Sub(9)) },
		[]float64{0, 0.5}, []float64{2, -0.25}},
	{"clamp", []float64{0, 2, 800}, func(x torch.Tensor) torch.Tensor {
		return x.Log().Clamp(-5, 5).Add(x.Exp().Clamp(-9, 9))
	}, []float64{1, 0.5 + math.Exp(2), 0}, []float64{1, math.Exp(2) - 0.25, 0}},
	{"relu", []float64{0, -4}, func(x torch.Tensor) torch.Tensor { return torch.Of(-1).Div(x).Relu() },
		[]float64{0, 1. / 16}, []float64{0, 1. / 32}},
	{"a sum", []float64{-1, 4}, func(x torch.Tensor) torch.Tensor {
		return torch.Where(x.Log().Sum().Gt(0), x.Log().Sum(), x.Square().Sum())
	}, []float64{-2, 8}, []float64{2, 2}},
}

func norm2(x torch.Tensor) torch.Tensor {
	s := x.Square().Sum()
	return torch.Where(s.Gt(0), s.Sqrt(), 0)
}

// The gradient of Where is that of the branch taken, alone, mapped over rows, and differentiated once more.
func TestWhereDifferentiatesTheBranchTaken(t *testing.T) {
	for _, c := range branches {
		f := func(x torch.Tensor) torch.Tensor { return c.f(x).Sum() }
		inScope(t, func(*torch.Scope) {
			_, grad, err := torch.ValueAndGrad(f, vec(c.x))
			require.NoError(t, err, c.name)
			near(t, c.grad, floats(grad), 1e-14, c.name)
			_, grads, err := torch.VmapValueAndGrad(f, vec(append(append([]float64{}, c.x...), c.x...), 2, len(c.x)))
			require.NoError(t, err, c.name)
			near(t, append(append([]float64{}, c.grad...), c.grad...), floats(grads), 1e-14, c.name, " mapped")
			x := torch.Must(torch.Leaf(vec(c.x)))
			g, err := torch.Grad([]torch.Tensor{f(x)}, []torch.Tensor{x}, &torch.GradOptions{CreateGraph: true})
			require.NoError(t, err, c.name)
			h, err := torch.Grad([]torch.Tensor{sum(g[0])}, []torch.Tensor{x}, &torch.GradOptions{AllowUnused: true})
			require.NoError(t, err, c.name)
			near(t, c.second, floats(h[0]), 1e-13, c.name, " twice")
		})
	}
}
