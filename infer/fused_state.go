package infer

import (
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/torch"
)

// load takes the state over.
func (f *fused) load() (ok bool, err error) {
	if f.chains != nil {
		return true, nil
	}
	tensors, streams := f.method.FusedParts(f.state)
	if len(tensors) == 0 {
		return false, nil
	}
	c := fuse.New(f.layout.Dim(), len(tensors)-1, streams)
	for i, t := range tensors {
		err := torch.View(t, func(x []float64) error {
			c.Set(fuse.OfState(i), x)
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	for k, held := range f.stuck {
		c.SetHeld(k, held)
	}
	f.chains, f.own = c, f.state.Steps()-f.steps
	return true, nil
}

// sync brings the state up to date.
func (f *fused) sync() error {
	if f == nil || !f.ahead {
		return nil
	}
	return torch.Do(func(*torch.Scope) error {
		tensors, _ := f.method.FusedParts(f.state)
		shape, err := torch.Shape(f.state.Position().Flat)
		if err != nil {
			return err
		}
		for i := range tensors {
			if tensors[i], err = torch.FromSlice(f.chains.Get(fuse.OfState(i)), shape...); err != nil {
				return err
			}
		}
		f.replace(f.method.FusedState(f.state, f.own+f.steps, f.chains.Offset(), tensors))
		f.ahead = false
		return nil
	})
}

// leave lets an update with tensors come next.
func (f *fused) leave() error {
	err := f.sync()
	if f.chains != nil {
		f.chains.Unbind()
	}
	f.chains = nil
	return err
}
