package models

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Model is a model with its data.
type Model struct {
	Name  string      // short, in lower case with underscores; the names of All differ
	Model ppl.Model   // the statements
	Batch infer.Batch // the data, float64 in main memory, which live until nothing refers to them

	// Modeless says that the density on unconstrained space has no maximum: it grows without bound towards an edge. Draws
	// exist, a mode does not.
	Modeless bool
}

// Compile is ppl.Compile of the model on its data.
func (m Model) Compile() (*ppl.Program, error) {
	p, err := ppl.Compile(m.Model, m.Batch)
	if err != nil {
		return nil, fmt.Errorf("models: %s: %w", m.Name, err)
	}
	return p, nil
}

// All is every model with small data of its own: public data sets, or simulated ones that are the same each time.
func All() ([]Model, error) {
	var all []Model
	for _, build := range []func() (Model, error){
		Beetles, Anscombe, EightSchools, EightSchoolsCentred, Salmonella, RadonSimulated, MixtureSimulated, Lynx,
		HMMSimulated, WaveGP,
	} {
		m, err := build()
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// named gives a model another name.
func named(name string, m Model, err error) (Model, error) {
	m.Name = name
	return m, err
}

// fields checks the fields of a configuration and turns them into tensors. It keeps the first error.
type fields struct {
	config string // "models.LinearRegression"
	err    error
}

func (f *fields) fail(field string, value any, allowed string, args ...any) {
	if f.err == nil {
		f.err = &infer.FieldError{Type: f.config, Field: field, Value: value, Allowed: fmt.Sprintf(allowed, args...)}
	}
}

// scale is a positive number, or the default where it is 0.
func (f *fields) scale(field string, v, def float64) float64 {
	if v == 0 {
		return def
	}
	if !(v > 0) || math.IsInf(v, 0) {
		f.fail(field, v, "it must be finite and greater than 0, or 0 for the default of %g", def)
	}
	return v
}

// atLeast checks a whole number.
func (f *fields) atLeast(field string, v, least int) {
	if v < least {
		f.fail(field, v, "it must be at least %d", least)
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// times checks the times of observations.
func (f *fields) times(t []float64) {
	if len(t) == 0 {
		f.fail("Times", "empty", "it needs data")
	}
	before := 0.0
	for i, x := range t {
		if !(x >= before) || x-x != 0 {
			f.fail("Times", fmt.Sprintf("%v at index %d", x, i), "times must be finite, not negative and not decrease")
		}
		before = x
	}
}

// numbers checks n numbers, or any number of them but none where n is negative.
func (f *fields) numbers(field string, v []float64, n int, ok func(float64) bool, allowed string) {
	switch {
	case len(v) == 0:
		f.fail(field, "empty", "it needs data")
	case n >= 0 && len(v) != n:
		f.fail(field, fmt.Sprintf("%d numbers", len(v)), "there must be %d, as many as the other data", n)
	}
	for i, x := range v {
		if !ok(x) {
			f.fail(field, fmt.Sprintf("%v at index %d", x, i), "every number must be %s", allowed)
			return
		}
	}
}

// vector is checked numbers as a tensor.
func (f *fields) vector(field string, v []float64, n int, ok func(float64) bool, allowed string) torch.Tensor {
	f.numbers(field, v, n, ok, allowed)
	return f.tensor(v, len(v))
}

// matrix is rows of finite numbers as a tensor of shape [n, d].
func (f *fields) matrix(field string, rows [][]float64) (t torch.Tensor, n, d int) {
	if n = len(rows); n == 0 || len(rows[0]) == 0 {
		f.fail(field, fmt.Sprintf("%d rows", n), "it needs at least one row and one column")
		return torch.Tensor{}, 0, 0
	}
	d = len(rows[0])
	flat := make([]float64, 0, n*d)
	for i, row := range rows {
		if len(row) != d {
			f.fail(field, fmt.Sprintf("%d numbers in row %d", len(row), i), "every row must have %d, as the first one has", d)
			return torch.Tensor{}, 0, 0
		}
		flat = append(flat, row...)
	}
	f.numbers(field, flat, n*d, finite, "finite")
	return f.tensor(flat, n, d), n, d
}

// tensor is a copy of data that belongs to no scope, so that a model made inside torch.Do outlives it.
func (f *fields) tensor(data []float64, shape ...int) torch.Tensor {
	if f.err != nil {
		return torch.Tensor{}
	}
	t, err := torch.FromSlice(data, shape...)
	if err != nil {
		f.err = fmt.Errorf("%s: %w", f.config, err)
		return torch.Tensor{}
	}
	torch.Detach(t)
	return t
}

// repeated is a tensor of one number.
func (f *fields) repeated(v float64, shape ...int) torch.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	data := make([]float64, n)
	for i := range data {
		data[i] = v
	}
	return f.tensor(data, shape...)
}

// model is the result of Build.
func (f *fields) model(name string, m ppl.Model, batch infer.Batch) (Model, error) {
	if f.err != nil {
		return Model{}, f.err
	}
	return Model{Name: name, Model: m, Batch: batch}, nil
}

// lag is a matrix with the numbers before each of y, the nearest first: row t has y[t-1] … y[t-k].
func lag(y []float64, k int) [][]float64 {
	rows := make([][]float64, 0, max(len(y)-k, 0))
	for t := k; t < len(y); t++ {
		row := make([]float64, k)
		for j := range row {
			row[j] = y[t-1-j]
		}
		rows = append(rows, row)
	}
	return rows
}
