package ppl

import (
	"fmt"
	"maps"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// whole is a tensor of whole numbers, or of float32, of the batch of Compile, as float64: a density that calculates
// with it would convert it in each evaluation. It belongs to one version of the tensor: each change in place makes
// another.
type whole struct {
	from    torch.Tensor
	version int
	to      torch.Tensor
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
		with := func(x torch.Tensor) (value float64, ok bool) {
			trial := maps.Clone(p.batch)
			trial[name] = x
			return p.valueOf(point, trial)
		}
		near := func(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*(1+math.Abs(b)) }
		value, use := with(to)
		if rounded := exact(name, t, to); rounded != nil {
			half, err := to.T().MulScalar(ts.FloatScalar(0.5), false)
			if err != nil {
				return err
			}
			beyond, ok := with(torch.Of(half))
			torch.Free(torch.Of(half))
			if !ok || !near(beyond, value, 1e-12) { // the model calculates with it
				torch.Free(to)
				return rounded
			}
		}
		switch {
		case single:
			use = use && near(value, before, rounding)
		case use:
			moved, err := to.T().AddScalar(ts.FloatScalar(0.25), false)
			if err != nil {
				return err
			}
			beyond, ok := with(torch.Of(moved))
			torch.Free(torch.Of(moved))
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
		p.whole[name] = whole{from: t, version: int(t.T().Must_Version(false)), to: to}
		p.types[name] = gotch.Double
	}
	return nil
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

// exact is an error where numbers of int64 are others as float64.
func exact(name string, t, to torch.Tensor) error {
	if have, err := torch.DTypeOfTensor(t); err != nil || have != gotch.Int64 {
		return err
	}
	return torch.Do(func(*torch.Scope) error {
		back, err := asType(to, gotch.Int64)
		if err != nil {
			return err
		}
		within := to.T().MustLt(ts.FloatScalar(1<<63), false).MustAll(false) // else the way back is undefined
		if inside, err := torch.ToSlice[bool](torch.Of(within)); err != nil || inside[0] && back.T().MustEqual(t.T(), false) {
			return err
		}
		return fmt.Errorf("batch tensor %q has whole numbers beyond 2^53 that float64 rounds: subtract a number near them "+
			"first, or use them as an index: %w", name, infer.ErrConfig)
	})
}

// asType is a tensor of another type on its device.
func asType(t torch.Tensor, dtype gotch.DType) (torch.Tensor, error) {
	device, err := torch.DeviceOf(t)
	if err != nil {
		return torch.Tensor{}, err
	}
	return torch.To(t, device, dtype)
}

// ConvertBatch gives a batch of data the types that the model calculates with, as [Compile] has found them by name:
// float64, but for what the model uses as an index, which stays whole numbers. Runs at points of float64 do so once for
// each batch; evaluations need no conversion then. A part of a type that cannot be had without loss is an error that
// names it, and so is an index that is not whole. Parts that were not there at Compile stay as they are, and a batch
// that fits is returned itself.
func (p *Program) ConvertBatch(b infer.Batch) (infer.Batch, error) {
	b = b.Tensors()
	if err := p.checkIndices(b); err != nil {
		return nil, err
	}
	out, copied := b, false
	for name, t := range b {
		want, known := p.types[name]
		if !known {
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
		var to torch.Tensor
		if w := p.whole[name]; w.from == t && int(t.T().Must_Version(false)) == w.version {
			to = w.to
		} else if to, err = asType(t, want); err != nil {
			return nil, fmt.Errorf("batch tensor %q: %w", name, err)
		} else if want == gotch.Double {
			if err := exact(name, t, to); err != nil {
				return nil, err
			}
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
		value, err = torch.Item(logp)
		return err
	})
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// converted is a batch with the float64 form of its data, where a point of float64 is evaluated on the batch
// of Compile.
func (p *Program) converted(point infer.Params, batch infer.Batch) infer.Batch {
	if len(p.whole) == 0 || point.Flat == (torch.Tensor{}) || point.Flat.T().DType() != gotch.Double {
		return batch
	}
	out := maps.Clone(batch)
	for name, w := range p.whole {
		if batch[name] == w.from && int(w.from.T().Must_Version(false)) == w.version {
			out[name] = w.to
		}
	}
	return out
}
