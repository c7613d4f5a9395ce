package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// target is a posterior.
type target struct {
	name    string
	program infer.Program
}

func posteriors(path string) ([]target, error) {
	var out []target
	for _, t := range []struct {
		name  string
		build func() (infer.Program, error)
	}{
		{"eight schools, non-centred", func() (infer.Program, error) { return compiled(models.EightSchools()) }},
		{"Pima, 768 x 8", func() (infer.Program, error) { return readPima(path) }},
		{"AR(5), 200 times", func() (infer.Program, error) {
			return compiled(models.AutoRegression{Y: series(200), Order: 5}.Build())
		}},
		{"Gaussian, 100-d, correlated", gaussian},
	} {
		p, err := t.build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		out = append(out, target{t.name, p})
	}
	return out, nil
}

func compiled(m models.Model, err error) (infer.Program, error) {
	if err != nil {
		return nil, err
	}
	return m.Compile()
}

// readPima is logistic regression on the Pima data.
func readPima(path string) (infer.Program, error) {
	x, y, err := pima.Read(path)
	if err != nil {
		return nil, err
	}
	return compiled(models.LogisticRegression{X: x, Y: y}.Build())
}

// series is an autoregression of order 5 that is the same each time.
func series(n int) []float64 {
	rng := rand.New(rand.NewPCG(5, 200))
	beta := []float64{0.7, -0.4, 0.6, -0.3, 0.2}
	y := make([]float64, n)
	for t := range y {
		y[t] = 0.15 * rng.NormFloat64()
		for k, b := range beta {
			if t > k {
				y[t] += b * y[t-1-k]
			}
		}
	}
	return y
}

// gaussian is N(0, Σ) with Σ_ij = 0.9^|i−j|, whose inverse is tridiagonal.
func gaussian() (infer.Program, error) {
	const d, rho = 100, 0.9
	layout, err := infer.NewLayout(infer.Shapes{"x": {d}})
	if err != nil {
		return nil, err
	}
	p := make([]float64, d*d)
	for i := range d {
		p[i*d+i] = (1 + rho*rho) / (1 - rho*rho)
		if i == 0 || i == d-1 {
			p[i*d+i] = 1 / (1 - rho*rho)
		}
		if i > 0 {
			p[i*d+i-1], p[(i-1)*d+i] = -rho/(1-rho*rho), -rho/(1-rho*rho)
		}
	}
	precision, err := torch.FromSlice(p, d, d)
	if err != nil {
		return nil, err
	}
	density := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x").T()
		return torch.Of(x.MustDot(precision.T().MustMv(x, false), false).MustMulScalar(ts.FloatScalar(-0.5), false)), nil
	}
	return infer.Handwritten(infer.Sum(density, 1), infer.Params{Layout: layout}, nil), nil
}
