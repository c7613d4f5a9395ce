package store

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// ReadZarr reads a Zarr version 2 store with the groups of ArviZ's InferenceData, as [WriteZarr], [CreateZarr] or
// ArviZ's to_zarr wrote it. Arrays may be plain or packed with zlib, gzip or blosc (LZ4 or zlib inside, as zarr-python
// has it by default), in any division into chunks; missing chunks have the fill value. Another compressor, order or type is an
// [ErrUnsupported] that names it and the array; a damaged file is an [ErrFormat] in a [ParseError].
//
// A store that is being written is read as it was at the last flush.
func ReadZarr(path string) (*Inference, error) {
	z, err := openZarrStore(path)
	if err != nil {
		return nil, err
	}
	d := &decoder{file: path, fit: fileName, groups: map[string]*group{}, attrs: z.attrs("")}
	coords := map[string][]any{}
	inf := &Inference{}
	known := map[string]bool{}
	for _, p := range inf.parts() {
		known[p.name], known[p.stats] = true, p.stats != ""
	}
	for _, p := range inf.dataParts() {
		known[p.name] = true
	}
	for _, key := range slices.Sorted(maps.Keys(z.meta)) {
		name, ok := strings.CutSuffix(key, "/"+zGroup)
		if !ok || strings.Contains(name, "/") {
			continue
		}
		if !known[name] {
			d.note("group %s was left out: Kelvin has no place for it", name)
			continue
		}
		if d.groups[name], err = d.zarrGroup(z, name, coords); err != nil {
			return nil, err
		}
	}
	out, err := d.inference()
	if err != nil {
		return nil, err
	}
	for _, dims := range out.Dims {
		for _, dim := range dims {
			if labels, ok := coords[dim]; ok && !counts(labels) {
				out.Coords[dim] = labels
			}
		}
	}
	return out, nil
}

// attrs are the attributes of a group, of the root for "".
func (z *zarrStore) attrs(group string) map[string]any {
	m, _ := z.meta[strings.TrimPrefix(group+"/"+zAttrs, "/")].(map[string]any)
	return m
}

// zarrGroup reads the variables of a group. An array with the name of its only dimension holds the labels of that.
func (d *decoder) zarrGroup(z *zarrStore, name string, coords map[string][]any) (*group, error) {
	g := &group{name: name, attrs: z.attrs(name)}
	for _, array := range z.groupNames(name) {
		key := name + "/" + array
		isCoord := slices.Equal(z.dims(key), []string{array})
		if isCoord && (array == "chain" || array == "draw") {
			continue
		}
		v, err := z.readArray(key)
		if err != nil && errors.Is(err, ErrUnsupported) && isCoord {
			d.note("the labels of %s were left out: %v", array, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		v.name = array
		if isCoord {
			coords[array] = labelsOf(v)
			continue
		}
		g.vars = append(g.vars, v)
	}
	return g, nil
}

func labelsOf(v *variable) []any {
	out := []any{}
	for _, x := range v.data {
		out = append(out, x)
	}
	for _, x := range v.text {
		out = append(out, x)
	}
	return out
}

// counts is true for 0, 1, 2, ..., which are written where there are no labels.
func counts(labels []any) bool {
	for i, label := range labels {
		if label != float64(i) {
			return false
		}
	}
	return true
}
