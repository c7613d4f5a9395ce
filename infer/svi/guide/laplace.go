package guide

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Laplace is [Dense] that starts at the Laplace approximation: at the mode of the density on unconstrained space, which
// L-BFGS finds, with the inverse of minus the Hessian there as its covariance. Without updates (Warmup: infer.None) its
// draws are those of the approximation. The model may have no Param.
type Laplace struct {
	Iterations int        // of L-BFGS, at most 100,000; 0 means 1000
	Start      ppl.Values // where the climb begins; variables not named begin at 0 of unconstrained space
}

// Build climbs to the mode of a model on a batch. A Hessian there that is not negative definite is an error.
func (g Laplace) Build(model ppl.Model, batch infer.Batch) (ppl.Model, error) {
	const who = "guide.Laplace"
	if err := positive(who, "Iterations", &g.Iterations, 1000, 100_000); err != nil {
		return nil, err
	}
	l, err := find(who, model, batch, g.Start)
	if err != nil {
		return nil, err
	}
	if err := l.squareFits(who); err != nil {
		return nil, err
	}
	mean, factor, err := l.laplace(model, batch, g.Iterations)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", who, err)
	}
	return l.dense(mean, factor), nil
}

// laplace is the mode and the Cholesky factor of the covariance, [d, d] row by row, in the order of the variables.
func (l *latents) laplace(model ppl.Model, batch infer.Batch, iterations int) (mode, factor []float64, err error) {
	program, err := ppl.Compile(model, batch)
	if err != nil {
		return nil, nil, err
	}
	layout := program.Layout()
	order := make([]int, 0, l.dim) // of each number of the program's points, its place here
	for _, site := range layout.Sites {
		own := l.site(site.Name)
		if own == nil {
			return nil, nil, fmt.Errorf("%q is a Param of the model, which has no prior and no place in the approximation: fit "+
				"it with guide.Dense: %w", site.Name, infer.ErrConfig)
		}
		for i := own.from; i < own.to; i++ {
			order = append(order, i)
		}
	}
	start := make([]float64, l.dim)
	for i, at := range order {
		start[i] = l.start[at]
	}
	p, err := infer.NewParams(layout, start)
	if err != nil {
		return nil, nil, err
	}
	target := program.Target()
	density := infer.Mean(target.Density(1/target.N()), target.Data) // with the Jacobian
	r, err := infer.Run(context.Background(), infer.Handwritten(density, p, batch), optim.LBFGS{}, infer.Options{
		Chains: 1, Warmup: iterations, Draws: infer.None, Observer: infer.Silent})
	if err != nil {
		return nil, nil, fmt.Errorf("the climb to the mode: %w", err)
	}
	at, err := r.Last.Values()
	if err != nil {
		return nil, nil, err
	}
	if p, err = infer.NewParams(layout, at); err != nil {
		return nil, nil, err
	}
	h, err := curvature.Hessian(density.LogPosterior, p, batch, curvature.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer torch.Free(h)
	values, err := torch.ToSlice[float64](h)
	if err != nil {
		return nil, nil, err
	}
	mode = make([]float64, l.dim)
	precision := mat.NewSymDense(l.dim, nil)
	for i, row := range order {
		mode[row] = at[i]
		for j, column := range order {
			precision.SetSym(row, column, target.N()*0.5*(values[i*l.dim+j]+values[j*l.dim+i]))
		}
	}
	var cholesky, root mat.Cholesky
	var covariance mat.SymDense
	if !cholesky.Factorize(precision) {
		return nil, nil, fmt.Errorf("where the climb ended, after at most %d iterations, minus the Hessian is not positive "+
			"definite: it is no mode; begin elsewhere (Start), or use guide.Dense", iterations)
	}
	if err := cholesky.InverseTo(&covariance); err != nil {
		return nil, nil, fmt.Errorf("the covariance: %w", err)
	}
	if !root.Factorize(&covariance) {
		return nil, nil, fmt.Errorf("the covariance is not positive definite to rounding: scale the variables alike")
	}
	var lower mat.TriDense
	root.LTo(&lower)
	factor = make([]float64, l.dim*l.dim)
	for i := range l.dim {
		for j := range i + 1 {
			factor[i*l.dim+j] = lower.At(i, j)
		}
	}
	return mode, factor, nil
}
