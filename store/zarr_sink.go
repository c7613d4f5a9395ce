package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// zarrWriter writes the draws of all chains while the run goes. Each flush replaces the last chunk of each chain and
// then the metadata, every file in one move; a killed run leaves the store as it was at the last flush. A writer
// is for one goroutine.
type zarrWriter struct {
	z       *zarrStore
	opt     ZarrOptions
	names   [2]string // of the groups
	sites   []draws.Site
	stats   []string
	dim     int
	vars    []*zarrSeries
	lengths []int
	chunk   [][]float64    // for each chain the rows of its unfinished chunk
	since   []int          // draws of a chain since the last flush
	written map[string]int // chunks of an array and chain that are there
	facts   runFacts
	root    *os.File // .zgroup of the first group, held open to notice where the store is another one
	err     error
}

// zarrSeries is an array with where its numbers are in a row.
type zarrSeries struct {
	group, key string
	kind       kind
	dims       []string
	shape      []int // of one draw
	from, size int
}

// createZarr begins a store, or the groups of the draws in one that is there and lacks them; if it has them, that is an
// [ErrExists]. sites, stats and chains are as for [draws.New]; attrs are those of the store.
func createZarr(path string, sites []draws.Site, stats []string, chains int, opt ZarrOptions) (*zarrWriter, error) {
	w, err := newZarrWriter(path, sites, stats, chains, opt)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(path); err == nil {
		if w.z, err = openZarr(path, Limits{}); err != nil {
			return nil, err
		}
		if _, ok := w.z.meta[w.names[0]+"/"+zGroup]; ok {
			return nil, failf(ErrExists, "create Zarr: %s has the group %s already", path, w.names[0])
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, during("create Zarr", err)
	}
	if err := w.begin(); err != nil {
		return nil, during("create Zarr", err)
	}
	return w, nil
}

func newZarrWriter(path string, sites []draws.Site, stats []string, chains int, opt ZarrOptions) (*zarrWriter, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	d, err := draws.New(sites, stats, chains)
	if err != nil {
		return nil, fmt.Errorf("store: create Zarr: %w", err)
	}
	if len(sites)+len(stats) == 0 {
		return nil, failf(ErrLayout, "create Zarr: %s: a draw has neither sites nor statistics", path)
	}
	w := &zarrWriter{
		z: newZarrStore(path), opt: opt, sites: d.Sites(), stats: d.Stats(), dim: d.Dim(),
		names:   [2]string{"posterior", "sample_stats"},
		lengths: make([]int, chains), chunk: make([][]float64, chains), since: make([]int, chains),
		written: map[string]int{},
	}
	if opt.Warmup {
		w.names = [2]string{"warmup_posterior", "warmup_sample_stats"}
	}
	labels := &dimLabels{Dims: opt.Dims, Coords: opt.Coords}
	for i, name := range siteVariables(sites, fileName) {
		s := sites[i]
		dims, err := labels.Of(w.names[0], s.Name, name, s.Shape)
		if err != nil {
			return nil, err
		}
		w.vars = append(w.vars, &zarrSeries{w.names[0], w.names[0] + "/" + name, float, dims, s.Shape, s.Offset, s.Size})
	}
	for k, name := range statVariables(stats, fileName) {
		w.vars = append(w.vars, &zarrSeries{w.names[1], w.names[1] + "/" + name, statKind(name, nil), nil, nil, d.Dim() +
			k, 1})
	}
	return w, nil
}

// begin writes the groups without draws.
func (w *zarrWriter) begin() error {
	z := w.z
	if err := z.put(zGroup, groupMeta()); err != nil {
		return err
	}
	if z.meta[zAttrs] == nil {
		if err := z.put(zAttrs, w.opt.Attrs); err != nil {
			return err
		}
	}
	for _, name := range w.groups() {
		if err := z.putGroup(name, w.opt.Attrs); err != nil {
			return err
		}
		if err := z.putSmall(name+"/chain", "<i8", "chain", counting(len(w.lengths)), &w.opt); err != nil {
			return err
		}
	}
	for _, v := range w.vars {
		if err := z.putCoords(v.group, v.dims, v.shape, &w.opt); err != nil {
			return err
		}
	}
	return w.Flush()
}

// groups are the names of the groups that there are.
func (w *zarrWriter) groups() []string {
	if len(w.stats) == 0 {
		return w.names[:1]
	}
	return w.names[:]
}

// Lengths are the numbers of draws of the chains, those that are not flushed among them.
func (w *zarrWriter) Lengths() []int { return slices.Clone(w.lengths) }

// Describe sets the attributes and notes, which the next flush writes.
func (w *zarrWriter) Describe(f runFacts) { w.facts = f }

// Append adds a draw to a chain: the flat vector and the statistics, which are copied. An [ErrLayout]
// says which length is wrong. An [ErrRange] says that there is no such chain, that a divergence is
// neither 0 nor 1, or that a tree depth or a number of leapfrog steps is not whole. An error of the disk stays:
// all further calls return it.
func (w *zarrWriter) Append(chain int, x, stats []float64) error {
	dir := w.z.dir
	switch {
	case w.err != nil:
		return w.err
	case chain < 0 || chain >= len(w.lengths):
		return failf(ErrRange, "append to %s: chain %d, want 0 to %d", dir, chain, len(w.lengths)-1)
	case len(x) != w.dim:
		return failf(ErrLayout, "append to %s: x has %d numbers, want %d", dir, len(x), w.dim)
	case len(stats) != len(w.stats):
		return failf(ErrLayout, "append to %s: stats has %d numbers, want %d", dir, len(stats), len(w.stats))
	}
	for _, v := range w.vars {
		if k := v.from - w.dim; v.kind != float && !v.kind.Holds(stats[k]) {
			return failf(ErrRange, "append to %s: %s is %v, want %s", dir, w.stats[k], stats[k],
				map[kind]string{boolean: "0 or 1", integer: "a whole number"}[v.kind])
		}
	}
	w.chunk[chain] = append(append(w.chunk[chain], x...), stats...)
	w.lengths[chain]++
	w.since[chain]++
	if w.since[chain] >= w.opt.FlushEvery {
		return w.Flush()
	}
	if w.lengths[chain]%w.opt.Chunk == 0 { // the next draw begins a chunk
		w.err = during("append to Zarr", w.writeChain(chain))
	}
	return w.err
}

// Close flushes. After it, every call returns [errClosed].
func (w *zarrWriter) Close() error {
	if w.err == errClosed {
		return nil
	}
	err := w.Flush()
	w.z.batch.Discard()
	_ = w.root.Close() // nil is an error of its own
	w.err = errClosed
	return err
}

// Flush writes all draws and then the metadata, and waits for the disk.
func (w *zarrWriter) Flush() error {
	if w.err == nil {
		w.err = during("write Zarr", w.flush())
	}
	return w.err
}

func (w *zarrWriter) flush() error {
	for c := range w.lengths {
		if err := w.writeChain(c); err != nil {
			return err
		}
	}
	longest := slices.Max(w.lengths)
	chunks := (longest + w.opt.Chunk - 1) / w.opt.Chunk
	for _, v := range w.vars {
		if v.kind == float {
			continue
		}
		a := w.array(v, longest)
		for c := range w.lengths { // these have no fill value, so shorter chains need their chunks
			for k := w.written[chainKey(v.key, c)]; k < chunks; k++ {
				if err := w.z.writeChunk(v.key, a, padded(nil, w.opt.Chunk, v.kind), c, k); err != nil {
					return err
				}
				w.written[chainKey(v.key, c)] = k + 1
			}
		}
	}
	for _, group := range w.groups() {
		a, key := w.drawArray(longest), group+"/draw"
		for k := w.written[key]; k < chunks; k++ {
			values := counting(w.opt.Chunk)
			for i := range values {
				values[i] += float64(k * w.opt.Chunk)
			}
			if err := w.z.writeChunk(key, a, values, k); err != nil {
				return err
			}
			w.written[key] = k + 1
		}
	}
	if err := w.putLengths(); err != nil {
		return err
	}
	for c := range w.since {
		w.since[c] = 0
	}
	if w.root != nil {
		if err := atomicfile.Present(w.root); err != nil {
			return err
		}
		return w.z.commit()
	}
	err := w.z.commit()
	if err == nil {
		w.root, err = os.Open(w.z.file(w.names[0] + "/" + zGroup))
	}
	return err
}

// putLengths writes the metadata of all arrays, and the lengths of the chains.
func (w *zarrWriter) putLengths() error {
	longest := slices.Max(w.lengths)
	for _, v := range w.vars {
		if err := w.z.putArray(v.key, w.array(v, longest), append([]string{"chain", "draw"}, v.dims...)); err != nil {
			return err
		}
	}
	for _, group := range w.groups() {
		if err := w.z.putArray(group+"/draw", w.drawArray(longest), []string{"draw"}); err != nil {
			return err
		}
	}
	l := newLayout(w.sites, w.stats)
	l.Lengths = w.lengths
	attrs := maps.Clone(w.z.attrs(w.names[0]))
	if attrs == nil {
		attrs = map[string]any{}
	}
	attrs[layoutKey] = l.String()
	for key, text := range map[string]string{attrsKey: w.facts.Attrs, notesKey: w.facts.Notes} {
		if text != "" {
			attrs[key] = text
		}
	}
	return w.z.put(w.names[0]+"/"+zAttrs, attrs)
}

func (w *zarrWriter) array(v *zarrSeries, n int) *zarrArray {
	return w.opt.array(kindType[v.kind], append([]int{len(w.lengths), n}, v.shape...), true)
}

// drawArray holds the numbers of the draws.
func (w *zarrWriter) drawArray(n int) *zarrArray {
	a := w.opt.array("<i8", []int{n}, false)
	a.chunks[0] = w.opt.Chunk
	return a
}

// writeChain writes the unfinished chunk of a chain, and forgets it if it is full.
func (w *zarrWriter) writeChain(c int) error {
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
		index := make([]int, 2+len(v.shape))
		index[0], index[1] = c, k
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

func chainKey(array string, chain int) string { return chunkKey(array, ".", []int{chain}) }
