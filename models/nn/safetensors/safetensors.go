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
	DType string // F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL; or a type of the format that Values refuses
	Shape []int
	begin int // of its bytes, from the end of the header
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
var sizes = map[string]int{"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2, "I8": 1, "U8": 1,
	"BOOL": 1}

// others are the bits of an element of the types of the format that are not read. Their tensors may be in a file, whose
// other tensors are read.
var others = map[string]int{"U64": 64, "C64": 64, "U32": 32, "U16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
	"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4}

// types lists the types that are read, for errors.
func types() string {
	var names []string
	for name := range sizes {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// elements is the product of a shape.
func (t Tensor) elements() (int, error) {
	n := 1
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
func (t Tensor) bytes() (int, error) {
	width := 8 * sizes[t.DType]
	if width == 0 {
		width = others[t.DType]
	}
	if width == 0 {
		return 0, t.unread()
	}
	n, err := t.elements()
	if err == nil && n%8*width%8 != 0 {
		err = &Error{Tensor: t.Name, Reason: fmt.Sprintf("its shape is %v, which is no whole number of bytes of %s", t.Shape,
			t.DType)}
	}
	return n/8*width + n%8*width/8, err // below 2^63, because n is below 2^60 and the width at most 64
}

// unread is the error of a type that is not read.
func (t Tensor) unread() error {
	return &Error{Tensor: t.Name, Reason: fmt.Sprintf("its dtype is %q: expected one of %s", t.DType, types())}
}
