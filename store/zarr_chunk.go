package store

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// chunkKey is the key of a chunk: theta/0.3.0.
func chunkKey(array, separator string, index []int64) string {
	parts := make([]string, len(index))
	for k, i := range index {
		parts[k] = strconv.FormatInt(i, 10)
	}
	if len(parts) == 0 {
		parts = []string{"0"}
	}
	return array + "/" + strings.Join(parts, separator)
}

// writeChunk replaces a chunk.
func (z *zarrStore) writeChunk(array string, a *zarrArray, values []float64, index ...int64) error {
	b, err := a.encode(values)
	if err != nil {
		return err
	}
	return z.move(chunkKey(array, ".", index), b)
}

// readArray puts the chunks of an array together. Chunks that are not there have the fill value.
func (z *zarrStore) readArray(array string) (*variable, error) {
	meta, _ := z.meta[array+"/"+zArray].(map[string]any)
	a, err := parseZarrArray(meta)
	if err != nil {
		return nil, &ParseError{File: z.file(array), Err: err}
	}
	v := &variable{shape: a.shape, dims: z.dims(array)}
	kind, size := a.element()
	n := v.size()
	if kind == 'U' && len(a.shape) == 1 {
		v.text = make([]string, n)
	} else if kind == 'U' {
		return nil, &ParseError{File: z.file(array), Err: because(ErrUnsupported, "text of shape %v; Kelvin reads lists of labels", a.shape)}
	} else {
		v.data = make([]float64, n)
		for i := range v.data {
			v.data[i] = a.fill
		}
	}
	if n == 0 {
		return v, nil
	}
	err = eachIndex(chunkCounts(a), func(index []int64) error {
		raw, err := z.rawChunk(array, a, index)
		if raw == nil || err != nil {
			return err
		}
		if v.text != nil {
			for i := range a.chunks[0] {
				if at := index[0]*a.chunks[0] + i; at < a.shape[0] {
					v.text[at] = decodeText(raw[int(i)*size : int(i+1)*size])
				}
			}
			return nil
		}
		a.place(v.data, a.decode(raw), index)
		return nil
	})
	return v, err
}

// rawChunk reads the bytes of a chunk, nil where it is not there.
func (z *zarrStore) rawChunk(array string, a *zarrArray, index []int64) ([]byte, error) {
	_, size := a.element()
	n, _ := product(a.chunks)
	key := chunkKey(array, a.separator, index)
	packed, err := os.ReadFile(z.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, during("read Zarr", err)
	}
	raw, err := a.decompress(packed, n*size)
	if err != nil {
		return nil, &ParseError{File: z.file(key), Err: err}
	}
	return raw, nil
}

// readChunk reads the numbers of a whole chunk.
func (z *zarrStore) readChunk(array string, a *zarrArray, index []int64) ([]float64, error) {
	raw, err := z.rawChunk(array, a, index)
	if raw != nil || err != nil {
		return a.decode(raw), err
	}
	values := make([]float64, 0)
	n, _ := product(a.chunks)
	for range n {
		values = append(values, a.fill)
	}
	return values, nil
}

// place copies what of a chunk lies inside the array, in runs along the last dimension.
func (a *zarrArray) place(to, chunk []float64, index []int64) {
	last := len(a.shape) - 1
	if last < 0 {
		to[0] = chunk[0]
		return
	}
	run := min(a.chunks[last], a.shape[last]-index[last]*a.chunks[last])
	_ = eachIndex(a.chunks[:last], func(i []int64) error {
		from, at := int64(0), int64(0)
		for k := range i {
			x := index[k]*a.chunks[k] + i[k]
			if x >= a.shape[k] {
				return nil
			}
			from, at = from*a.chunks[k]+i[k], at*a.shape[k]+x
		}
		from, at = from*a.chunks[last], at*a.shape[last]+index[last]*a.chunks[last]
		copy(to[at:at+run], chunk[from:from+run])
		return nil
	})
}

func chunkCounts(a *zarrArray) []int64 {
	counts := make([]int64, len(a.shape))
	for k := range counts {
		counts[k] = (a.shape[k] + a.chunks[k] - 1) / a.chunks[k]
	}
	return counts
}

// eachIndex calls f for every index below the counts, the last one fastest. The index is valid until f returns.
func eachIndex(counts []int64, f func([]int64) error) error {
	index := make([]int64, len(counts))
	for _, c := range counts {
		if c == 0 {
			return nil
		}
	}
	for {
		if err := f(index); err != nil {
			return err
		}
		k := len(index) - 1
		for ; k >= 0; k-- {
			if index[k]++; index[k] < counts[k] {
				break
			}
			index[k] = 0
		}
		if k < 0 {
			return nil
		}
	}
}

// dims are xarray's names of the dimensions.
func (z *zarrStore) dims(array string) []string {
	attrs, _ := z.meta[array+"/"+zAttrs].(map[string]any)
	list, _ := attrs[zDims].([]any)
	var out []string
	for _, x := range list {
		name, _ := x.(string)
		out = append(out, name)
	}
	return out
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
