package store

import (
	"os"
	"slices"
)

// ZarrOptions say how a Zarr store is written, and what it says about its run.
type ZarrOptions struct {
	// Chunk is the number of draws in a chunk; 0 is 1000. A chunk has the draws of one chain and of one variable.
	Chunk int
	// Zlib packs the chunks with zlib at this level, from 1 (fast) to 9; 0 leaves them plain.
	Zlib int
	// FlushEvery is after how many draws of a chain [ZarrWriter.Append] flushes; 0 is Chunk.
	FlushEvery int
	// Warmup makes a [ZarrWriter] write the draws of the warm-up: the groups warmup_posterior and warmup_sample_stats.
	Warmup bool
	// Coords, Dims and Attrs are as in [Inference]. [WriteZarr] takes those of the Inference, and these are ignored.
	Coords map[string][]any
	Dims   map[string][]string
	Attrs  map[string]any
}

func (o *ZarrOptions) fill() error {
	if o.Chunk < 0 || o.FlushEvery < 0 {
		return failf(ErrRange, "Zarr: Chunk is %d and FlushEvery is %d, want positive numbers, or 0 for the default", o.Chunk, o.FlushEvery)
	}
	if o.Zlib < 0 || o.Zlib > 9 {
		return failf(ErrRange, "Zarr: Zlib is %d, want a level from 1 to 9, or 0 for none", o.Zlib)
	}
	if o.Chunk == 0 {
		o.Chunk = 1000
	}
	if o.FlushEvery == 0 {
		o.FlushEvery = o.Chunk
	}
	return nil
}

// array is a plain or packed array of the options.
func (o *ZarrOptions) array(v *variable) *zarrArray {
	a := &zarrArray{shape: slices.Clone(v.shape), chunks: atLeastOne(v.shape), dtype: kindType[v.kind]}
	if v.at != nil {
		a.chunks[0], a.chunks[1] = 1, int64(o.Chunk)
	}
	if o.Zlib > 0 {
		a.compressor, a.level = "zlib", o.Zlib
	}
	return a
}

// WriteZarr writes a Zarr version 2 store that xarray (open_zarr with group="posterior") and ArviZ (from_zarr) read: the
// groups of ArviZ's InferenceData, arrays of little-endian float64 of the shape [chain][draw][shape...] in chunks of
// one chain, _ARRAY_DIMENSIONS and labels for xarray, and consolidated metadata. Divergences are booleans, tree depths
// and leapfrog steps are integers if all are whole. Shorter chains are filled with NaN, and their lengths are in an
// attribute that [ReadZarr] reads. Characters that a file cannot have in its name become _ in names of arrays.
//
// The store appears in one move when it is complete. An [ErrExists] says that path is there already.
func WriteZarr(path string, inf *Inference, opt ZarrOptions) error {
	if err := opt.fill(); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return failf(ErrExists, "write Zarr: %s exists already", path)
	}
	e := &encoder{inf: inf, fit: fileName}
	groups, err := e.groups()
	if err != nil {
		return err
	}
	// One name for all: what a killed run leaves is overwritten by the next.
	dir := path + ".new"
	if err := os.RemoveAll(dir); err != nil {
		return during("write Zarr", err)
	}
	z := newZarrStore(dir)
	err = z.writeAll(inf, groups, opt)
	if err == nil {
		err = os.Rename(dir, path)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return during("write Zarr", err)
}

func (z *zarrStore) writeAll(inf *Inference, groups []*group, opt ZarrOptions) error {
	if err := z.put(zGroup, zarrGroup()); err != nil {
		return err
	}
	if err := z.put(zAttrs, inf.attrs()); err != nil {
		return err
	}
	for _, g := range groups {
		if err := z.putGroup(g.name, g.attrs); err != nil {
			return err
		}
		for _, v := range g.vars {
			if err := z.writeVariable(g.name, v, inf.Coords, opt); err != nil {
				return err
			}
		}
	}
	return z.consolidate()
}

// writeVariable writes an array with all of its chunks, and the labels of its dimensions.
func (z *zarrStore) writeVariable(group string, v *variable, coords map[string][]any, opt ZarrOptions) error {
	key, a := group+"/"+v.name, opt.array(v)
	own, shape := v.dims, v.shape
	if v.at != nil {
		for k, dim := range own[:2] {
			if _, done := z.meta[group+"/"+dim+"/"+zArray]; done {
				continue
			}
			if err := z.putSmall(group+"/"+dim, "<i8", shape[k:k+1], []string{dim}, count(shape[k])); err != nil {
				return err
			}
		}
		own, shape = own[2:], shape[2:]
	}
	if err := z.putCoords(group, own, shape, coords); err != nil {
		return err
	}
	if err := z.putArray(key, a, v.dims); err != nil {
		return err
	}
	if v.at == nil {
		if len(v.data) == 0 {
			return nil
		}
		return z.writeChunk(key, a, v.data, make([]int64, len(v.shape))...)
	}
	size, _ := product(v.shape[2:])
	if size == 0 {
		return nil
	}
	values := make([]float64, 0, opt.Chunk*size)
	index := make([]int64, len(v.shape))
	for c := range v.shape[0] {
		for first := int64(0); first < v.shape[1]; first += int64(opt.Chunk) {
			values = values[:0]
			for i := first; i < min(first+int64(opt.Chunk), v.shape[1]); i++ {
				values = append(values, v.at(int(c), int(i))...)
			}
			index[0], index[1] = c, first/int64(opt.Chunk)
			if err := z.writeChunk(key, a, padded(values, cap(values), v.kind), index...); err != nil {
				return err
			}
		}
	}
	return nil
}

// padded fills a chunk up to n numbers.
func padded(values []float64, n int, k kind) []float64 {
	fill := 0.
	if k == float {
		fill = nan
	}
	for len(values) < n {
		values = append(values, fill)
	}
	return values
}
