package ppl

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// whole is a tensor of whole numbers, or of float32, of the batch of Compile, as float64: a density that calculates
// with it would convert it in each evaluation. It belongs to one version of the tensor: each change in place makes
// another.
type whole struct {
	from    *ts.Tensor
	version int64
	to      *ts.Tensor
}

// rounding is how much the rounding of float32 may change a log density, relative to it.
const rounding = 1e-4

// largestLook is how many elements of data are looked at as float64, which takes 32 MiB.
const largestLook = 1 << 22

// convertWhole converts the tensors in the batch that the model calculates with. Whole numbers are such if it has
// another density when a quarter is added to them in float64. One that it uses as an index stays as it is: with float64
// the model does not run, or the quarter is cut off. Whole numbers, and float32, are converted where the model has the
// same density to the rounding of float32, which libtorch takes for some functions of whole numbers. Where it does not,
// whole numbers overflow, and are refused.
//
// before is the log posterior at the point, ok whether it is finite.
func (p *Program) convertWhole(point infer.Params, before float64, ok bool) error {
	p.types = map[string]gotch.DType{}
	for name, t := range p.batch {
		if t == nil {
			continue
		}
		dtype, err := torch.DTypeOfTensor(t)
		if err != nil {
			return err
		}
		p.types[name] = dtype
	}
	if !ok { // what is not float64 cannot be judged
		maps.DeleteFunc(p.types, func(_ string, dtype gotch.DType) bool { return dtype != gotch.Double })
		return nil
	}
	for name, dtype := range p.types {
		t, single := p.batch[name], dtype == gotch.Float
		if !single && rank[dtype] == 0 {
			continue
		}
		elements, err := torch.Numel(t)
		if err != nil {
			return err
		}
		if dtype == gotch.Uint8 && elements > largestLook {
			continue
		}
		to, err := asType(t, gotch.Double)
		if err != nil {
			return err
		}
		with := func(x *ts.Tensor) (value float64, ok bool) {
			trial := maps.Clone(p.batch)
			trial[name] = x
			return p.valueOf(point, trial)
		}
		near := func(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*(1+math.Abs(b)) }
		value, use := with(to)
		switch {
		case single:
			use = use && near(value, before, rounding)
		case use:
			moved, err := to.AddScalar(ts.FloatScalar(0.25), false)
			if err != nil {
				return err
			}
			beyond, ok := with(moved)
			torch.Free(moved)
			use = !ok || !near(beyond, value, 1e-12)
			if dtype == gotch.Bool { // a sum of booleans is an or
				use = use && near(value, before, 1e-12)
			}
			if use && !near(value, before, rounding) {
				torch.Free(to)
				return fmt.Errorf("batch tensor %q is of type %v, and the log density is %.6g with it, and %.6g with the same "+
					"numbers in float64: what is calculated of whole numbers overflows; convert it once, "+
					"torch.To(x, torch.CPU, gotch.Double): %w", name, dtype, before, value, infer.ErrConfig)
			}
			use = use && dtype != gotch.Uint8 // bytes are often images: eight times the memory
		}
		if !use {
			torch.Free(to)
			continue
		}
		torch.Detach(to)
		if p.whole == nil {
			p.whole = map[string]whole{}
		}
		p.whole[name] = whole{from: t, version: t.Must_Version(false), to: to}
		p.types[name] = gotch.Double
	}
	return nil
}

