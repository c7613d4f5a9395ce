package main

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/mat"
)

// descent are outputs at new inputs after gradient descent on the squared error of a few data: of a network, of its
// linearisation at the start, and what the tangent kernel Θ of the start says, without descent,
//
//	f(x) = f₀(x) + Θ(x, X) Θ⁻¹ (1 − (1 − ηΘ)ⁿ) (y − f₀(X)),   Θ = Θ(X, X)
//
// after n steps of size η, which tends to f₀(x) + Θ(x, X) Θ⁻¹ (y − f₀(X)) (Jacot et al. 2018; Lee et al. 2019).
type descent struct {
	network, linear, kernel []float64
}

// descend draws a network of one width from the prior and moves it by steps of 1/λ_max(Θ) in the units of the kernel,
// parameter by parameter s_j² times the gradient.
func (p prior) descend(width int, x, to [][2]float64, y []float64, steps int, seed uint64) (d descent, err error) {
	shape := []int{2}
	for range p.hidden {
		shape = append(shape, width)
	}
	net, err := nn.MLP{Sizes: append(shape, 1)}.Build()
	if err != nil {
		return d, err
	}
	law, err := nn.NewPrior(net, p.scheme())
	if err != nil {
		return d, err
	}
	streams := torch.NewStreams(seed, 1)
	start, err := law.Draw(&streams)
	if err != nil {
		return d, err
	}
	theta, err := start.Values()
	if err != nil {
		return d, err
	}
	square := make([]float64, len(theta)) // s_j²
	for _, site := range net.Layout().Sites {
		sd := law.Laws()[site.Name].SD()
		for j := site.Offset; j < site.Offset+site.Size; j++ {
			square[j] = sd * sd
		}
	}

	// Outputs and scaled gradients at the start.
	all := append(append([][2]float64(nil), x...), to...)
	f := make([]float64, len(all))
	jacobian := mat.NewDense(len(all), len(theta), nil)
	output, err := infer.NewGradient(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return net.Forward(p, b.Get("x")).At(0, 0), nil
	}, 1))
	if err != nil {
		return d, err
	}
	for i, at := range all {
		value, gradient, err := evaluate(output, net, theta, infer.Batch{"x": torch.New(at[:], 1, 2)})
		if err != nil {
			return d, err
		}
		f[i] = value
		for j, g := range gradient {
			jacobian.Set(i, j, g*math.Sqrt(square[j]))
		}
	}
	n := len(x)
	var kernel mat.Dense
	kernel.Mul(jacobian, jacobian.Slice(0, n, 0, len(theta)).T())
	var eigen mat.EigenSym
	if !eigen.Factorize(symmetric(kernel.Slice(0, n, 0, n)), true) {
		return d, fmt.Errorf("the tangent kernel of width %d has no eigenvalues", width)
	}
	values := eigen.Values(nil)
	eta := 1 / values[n-1]

	// What the kernel says.
	residual := mat.NewVecDense(n, nil)
	for i := range n {
		residual.SetVec(i, y[i]-f[i])
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	var along, weights mat.VecDense
	along.MulVec(vectors.T(), residual)
	for i, v := range values {
		// (1 − (1 − ηλ)ⁿ)/λ, with ηλ = 1 for the largest
		along.SetVec(i, -along.AtVec(i)*math.Expm1(float64(steps)*math.Log1p(max(-eta*v, -1)))/v)
	}
	weights.MulVec(&vectors, &along)
	var said mat.VecDense
	said.MulVec(&kernel, &weights)
	for i := n; i < len(all); i++ {
		d.kernel = append(d.kernel, f[i]+said.AtVec(i))
	}

	// Descent of the linearisation, in the parameters.
	moved := mat.NewVecDense(len(theta), nil)
	train := jacobian.Slice(0, n, 0, len(theta))
	for range steps {
		var off, step mat.VecDense
		off.MulVec(train, moved)
		off.SubVec(residual, &off)
		step.MulVec(train.T(), &off)
		moved.AddScaledVec(moved, eta, &step)
	}
	var linear mat.VecDense
	linear.MulVec(jacobian, moved)
	for i := n; i < len(all); i++ {
		d.linear = append(d.linear, f[i]+linear.AtVec(i))
	}

	// Descent of the network itself.
	climb, err := infer.NewGradient(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		off := net.Forward(p, b.Get("x")).Squeeze(-1).Sub(b.Get("y"))
		return off.Dot(off).Mul(-0.5), nil
	}, 1))
	if err != nil {
		return d, err
	}
	var flat []float64
	for _, at := range x {
		flat = append(flat, at[:]...)
	}
	batch := infer.Batch{"x": torch.New(flat, n, 2), "y": torch.New(y)}
	for range steps {
		_, gradient, err := evaluate(climb, net, theta, batch)
		if err != nil {
			return d, err
		}
		for j, g := range gradient {
			theta[j] += eta * square[j] * g
		}
	}
	for _, at := range to {
		value, _, err := evaluate(output, net, theta, infer.Batch{"x": torch.New(at[:], 1, 2)})
		if err != nil {
			return d, err
		}
		d.network = append(d.network, value)
	}
	return d, nil
}

// evaluate is a value and its gradient at a point.
func evaluate(g infer.Gradient, net *nn.Network, theta []float64, b infer.Batch) (value float64, gradient []float64,
	err error) {
	err = torch.Do(func(*torch.Scope) error {
		p, err := infer.NewParams(net.Layout(), theta)
		if err != nil {
			return err
		}
		e, err := g.ValueAndGrad(p, b, 0)
		if err != nil {
			return err
		}
		value = e.Values[0]
		gradient, err = torch.ToSlice[float64](e.Grad)
		return err
	})
	return value, gradient, err
}

// symmetric is the symmetric part of a matrix.
func symmetric(m mat.Matrix) *mat.SymDense {
	n, _ := m.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, (m.At(i, j)+m.At(j, i))/2)
		}
	}
	return s
}

// furthest is the largest distance of two lists of numbers.
func furthest(a, b []float64) float64 {
	far := 0.0
	for i := range a {
		far = max(far, math.Abs(a[i]-b[i]))
	}
	return far
}
