package lower_test

import (
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/sugarme/gotch/ts"
)

// series are numbers that look like data.
func series(n int) torch.Tensor {
	return torch.New(points(1, n, 1, 9)[0])
}

// loops are log densities written as loops over time, as a user writes them.
var loops = []struct {
	name    string
	dim     int
	repeats int // loops over time that remain
	f       func(x torch.Tensor, y []torch.Tensor) torch.Tensor
}{
	{"ARMA(1,1)", 4, 2, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		mu, phi, theta, sigma := x.At(0), x.At(1).Tanh(), x.At(2).Tanh(), x.At(3).Exp()
		e := y[0].At(0).Sub(mu.Add(phi.Mul(mu)))
		sum := torch.Of(0).Add(e.Div(sigma).Square())
		for t := 1; t < 60; t++ {
			e = y[0].At(t).Sub(mu.Add(phi.Mul(y[0].At(t - 1))).Add(theta.Mul(e)))
			sum = sum.Add(e.Div(sigma).Square())
		}
		return sum.Mul(-0.5).Sub(sigma.Log().Mul(60))
	}},
	{"independent", 2, 0, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		sum := torch.Of(0)
		for t := range 60 {
			sum = sum.Sub(y[0].At(t).Sub(x.At(0)).Mul(x.At(1).Exp()).Square()).Add(x.At(1))
		}
		return sum
	}},
	{"GARCH(1,1), stacked", 4, 2, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		mu, a0, a1, b1 := x.At(0), x.At(1).Exp(), x.At(2).Sigmoid(), x.At(3).Sigmoid()
		v := a0
		vs := []any{v}
		for t := 1; t < 60; t++ {
			v = a0.Add(a1.Mul(y[0].At(t - 1).Sub(mu).Square())).Add(b1.Mul(v))
			vs = append(vs, v)
		}
		s := torch.Stack(0, vs...)
		return y[0].Slice(0, 0, 60).Sub(mu).Square().Div(s).Add(s.Log()).Sum().Mul(-0.5)
	}},
	{"hidden Markov, logarithms", 16 + 4, 2, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		p := x.Slice(0, 0, 16).Reshape(4, 4).LogSoftmax(1)
		mu := x.Slice(0, 16, 20)
		alpha := y[0].At(0).Sub(mu).Square().Mul(-0.5)
		for t := 1; t < 60; t++ {
			alpha = alpha.Unsqueeze(1).Add(p).LogSumExp(0).Add(y[0].At(t).Sub(mu).Square().Mul(-0.5))
		}
		return alpha.LogSumExp(0)
	}},
	{"hidden Markov, products", 16 + 4, 2, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		p := x.Slice(0, 0, 16).Reshape(4, 4).LogSoftmax(1).Exp()
		mu := x.Slice(0, 16, 20)
		alpha := torch.New([]float64{0.25, 0.25, 0.25, 0.25})
		sum := torch.Of(0)
		for t := range 60 {
			alpha = alpha.MatMul(p).Mul(y[0].At(t).Sub(mu).Square().Mul(-0.5).Exp())
			total := alpha.Sum()
			alpha = alpha.Div(total)
			sum = sum.Add(total.Log())
		}
		return sum
	}},
	{"states that are parameters", 62, 0, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		sum := x.At(0).Square()
		for t := 1; t < 60; t++ {
			sum = sum.Add(x.At(t).Sub(x.At(t - 1).Mul(x.At(60))).Square())
			sum = sum.Add(y[0].At(t).Sub(x.At(t)).Mul(x.At(61)).Square())
		}
		return sum.Mul(-0.5)
	}},
	{"numbers of Go", 2, 2, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		s := x.At(0)
		for t := range 60 {
			s = s.Mul(x.At(1)).Tanh().Add(float64(t*t%7+1) / 10)
		}
		return s.Square().Neg()
	}},
	{"steps of two kinds", 2, 2, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		s := x.At(0)
		for t := range 59 {
			if t%2 == 0 {
				s = s.Mul(x.At(1)).Tanh().Add(y[0].At(t))
			} else {
				s = s.Sub(x.At(1)).Sin().Mul(y[0].At(t))
			}
		}
		return s.Square().Neg()
	}},
	{"two steps back", 3, 2, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		a, b := x.At(0), x.At(0)
		sum := torch.Of(0)
		for t := range 60 {
			a, b = b, a.Mul(x.At(1).Tanh()).Add(b.Mul(x.At(2).Tanh())).Mul(0.5).Tanh()
			sum = sum.Add(b.Sub(y[0].At(t)).Square())
		}
		return sum.Neg()
	}},
	{"two variables", 3, 2, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		level, slope := x.At(0), x.At(1)
		sum := torch.Of(0)
		for t := range 60 {
			err := y[0].At(t).Sub(level.Add(slope))
			sum = sum.Add(err.Square())
			level = level.Add(slope).Add(x.At(2).Sigmoid().Mul(err))
			slope = slope.Add(x.At(2).Sigmoid().Square().Mul(err)).Tanh()
		}
		return sum.Neg()
	}},
}

// Loops over time become loops of the plan, forward and backward, with the values and gradients of eager evaluation.
func TestLoopsOverTime(t *testing.T) {
	for _, c := range loops {
		t.Run(c.name, func(t *testing.T) {
			y := series(60)
			s := timeSource(c.dim, []torch.Tensor{y}, c.f)
			plan := compile(t, s)
			repeats, instructions := 0, 0
			for _, step := range plan.Steps {
				if step.Kind == ir.Repeat {
					repeats++
					assert.GreaterOrEqual(t, step.Times, 25)
				}
			}
			for _, step := range ir.Leaves(plan.Steps) {
				instructions += max(1, len(step.Body))
			}
			t.Logf("%d repeats, %d instructions in %d steps", repeats, instructions, len(plan.Steps))
			assert.Equal(t, c.repeats, repeats)
			assert.Less(t, instructions, 900)
			at := append(points(6, c.dim, 0.5, 2), points(3, c.dim, 2, 3)...)
			agreesEverywhere(t, s, plan, at)
		})
	}
}

// A loop whose steps read data at uneven distances stays as it is, with the reason, and is right.
func TestUnevenLoop(t *testing.T) {
	s := timeSource(2, []torch.Tensor{series(60)}, func(x torch.Tensor, y []torch.Tensor) torch.Tensor {
		s := x.At(0)
		for t := range 60 {
			s = s.Mul(x.At(1)).Tanh().Add(y[0].At(t * t % 59))
		}
		return s.Square().Neg()
	})
	plan := compile(t, s)
	for _, step := range plan.Steps {
		assert.NotEqual(t, ir.Repeat, step.Kind)
	}
	assert.Contains(t, strings.Join(plan.Notes, "; "), "stay as they are: ")
	agreesEverywhere(t, s, plan, points(5, 2, 0.5, 2))
}

// timeSource is a log density of data in a batch.
func timeSource(dim int, data []torch.Tensor, f func(x torch.Tensor, y []torch.Tensor) torch.Tensor) lower.Source {
	var s lower.Source
	s.Dim = dim
	for i, d := range data {
		s.Batch = append(s.Batch, lower.Named{Name: string(rune('a' + i)), Tensor: d.T()})
	}
	s.Evaluate = func(x *ts.Tensor, batch []*ts.Tensor) (values, grads []*ts.Tensor, aux []lower.Named, err error) {
		var y []torch.Tensor
		for _, b := range batch {
			y = append(y, torch.Of(b))
		}
		v, g, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor { return f(x, y) }, torch.Of(x))
		return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
	}
	return s
}
