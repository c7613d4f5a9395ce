package main

import (
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/examples/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// subset is the number of draws that each draw is paired with in the table.
const subset = 100

// score is what the table says of a set of draws.
type score struct {
	table    float64 // the number of the table
	standard float64 // the kernel Stein discrepancy, with the same kernel
}

// scored compares draws, n rows of 8 weights, with the posterior through its gradients at them.
func (t *task) scored(w []float64, seed uint64) (score, error) {
	var mean []float64 // the gradient of the mean log posterior
	err := torch.Do(func(*torch.Scope) error {
		p, err := infer.NewParams(t.program.Layout(), w)
		if err != nil {
			return err
		}
		gradient, err := infer.NewGradient(t.program.Target())
		if err != nil {
			return err
		}
		e, err := gradient.ValueAndGrad(p, t.data, 0)
		if err != nil {
			return err
		}
		mean, err = torch.ToSlice[float64](e.Grad)
		return err
	})
	if err != nil {
		return score{}, err
	}
	var s score
	s.table = ksdTable3(w, mean, pima.Features, subset, seed)
	for i := range mean {
		mean[i] *= pima.Patients
	}
	standard, err := diag.KSD(w, mean, pima.Features, diag.Gaussian{Length: 1})
	s.standard = standard.KSD
	return s, err
}
