package store

import (
	"maps"
	"slices"
)

// Flush writes all draws and then the metadata.
func (w *ZarrWriter) Flush() error {
	if w.err == nil {
		w.err = during("write Zarr", w.flush())
	}
	return w.err
}

func (w *ZarrWriter) flush() error {
	for c := range w.lengths {
		if err := w.writeChain(c); err != nil {
			return err
		}
	}
	longest := int64(slices.Max(w.lengths))
	chunks := int((longest + int64(w.opt.Chunk) - 1) / int64(w.opt.Chunk))
	for _, v := range w.vars {
		a := w.array(v, longest)
		if v.kind != float { // these have no fill value, so shorter chains need their chunks
			for c := range w.lengths {
				for k := w.written[chainKey(v.key, c)]; k < chunks; k++ {
					if err := w.z.writeChunk(v.key, a, padded(nil, w.opt.Chunk, v.kind), int64(c), int64(k)); err != nil {
						return err
					}
					w.written[chainKey(v.key, c)] = k + 1
				}
			}
		}
		if err := w.z.putArray(v.key, a, append([]string{"chain", "draw"}, v.dims...)); err != nil {
			return err
		}
	}
	for _, group := range w.groups() {
		a := &zarrArray{shape: []int64{longest}, chunks: []int64{int64(w.opt.Chunk)}, dtype: "<i8"}
		key := group + "/draw"
		for k := w.written[key]; k < chunks; k++ {
			values := count(int64(w.opt.Chunk))
			for i := range values {
				values[i] += float64(k * w.opt.Chunk)
			}
			if err := w.z.writeChunk(key, a, values, int64(k)); err != nil {
				return err
			}
			w.written[key] = k + 1
		}
		if err := w.z.putArray(key, a, []string{"draw"}); err != nil {
			return err
		}
	}
	l := newLayout(w.sites, w.stats)
	l.Lengths = w.lengths
	attrs := maps.Clone(w.z.attrs(w.names[0]))
	attrs[layoutKey] = l.String()
	if err := w.z.put(w.names[0]+"/"+zAttrs, attrs); err != nil {
		return err
	}
	for c := range w.since {
		w.since[c] = 0
	}
	return w.z.consolidate()
}

func (w *ZarrWriter) array(v *zarrVariable, n int64) *zarrArray {
	shape := append([]int64{int64(len(w.lengths)), n}, v.shape...)
	return w.opt.array(&variable{kind: v.kind, shape: shape, at: func(int, int) []float64 { return nil }})
}

// writeChain writes the unfinished chunk of a chain, and forgets it if it is full.
func (w *ZarrWriter) writeChain(c int) error {
	rows, width := w.chunk[c], w.dim+len(w.stats)
	n := w.lengths[c] % w.opt.Chunk
	k := w.lengths[c] / w.opt.Chunk
	if n == 0 && w.lengths[c] > 0 {
		n, k = w.opt.Chunk, k-1
	}
	if w.since[c] == 0 || n == 0 || len(rows) == 0 {
		return nil
	}
	for _, v := range w.vars {
		if v.size == 0 {
			continue
		}
		values := make([]float64, 0, w.opt.Chunk*v.size)
		for i := range n {
			values = append(values, rows[i*width+v.from:i*width+v.from+v.size]...)
		}
		index := make([]int64, 2+len(v.shape))
		index[0], index[1] = int64(c), int64(k)
		if err := w.z.writeChunk(v.key, w.array(v, 0), padded(values, cap(values), v.kind), index...); err != nil {
			return err
		}
		w.written[chainKey(v.key, c)] = k + 1
	}
	if n == w.opt.Chunk {
		w.chunk[c] = nil
	}
	return nil
}

func chainKey(array string, chain int) string { return chunkKey(array, ".", []int64{int64(chain)}) }
