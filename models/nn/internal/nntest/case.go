package nntest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Case is a network with an implementation of it in plain loops, for one input or for a batch.
type Case struct {
	Name   string
	Layers nn.Sequential
	In     []int
	// Network is one that is built already, in the place of Layers.
	Network *nn.Network
	Tokens  int     // the inputs are whole numbers below this
	Kinked  bool    // has no second derivatives to compare
	Scale   float64 // of the points; 0 means 0.7
	Want    func(p map[string]Array, x Array) Array
	// WantBatch is in the place of Want where the outputs of a datum depend on the others of its batch. Mapped over data,
	// each is a batch of one.
	WantBatch func(p map[string]Array, x []Array) []Array
}

// want are the outputs of a batch by the loops.
func (c Case) want(p map[string]Array, x []Array) []Array {
	if c.WantBatch != nil {
		return c.WantBatch(p, x)
	}
	var all []Array
	for _, one := range x {
		all = append(all, c.Want(p, one))
	}
	return all
}

func (c Case) scale() float64 {
	if c.Scale == 0 {
		return 0.7
	}
	return c.Scale
}

func (c Case) build(t *testing.T) *nn.Network {
	t.Helper()
	if c.Network != nil {
		return c.Network
	}
	return Build(t, c.Layers, c.In...)
}

// Inputs are n inputs, as a tensor and in plain Go.
func (c Case) Inputs(n int) (torch.Tensor, []Array) {
	size := 1
	for _, s := range c.In {
		size *= s
	}
	v := Normals(99, n*size)
	whole := make([]int, len(v))
	if c.Tokens > 0 {
		for i := range v {
			whole[i] = int(math.Abs(v[i])*1000) % c.Tokens
			v[i] = float64(whole[i])
		}
	}
	var plain []Array
	for i := range n {
		plain = append(plain, New(c.In, v[i*size:(i+1)*size]))
	}
	full := append([]int{n}, c.In...)
	if c.Tokens > 0 {
		return Must(torch.FromSlice(whole, full...)), plain
	}
	return Tensor(v, full...), plain
}

// Score is a scalar function of the outputs in which each has its own weight.
func Score(y torch.Tensor) torch.Tensor {
	weights := Tensor(Normals(5, y.Numel()), Shape(y)...)
	y = Must(torch.To(y, gotch.CPU, gotch.Double))
	return y.Mul(weights).Mul(y.Add(2)).Sum()
}

// Values checks outputs against the loops, in float64 and float32, at one input and at three.
func (c Case) Values(t *testing.T) {
	t.Helper()
	Do(t, func() {
		n := c.build(t)
		p := Point(n, 3, c.scale(), 0)
		x, plain := c.Inputs(3)
		y := n.Forward(p, x)
		var want []float64
		for i, one := range c.want(Sites(p), plain) {
			require.Equal(t, fmt.Sprint(n.Out()), fmt.Sprint(one.Shape))
			want = append(want, one.Data...)
			single := n.Forward(p, x.At(i))
			require.Equal(t, n.Out(), Shape(single))
			CloseTo(t, c.want(Sites(p), plain[i:i+1])[0].Data, Values(single), 1e-12, "a single input")
		}
		require.Equal(t, append([]int{3}, n.Out()...), Shape(y))
		CloseTo(t, want, Values(y), 1e-12, "outputs")

		if c.Tokens == 0 {
			x = Must(torch.To(x, gotch.CPU, gotch.Float))
		}
		y = n.Forward(Must(p.To(gotch.CPU, gotch.Float)), x)
		require.Equal(t, gotch.Float, y.T().DType())
		CloseTo(t, want, Values(y), 2e-5, "outputs in float32")
	})
}

// Gradients checks gradients against differences of the loops.
func (c Case) Gradients(t *testing.T) {
	t.Helper()
	Do(t, func() {
		n := c.build(t)
		x, plain := c.Inputs(2)
		f := func(flat torch.Tensor) torch.Tensor {
			return Score(n.Forward(infer.Params{Layout: n.Layout(), Flat: flat}, x))
		}
		p := Point(n, 3, c.scale(), 0)
		_, grad, err := torch.ValueAndGrad(f, p.Flat)
		require.NoError(t, err)

		// The differences are those of the plain loops.
		outputs := 1
		for _, size := range n.Out() {
			outputs *= size
		}
		weights := Normals(5, 2*outputs)
		value := func(flat []float64) (sum float64) {
			s := Sites(Must(infer.NewParams(n.Layout(), flat)))
			k := 0
			for _, one := range c.want(s, plain) {
				for _, y := range one.Data {
					sum += weights[k] * y * (y + 2)
					k++
				}
			}
			return sum
		}
		flat, want := Values(p.Flat), make([]float64, n.NumParams())
		const h = 1e-5
		for i, v := range flat {
			flat[i] = v + h
			up := value(flat)
			flat[i] = v - h
			want[i] = (up - value(flat)) / (2 * h)
			flat[i] = v
		}
		CloseTo(t, want, Values(grad), 2e-8, "gradient")
	})
}

