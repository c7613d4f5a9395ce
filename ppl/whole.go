package ppl

import (
	"maps"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// whole is a tensor of whole numbers of the batch of Compile, as float64: a density that calculates with it would
// convert it in each evaluation. It belongs to one version of the tensor: each change in place makes another.
type whole struct {
	from    *ts.Tensor
	version int64
	to      *ts.Tensor
}

// convertWhole converts the tensors of whole numbers in the batch that the model calculates with: it has the same
// density with float64 in their place, and another one when a quarter is added to them. One that it uses as an index
// stays as it is: with float64 the model does not run, or the quarter is cut off.
func (p *Program) convertWhole() error {
	values := make([]float64, p.layout.Dim())
	for i := range values {
		values[i] = 0.3 * math.Cos(2.4*float64(i)+1) // where nothing cancels
	}
	point, err := infer.NewParams(p.layout, values)
	if err != nil {
		return err
	}
	defer torch.Free(point.Flat)
	before, ok := p.valueOf(point, p.batch)
	if !ok {
		return nil
	}
	for name, t := range p.batch {
		if t == nil {
			continue
		}
		switch dtype, err := torch.DTypeOfTensor(t); {
		case err != nil:
			return err
		case dtype != gotch.Int64 && dtype != gotch.Int && dtype != gotch.Int16 && dtype != gotch.Int8:
			continue
		}
		device, err := torch.DeviceOf(t)
		if err != nil {
			return err
		}
		to, err := torch.To(t, device, gotch.Double)
		if err != nil {
			return err
		}
		same := func(x *ts.Tensor) bool {
			trial := maps.Clone(p.batch)
			trial[name] = x
			value, ok := p.valueOf(point, trial)
			return ok && math.Abs(value-before) <= 1e-12*(1+math.Abs(before))
		}
		moved, err := to.AddScalar(ts.FloatScalar(0.25), false)
		if err != nil {
			return err
		}
		use := same(to) && !same(moved)
		torch.Free(moved)
		if !use {
			torch.Free(to)
			continue
		}
		torch.Detach(to)
		if p.whole == nil {
			p.whole = map[string]whole{}
		}
		p.whole[name] = whole{from: t, version: t.Must_Version(false), to: to}
	}
	return nil
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

// converted is a batch with the float64 form of its whole numbers, where a point of float64 is evaluated on the batch
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
