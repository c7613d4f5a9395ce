package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// zarrArray is what .zarray says.
type zarrArray struct {
	shape, chunks []int
	dtype         string // as in the file: <f8
	compressor    string // id, empty for none
	level         int
	fill          float64
	filled        bool // the file has a fill value other than NaN, so missing chunks are meant
	separator     string
}

var kindType = map[kind]string{float: "<f8", integer: "<i8", boolean: "|b1"}

// meta is the content of .zarray. Integers and booleans have no fill value: xarray would take it for a missing number.
func (a *zarrArray) meta() map[string]any {
	m := map[string]any{
		"zarr_format": 2, "shape": append([]int{}, a.shape...), "chunks": append([]int{}, a.chunks...),
		"dtype": a.dtype, "order": "C", "filters": nil, "compressor": nil, "fill_value": nil,
	}
	if a.dtype == "<f8" {
		m["fill_value"] = "NaN"
	}
	if a.compressor != "" {
		m["compressor"] = map[string]any{"id": a.compressor, "level": a.level}
	}
	return m
}

// parseArray checks a .zarray.
func parseArray(m map[string]any) (*zarrArray, error) {
	a := &zarrArray{separator: "."}
	var ok1, ok2 bool
	a.shape, ok1 = intList(m["shape"])
	a.chunks, ok2 = intList(m["chunks"])
	if !ok1 || !ok2 || len(a.shape) != len(a.chunks) || slices.Contains(a.chunks, 0) {
		return nil, because(ErrFormat, "shape %v and chunks %v, want lists of one length", m["shape"],
			m["chunks"])
	}
	if n, ok := product(a.shape); !ok || n > 1<<46 {
		return nil, because(ErrLimit, "shape %v is too large", a.shape)
	}
	if n, ok := product(a.chunks); !ok || n > 1<<32 {
		return nil, because(ErrLimit, "chunks %v are too large", a.chunks)
	}
	if m["order"] != "C" && len(a.shape) > 1 {
		return nil, because(ErrUnsupported, "order %v; Kelvin reads C", m["order"])
	}
	if list, _ := m["filters"].([]any); len(list) > 0 {
		return nil, because(ErrUnsupported, "filters %v; Kelvin reads none", list)
	}
	if s, ok := m["dimension_separator"].(string); ok {
		a.separator = s
	}
	if c, ok := m["compressor"].(map[string]any); ok {
		a.compressor, _ = c["id"].(string)
		if !slices.Contains(zarrCompressors, a.compressor) {
			return nil, because(ErrUnsupported,
				"compressor %q; Kelvin reads %s and none (in xarray: encoding={name: {\"compressor\": None}})",
				a.compressor, strings.Join(zarrCompressors, ", "))
		}
	}
	a.dtype, _ = m["dtype"].(string)
	if kind, size := a.element(); size == 0 {
		return nil, because(ErrUnsupported, "numbers of type %v; Kelvin reads b1, i, u, f and U", m["dtype"])
	} else if kind == 'f' {
		a.fill = math.NaN()
	}
	switch v := m["fill_value"].(type) {
	case float64:
		a.fill, a.filled = v, true
	case bool:
		a.filled = true
		if v {
			a.fill = 1
		}
	case string:
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			a.fill, a.filled = x, !math.IsNaN(x)
		}
	}
	return a, nil
}

func intList(v any) ([]int, bool) {
	list, ok := v.([]any)
	out := make([]int, len(list))
	for i, x := range list {
		f, isNumber := x.(float64)
		if !isNumber || f < 0 || f != math.Trunc(f) || f > 1<<50 {
			return nil, false
		}
		out[i] = int(f)
	}
	return out, ok
}

// element is the kind of dtype and its size in bytes, 0 for one that is not supported.
func (a *zarrArray) element() (kind byte, size int) {
	if len(a.dtype) < 3 || !strings.ContainsRune("<>|", rune(a.dtype[0])) {
		return 0, 0
	}
	n, err := strconv.Atoi(a.dtype[2:])
	if err != nil || n < 1 || n > 1<<20 {
		return 0, 0
	}
	kind = a.dtype[1]
	switch {
	case kind == 'U' && a.dtype[0] != '>':
		return kind, 4 * n
	case kind == 'b' && n == 1, kind == 'f' && (n == 4 || n == 8),
		(kind == 'i' || kind == 'u') && (n == 1 || n == 2 || n == 4 || n == 8):
		return kind, n
	}
	return 0, 0
}