// SecondDerivatives checks the product of the Hessian with a vector, from a second backward pass, at one point and at
// three, against differences of gradients.
func (c Case) SecondDerivatives(t *testing.T) {
	t.Helper()
	Do(t, func() {
		const k, h = 3, 1e-5
		n := c.build(t)
		x, _ := c.Inputs(2)
		f := func(flat torch.Tensor) torch.Tensor {
			return Score(n.Forward(infer.Params{Layout: n.Layout(), Flat: flat}, x))
		}
		p := Point(n, 3, c.scale(), k)
		v := Point(n, 4, 1, k).Flat
		product := func(value, leaf, v torch.Tensor) []float64 {
			g := Must(torch.Grad([]torch.Tensor{value}, []torch.Tensor{leaf}, &torch.GradOptions{CreateGraph: true}))[0]
			along := g.Mul(v).T().MustSum(gotch.Double, false)
			return Values(Must(torch.Grad([]torch.Tensor{torch.Of(along)}, []torch.Tensor{leaf},
				&torch.GradOptions{AllowUnused: true}))[0])
		}
		leaf := Must(torch.Leaf(p.Flat))
		mapped := Must(
			torch.Vmap(
				func(in []torch.Tensor) ([]torch.Tensor, error) { return []torch.Tensor{f(in[0])}, nil },
				[]torch.Tensor{leaf},
				nil,
			),
		)
		all := product(torch.Of(mapped[0].T().MustSum(gotch.Double, false)), leaf, v)
		for i := range k {
			at, dir := Row(p, i).Flat, v.At(i).T()
			shifted := func(by float64) []float64 {
				_, g, err := torch.ValueAndGrad(
					f,
					Must(torch.Combine(torch.Term{Coeff: 1, Tensor: at}, torch.Term{Coeff: by, Tensor: torch.Of(dir)})),
				)
				require.NoError(t, err)
				return Values(g)
			}
			up, down, want := shifted(h), shifted(-h), make([]float64, n.NumParams())
			for j := range want {
				want[j] = (up[j] - down[j]) / (2 * h)
			}
			one := Must(torch.Leaf(at))
			CloseTo(t, want, product(f(one), one, torch.Of(dir)), 1e-7, "at one point")
			CloseTo(t, want, all[i*len(want):(i+1)*len(want)], 1e-7, "mapped")
		}
	})
}

// Mapped checks that values and gradients mapped over points are those of a loop, and mapped over data those of each
// datum.
func (c Case) Mapped(t *testing.T) {
	t.Helper()
	Do(t, func() {
		const k = 3
		n := c.build(t)
		x, _ := c.Inputs(k)
		p := Point(n, 3, c.scale(), k)
		on := func(x torch.Tensor) func(torch.Tensor) torch.Tensor {
			return func(flat torch.Tensor) torch.Tensor {
				return Score(n.Forward(infer.Params{Layout: n.Layout(), Flat: flat}, x))
			}
		}
		v, g, err := torch.VmapValueAndGrad(on(x), p.Flat)
		require.NoError(t, err)

		same := p.Flat.At(0).Unsqueeze(0).T().MustRepeat([]int64{k, 1}, false)
		leaf := Must(torch.Leaf(torch.Of(same)))
		each := Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			return []torch.Tensor{on(in[1])(in[0])}, nil
		}, []torch.Tensor{leaf, x}, nil))[0]
		perDatum := Must(torch.Grad([]torch.Tensor{torch.Of(each.T().MustSum(gotch.Double, false))}, []torch.Tensor{leaf},
			nil))[0]

		// The data alone are mapped, and the point is one for all.
		shared := Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			return []torch.Tensor{on(in[0])(Row(p, 0).Flat)}, nil
		}, []torch.Tensor{x}, nil))[0]
		for i := range k {
			value, grad, err := torch.ValueAndGrad(on(x), Row(p, i).Flat)
			require.NoError(t, err)
			CloseTo(t, Values(value), Values(v.At(i).T()), 1e-12, "value of a point")
			CloseTo(t, Values(grad), Values(g.At(i).T()), 1e-12, "gradient of a point")

			value, grad, err = torch.ValueAndGrad(on(x.At(i)), Row(p, 0).Flat)
			require.NoError(t, err)
			CloseTo(t, Values(value), Values(each.At(i).T()), 1e-12, "value of a datum")
			CloseTo(t, Values(value), Values(shared.At(i).T()), 1e-12,
				"value of a datum at a shared point")
			CloseTo(t, Values(grad), Values(perDatum.At(i).T()), 1e-12, "gradient of a datum")
		}
	})
}
