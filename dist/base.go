package dist

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Source gives random numbers to Sample.
type Source = torch.Source

// base is what all families have: a name, shapes and parameters. Families embed it.
type base struct {
	family string
	batch  []int
	event  []int
	shared *family
	values []torch.Tensor // of the family's parameters
}

// family is what the distributions of a family share: a name, the distribution that has a base, and the parameters in
// the order of the constructor. Distributions point to it, so that those with equal parameters are deeply equal.
type family struct {
	name    string
	support support.Support
	of      func(base) Distribution
	params  []parameter
}

// itsOwn stands for a support that the parameters tell, by a method of the distribution.
var itsOwn support.Support

// parameter is a parameter's name, and what each of its elements must be.
type parameter struct {
	name    string
	allowed check
}

// with is the distribution whose parameters are given; a misfit where they are wrong.
func (f *family) with(given ...any) (made Distribution) {
	defer orMisfit(&made)
	return f.build(given...)
}

// build is the distribution whose parameters are given, or a panic.
func (f *family) build(given ...any) Distribution { return f.of(f.base(f.name, given...)) }

// base is the base of a distribution whose parameters are given, under a name; for families with scalar events.
func (f *family) base(name string, given ...any) base {
	values := make([]torch.Tensor, len(given))
	for i, p := range f.params {
		values[i] = param(name, p.name, given[i])
	}
	return f.sized(newBase(name, values...), values...)
}

// sized is a base of such shapes with the values of the parameters. It panics when one is a number out of its domain.
func (f *family) sized(b base, values ...torch.Tensor) base {
	b.shared, b.values = f, values
	for i, p := range f.params {
		b.checkNumber(p.name, values[i], p.allowed)
	}
	return b
}

// at is the value of a parameter.
func (b base) at(i int) torch.Tensor { return b.values[i] }

// with is the distribution with other values of its parameters.
func (b base) with(values ...torch.Tensor) Distribution {
	b.values = values
	return b.shared.of(b)
}

// Support is the family's.
func (b base) Support() support.Support { return b.shared.support }

// Expand broadcasts the batch shape.
func (b base) Expand(batch ...int) Distribution {
	b = b.expand(batch)
	return b.shared.of(b)
}

// Validate checks the elements of each parameter.
func (b base) Validate() error {
	for i, p := range b.shared.params {
		if err := b.validate(p.name, b.values[i], p.allowed); err != nil {
			return err
		}
	}
	return nil
}

// Params are the parameters by name.
func (b base) Params() map[string]any {
	out := map[string]any{}
	for i, p := range b.shared.params {
		out[p.name] = b.values[i]
	}
	return out
}

// newBase is a base whose batch shape is the broadcast of the parameters' shapes; for families with scalar events.
func newBase(family string, params ...torch.Tensor) base {
	shapes := make([][]int, len(params))
	for i, p := range params {
		shapes[i] = p.Shape()
	}
	return base{family: family, batch: broadcast(family, shapes...)}
}

// Name is the family's name.
func (b base) Name() string { return b.family }

// BatchShape is the shape of the independent distributions.
func (b base) BatchShape() []int { return slices.Clone(b.batch) }

// EventShape is the shape of one draw.
func (b base) EventShape() []int { return slices.Clone(b.event) }

// expand is the base with another batch shape, which the present one must broadcast to.
func (b base) expand(batch []int) base {
	if got := broadcast(b.family, b.batch, batch); !slices.Equal(got, batch) && !(len(got) == 0 && len(batch) == 0) {
		panic(&Error{b.family, "", fmt.Sprintf("batch shape %v", b.batch), fmt.Sprintf("it does not broadcast to %v", batch)})
	}
	b.batch = slices.Clone(batch)
	return b
}

// full gives a tensor at least the batch shape: the log density of a value that was smaller than the batch.
func (b base) full(logp torch.Tensor) torch.Tensor {
	if len(b.batch) == 0 {
		return logp
	}
	have := logp.Shape()
	want := broadcast(b.family, have, b.batch)
	if slices.Equal(have, want) {
		return logp
	}
	return expandTo(logp, want)
}

// spread is a parameter or moment as a tensor of shape batch + event.
func (b base) spread(v torch.Tensor) torch.Tensor { return expandTo(v, join(b.batch, b.event)) }

// like is the type and device that draws have: those of the first tensor among the parameters, else
// float64 in main memory.
func like(params ...torch.Tensor) (gotch.DType, gotch.Device) {
	for _, p := range params {
		if !operand.IsNumber(p) {
			return torch.Must(torch.DTypeOfTensor(p)), torch.Must(torch.DeviceOf(p))
		}
	}
	return gotch.Double, torch.CPU
}

// check is a condition on every element of a parameter.
type check struct {
	allowed string
	ok      func(float64) bool
}

