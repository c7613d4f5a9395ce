package store

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// AppendZarr goes on with a store that [CreateZarr] or [WriteZarr] wrote: each chain keeps its first keep draws, or all
// for keep = -1. The chunks stay as the store has them. An [ErrLayout] says that it has other sites, statistics or
// chains, an [ErrRange] that a chain has fewer than keep draws.
func AppendZarr(path string, sites []draws.Site, stats []string, chains int, opt ZarrOptions, keep int) (*ZarrWriter, error) {
	w, err := newZarrWriter(path, sites, stats, chains, opt)
	if err != nil {
		return nil, err
	}
	if w.z, err = openZarrStore(path); err != nil {
		return nil, err
	}
	have, _ := w.z.attrs(w.names[0])[layoutKey].(string)
	l := parseLayout(have)
	if l == nil {
		return nil, failf(ErrLayout, "append to %s: its group %s was not written by Kelvin", path, w.names[0])
	}
	if !sameSites(l.sites(), sites) || !slices.Equal(l.Stats, stats) || len(l.Lengths) != chains {
		return nil, failf(ErrLayout, "append to %s: the store has other sites, statistics or chains: %s", path, have)
	}
	for c, n := range l.Lengths {
		if keep > n || keep < -1 {
			return nil, failf(ErrRange, "append to %s: keep is %d, but chain %d has %d draws", path, keep, c, n)
		}
		if keep >= 0 {
			l.Lengths[c] = keep
		}
	}
	if err := w.resume(l.Lengths); err != nil {
		return nil, during("append to Zarr", err)
	}
	return w, nil
}

// resume takes over the store's chunks and reads the unfinished ones back.
func (w *ZarrWriter) resume(lengths []int) error {
	width := w.dim + len(w.stats)
	for i, v := range w.vars {
		meta, _ := w.z.meta[v.key+"/"+zArray].(map[string]any)
		a, err := parseZarrArray(meta)
		if err != nil {
			return &ParseError{File: w.z.file(v.key), Err: err}
		}
		if a.dtype != kindType[v.kind] || len(a.shape) != 2+len(v.shape) || a.chunks[0] != 1 {
			// Statistics that were not of their kind are floats.
			if a.dtype != "<f8" || len(a.shape) != 2+len(v.shape) || a.chunks[0] != 1 {
				return &ParseError{File: w.z.file(v.key), Err: because(ErrLayout, "the array is not one that Kelvin wrote")}
			}
			v.kind = float
		}
		if i == 0 {
			w.opt.Chunk, w.opt.FlushEvery = int(a.chunks[1]), min(w.opt.FlushEvery, int(a.chunks[1]))
			w.opt.Zlib = 0
			if c, ok := meta["compressor"].(map[string]any); ok {
				level, _ := c["level"].(float64)
				w.opt.Zlib = int(level)
			}
		}
		if dims := w.z.dims(v.key); len(dims) == len(a.shape) {
			v.dims = dims[2:]
		}
		for c, n := range lengths {
			first := n / w.opt.Chunk * w.opt.Chunk
			w.written[chainKey(v.key, c)] = n / w.opt.Chunk
			if w.chunk[c] == nil {
				w.chunk[c] = make([]float64, (n-first)*width)
			}
			if err := w.z.dropChunks(v.key, a, c, (n+w.opt.Chunk-1)/w.opt.Chunk); err != nil {
				return err
			}
			if n == first || v.size == 0 {
				continue
			}
			index := make([]int64, len(a.shape))
			index[0], index[1] = int64(c), int64(first/w.opt.Chunk)
			values, err := w.z.readChunk(v.key, a, index)
			if err != nil {
				return err
			}
			for k := range n - first {
				copy(w.chunk[c][k*width+v.from:], values[k*v.size:(k+1)*v.size])
			}
		}
	}
	copy(w.lengths, lengths)
	for c := range w.since {
		w.since[c] = 1 // the last chunk may hold draws that are no longer wanted
	}
	return w.Flush()
}

// dropChunks removes the chunks of a chain from the first-th on: they hold draws that are no longer wanted.
func (z *zarrStore) dropChunks(array string, a *zarrArray, chain, first int) error {
	index := make([]int64, len(a.shape))
	index[0] = int64(chain)
	for k := int64(first); k < chunkCounts(a)[1]; k++ {
		index[1] = k
		if err := os.Remove(z.file(chunkKey(array, ".", index))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
