package store

import (
	"bufio"
	"io"
	"maps"
	"slices"
)

// writeInferenceData writes groups as they are made, so a file may be larger than memory. The last key is the digest of
// what is before it; ArviZ ignores it.
func writeInferenceData(to io.Writer, groups []*group, attrs map[string]any, coords map[string][]any,
	names map[string][]string) error {
	sum := &summingWriter{to: to}
	w := bufio.NewWriterSize(sum, 1<<16)
	dims := map[string]any{}
	for name, own := range names {
		dims[name] = own
	}
	for _, g := range groups {
		w.WriteString(jsonLead(g == groups[0]) + quoted(g.Name) + ": {")
		for i, v := range g.Vars {
			if i > 0 {
				w.WriteString(",")
			}
			w.WriteString("\n  " + quoted(v.Name) + ": ")
			writeArray(w, v)
			own := v.Dims
			if v.At != nil {
				own = own[2:]
			}
			if len(own) > 0 && !slices.Equal(own, defaultDims(v.Name, len(own))) {
				dims[v.Name] = own
			}
		}
		w.WriteString("\n}")
	}
	rest := map[string]any{"attrs": attrs}
	for _, g := range groups {
		rest[g.Name+"_attrs"] = g.Attrs
	}
	if len(coords) > 0 {
		rest["coords"] = coords
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
		w.WriteString(jsonLead(first) + quoted(key) + ": ")
		w.Write(text)
		first = false
	}
	w.WriteString(",\n")
	if err := w.Flush(); err != nil {
		return during("write JSON", err)
	}
	w.WriteString(quoted(digestKey) + ": " + quoted(digestText(sum.sum)) + "\n}\n")
	return during("write JSON", w.Flush())
}

// summingWriter keeps the digest of what goes through it.
type summingWriter struct {
	to  io.Writer
	sum uint32
}

func (s *summingWriter) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	s.sum = addSum(s.sum, b[:n])
	return n, err
}

func jsonLead(first bool) string {
	if first {
		return "{\n"
	}
	return ",\n"
}

// writeArray writes nested lists. The writer keeps its first error.
func writeArray(w *bufio.Writer, v *variable) {
	if v.At == nil {
		var b []byte
		b, _ = appendNested(b, v.Shape, v.Data, v.Kind)
		w.Write(b)
		return
	}
	var b []byte
	w.WriteByte('[')
	for c := range v.Shape[0] {
		if c > 0 {
			w.WriteByte(',')
		}
		w.WriteByte('[')
		for i := range v.Shape[1] {
			b = b[:0]
			if i > 0 {
				b = append(b, ',')
			}
			b, _ = appendNested(b, v.Shape[2:], v.At(c, i), v.Kind)
			w.Write(b)
		}
		w.WriteByte(']')
	}
	w.WriteByte(']')
}

// appendNested writes the values as lists of the shape, and returns those that are left.
func appendNested(b []byte, shape []int, values []float64, k kind) ([]byte, []float64) {
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