// decode makes numbers of a chunk's bytes.
func (a *zarrArray) decode(raw []byte) []float64 {
	kind, size := a.element()
	var order binary.ByteOrder = binary.LittleEndian
	if a.dtype[0] == '>' {
		order = binary.BigEndian
	}
	out := make([]float64, len(raw)/size)
	for i := range out {
		b := raw[i*size : (i+1)*size]
		var bits uint64
		switch size {
		case 1:
			bits = uint64(b[0])
		case 2:
			bits = uint64(order.Uint16(b))
		case 4:
			bits = uint64(order.Uint32(b))
		case 8:
			bits = order.Uint64(b)
		}
		switch {
		case kind == 'f' && size == 8:
			out[i] = math.Float64frombits(bits)
		case kind == 'f':
			out[i] = float64(math.Float32frombits(uint32(bits)))
		case kind == 'i':
			shift := 64 - 8*size
			out[i] = float64(int(bits<<shift) >> shift)
		default:
			out[i] = float64(bits)
		}
	}
	return out
}

// encode is the reverse for the types that Kelvin writes, with the compression.
func (a *zarrArray) encode(values []float64) ([]byte, error) {
	var raw []byte
	switch a.dtype {
	case "|b1":
		raw = make([]byte, len(values))
		for i, v := range values {
			if v == 1 {
				raw[i] = 1
			}
		}
	case "<i8":
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(int(v)))
		}
	default:
		raw = make([]byte, 0, 8*len(values))
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		}
	}
	return a.compress(raw)
}

// counts are the numbers of chunks along the dimensions.
func (a *zarrArray) counts() []int {
	counts := make([]int, len(a.shape))
	for k := range counts {
		counts[k] = (a.shape[k] + a.chunks[k] - 1) / a.chunks[k]
	}
	return counts
}

// place copies what of a chunk lies inside the array, in runs along the last dimension.
func (a *zarrArray) place(to, chunk []float64, index []int) {
	last := len(a.shape) - 1
	if last < 0 {
		to[0] = chunk[0]
		return
	}
	run := min(a.chunks[last], a.shape[last]-index[last]*a.chunks[last])
	inside := make([]int, last) // the part of the chunk that lies inside
	for k := range inside {
		inside[k] = min(a.chunks[k], a.shape[k]-index[k]*a.chunks[k])
	}
	eachIndex(inside, func(i []int) {
		from, at := 0, 0
		for k := range i {
			from, at = from*a.chunks[k]+i[k], at*a.shape[k]+index[k]*a.chunks[k]+i[k]
		}
		from, at = from*a.chunks[last], at*a.shape[last]+index[last]*a.chunks[last]
		copy(to[at:at+run], chunk[from:from+run])
	})
}

// eachIndex calls f for every index below the counts, the last one fastest. The index is valid until f returns.
func eachIndex(counts []int, f func([]int)) {
	index := make([]int, len(counts))
	if slices.Contains(counts, 0) {
		return
	}
	for {
		f(index)
		k := len(index) - 1
		for ; k >= 0; k-- {
			if index[k]++; index[k] < counts[k] {
				break
			}
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// chunkKey is the key of a chunk: theta/0.3.0.
func chunkKey(array, separator string, index []int) string {
	parts := make([]string, len(index))
	for k, i := range index {
		parts[k] = strconv.FormatInt(int64(i), 10)
	}
	if len(parts) == 0 {
		parts = []string{"0"}
	}
	return array + "/" + strings.Join(parts, separator)
}

// chunkIndex is the reverse for the part behind the array; it is false for what is no chunk of the array.
func (a *zarrArray) chunkIndex(name string) ([]int, bool) {
	if len(a.shape) == 0 {
		return nil, name == "0"
	}
	parts := strings.Split(name, a.separator)
	if len(parts) != len(a.shape) {
		return nil, false
	}
	index, counts := make([]int, len(parts)), a.counts()
	for k, part := range parts {
		i, err := strconv.ParseInt(part, 10, 64)
		if err != nil || i < 0 || int(i) >= counts[k] || strconv.FormatInt(i, 10) != part {
			return nil, false
		}
		index[k] = int(i)
	}
	return index, true
}

// decodeText reads numpy's text of fixed length, UTF-32 with zeros behind it.
func decodeText(raw []byte) string {
	var b strings.Builder
	for ; len(raw) >= 4; raw = raw[4:] {
		if r := rune(raw[0]) | rune(raw[1])<<8 | rune(raw[2])<<16; r != 0 {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// textType is numpy's type of texts of up to n characters.
func textType(n int) string { return fmt.Sprintf("<U%d", n) }
