package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// readZarr reads a Zarr version 2 store with the groups of ArviZ's InferenceData.
//
// Arrays may be plain or packed with zlib, gzip, zstd, lz4 or blosc, in any division into chunks. A missing chunk has
// the fill value, as the format wants it, and is noted. In draws that Kelvin wrote, where every chunk has a file, it is
// an [ErrFormat] instead.
func readZarr(path string, limits Limits) (*contents, error) {
	z, err := openZarr(path, limits)
	if err != nil {
		return nil, err
	}
	out := &contents{
		Groups: map[string]*group{}, Attrs: z.attrs(""), Coords: map[string][]any{}, Budget: z.budget,
	}
	arrays := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(z.meta)) {
		if parts := strings.Split(key, "/"); len(parts) == 3 && parts[2] == zArray {
			arrays[parts[0]] = append(arrays[parts[0]], parts[1])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(z.meta)) {
		name, ok := strings.CutSuffix(key, "/"+zGroup)
		if !ok || strings.Contains(name, "/") {
			continue
		}
		if !knownGroup(name) {
			out.Notes = append(out.Notes, fmt.Sprintf("%s: group %s was left out: Kelvin has no place for it", path, name))
			continue
		}
		if out.Groups[name], err = z.readGroup(name, arrays[name], path, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readGroup reads the variables of a group. An array with the name of its only dimension holds the labels of that.
func (z *zarrStore) readGroup(name string, arrays []string, path string, out *contents) (*group, error) {
	g := &group{Name: name, Attrs: z.attrs(name)}
	text, _ := g.Attrs[layoutKey].(string)
	if text == "" && strings.HasSuffix(name, "sample_stats") { // the layout stands beside the sites
		text, _ = z.attrs(strings.TrimSuffix(name, "sample_stats") + "posterior")[layoutKey].(string)
	}
	var lengths []int
	if l := parseLayout(text); l != nil {
		lengths = l.Lengths
	}
	for _, array := range arrays {
		key := name + "/" + array
		isCoord := slices.Equal(z.dims(key), []string{array})
		if isCoord && (array == "chain" || array == "draw") {
			continue
		}
		v, missing, err := z.readArray(key, lengths)
		if err != nil && errors.Is(err, ErrUnsupported) && isCoord {
			out.Notes = append(out.Notes, fmt.Sprintf("%s: the labels of %s were left out: %v", path, array, err))
			continue
		}
		if err != nil {
			return nil, err
		}
		if missing > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%s: %d chunks of %s are not there; their numbers are the fill value",
				path, missing, key))
		}
		v.Name = array
		if isCoord {
			out.Coords[array] = labelsOf(v)
			continue
		}
		g.Vars = append(g.Vars, v)
	}
	return g, nil
}

// readArray puts the chunks of an array together. Chunks that are not there have the fill value and are counted.
// lengths are those of the chains of Kelvin's draws, nil for other arrays.
func (z *zarrStore) readArray(key string, lengths []int) (v *variable, missing int, err error) {
	meta, _ := z.meta[key+"/"+zArray].(map[string]any)
	a, err := parseArray(meta)
	if err != nil {
		return nil, 0, &ParseError{File: z.file(key), Err: err}
	}
	v = &variable{Shape: a.shape, Dims: z.dims(key)}
	if err := z.fill(v, a); err != nil {
		return nil, 0, &ParseError{File: z.file(key), Err: err}
	}
	if v.Size() == 0 {
		return v, 0, nil
	}
	_, size := a.element()
	missing = 1
	for _, c := range a.counts() {
		missing *= c // at most n
	}
	for _, name := range slices.Sorted(maps.Keys(z.chunks[key])) {
		index, ok := a.chunkIndex(name)
		if !ok {
			continue
		}
		raw, err := z.rawChunk(key, a, index)
		if err != nil {
			return nil, 0, err
		}
		missing--
		if v.Text != nil {
			for i := range a.chunks[0] {
				if at := index[0]*a.chunks[0] + i; at < a.shape[0] {
					v.Text[at] = decodeText(raw[i*size : (i+1)*size])
				}
			}
			continue
		}
		a.place(v.Data, a.decode(raw), index)
	}
	if missing == 0 {
		return v, 0, nil
	}
	if lengths != nil && !a.filled && len(a.shape) >= 2 && a.chunks[0] == 1 {
		if err := z.complete(key, a, lengths); err != nil {
			return nil, 0, &ParseError{File: z.file(key), Err: err}
		}
		return v, 0, nil
	}
	return v, missing, nil
}

// fill gives a variable as many fill values, or empty texts, as the array has elements.
func (z *zarrStore) fill(v *variable, a *zarrArray) error {
	kind, _ := a.element()
	n := v.Size()
	if kind == 'U' && len(a.shape) != 1 {
		return because(ErrUnsupported, "text of shape %v; Kelvin reads lists of labels", a.shape)
	}
	if err := z.budget.Numbers(n); err != nil {
		return err
	}
	if kind == 'U' {
		v.Text = make([]string, n)
		return z.budget.Take(n * 24) // with the labels that are made of the texts
	}
	v.Data = make([]float64, n)
	if a.fill != 0 {
		for i := range v.Data {
			v.Data[i] = a.fill
		}
	}
	return nil
}

// complete checks that the chunks of Kelvin's draws are there. It leaves out only those of floats behind the end of a
// shorter chain.
func (z *zarrStore) complete(key string, a *zarrArray, lengths []int) error {
	for c, length := range lengths {
		for k := range (length + a.chunks[1] - 1) / a.chunks[1] {
			index := make([]int, len(a.shape))
			index[0], index[1] = c, k
			if name := chunkKey("", a.separator, index)[1:]; !z.chunks[key][name] {
				return because(ErrFormat, "the chunk %s is missing; it held draws %d to %d of chain %d", name, k*a.chunks[1],
					min(length, (k+1)*a.chunks[1])-1, c)
			}
		}
	}
	return nil
}

// rawChunk reads the bytes of a chunk.
func (z *zarrStore) rawChunk(array string, a *zarrArray, index []int) (raw []byte, err error) {
	_, size := a.element()
	n, _ := product(a.chunks)
	key := chunkKey(array, a.separator, index)
	// The bytes as they are packed and unpacked, and the numbers made of them, are there at a time.
	room := n * (2*size + 8)
	if err = z.budget.Take(room); err == nil {
		defer z.budget.Give(room)
		var packed []byte
		if packed, err = os.ReadFile(z.file(key)); err != nil {
			return nil, during("read Zarr", err)
		}
		raw, err = a.decompress(packed, n*size)
	}
	if err != nil {
		return nil, &ParseError{File: z.file(key), Err: err}
	}
	return raw, nil
}

// readChunk reads the numbers of a whole chunk of draws.
func (z *zarrStore) readChunk(array string, a *zarrArray, index []int) ([]float64, error) {
	raw, err := z.rawChunk(array, a, index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ParseError{File: z.file(array), Err: because(ErrFormat,
			"the chunk %s is missing", chunkKey("", a.separator, index)[1:])}
	}
	if err != nil {
		return nil, err
	}
	return a.decode(raw), nil
}

func labelsOf(v *variable) []any {
	out := make([]any, 0, len(v.Data)+len(v.Text))
	for _, x := range v.Data {
		out = append(out, x)
	}
	for _, x := range v.Text {
		out = append(out, x)
	}
	return out
}

// isCounting says whether labels are 0, 1, 2, ...: writers give these to a dimension without labels.
func isCounting(labels []any) bool {
	for i, label := range labels {
		if label != float64(i) {
			return false
		}
	}
	return true
}
