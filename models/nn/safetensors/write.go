package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// Write writes tensors, whose elements are given by name, with texts beside them. Types are F64 and F32. An old file
// gives way in one move. A number that F32 cannot hold but as an infinity is an error.
func Write(path string, tensors []Tensor, values map[string][]float64, metadata map[string]string) error {
	header, ordered, err := head(tensors, values, metadata)
	if err != nil {
		return in(path, err)
	}
	err = atomicfile.Replace(path, func(w io.Writer) error {
		if _, err := w.Write(header); err != nil {
			return err
		}
		for _, t := range ordered {
			if _, err := w.Write(encode(t.DType, values[t.Name])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// head is the header with its length, and the tensors in the order of their bytes: wide types first, so that each is
// aligned, then by name.
func head(tensors []Tensor, values map[string][]float64, metadata map[string]string) ([]byte, []Tensor, error) {
	ordered := slices.Clone(tensors)
	slices.SortFunc(ordered, func(a, b Tensor) int {
		if d := sizes[b.DType] - sizes[a.DType]; d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	entries := map[string]any{}
	if metadata != nil {
		entries["__metadata__"] = metadata
	}
	at := 0
	for _, t := range ordered {
		if err := writable(t, values[t.Name]); err != nil {
			return nil, nil, err
		}
		if _, twice := entries[t.Name]; twice || t.Name == "__metadata__" {
			return nil, nil, &Error{Tensor: t.Name, Reason: "the name is taken: expected names that differ"}
		}
		length, err := t.bytes()
		if err != nil {
			return nil, nil, err
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		entries[t.Name] = map[string]any{"dtype": t.DType, "shape": shape, "data_offsets": []int{at, at + length}}
		at += length
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, nil, &Error{Reason: "the header: " + err.Error()}
	}
	text = append(text, strings.Repeat(" ", (8-len(text)%8)%8)...)
	if len(text) > maxHeader {
		return nil, nil, &Error{Reason: fmt.Sprintf("its header has %d bytes: expected at most %d", len(text),
			maxHeader)}
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), ordered, nil
}

// writable says why a tensor cannot be written.
func writable(t Tensor, values []float64) error {
	if t.DType != "F64" && t.DType != "F32" {
		return &Error{Tensor: t.Name, Reason: fmt.Sprintf("its dtype is %q: expected F64 or F32", t.DType)}
	}
	if !utf8.ValidString(t.Name) {
		return &Error{Tensor: t.Name, Reason: "its name is no UTF-8"}
	}
	n, err := t.elements()
	if err != nil {
		return err
	}
	if len(values) != n {
		return &Error{Tensor: t.Name, Reason: fmt.Sprintf("it has %d values: expected the %d of shape %v",
			len(values), n,
			t.Shape)}
	}
	for i, v := range values {
		if t.DType == "F32" && !math.IsInf(v, 0) && math.IsInf(float64(float32(v)), 0) {
			return &Error{Tensor: t.Name,
				Reason: fmt.Sprintf("its element %d is %v: expected what F32 holds; use F64", i, v)}
		}
	}
	return nil
}

func encode(dtype string, values []float64) []byte {
	out := make([]byte, 0, sizes[dtype]*len(values))
	for _, v := range values {
		if dtype == "F64" {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		} else {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		}
	}
	return out
}
