package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// quoted is a string in JSON.
func quoted(s string) string {
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
		if v == math.Trunc(v) && integer.Holds(v) {
			return strconv.AppendInt(b, int64(v), 10), nil
		}
		return appendJSONNumber(b, v, float), nil
	case []any:
		return appendList(b, v)
	case []float64:
		return appendList(b, v)
	case map[string]any:
		return appendMap(b, v)
	case map[string][]any:
		return appendMap(b, v)
	}
	text, err := plainJSON(value)
	return append(b, text...), err
}

// appendList writes a list.
func appendList[T any](b []byte, list []T) (_ []byte, err error) {
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

// appendMap writes an object with sorted keys.
func appendMap[T any](b []byte, m map[string]T) (_ []byte, err error) {
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, quoted(key)...), ": "...)
		if b, err = appendJSON(b, m[key]); err != nil {
			return b, fmt.Errorf("%s: %w", key, err)
		}
	}
	return append(b, '}'), nil
}