// findIndices finds the data of float64 and float32 that the model uses as indices: with a fraction added to them it
// refuses them. Runs check those of their own batches, since evaluations do not.
func (p *Program) findIndices(point infer.Params) error {
	all := maps.Clone(p.batch) // with a fraction of its own added to each that may be an index, for differences of two
	moved := map[string]*ts.Tensor{}
	defer func() {
		for _, t := range moved {
			torch.Free(t)
		}
	}()
	for i, name := range slices.Sorted(maps.Keys(p.batch)) {
		t := p.batch[name]
		if t == nil {
			continue
		}
		dtype, err := torch.DTypeOfTensor(t)
		if err != nil || dtype != gotch.Double && dtype != gotch.Float {
			continue
		}
		if n, err := torch.Numel(t); err != nil || n > largestLook {
			continue
		}
		values, err := torch.ToSlice[float64](t)
		if err != nil || slices.ContainsFunc(values, func(v float64) bool { // NaN may be missing, and replaced
			return v < 0 || v != math.Trunc(v) && !math.IsNaN(v)
		}) {
			continue
		}
		_, fraction := math.Modf(0.6180339887 * float64(i+1))
		to, err := t.AddScalar(ts.FloatScalar(0.1+0.8*fraction), false)
		if err != nil {
			return err
		}
		moved[name], all[name] = to, to
	}
	// Mostly there is no index, which one run tells. A model that refuses its own data computes an index, and refuses
	// it whatever is added to the data.
	if len(moved) == 0 || p.runChecked(point, all) == nil || notWhole(p.runChecked(point, p.batch)) {
		return nil
	}
	for name, to := range moved {
		trial := maps.Clone(p.batch)
		trial[name] = to
		if notWhole(p.runChecked(point, trial)) {
			if p.indices == nil {
				p.indices = map[string]bool{}
			}
			p.indices[name] = true
		}
	}
	return nil
}

