package content

import (
	"bufio"
	"io"
	"maps"
	"slices"
)

// Write writes groups as they are made, so a file may be larger than memory. The last key is the digest of what is
// before it; ArviZ ignores it.
func Write(to io.Writer, groups []*Group, attrs map[string]any, coords map[string][]any,
	names map[string][]string) error {
	sum := &summing{to: to}
	w := bufio.NewWriterSize(sum, 1<<16)
	dims := map[string]any{}
	for name, own := range names {
		dims[name] = own
	}
	for _, g := range groups {
		w.WriteString(lead(g == groups[0]) + Quote(g.Name) + ": {")
		for i, v := range g.Vars {
			if i > 0 {
				w.WriteString(",")
			}
			w.WriteString("\n  " + Quote(v.Name) + ": ")
			writeArray(w, v)
			own := v.Dims
			if v.At != nil {
				own = own[2:]
			}
			if len(own) > 0 && !slices.Equal(own, DefaultDims(v.Name, len(own))) {
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
		text, err := Append(nil, rest[key])
		if err != nil {
			return Failf(ErrLayout, "write JSON: %s: %v", key, err)
		}
		w.WriteString(lead(first) + Quote(key) + ": ")
		w.Write(text)
		first = false
	}
	w.WriteString(",\n")
	if err := w.Flush(); err != nil {
		return During("write JSON", err)
	}
	w.WriteString(Quote(DigestKey) + ": " + Quote(Digest(sum.sum)) + "\n}\n")
	return During("write JSON", w.Flush())
}

// summing keeps the digest of what goes through it.
type summing struct {
	to  io.Writer
	sum uint32
}

func (s *summing) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	s.sum = Sum(s.sum, b[:n])
	return n, err
}

func lead(first bool) string {
	if first {
		return "{\n"
	}
	return ",\n"
}

// writeArray writes nested lists. The writer keeps its first error.
func writeArray(w *bufio.Writer, v *Variable) {
	if v.At == nil {
		var b []byte
		b, _ = appendNested(b, v.Shape, v.Data, v.Kind)
		w.Write(b)
		return
	}
	var b []byte
	w.WriteByte('[')
	for c := range int(v.Shape[0]) {
		if c > 0 {
			w.WriteByte(',')
		}
		w.WriteByte('[')
		for i := range int(v.Shape[1]) {
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
func appendNested(b []byte, shape []int64, values []float64, k Kind) ([]byte, []float64) {
	if len(shape) == 0 {
		return AppendNumber(b, values[0], k), values[1:]
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
