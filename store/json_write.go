package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
)

// WriteJSON writes InferenceData as ArviZ's from_json reads it, in one move: a file of this name is replaced when the new
// one is complete. Groups are objects of variables, lists nested as [chain][draw][shape...]; NaN and infinities are
// written as NaN, Infinity and -Infinity, which Python reads. Chains that are shorter than the longest are filled with
// NaN, and their lengths are in an attribute that [ReadJSON] reads. The file is written as it is made, so it may be
// larger than memory.
//
// An [ErrLayout] says what does not fit: statistics in a group that has none, dimensions of several sizes, an attribute
// that JSON cannot hold.
func WriteJSON(path string, inf *Inference) error {
	return during("write JSON", atomicfile.Replace(path, func(w io.Writer) error { return WriteJSONTo(w, inf) }))
}

// WriteJSONTo is [WriteJSON] to a writer.
func WriteJSONTo(to io.Writer, inf *Inference) error {
	e := &encoder{inf: inf, fit: anyName}
	groups, err := e.groups()
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(to, 1<<16)
	dims := map[string]any{}
	for _, g := range groups {
		w.WriteString(lead(g == groups[0]) + quote(g.name) + ": {")
		for i, v := range g.vars {
			if i > 0 {
				w.WriteString(",")
			}
			w.WriteString("\n  " + quote(v.name) + ": ")
			writeJSONArray(w, v)
			own := v.dims
			if v.at != nil {
				own = own[2:]
			}
			if len(own) > 0 && !slices.Equal(own, defaultDims(v.name, len(own))) {
				dims[v.name] = own
			}
		}
		w.WriteString("\n}")
	}
	rest := map[string]any{"attrs": inf.attrs()}
	for _, g := range groups {
		rest[g.name+"_attrs"] = g.attrs
	}
	if len(inf.Coords) > 0 {
		rest["coords"] = inf.Coords
	}
	if len(dims) > 0 {
		rest["dims"] = dims
	}
	first := len(groups) == 0
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		text, err := appendJSON(nil, rest[key])
		if err != nil {
			return failf(ErrLayout, "write JSON: %s: %v", key, err)
		}
		w.WriteString(lead(first) + quote(key) + ": ")
		w.Write(text)
		first = false
	}
	w.WriteString("\n}\n")
	return during("write JSON", w.Flush())
}

func lead(first bool) string {
	if first {
		return "{\n"
	}
	return ",\n"
}

func quote(s string) string {
	text, _ := plainJSON(s) // a string never fails
	return string(text)
}

// plainJSON is JSON without the escapes that HTML needs.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// writeJSONArray writes nested lists. The writer keeps its first error.
func writeJSONArray(w *bufio.Writer, v *variable) {
	if v.at == nil {
		var b []byte
		b, _ = appendNested(b, v.shape, v.data, v.kind)
		w.Write(b)
		return
	}
	var b []byte
	w.WriteByte('[')
	for c := range int(v.shape[0]) {
		if c > 0 {
			w.WriteByte(',')
		}
		w.WriteByte('[')
		for i := range int(v.shape[1]) {
			b = b[:0]
			if i > 0 {
				b = append(b, ',')
			}
			b, _ = appendNested(b, v.shape[2:], v.at(c, i), v.kind)
			w.Write(b)
		}
		w.WriteByte(']')
	}
	w.WriteByte(']')
}

// appendNested writes the values as lists of the shape, and returns those that are left.
func appendNested(b []byte, shape []int64, values []float64, k kind) ([]byte, []float64) {
	if len(shape) == 0 {
		return appendJSONNumber(b, values[0], k), values[1:]
	}
	b = append(b, '[')
	for i := range shape[0] {
		if i > 0 {
			b = append(b, ',')
		}
		b, values = appendNested(b, shape[1:], values, k)
	}
	return append(b, ']'), values
}

// appendJSONNumber is the shortest text that reads back as the same number of the same kind: a float has a point or an
// exponent, by which Python tells it from an integer, which has no -0.
func appendJSONNumber(b []byte, v float64, k kind) []byte {
	switch {
	case k == boolean:
		return strconv.AppendBool(b, v == 1)
	case k == integer:
		return strconv.AppendInt(b, int64(v), 10)
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "Infinity"...)
	case math.IsInf(v, -1):
		return append(b, "-Infinity"...)
	}
	start := len(b)
	b = strconv.AppendFloat(b, v, 'g', -1, 64)
	if !slices.ContainsFunc(b[start:], func(c byte) bool { return c == '.' || c == 'e' }) {
		b = append(b, ".0"...)
	}
	return b
}

// appendJSON writes an attribute. Floats may be NaN or infinite at any depth of the usual types.
func appendJSON(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) && integer.holds(v) {
			return strconv.AppendInt(b, int64(v), 10), nil
		}
		return appendJSONNumber(b, v, float), nil
	case []any:
		return appendJSONList(b, v)
	case []float64:
		return appendJSONList(b, v)
	case map[string]any:
		return appendJSONMap(b, v)
	case map[string][]any:
		return appendJSONMap(b, v)
	}
	text, err := plainJSON(value)
	return append(b, text...), err
}

func appendJSONList[T any](b []byte, list []T) (_ []byte, err error) {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ", "...)
		}
		if b, err = appendJSON(b, v); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func appendJSONMap[T any](b []byte, m map[string]T) (_ []byte, err error) {
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, quote(key)...), ": "...)
		if b, err = appendJSON(b, m[key]); err != nil {
			return b, fmt.Errorf("%s: %w", key, err)
		}
	}
	return append(b, '}'), nil
}
