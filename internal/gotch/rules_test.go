package gotch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The forms of generated methods, before and after.
func TestAdaptMethod(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		buffer              bool
	}{
		{"one output, a tensor and a scalar",
			`func(ts *Tensor) AddScalar(other *Scalar, del bool)(retVal *Tensor, err error) { 
  if del { defer ts.MustDrop() }
  ptr := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))
  
    lib.AtgAddScalar(ptr, ts.ctensor, other.cscalar)
  if err = TorchErr(); err != nil {
    err = fmt.Errorf("AddScalar() failed: %w", err)
    return retVal, err
  }
  retVal = newTensor(*ptr, "AddScalar")
  
  return retVal, err
} 
`, `func(ts *Tensor) AddScalar(other *Scalar, del bool)(retVal *Tensor, err error) { 
  if del { defer ts.MustDrop() }
  made, ptr := newResult()
  
    
  if !ts.begin() { err = deadError("AddScalar", ts); return retVal, err }
  if !other.begin() { ts.end(); err = deadScalarError("AddScalar"); return retVal, err }
  lib.AtgAddScalar(ptr, ts.ctensor, other.cscalar)
  ts.end()
  other.end()
  if *ptr == nil {
    err = opError("AddScalar", made.second, ts)
    return retVal, err
  }
  retVal = made.adopted()
  
  return retVal, err
} 
`, true},
		{"in place", `func(ts *Tensor) Abs_()(err error) { 
  ptr := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))
  
    lib.AtgAbs_(ptr, ts.ctensor)
  if err = TorchErr(); err != nil {
    err = fmt.Errorf("Abs_() failed: %w", err)
    return err
  }
  ts.ctensor = *ptr
  
  return err
} 
`, `func(ts *Tensor) Abs_()(err error) { 
  var slot [2]lib.Ctensor
  ptr := &slot[0]
  
    
  if !ts.begin() { err = deadError("Abs_", ts); return err }
  lib.AtgAbs_(ptr, ts.ctensor)
  ts.end()
  if slot[0] == nil {
    err = opError("Abs_", slot[1], ts)
    return err
  }
  ts.replace(*ptr)
  
  return err
} 
`, true},
		{"two outputs",
			`func(ts *Tensor) MaxDim(dim int64, keepdim bool, del bool)(retVal0 *Tensor, retVal1 *Tensor, err error) { 
  if del { defer ts.MustDrop() }
  ctensorPtr0 := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))
  ctensorPtr1 := (*lib.Ctensor)(unsafe.Pointer(uintptr(unsafe.Pointer(ctensorPtr0)) + unsafe.Sizeof(ctensorPtr0)))
  
  lib.AtgMaxDim(ctensorPtr0, ts.ctensor, dim, ckeepdim)
  if err = TorchErr(); err != nil {
    err = fmt.Errorf("MaxDim() failed: %w", err)
    return retVal0, retVal1, err
  }
  retVal0 = newTensor(*ctensorPtr0, "MaxDim_0")
  retVal1 = newTensor(*ctensorPtr1, "MaxDim_1")
  
  return retVal0, retVal1, err
} 
`, `func(ts *Tensor) MaxDim(dim int64, keepdim bool, del bool)(retVal0 *Tensor, retVal1 *Tensor, err error) { 
  if del { defer ts.MustDrop() }
  var slot [3]lib.Ctensor
  ctensorPtr0 := &slot[0]
  ctensorPtr1 := &slot[1]
  
  
  if !ts.begin() { err = deadError("MaxDim", ts); return retVal0, retVal1, err }
  lib.AtgMaxDim(ctensorPtr0, ts.ctensor, dim, ckeepdim)
  ts.end()
  if slot[0] == nil {
    err = opError("MaxDim", slot[1], ts)
    return retVal0, retVal1, err
  }
  retVal0 = adoptIn(*ctensorPtr0, slot[2])
  retVal1 = adoptIn(*ctensorPtr1, slot[2])
  
  return retVal0, retVal1, err
} 
`, true},
		{"a list", `func Cat(tensors []*Tensor, dim int64)(retVal *Tensor, err error) { 
  ptr := (*lib.Ctensor)(unsafe.Pointer(C.malloc(0)))
  
  var ctensors []lib.Ctensor
  for _, t := range tensors {ctensors = append(ctensors, t.ctensor)}
  lib.AtgCat(ptr, ctensors, len(ctensors), dim)
  if err = TorchErr(); err != nil {
    err = fmt.Errorf("Cat() failed: %w", err)
    return retVal, err
  }
  retVal = newTensor(*ptr, "Cat")
  
  return retVal, err
} 
`, `func Cat(tensors []*Tensor, dim int64)(retVal *Tensor, err error) { 
  made, ptr := newResult()
  
  var ctensors []lib.Ctensor
  for _, t := range tensors {ctensors = append(ctensors, t.handle())}
  
  if !beginAll(tensors) { err = deadError("Cat", tensors...); return retVal, err }
  lib.AtgCat(ptr, ctensors, len(ctensors), dim)
  endAll(tensors)
  if *ptr == nil {
    err = opError("Cat", made.second, tensors...)
    return retVal, err
  }
  retVal = made.adopted()
  
  return retVal, err
} 
`, true},
		{"a query", `func(ts *Tensor) Equal(other *Tensor, del bool)(retVal bool, err error) { 
  if del { defer ts.MustDrop() }
  
    retVal = lib.AtgEqual(ts.ctensor, other.ctensor)
  if err = TorchErr(); err != nil {
    err = fmt.Errorf("Equal() failed: %w", err)
    return retVal, err
  }
  return retVal, err
} 
`, `func(ts *Tensor) Equal(other *Tensor, del bool)(retVal bool, err error) { 
  if del { defer ts.MustDrop() }
  defer lockThread()()
  if !ts.begin() { return retVal, deadError("Equal", ts, other) }
  defer ts.end()
  if !other.begin() { return retVal, deadError("Equal", ts, other) }
  defer other.end()
  
    retVal = lib.AtgEqual(ts.ctensor, other.ctensor)
  if err = threadError("Equal", ts, other); err != nil {
    return retVal, err
  }
  return retVal, err
} 
`, false},
		{"neither", "func helper() int { \n  return 1\n} \n", "func helper() int { \n  return 1\n} \n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := adaptMethod(c.before)
			assert.Equal(t, c.buffer, ok)
			assert.Empty(t, cmp.Diff(c.after, got))
		})
	}
}

