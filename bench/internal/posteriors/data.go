package posteriors

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Data are the values of a data set by name, still as JSON. What is missing or wrong panics with a dataError, so that
// models read like the mathematics.
type Data struct {
	name   string
	values map[string]json.RawMessage
}

// Values are the data by name, as JSON.
func (d *Data) Values() map[string]json.RawMessage { return d.values }

// dataError says what is wrong with a data set.
type dataError struct{ data, message string }

func (e dataError) Error() string { return fmt.Sprintf("data %s: %s", e.data, e.message) }

func (d *Data) fail(format string, args ...any) {
	panic(dataError{d.name, fmt.Sprintf(format, args...)})
}

func (d *Data) decode(name, kind string, into any) {
	raw, ok := d.values[name]
	if !ok {
		d.fail("there is no %q", name)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		d.fail("%q is not %s: %v", name, kind, err)
	}
}

// number is a single number.
func (d *Data) number(name string) float64 {
	var v *float64
	d.decode(name, "a number", &v)
	if v == nil {
		d.fail("%q has no value", name)
	}
	return *v
}

// count is a whole number of at least least.
func (d *Data) count(name string, least int) int {
	v := d.number(name)
	if v != math.Trunc(v) || v < float64(least) || v > 1e9 {
		d.fail("%q is %v: it must be a whole number of at least %d", name, v, least)
	}
	return int(v)
}

// vector is n numbers.
func (d *Data) vector(name string, n int) []float64 {
	var v []*float64
	d.decode(name, "a list of numbers", &v)
	return d.row(name, v, n)
}

// positive is n numbers greater than 0.
func (d *Data) positive(name string, n int) []float64 {
	v := d.vector(name, n)
	for i, x := range v {
		if !(x > 0) {
			d.fail("%q has %v at index %d: it must be greater than 0", name, x, i)
		}
	}
	return v
}

// matrix is n rows of k numbers, one row after the other.
func (d *Data) matrix(name string, n, k int) []float64 {
	var rows [][]*float64
	d.decode(name, "a list of rows of numbers", &rows)
	if len(rows) != n {
		d.fail("%q has %d rows: there must be %d", name, len(rows), n)
	}
	var out []float64
	for _, r := range rows {
		out = append(out, d.row(name, r, k)...)
	}
	return out
}

func (d *Data) row(name string, v []*float64, n int) []float64 {
	if len(v) != n {
		d.fail("%q has %d numbers: there must be %d", name, len(v), n)
	}
	out := make([]float64, n)
	for i, x := range v {
		if x == nil {
			d.fail("%q has no value at index %d", name, i)
		}
		out[i] = *x
	}
	return out
}

// tensor is numbers as a tensor that lives until nothing refers to it.
func (d *Data) tensor(v []float64, shape ...int) torch.Tensor { return keep(d, v, shape...) }

// indices is numbers of elements as a tensor.
func (d *Data) indices(v []int) torch.Tensor { return keep(d, v, len(v)) }

func keep[T torch.Number](d *Data, v []T, shape ...int) torch.Tensor {
	t, err := torch.FromSlice(v, shape...)
	if err != nil {
		d.fail("%v", err)
	}
	torch.Detach(t)
	return t
}

// vectorTensor is n numbers as a tensor of shape [n].
func (d *Data) vectorTensor(name string, n int) torch.Tensor {
	return d.tensor(d.vector(name, n), n)
}
