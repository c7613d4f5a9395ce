package native

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// held are tensors of a batch that live as long as a function needs them, whatever becomes of their scopes.
type held struct{ tensors []torch.Tensor }

func (h *held) add(t torch.Tensor) (torch.Tensor, error) {
	c, err := t.T().Contiguous(false)
	if err != nil {
		return torch.Tensor{}, err
	}
	torch.Detach(torch.Of(c))
	h.tensors = append(h.tensors, torch.Of(c))
	return torch.Of(c), nil
}

func (h *held) free() {
	torch.Free(h.tensors...)
	h.tensors = nil
}

// Set replaces the batch by one of the same shapes. The batch's tensors must not be written to as long as the function
// is used, and no call may be under way.
func (f *Func) Set(batch map[string]torch.Tensor) error {
	if f.replay != nil {
		return f.replay.set(batch)
	}
	inputs, h, err := f.collect(batch)
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*unsafe.Pointer)(f.inputs.at), len(inputs)), inputs)
	f.held.tensors, h.tensors = h.tensors, f.held.tensors
	h.free()
	return f.prepare()
}

// collect gives the addresses of a batch's tensors in the plan's order.
func (f *Func) collect(batch map[string]torch.Tensor) (at []unsafe.Pointer, h *held, err error) {
	h = &held{}
	defer func() {
		if err != nil {
			h.free()
		}
	}()
	for _, slot := range f.plan.Inputs {
		t, ok := batch[slot.Name]
		if !ok {
			return nil, h, fmt.Errorf("native: the batch has no tensor %q", slot.Name)
		}
		shape, err := torch.Shape(t)
		if err != nil {
			return nil, h, fmt.Errorf("native: batch tensor %q: %w", slot.Name, err)
		}
		dtype, err := torch.DTypeOfTensor(t)
		if err != nil {
			return nil, h, err
		}
		if elem, ok := lower.Elements[dtype]; !ok || elem != slot.Elem || !slices.Equal(shape, slot.Shape) {
			return nil, h, fmt.Errorf("native: batch tensor %q is %v of %v, and was of shape %v when the function was compiled",
				slot.Name, shape, dtype, slot.Shape)
		}
		c, err := h.add(t)
		if err != nil {
			return nil, h, err
		}
		p, err := ts.KelvinData(c.T(), int(dtype.CInt()))
		if err != nil {
			return nil, h, err
		}
		at = append(at, p)
	}
	return at, h, nil
}
