package ppl

import (
	"errors"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
)

// compiledElements is for how many numbers tensors of draws are compiled: below it operations cost less than that.
const compiledElements = 1 << 22

// outputs are tensors of many draws, by the virtual machine, which compiles in the time of some evaluations. The zero
// value compiles at its first draws.
type outputs struct {
	code *native.Func // nil before, and where it is not compiled
	done bool
}

// pointwiseOf are tensors by name, of one draw whose values are in.
type pointwiseOf func(in []torch.Tensor, batch infer.Batch) Values

// evaluate is f at each of n draws, whose values have a leading dimension of draws. It is nil where f is to be
// evaluated by operations.
func (o *outputs) evaluate(f pointwiseOf, in []torch.Tensor, batch infer.Batch, n int) (Values, error) {
	if o == nil || o.done && o.code == nil {
		return nil, nil
	}
	x, err := joined(in, n)
	if err != nil {
		return nil, err
	}
	if !o.done {
		o.done = true
		o.code = compileOutputs(f, in, batch, x, n)
		if o.code == nil {
			return nil, nil
		}
	}
	d, sizes := o.code.Dim(), []int{}
	all := make([][]float64, len(o.code.Outputs()))
	for i, slot := range o.code.Outputs() {
		sizes = append(sizes, slot.Len())
		all[i] = make([]float64, n*slot.Len())
	}
	failed := make([]error, n)
	sample.Each(n, func(k int) {
		aux := make([][]float64, len(all))
		for i, a := range all {
			aux[i] = a[k*sizes[i] : (k+1)*sizes[i]]
		}
		failed[k] = o.code.Rows(x[k*d:(k+1)*d], 0, make([]float64, 1), make([]float64, d), aux)
	})
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	out := Values{}
	for i, slot := range o.code.Outputs() {
		if out[slot.Name], err = torch.FromSlice(all[i], append([]int{n}, slot.Shape...)...); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// joined are draws of several tensors as rows of numbers.
func joined(in []torch.Tensor, n int) ([]float64, error) {
	var rows [][]float64
	width := 0
	for _, t := range in {
		v, err := torch.ToSlice[float64](t)
		if err != nil {
			return nil, err
		}
		rows, width = append(rows, v), width+len(v)/n
	}
	x := make([]float64, 0, n*width)
	for k := range n {
		for _, v := range rows {
			size := len(v) / n
			x = append(x, v[k*size:(k+1)*size]...)
		}
	}
	return x, nil
}

// compileOutputs compiles f, and compares it with operations at the first and the last draw; nil where it has other
// numbers there, or cannot be compiled.
func compileOutputs(f pointwiseOf, in []torch.Tensor, batch infer.Batch, x []float64, n int) *native.Func {
	d := len(x) / n
	at := func(x torch.Tensor, batch infer.Batch) Values {
		var parts []torch.Tensor
		from := 0
		for _, t := range in {
			shape := shapeOf(t)[1:]
			size := count(shape)
			parts = append(parts, torch.Of(x.T().MustNarrow(0, int64(from), int64(size), false)).Reshape(shape...))
			from += size
		}
		out := f(parts, batch)
		for name, t := range out {
			out[name] = torch.Of(t.T().MustContiguous(false))
		}
		return out
	}
	points := [][]float64{x[:d], x[len(x)-d:]}
	code, err := compileValues(at, points, batch, native.Options{Tier: native.VM, GradientFree: true})
	if err != nil {
		return nil
	}
	for _, x := range points {
		if !sameOutputs(code, x, func() Values { return at(torch.New(x), batch) }) {
			return nil
		}
	}
	return code
}

// compileValues compiles tensors by name of a point.
func compileValues(f func(x torch.Tensor, batch infer.Batch) Values, points [][]float64, batch infer.Batch,
	o native.Options) (*native.Func, error) {
	source := native.Source{Dim: len(points[0]), Batch: batch}
	source.Evaluate = func(x torch.Tensor, batch map[string]torch.Tensor) (values, grads []torch.Tensor,
		aux map[string]torch.Tensor, err error) {
		err = torch.NoGrad(func() error {
			aux = f(x, batch)
			values, grads = []torch.Tensor{zeros(nil)}, []torch.Tensor{zeros([]int{source.Dim})}
			return nil
		})
		return values, grads, aux, err
	}
	code, _, err := native.Compile(source, points, o)
	return code, err
}

// sameOutputs says whether code has the outputs that operations give at x.
func sameOutputs(code *native.Func, x []float64, operations func() Values) bool {
	var aux [][]float64
	for _, s := range code.Outputs() {
		if s.Len() == 0 {
			return false
		}
		aux = append(aux, make([]float64, s.Len()))
	}
	same := false
	err := torch.Do(func(*torch.Scope) error {
		err := code.Rows(x, 0, make([]float64, 1), make([]float64, len(x)), aux)
		if err != nil {
			return err
		}
		want := operations()
		same = len(want) == len(aux)
		for i, s := range code.Outputs() {
			v, err := torch.ToSlice[float64](want[s.Name])
			if err != nil {
				return err
			}
			same = same && near(aux[i], v)
		}
		return nil
	})
	return err == nil && same
}