// runChecked runs the model at a point as no evaluation does: its indices are checked.
func (p *Program) runChecked(point infer.Params, batch infer.Batch) (err error) {
	defer func() {
		if r := recover(); r != nil { // of a function of the user's that looked at the values
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return torch.Do(func(*torch.Scope) error {
		e := &evaluator{program: p, point: point, collect: func(*Site) {}}
		execute(p.model, batch, nil, struct{ Handler }{e}) // in an evaluation nothing is checked
		return nil
	})
}

// notWhole says whether an error is that of an index which is not a whole number.
func notWhole(err error) bool {
	var wrong *torch.Error
	return errors.As(err, &wrong) && strings.Contains(wrong.Message, "is not a whole number")
}

// checkIndices makes sure that data that are used as an index are whole numbers, where reading them is cheap. Where
// they are not, the model may still replace them, or calculate a whole number: it runs once to tell.
func (p *Program) checkIndices(b infer.Batch) error {
	wrong := map[string]error{}
	mended := maps.Clone(b) // with whole numbers in their place
	defer func() {
		for name := range wrong {
			torch.Free(mended[name])
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(p.indices)) {
		t := b[name]
		if t == nil {
			continue
		}
		device, err := torch.DeviceOf(t)
		if err != nil {
			return fmt.Errorf("batch tensor %q: %w", name, err)
		}
		if device != torch.CPU {
			continue
		}
		values, err := torch.ToSlice[float64](t)
		if err != nil {
			return fmt.Errorf("batch tensor %q: %w", name, err)
		}
		i := slices.IndexFunc(values, func(v float64) bool { return v != math.Trunc(v) || math.IsInf(v, 0) })
		if i < 0 {
			continue
		}
		shape := shapeOf(t)
		fault := fmt.Errorf("batch tensor %q has %v at element %v of shape %v, and the model uses it as an index, which "+
			"must be a whole number: %w", name, values[i], indexOf(i, shape), shape, infer.ErrConfig)
		for j, v := range values {
			if v != math.Trunc(v) || math.IsInf(v, 0) {
				values[j] = 0
			}
		}
		to, err := torch.FromSlice(values, append([]int64{}, shape...)...)
		if err != nil {
			return err
		}
		wrong[name], mended[name] = fault, to
	}
	if len(wrong) == 0 {
		return nil
	}
	point, err := p.scattered(0.3)
	if err != nil {
		return err
	}
	defer torch.Free(point.Flat)
	if !notWhole(p.runChecked(point, b)) {
		return nil
	}
	names := slices.Sorted(maps.Keys(wrong))
	for _, name := range names { // it may refuse one of several
		trial := maps.Clone(mended)
		trial[name] = b[name]
		if len(names) == 1 || notWhole(p.runChecked(point, trial)) {
			return wrong[name]
		}
	}
	return wrong[names[0]]
}

// scattered is a point whose values are scattered over ±scale, so that nothing cancels.
func (p *Program) scattered(scale float64) (infer.Params, error) {
	values := make([]float64, p.layout.Dim())
	for i := range values {
		values[i] = scale * math.Cos(2.4*float64(i)+1)
	}
	return infer.NewParams(p.layout, values)
}

// rank orders the types of whole numbers: each has all the numbers of those before it.
var rank = map[gotch.DType]int{gotch.Bool: 1, gotch.Uint8: 2, gotch.Int8: 2, gotch.Int16: 3, gotch.Int: 4,
	gotch.Int64: 5}

// asType is a tensor of another type on its device.
func asType(t *ts.Tensor, dtype gotch.DType) (*ts.Tensor, error) {
	device, err := torch.DeviceOf(t)
	if err != nil {
		return nil, err
	}
	return torch.To(t, device, dtype)
}

// ConvertBatch gives a batch of data the types that the model calculates with, as [Compile] has found them by name:
// float64, but for what the model uses as an index, which stays whole numbers. Runs at points of float64 do so once for
// each batch; evaluations need no conversion then. A part of a type that cannot be had without loss is an error that
// names it, and so is an index that is not whole. Parts that were not there at Compile stay as they are, and a batch
// that fits is returned itself.
func (p *Program) ConvertBatch(b infer.Batch) (infer.Batch, error) {
	if err := p.checkIndices(b); err != nil {
		return nil, err
	}
	out, copied := b, false
	for name, t := range b {
		want, known := p.types[name]
		if t == nil || !known {
			continue
		}
		have, err := torch.DTypeOfTensor(t)
		if err != nil {
			return nil, fmt.Errorf("batch tensor %q: %w", name, err)
		}
		counts := rank[have] > 0 && rank[want] > 0
		switch {
		case have == want, counts && rank[have] > rank[want] && want != gotch.Bool: // an index may be wider
			continue
		case want == gotch.Uint8 && !counts: // bytes may be an index or numbers
			continue
		case want == gotch.Double:
		case counts && rank[have] < rank[want]:
		default:
			use := "its values would be rounded"
			switch {
			case want == gotch.Bool:
				use = "the model uses it as truth values"
			case rank[want] > 0:
				use = "the model uses it as whole numbers, such as an index"
			}
			return nil, fmt.Errorf("batch tensor %q is of type %v, and was of type %v when the model was compiled, and %s: "+
				"give it that type, or compile the model on data of type %v: %w", name, have, want, use, have, infer.ErrConfig)
		}
		to := (*ts.Tensor)(nil)
		if w := p.whole[name]; w.from == t && t.Must_Version(false) == w.version {
			to = w.to
		} else if to, err = asType(t, want); err != nil {
			return nil, fmt.Errorf("batch tensor %q: %w", name, err)
		}
		if !copied {
			out, copied = maps.Clone(b), true
		}
		out[name] = to
	}
	return out, nil
}

// valueOf is the log posterior at a point; not ok where the model does not run, or the value is not finite.
func (p *Program) valueOf(point infer.Params, batch infer.Batch) (value float64, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // a function of the user's looked at the type
		}
	}()
	err := torch.Do(func(*torch.Scope) (err error) {
		logp, _ := p.density()(point, batch)
		value, err = torch.Item(logp.T())
		return err
	})
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// converted is a batch with the float64 form of its data, where a point of float64 is evaluated on the batch
// of Compile.
func (p *Program) converted(point infer.Params, batch infer.Batch) infer.Batch {
	if len(p.whole) == 0 || point.Flat == nil || point.Flat.DType() != gotch.Double {
		return batch
	}
	out := maps.Clone(batch)
	for name, w := range p.whole {
		if batch[name] == w.from && w.from.Must_Version(false) == w.version {
			out[name] = w.to
		}
	}
	return out
}
