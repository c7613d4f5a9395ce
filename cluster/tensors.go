package cluster

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// tensor is a tensor on the wire. float64 holds the values of all types but int64 without loss.
type tensor struct {
	Name     string
	Shape    []int
	DType    int // libtorch's number
	Floats   []float64
	Integers []int
}

func packTensor(name string, t torch.Tensor) (out tensor, err error) {
	out.Name = name
	if out.Shape, err = torch.Shape(t); err != nil {
		return out, err
	}
	dtype, err := torch.DTypeOfTensor(t)
	if err != nil {
		return out, err
	}
	out.DType = int(dtype.CInt())
	if dtype == gotch.Int64 {
		out.Integers, err = torch.ToSlice[int](t)
	} else {
		out.Floats, err = torch.ToSlice[float64](t)
	}
	return out, err
}

func (t tensor) unpack() (torch.Tensor, error) {
	dtype := gotch.CKind2DType(int32(t.DType))
	if dtype == gotch.Int64 {
		return torch.FromSliceOn(torch.CPU, dtype, t.Integers, t.Shape...)
	}
	return torch.FromSliceOn(torch.CPU, dtype, t.Floats, t.Shape...)
}

// packBatch writes named tensors in the order of their names, so that equal data are equal bytes.
func packBatch(b infer.Batch) ([]byte, error) {
	var names []string
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []tensor
	for _, name := range names {
		t, err := packTensor(name, b[name])
		if err != nil {
			return nil, fmt.Errorf("tensor %q of the data: %w", name, err)
		}
		list = append(list, t)
	}
	var out bytes.Buffer
	err := gob.NewEncoder(&out).Encode(list)
	return out.Bytes(), err
}

func unpackBatch(raw []byte) (infer.Batch, error) {
	var list []tensor
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(&list); err != nil {
		return nil, fmt.Errorf("the data: %w", err)
	}
	b := infer.Batch{}
	for _, t := range list {
		var err error
		if b[t.Name], err = t.unpack(); err != nil {
			return nil, fmt.Errorf("tensor %q of the data: %w", t.Name, err)
		}
	}
	return b, nil
}