var (
	finite      = check{"it must be finite", func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }}
	positive    = check{"it must be greater than 0", func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }}
	nonNegative = check{"it must be at least 0", func(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }}
	probability = check{"it must be from 0 to 1", func(v float64) bool { return v >= 0 && v <= 1 }}
)

// checkNumber panics when a parameter is a number out of its domain; tensors are left to Validate.
func (b base) checkNumber(name string, v torch.Tensor, c check) {
	if operand.IsNumber(v) && !c.ok(operand.Number(v)) {
		panic(&Error{b.family, name, fmt.Sprint(operand.Number(v)), c.allowed})
	}
}

// validate reads a parameter and returns an error that names its first element out of the domain.
func (b base) validate(name string, v torch.Tensor, c check) error {
	if operand.IsNumber(v) {
		if !c.ok(operand.Number(v)) {
			return &Error{b.family, name, fmt.Sprint(operand.Number(v)), c.allowed}
		}
		return nil
	}
	values, err := torch.ToSlice[float64](v)
	if err != nil {
		return err
	}
	for i, x := range values {
		if !c.ok(x) {
			text, allowed := fmt.Sprint(x), c.allowed
			if len(values) > 1 {
				text = fmt.Sprintf("%v at element %d of shape %v", x, i, v.Shape())
			}
			if largest := slices.Max(values); x < 0 && x > -1e-6*largest && c.ok(largest) {
				allowed += fmt.Sprintf("; beside the largest, %v, it is 0 but for the error of what computed it (a solution of "+
					"differential equations, say): give the distribution Max(1e-8) of it", largest)
			}
			return &Error{b.family, name, text, allowed}
		}
	}
	return nil
}

// Parameters and what the families do to tensors.

// param turns an argument of a constructor into a Tensor: a Go number, or a tensor of floating-point numbers, since
// arithmetic of integer tensors would round to integers or float32.
func param(family, name string, x any) torch.Tensor {
	v, found, allowed := operand.Of(x)
	if allowed != "" {
		panic(&Error{Distribution: family, Parameter: name, Value: found, Allowed: allowed})
	}
	if operand.IsNumber(v) {
		return v
	}
	return floating(v)
}

// is says whether a parameter is a certain Go number.
func is(v torch.Tensor, c float64) bool {
	n, ok := v.Number()
	return ok && n == c
}

// dense is a value as a tensor: comparisons of numbers would be no masks.
func dense(v torch.Tensor) torch.Tensor { return torch.Of(v.T()) }

// broadcast is the common shape of several, or a panic that names the family and the shapes.
func broadcast(family string, shapes ...[]int) []int {
	out, ok := operand.Broadcast(shapes...)
	if !ok {
		panic(&Error{family, "", fmt.Sprintf("the shapes %v", shapes), "they do not broadcast to one shape"})
	}
	return out
}

// expandTo broadcasts a tensor to a shape; it is a view.
func expandTo(t torch.Tensor, shape []int) torch.Tensor { return t.Expand(shape...) }

// join concatenates shapes.
func join(shapes ...[]int) []int {
	out := []int{}
	for _, s := range shapes {
		out = append(out, s...)
	}
	return out
}

// orMisfit is deferred by constructors: where one has panicked with an [*Error], made is a misfit with that error.
func orMisfit(made *Distribution) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*made = misfit{r}
	default:
		panic(r)
	}
}

// misfit stands for a distribution whose parameters are wrong, or do not fit each other. Whatever is done with it but
// Validate and Expand is a panic with the error.
type misfit struct{ err *Error }

func (m misfit) Name() string { return m.err.Distribution }

// Mistake is the error, for the site that is given such a distribution.
func (m misfit) Mistake() error { return m.err }

func (m misfit) Validate() error                     { return m.err }
func (m misfit) Expand(...int) Distribution          { return m }
func (m misfit) BatchShape() []int                   { panic(m.err) }
func (m misfit) EventShape() []int                   { panic(m.err) }
func (m misfit) Support() support.Support            { panic(m.err) }
func (m misfit) LogProb(torch.Tensor) torch.Tensor   { panic(m.err) }
func (m misfit) Sample(*Source, ...int) torch.Tensor { panic(m.err) }
func (m misfit) Mean() torch.Tensor                  { panic(m.err) }
func (m misfit) Variance() torch.Tensor              { panic(m.err) }

// These are for models that ask for a [CDFer], an [ICDFer], an [Enumerable] or a [Summer].
func (m misfit) CDF(torch.Tensor) torch.Tensor  { panic(m.err) }
func (m misfit) ICDF(torch.Tensor) torch.Tensor { panic(m.err) }
func (m misfit) EnumerateSupport() torch.Tensor { panic(m.err) }
func (m misfit) SumLogProb(torch.Tensor, Known) ([]torch.Term, float64, bool) {
	panic(m.err)
}
