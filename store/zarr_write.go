package store

import (
	"cmp"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// fill sets the defaults and checks.
func (o *ZarrOptions) fill() error {
	if o.Chunk < 0 || o.FlushEvery < 0 {
		return failf(ErrRange,
			"Zarr: Chunk is %d and FlushEvery is %d, want positive numbers, or 0 for the default", o.Chunk, o.FlushEvery)
	}
	if o.Zlib < -1 || o.Zlib > 9 {
		return failf(ErrRange,
			"Zarr: Zlib is %d, want a level from 1 to 9, 0 for a checksum alone, or -1 for neither", o.Zlib)
	}
	o.Chunk = cmp.Or(o.Chunk, 1000)
	o.FlushEvery = cmp.Or(o.FlushEvery, o.Chunk)
	return nil
}

// array is an array of the options: draws in chunks of one chain, anything else in one chunk.
func (o *ZarrOptions) array(dtype string, shape []int, sampled bool) *zarrArray {
	a := &zarrArray{shape: slices.Clone(shape), chunks: slices.Clone(shape), dtype: dtype, separator: "."}
	if sampled {
		a.chunks[0], a.chunks[1] = 1, o.Chunk
	}
	for k := range a.chunks {
		a.chunks[k] = max(a.chunks[k], 1)
	}
	if o.Zlib >= 0 {
		a.compressor, a.level = "zlib", o.Zlib
	}
	return a
}

// writeZarr writes a store, which appears in one move when it is complete. If path is there already,
// the error is [ErrExists].
func writeZarr(path string, groups []*group, attrs map[string]any, opt ZarrOptions) error {
	if err := opt.fill(); err != nil {
		return err
	}
	return atomicfile.Folder(path, func(dir string) error {
		z := newZarrStore(dir)
		if err := z.put(zGroup, groupMeta()); err != nil {
			return err
		}
		if err := z.put(zAttrs, attrs); err != nil {
			return err
		}
		for _, g := range groups {
			if err := z.putGroup(g.Name, g.Attrs); err != nil {
				return err
			}
			for _, v := range g.Vars {
				if err := z.writeVariable(g.Name, v, opt); err != nil {
					return err
				}
			}
		}
		return z.commit()
	})
}

// writeVariable writes an array with all of its chunks, and the labels of its dimensions.
func (z *zarrStore) writeVariable(group string, v *variable, opt ZarrOptions) error {
	key, a := group+"/"+v.Name, opt.array(kindType[v.Kind], v.Shape, v.At != nil)
	own, shape := v.Dims, v.Shape
	if v.At != nil {
		for k, dim := range own[:2] {
			if _, done := z.meta[group+"/"+dim+"/"+zArray]; done {
				continue
			}
			if err := z.putSmall(group+"/"+dim, "<i8", dim, counting(shape[k]), &opt); err != nil {
				return err
			}
		}
		own, shape = own[2:], shape[2:]
	}
	if err := z.putCoords(group, own, shape, &opt); err != nil {
		return err
	}
	if err := z.putArray(key, a, v.Dims); err != nil {
		return err
	}
	if v.At == nil {
		if len(v.Data) == 0 {
			return nil
		}
		return z.writeChunk(key, a, v.Data, make([]int, len(v.Shape))...)
	}
	size, _ := product(v.Shape[2:])
	if size == 0 {
		return nil
	}
	values := make([]float64, 0, opt.Chunk*size)
	index := make([]int, len(v.Shape))
	for c := range v.Shape[0] {
		for first := 0; first < v.Shape[1]; first += opt.Chunk {
			values = values[:0]
			for i := first; i < min(first+opt.Chunk, v.Shape[1]); i++ {
				values = append(values, v.At(c, i)...)
			}
			index[0], index[1] = c, first/opt.Chunk
			if err := z.writeChunk(key, a, padded(values, cap(values), v.Kind), index...); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeChunk replaces a chunk at the next commit.
func (z *zarrStore) writeChunk(array string, a *zarrArray, values []float64, index ...int) error {
	b, err := a.encode(values)
	if err != nil {
		return err
	}
	return z.batch.Add(z.file(chunkKey(array, ".", index)), b)
}

// padded fills a chunk up to n numbers.
func padded(values []float64, n int, k kind) []float64 {
	fill := 0.
	if k == float {
		fill = notANumber
	}
	for len(values) < n {
		values = append(values, fill)
	}
	return values
}

// putArray writes the metadata of an array with its dimensions.
func (z *zarrStore) putArray(key string, a *zarrArray, dims []string) error {
	if err := z.put(key+"/"+zArray, a.meta()); err != nil {
		return err
	}
	return z.put(key+"/"+zAttrs, map[string]any{zDims: append([]string{}, dims...)})
}

func (z *zarrStore) putGroup(name string, attrs map[string]any) error {
	if err := z.put(name+"/"+zGroup, groupMeta()); err != nil {
		return err
	}
	return z.put(name+"/"+zAttrs, attrs)
}

// putSmall writes the labels of a dimension, as one chunk.
func (z *zarrStore) putSmall(key, dtype, dim string, values []float64, opt *ZarrOptions) error {
	a := opt.array(dtype, []int{len(values)}, false)
	if err := z.putArray(key, a, []string{dim}); err != nil || len(values) == 0 {
		return err
	}
	return z.writeChunk(key, a, values, 0)
}

func counting(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i)
	}
	return out
}

// putCoords writes the labels of a variable's own dimensions into its group: those of the user, else 0, 1, 2, ...
func (z *zarrStore) putCoords(group string, dims []string, shape []int, opt *ZarrOptions) error {
	for k, dim := range dims {
		key := group + "/" + dim
		if _, done := z.meta[key+"/"+zArray]; done {
			continue
		}
		labels := opt.Coords[dim]
		if labels == nil {
			if err := z.putSmall(key, "<i8", dim, counting(shape[k]), opt); err != nil {
				return err
			}
			continue
		}
		if numbers, ok := numbersOf(labels); ok {
			dtype := "<f8"
			if !slices.ContainsFunc(numbers, func(v float64) bool { return !integer.Holds(v) }) {
				dtype = "<i8"
			}
			if err := z.putSmall(key, dtype, dim, numbers, opt); err != nil {
				return err
			}
			continue
		}
		if err := z.putText(key, dim, labels, opt); err != nil {
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
func (z *zarrStore) putText(key, dim string, labels []any, opt *ZarrOptions) error {
	longest := 1
	runes := make([][]rune, len(labels))
	for i, label := range labels {
		text, ok := label.(string)
		if !ok {
			return failf(ErrLayout, "write Zarr: label %d of %q is a %T; want all strings or all numbers",
				i, dim, label)
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
	a := opt.array(textType(longest), []int{len(labels)}, false)
	if err := z.putArray(key, a, []string{dim}); err != nil || len(labels) == 0 {
		return err
	}
	packed, err := a.compress(raw)
	if err != nil {
		return err
	}
	return z.batch.Add(z.file(chunkKey(key, ".", []int{0})), packed)
}
