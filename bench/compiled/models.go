package main

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/torch"
)

// collect makes the models, or those of a list separated by commas.
func collect(path, pimaFile, chosen string) ([]model, error) {
	all, err := ofPackage()
	if err != nil {
		return nil, err
	}
	diabetes, err := ofPima(pimaFile)
	if err != nil {
		return nil, err
	}
	all = append(append(all, diabetes), ofLoops()...)
	if path != "" {
		more, err := ofDatabase(path)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	if chosen == "" {
		return all, nil
	}
	return command.Choose(chosen, all, func(x model) string { return x.name }, func(name string) error {
		return fmt.Errorf("-models: there is no %q", name)
	})
}

func ofPackage() ([]model, error) {
	all, err := models.All()
	if err != nil {
		return nil, err
	}
	var out []model
	for _, m := range all {
		one := model{name: m.Name, model: m.Model, batch: m.Batch}
		if m.Name == "eight_schools" {
			one.hand, one.data = "schools", [][]float64{bench.SchoolsY, bench.SchoolsSigma}
		}
		out = append(out, one)
	}
	return out, nil
}

func ofPima(file string) (model, error) {
	x, y, err := pima.Read(file)
	if err != nil {
		return model{}, err
	}
	m, err := models.LogisticRegression{X: x, Y: y, NoIntercept: true}.Build()
	if err != nil {
		return model{}, err
	}
	columns, signs := make([]float64, 0, len(x)*len(x[0])), make([]float64, len(y))
	for j := range x[0] {
		for i := range x {
			columns = append(columns, x[i][j])
		}
	}
	for i, v := range y {
		signs[i] = 2*v - 1
	}
	return model{name: "pima", model: m.Model, batch: m.Batch, hand: "logistic", data: [][]float64{columns, signs}}, nil
}

func ofDatabase(path string) ([]model, error) {
	db, err := posteriors.Open(path)
	if err != nil {
		return nil, err
	}
	var out []model
	for _, e := range posteriors.Registry {
		d, _, err := db.Read(e.Name)
		if err != nil {
			return nil, err
		}
		p, err := e.Load(d)
		if err != nil {
			return nil, err
		}
		m := model{name: e.Name, model: p.Model, batch: p.Batch}
		var names []string
		switch e.Name {
		case "eight_schools-eight_schools_noncentered":
			m.hand, names = "schools", []string{"y", "sigma"}
		case "earnings-logearn_interaction":
			m.hand, names = "regression", []string{"q", "y"}
		case "low_dim_gauss_mix-low_dim_gauss_mix":
			m.hand, names = "mixture", []string{"y"}
		}
		for _, name := range names {
			v, err := columnsOf(p.Batch[name])
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", e.Name, name, err)
			}
			m.data = append(m.data, v)
		}
		out = append(out, m)
	}
	return out, nil
}

// columnsOf is a vector, or a matrix column by column.
func columnsOf(t torch.Tensor) (out []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		if t.T().Dim() == 2 {
			t = torch.Of(t.T().MustTranspose(0, 1, false).MustContiguous(false))
		}
		out, err = torch.ToSlice[float64](t)
		return err
	})
	return out, err
}
