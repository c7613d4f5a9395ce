package store

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// zarrArray is what .zarray says.
type zarrArray struct {
	shape, chunks []int64
	dtype         string // as in the file: <f8
	compressor    string // id, empty for none
	level         int
	fill          float64
	separator     string
}

var kindType = map[kind]string{float: "<f8", integer: "<i8", boolean: "|b1"}

// meta is the content of .zarray. Integers and booleans have no fill value: xarray would take it for a missing number.
func (a *zarrArray) meta() map[string]any {
	m := map[string]any{
		"zarr_format": 2, "shape": append([]int64{}, a.shape...), "chunks": append([]int64{}, a.chunks...), "dtype": a.dtype,
		"order": "C", "filters": nil, "compressor": nil, "fill_value": nil,
	}
	if a.dtype == "<f8" {
		m["fill_value"] = "NaN"
	}
	if a.compressor != "" {
		m["compressor"] = map[string]any{"id": a.compressor, "level": a.level}
	}
	return m
}

// parseZarrArray checks a .zarray.
func parseZarrArray(m map[string]any) (*zarrArray, error) {
	a := &zarrArray{separator: "."}
	var ok1, ok2 bool
	a.shape, ok1 = intList(m["shape"])
	a.chunks, ok2 = intList(m["chunks"])
	if !ok1 || !ok2 || len(a.shape) != len(a.chunks) || slices.Contains(a.chunks, 0) {
		return nil, because(ErrFormat, "shape %v and chunks %v, want lists of one length", m["shape"], m["chunks"])
	}
	if n, ok := product(a.shape); !ok || n > 1<<32 || slices.ContainsFunc(a.shape, func(s int64) bool { return s > 1<<31 }) {
		return nil, because(ErrUnsupported, "shape %v is too large", a.shape)
	}
	if n, ok := product(a.chunks); !ok || n > 1<<32 {
		return nil, because(ErrUnsupported, "chunks %v are too large", a.chunks)
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
		if !slices.Contains(readable, a.compressor) {
			return nil, because(ErrUnsupported, "compressor %q; Kelvin reads %s and none (in xarray: encoding={name: {\"compressor\": None}})", a.compressor, strings.Join(readable, ", "))
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
		a.fill = v
	case bool:
		if v {
			a.fill = 1
		}
	case string:
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			a.fill = x
		}
	}
	return a, nil
}

func intList(v any) ([]int64, bool) {
	list, ok := v.([]any)
	out := make([]int64, len(list))
	for i, x := range list {
		f, isNumber := x.(float64)
		if !isNumber || f < 0 || f != math.Trunc(f) || f > 1<<50 {
			return nil, false
		}
		out[i] = int64(f)
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
	case kind == 'b' && n == 1, kind == 'f' && (n == 4 || n == 8), (kind == 'i' || kind == 'u') && (n == 1 || n == 2 || n == 4 || n == 8):
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
			out[i] = float64(int64(bits<<shift) >> shift)
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
			raw = binary.LittleEndian.AppendUint64(raw, uint64(int64(v)))
		}
	default:
		raw = make([]byte, 0, 8*len(values))
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		}
	}
	return a.compress(raw)
}

// readable are the compressors that Kelvin reads; it writes zlib.
var readable = []string{"zlib", "gzip", "blosc"}

func (a *zarrArray) compress(raw []byte) ([]byte, error) {
	if a.compressor == "" {
		return raw, nil
	}
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, a.level)
	if err == nil {
		if _, err = w.Write(raw); err == nil {
			err = w.Close()
		}
	}
	return b.Bytes(), err
}

// decompress undoes the compression; want is how many bytes there should be.
func (a *zarrArray) decompress(packed []byte, want int) (raw []byte, err error) {
	var r io.Reader = bytes.NewReader(packed)
	switch a.compressor {
	case "zlib":
		r, err = zlib.NewReader(r)
	case "gzip":
		r, err = gzip.NewReader(r)
	case "blosc":
		raw, err = unblosc(packed, want)
		r = bytes.NewReader(raw)
	}
	if err != nil {
		return nil, err
	}
	if raw, err = io.ReadAll(io.LimitReader(r, int64(want)+1)); err != nil {
		return nil, because(ErrFormat, "%s: %v", a.compressor, err)
	}
	if len(raw) != want {
		return nil, because(ErrFormat, "the chunk has %d bytes, want %d", len(raw), want)
	}
	return raw, nil
}