// Hand-written functions: the error is returned with zero values, or is a panic where none is returned; each operand is
// asked once; inside a loop and a case too.
func TestGuardUses(t *testing.T) {
	const before = `package ts

func (ts *Tensor) Dim() uint64 {
	dim := lib.AtDim(ts.ctensor)
	if err := TorchErr(); err != nil {
		log.Fatal(err)
	}
	return dim
}

func (ts *Tensor) Stride() ([]int64, error) {
	dim := lib.AtDim(ts.ctensor)
	lib.AtStride(ts.ctensor, dim)
	return nil, TorchErr()
}

func (ts *Tensor) Gru(hx *Tensor, params []*Tensor) (output, h *Tensor, err error) {
	for _, t := range params {
		list = append(list, t.ctensor)
	}
	lib.AtgGru(ptr, ts.ctensor, hx.ctensor)
	if err = slotError(slot[:]); err != nil {
		return output, h, err
	}
	return
}

func (iv *IValue) Make() (*CIValue, error) {
	switch iv.name {
	case "Tensor":
		return lib.Make(iv.value.(*Tensor).ctensor), nil
	}
	return nil, nil
}

func untouched() error { return nil } // ts.ctensor
`
	const after = `package ts

func (ts *Tensor) Dim() uint64 {
	defer lockThread()()
	if !ts.begin() { KelvinFatal(ts.deadIn("Dim")) }
	defer ts.end()
	dim := lib.AtDim(ts.ctensor)
	if err := threadError("Dim", ts); err != nil {
		log.Fatal(err)
	}
	return dim
}

func (ts *Tensor) Stride() ([]int64, error) {
	defer lockThread()()
	if !ts.begin() { var zero0 []int64; return zero0, ts.deadIn("Stride") }
	defer ts.end()
	dim := lib.AtDim(ts.ctensor)
	lib.AtStride(ts.ctensor, dim)
	return nil, threadError("Stride", ts)
}

func (ts *Tensor) Gru(hx *Tensor, params []*Tensor) (output, h *Tensor, err error) {
	for _, t := range params {
		if !t.begin() { return output, h, t.deadIn("Gru") }
	defer t.end()
	list = append(list, t.ctensor)
	}
	if !ts.begin() { return output, h, ts.deadIn("Gru") }
	defer ts.end()
	if !hx.begin() { return output, h, hx.deadIn("Gru") }
	defer hx.end()
	lib.AtgGru(ptr, ts.ctensor, hx.ctensor)
	if err = slotError("Gru", slot[:], ts, hx); err != nil {
		return output, h, err
	}
	return
}

func (iv *IValue) Make() (*CIValue, error) {
	switch iv.name {
	case "Tensor":
		if !iv.value.(*Tensor).begin() { var zero0 *CIValue; return zero0, iv.value.(*Tensor).deadIn("Make") }
	defer iv.value.(*Tensor).end()
	return lib.Make(iv.value.(*Tensor).ctensor), nil
	}
	return nil, nil
}

func untouched() error { return nil } // ts.ctensor
`
	got, met, err := guardUses(before)
	require.NoError(t, err)
	assert.Equal(t, 6, met)
	assert.Empty(t, cmp.Diff(after, got))
	_, _, err = guardUses("not Go")
	assert.Error(t, err)
}
