package store

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// appendZarr resumes a store that [createZarr] or [writeZarr] wrote: each chain keeps its first keep draws, or all for
// keep = -1. The chunks stay as the store has them. An [ErrLayout] says that it has other sites, statistics or chains,
// an [ErrRange] that a chain has fewer than keep draws, an [ErrExists] that it is of another run.
//
// The metadata is cut first, so a kill at any time leaves a store whose metadata tells of draws that are there.
func appendZarr(path string, sites []draws.Site, stats []string, chains int, opt ZarrOptions, keep int,
	run string) (*zarrWriter, error) {
	w, err := newZarrWriter(path, sites, stats, chains, opt)
	if err != nil {
		return nil, err
	}
	if w.z, err = openZarr(path, Limits{}); err != nil {
		return nil, err
	}
	if found := w.z.attrs("")[runKey]; run != "" && found != run {
		return nil, failf(ErrExists, "%s is of another run, %v, and not of %q", path, found, run)
	}
	have, _ := w.z.attrs(w.names[0])[layoutKey].(string)
	l := parseLayout(have)
	if l == nil {
		return nil, failf(ErrLayout, "append to %s: its group %s was not written by Kelvin", path, w.names[0])
	}
	if !sameSites(l.Placed(), sites) || !slices.Equal(l.Stats, stats) || len(l.Lengths) != chains {
		return nil, failf(ErrLayout, "append to %s: the store has other sites, statistics or chains: %s",
			path, have)
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

// resume takes over the store's chunks and reads the unfinished ones back. It reads and checks before it changes.
func (w *zarrWriter) resume(lengths []int) error {
	for i, v := range w.vars {
		meta, _ := w.z.meta[v.key+"/"+zArray].(map[string]any)
		a, err := parseArray(meta)
		if err != nil {
			return &ParseError{File: w.z.file(v.key), Err: err}
		}
		if a.dtype != kindType[v.kind] || len(a.shape) != 2+len(v.shape) || a.chunks[0] != 1 {
			// Statistics that were not of their kind are floats.
			if a.dtype != "<f8" || len(a.shape) != 2+len(v.shape) || a.chunks[0] != 1 {
				return &ParseError{File: w.z.file(v.key),
					Err: because(ErrLayout, "the array is not one that Kelvin wrote")}
			}
			v.kind = float
		}
		if i == 0 {
			w.opt.Chunk, w.opt.FlushEvery = a.chunks[1], min(w.opt.FlushEvery, a.chunks[1])
			w.opt.Zlib = -1
			if c, ok := meta["compressor"].(map[string]any); ok {
				level, _ := c["level"].(float64)
				w.opt.Zlib = int(level)
			}
		}
		if dims := w.z.dims(v.key); len(dims) == len(a.shape) {
			v.dims = dims[2:]
		}
		for c, n := range lengths {
			if err := w.resumeChain(v, a, c, n); err != nil {
				return err
			}
		}
	}
	copy(w.lengths, lengths)
	if err := w.putLengths(); err != nil {
		return err
	}
	if err := w.z.commit(); err != nil {
		return err
	}
	if err := w.dropChunks(); err != nil {
		return err
	}
	for c := range w.since {
		w.since[c] = 1 // the last chunk may hold draws that are no longer wanted
	}
	return w.Flush()
}

// resumeChain reads the n draws of a chain that are kept, which checks them, and takes over those of the last chunk
// where that is not full.
func (w *zarrWriter) resumeChain(v *zarrSeries, a *zarrArray, chain, n int) error {
	first, width := n/w.opt.Chunk*w.opt.Chunk, w.dim+len(w.stats)
	w.written[chainKey(v.key, chain)] = n / w.opt.Chunk
	if w.chunk[chain] == nil {
		w.chunk[chain] = make([]float64, (n-first)*width)
	}
	index := make([]int, len(a.shape))
	index[0] = chain
	for ; v.size > 0 && index[1]*w.opt.Chunk < n; index[1]++ {
		values, err := w.z.readChunk(v.key, a, index)
		if err != nil {
			return err
		}
		if index[1]*w.opt.Chunk < first {
			continue
		}
		for j := range n - first {
			copy(w.chunk[chain][j*width+v.from:], values[j*v.size:(j+1)*v.size])
		}
	}
	return nil
}

// dropChunks removes the chunks behind the end of each chain: they hold draws that are no longer wanted, and what
// killed runs left.
func (w *zarrWriter) dropChunks() error {
	for _, v := range w.vars {
		entries, err := os.ReadDir(w.z.file(v.key))
		if err != nil {
			return err
		}
		for _, e := range entries {
			parts := strings.Split(e.Name(), ".")
			if len(parts) < 2 {
				continue
			}
			c, err1 := strconv.Atoi(parts[0])
			k, err2 := strconv.Atoi(parts[1])
			if err1 != nil || err2 != nil || c < 0 || c < len(w.lengths) && k*w.opt.Chunk < w.lengths[c] {
				continue
			}
			if err := atomicfile.Remove(w.z.file(v.key + "/" + e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
