package mcmc

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// gaussian is N(m, P⁻¹), with P = LLᵀ.
type gaussian struct {
	mean    []float64
	l       []float64 // L, d·d numbers
	inverse []float64 // L⁻¹
	log     float64   // of the density at the mean
}

// newGaussian is nil where the precision is not positive definite.
func newGaussian(mean []float64, precision mat.Symmetric) *gaussian {
	var factor mat.Cholesky
	if !factor.Factorize(precision) {
		return nil
	}
	d := len(mean)
	var l, inverse mat.TriDense
	factor.LTo(&l)
	if inverse.InverseTri(&l) != nil {
		return nil
	}
	g := &gaussian{mean: mean, l: make([]float64, d*d), inverse: make([]float64, d*d),
		log: factor.LogDet()/2 - float64(d)/2*math.Log(2*math.Pi)}
	for i := range d {
		for j := range i + 1 {
			g.l[i*d+j], g.inverse[i*d+j] = l.At(i, j), inverse.At(i, j)
		}
	}
	return g
}

// tempered is the distribution whose density is that of g to the power 1/T.
func (g *gaussian) tempered(temperature float64) *gaussian {
	own := &gaussian{mean: g.mean, l: slices.Clone(g.l), inverse: slices.Clone(g.inverse), log: g.log / temperature}
	floats.Scale(1/math.Sqrt(temperature), own.l)
	floats.Scale(math.Sqrt(temperature), own.inverse)
	return own
}

// deviation is L⁻ᵀz, of the law N(0, P⁻¹).
func (g *gaussian) deviation(z []float64) []float64 {
	d := len(z)
	out := make([]float64, d)
	for i, v := range z {
		floats.AddScaled(out[:i+1], v, g.inverse[i*d:i*d+i+1])
	}
	return out
}

// density is the log density at x.
func (g *gaussian) density(x []float64) float64 {
	d := len(x)
	y := make([]float64, d) // Lᵀ(x − m)
	for i := range x {
		floats.AddScaled(y[:i+1], x[i]-g.mean[i], g.l[i*d:i*d+i+1])
	}
	return g.log - floats.Dot(y, y)/2
}

// given is the distribution that the fields say.
func (c Elliptical) given() (*gaussian, error) {
	d := len(c.Mean)
	if d == 0 || len(c.Covariance) != d*d {
		return nil, nil
	}
	s := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range d {
			if s.SetSym(i, j, c.Covariance[i*d+j]); c.Covariance[i*d+j] != c.Covariance[j*d+i] {
				return nil, errors.New("it must be symmetric")
			}
		}
	}
	var factor mat.Cholesky
	var precision mat.SymDense
	if !factor.Factorize(s) || factor.InverseTo(&precision) != nil {
		return nil, errors.New("it must be positive definite")
	}
	return newGaussian(c.Mean, &precision), nil
}

// priorOf is the prior of a target to the power 1/T, with the Jacobian, as a normal distribution: of its gradients
// g(x) = −P(x − m) at a point x₀ and at x₀ + e_i,
//
//	P e_i = g(x₀) − g(x₀ + e_i), m = x₀ + P⁻¹ g(x₀)
//
// It is an error that another gradient is not what P says.
func priorOf(target infer.Target, at infer.Params, b infer.Batch, temperature float64) (*gaussian, error) {
	d := at.Layout.Dim()
	x, err := at.Values()
	if err != nil {
		return nil, err
	}
	x = x[:d]
	points := make([][]float64, d+2) // x₀, one beside it, and x₀ + e_i
	for k := range points {
		points[k] = slices.Clone(x)
	}
	for i := range d {
		points[1][i] += 0.3 + 0.7*math.Cos(2.4*float64(i))
		points[i+2][i]++
	}
	g, err := priorGradients(target, at, b, temperature, points)
	if err != nil {
		return nil, err
	}
	p := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			p.SetSym(i, j, (g[0][j]-g[i+2][j]+g[0][i]-g[j+2][i])/2)
		}
	}
	var off []string
	scale := 1 + floats.Norm(g[0], math.Inf(1)) + mat.Norm(p, math.Inf(1))
	for i, have := range g[1] {
		for j := range d {
			have += p.At(i, j) * (points[1][j] - x[j])
		}
		if name := at.Layout.At(i); !(math.Abs(have-g[0][i]) <= 1e-7*scale) && len(off) < 4 {
			off = append(off, name)
		}
	}
	if len(off) > 0 {
		return nil, fmt.Errorf("the prior is no normal distribution: its log density is not quadratic in %s, on "+
			"unconstrained space: use mcmc.Slice or hmc.NUTS, or fix such variables: %w", strings.Join(off, ", "),
			infer.ErrConfig)
	}
	var factor mat.Cholesky
	shift := mat.NewVecDense(d, nil)
	if !factor.Factorize(p) || factor.SolveVecTo(shift, mat.NewVecDense(d, g[0])) != nil {
		return nil, fmt.Errorf("the prior is no normal distribution: its precision is not positive definite; a flat prior "+
			"or a param has none: %w", infer.ErrConfig)
	}
	floats.Add(x, shift.RawVector().Data)
	return newGaussian(x, p), nil
}

// priorGradients are those of the log prior to the power 1/T, with the Jacobian.
func priorGradients(target infer.Target, at infer.Params, b infer.Batch, temperature float64,
	points [][]float64) ([][]float64, error) {
	e, err := infer.NewEvaluator(infer.Target{
		LogPosterior: target.Weigh(infer.Weights{Prior: 1 / temperature, Jacobian: 1})}, true)
	if err != nil {
		return nil, err
	}
	if e, err = e.On(at, b); err != nil {
		return nil, err
	}
	const atOnce = 64 // of the points
	var out [][]float64
	for some := range slices.Chunk(points, atOnce) {
		x := slices.Concat(some...)
		grads := make([]float64, len(x))
		if err := e.Eval(x, 1, make([]float64, len(some)), grads); err != nil {
			return nil, err
		}
		out = slices.AppendSeq(out, slices.Chunk(grads, len(points[0])))
	}
	return out, nil
}
