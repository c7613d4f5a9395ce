package main

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/torch"
)

// compiled is an evaluation of eight schools, as package models has it, by native code. Each hundredth gets another
// batch.
func compiled(tier native.Tier, chains int) (func() error, error) {
	all, err := models.All()
	if err != nil {
		return nil, err
	}
	m := all[slices.IndexFunc(all, func(m models.Model) bool { return m.Name == "eight_schools" })]
	program, err := m.Compile()
	if err != nil {
		return nil, err
	}
	other := infer.Batch{}
	for name, t := range m.Batch {
		if other[name], err = torch.Copy(t); err != nil {
			return nil, err
		}
	}
	start, err := program.Start(m.Batch, chains, 1)
	if err != nil {
		return nil, err
	}
	x, err := start.Values()
	if err != nil {
		return nil, err
	}
	f, report, err := infer.Compile(program.Target(), start, m.Batch, native.Options{Tier: tier})
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("the tier is %v", report)
	}
	grad, values, calls := make([]float64, len(x)), make([]float64, chains), 0
	aux := make([][]float64, len(f.Outputs()))
	for i, o := range f.Outputs() {
		aux[i] = make([]float64, chains*o.Len())
	}
	batches := []infer.Batch{m.Batch, other}
	return func() error {
		if calls++; calls%100 == 0 {
			if err := f.Set(batches[calls/100%2]); err != nil {
				return err
			}
		}
		if chains > 1 {
			return f.Rows(x, 1, values, grad, aux)
		}
		_, err := f.Eval(x[:f.Dim()], 1, grad[:f.Dim()])
		return err
	}, nil
}
