package store

import (
	"maps"
	"slices"
)

// putArray writes the metadata of an array with its dimensions.
func (z *zarrStore) putArray(key string, a *zarrArray, dims []string) error {
	if err := z.put(key+"/"+zArray, a.meta()); err != nil {
		return err
	}
	return z.put(key+"/"+zAttrs, map[string]any{zDims: append([]string{}, dims...)})
}

func (z *zarrStore) putGroup(name string, attrs map[string]any) error {
	if err := z.put(name+"/"+zGroup, zarrGroup()); err != nil {
		return err
	}
	return z.put(name+"/"+zAttrs, attrs)
}

// putSmall writes an array that does not grow, as one chunk.
func (z *zarrStore) putSmall(key, dtype string, shape []int64, dims []string, values []float64) error {
	a := &zarrArray{shape: shape, chunks: atLeastOne(shape), dtype: dtype}
	if err := z.putArray(key, a, dims); err != nil || len(values) == 0 {
		return err
	}
	return z.writeChunk(key, a, values, make([]int64, len(shape))...)
}

func atLeastOne(shape []int64) []int64 {
	out := slices.Clone(shape)
	for k := range out {
		out[k] = max(out[k], 1)
	}
	return out
}

func count(n int64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i)
	}
	return out
}

// putCoords writes the labels of a variable's own dimensions into its group: those of the user, else 0, 1, 2, ...
func (z *zarrStore) putCoords(group string, dims []string, shape []int64, coords map[string][]any) error {
	for k, dim := range dims {
		key := group + "/" + dim
		if _, done := z.meta[key+"/"+zArray]; done {
			continue
		}
		labels := coords[dim]
		if labels == nil {
			if err := z.putSmall(key, "<i8", shape[k:k+1], []string{dim}, count(shape[k])); err != nil {
				return err
			}
			continue
		}
		if numbers, ok := numbersOf(labels); ok {
			dtype := "<f8"
			if !slices.ContainsFunc(numbers, func(v float64) bool { return !integer.holds(v) }) {
				dtype = "<i8"
			}
			if err := z.putSmall(key, dtype, shape[k:k+1], []string{dim}, numbers); err != nil {
				return err
			}
			continue
		}
		if err := z.putText(key, dim, labels); err != nil {
			return err
		}
	}
	return nil
}

func numbersOf(labels []any) ([]float64, bool) {
	out := make([]float64, len(labels))
	for i, label := range labels {
		switch v := label.(type) {
		case float64:
			out[i] = v
		case int:
			out[i] = float64(v)
		case int64:
			out[i] = float64(v)
		default:
			return nil, false
		}
	}
	return out, true
}

// putText writes labels as numpy's text of fixed length.
func (z *zarrStore) putText(key, dim string, labels []any) error {
	longest := 1
	runes := make([][]rune, len(labels))
	for i, label := range labels {
		text, ok := label.(string)
		if !ok {
			return failf(ErrLayout, "write Zarr: label %d of %q is a %T; want all strings or all numbers", i, dim, label)
		}
		runes[i] = []rune(text)
		longest = max(longest, len(runes[i]))
	}
	var raw []byte
	for _, text := range runes {
		for k := range longest {
			r := rune(0)
			if k < len(text) {
				r = text[k]
			}
			raw = append(raw, byte(r), byte(r>>8), byte(r>>16), 0)
		}
	}
	n := int64(len(labels))
	a := &zarrArray{shape: []int64{n}, chunks: atLeastOne([]int64{n}), dtype: textType(longest)}
	if err := z.putArray(key, a, []string{dim}); err != nil || n == 0 {
		return err
	}
	return z.move(chunkKey(key, ".", []int64{0}), raw)
}

// groupNames are the names of the arrays of a group, sorted; its coordinates are among them.
func (z *zarrStore) groupNames(group string) []string {
	var names []string
	for key := range maps.Keys(z.meta) {
		if name, ok := cutPath(key, group); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
