// Package safetensors reads and writes tensors in files of the format safetensors, in which weights of networks are
// exchanged. It needs no libtorch; package weights puts what it reads into the sites of a network.
//
// A file is 8 bytes, the length of the header as a little-endian number; the header, JSON that gives each tensor its
// type, shape and place; and the elements, little-endian, row by row, without gaps. (The one module for it in Go has no
// release, and reads a file whole; the format is a page.)
//
// A reader trusts nothing: lengths and places are checked against the size of the file before memory is taken for
// them, so that a file of n bytes costs memory of the order of n. An [Error] names file, tensor and what was expected.
package safetensors

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Tensor is a tensor of a file, without its elements.
type Tensor struct {
	Name  string // of the tensor
	DType string // F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL
	Shape []int64
	begin int64 // of its bytes, from the end of the header
}

// Error says what is wrong with a file.
type Error struct {
	File   string // its path; empty for bytes in memory
	Tensor string // empty where it is the file as a whole
	Reason string // what there is, and what was expected
}

// Error is the file, the tensor and the reason.
func (e *Error) Error() string {
	text := "safetensors: "
	if e.File != "" {
		text += e.File + ": "
	}
	if e.Tensor != "" {
		text += fmt.Sprintf("tensor %q: ", e.Tensor)
	}
	return text + e.Reason
}

// in is the error as one of a file.
func in(file string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.File = file
	}
	return err
}

// sizes are the bytes of an element of each type.
var sizes = map[string]int64{"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2, "I8": 1, "U8": 1,
	"BOOL": 1}

// types lists the known types, for errors.
func types() string {
	var names []string
	for name := range sizes {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// elements is the product of a shape.
func (t Tensor) elements() (int64, error) {
	n := int64(1)
	for _, s := range t.Shape {
		if s < 0 || s > 0 && n > math.MaxInt64/8/s {
			return 0, &Error{Tensor: t.Name,
				Reason: fmt.Sprintf("its shape is %v: expected sizes from 0 whose product "+
					"is below 2^60", t.Shape)}
		}
		n *= s
	}
	return n, nil
}

// bytes is the length of its elements.
func (t Tensor) bytes() (int64, error) {
	size, ok := sizes[t.DType]
	if !ok {
		return 0, &Error{Tensor: t.Name, Reason: fmt.Sprintf("its dtype is %q: expected one of %s", t.DType, types())}
	}
	n, err := t.elements()
	return n * size, err
}
