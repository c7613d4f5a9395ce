package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// ZarrWriter writes the draws of all chains while the run goes. Each flush replaces the last chunk of each chain and
// then the metadata, every file in one move; a killed run leaves the store as it was at the last flush. A writer is for
// one goroutine.
type ZarrWriter struct {
	z       *zarrStore
	opt     ZarrOptions
	names   [2]string // of the groups
	sites   []draws.Site
	stats   []string
	dim     int
	vars    []*zarrVariable
	lengths []int
	chunk   [][]float64    // for each chain the rows of its unfinished chunk
	since   []int          // draws of a chain since the last flush
	written map[string]int // chunks of an array and chain that are there
	err     error
}

// zarrVariable is an array with where its numbers are in a row.
type zarrVariable struct {
	group, key string
	kind       kind
	dims       []string
	shape      []int64 // of one draw
	from, size int
}

// CreateZarr begins a store, or the groups of the draws in one that is there and lacks them; where it has them, that is an
// [ErrExists]. sites, stats and chains are as for [draws.New].
func CreateZarr(path string, sites []draws.Site, stats []string, chains int, opt ZarrOptions) (*ZarrWriter, error) {
	w, err := newZarrWriter(path, sites, stats, chains, opt)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(path); err == nil {
		if w.z, err = openZarrStore(path); err != nil {
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

func newZarrWriter(path string, sites []draws.Site, stats []string, chains int, opt ZarrOptions) (*ZarrWriter, error) {
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
	w := &ZarrWriter{
		z: newZarrStore(path), opt: opt, sites: d.Sites(), stats: d.Stats(), dim: d.Dim(), names: [2]string{"posterior", "sample_stats"},
		lengths: make([]int, chains), chunk: make([][]float64, chains), since: make([]int, chains), written: map[string]int{},
	}
	if opt.Warmup {
		w.names = [2]string{"warmup_posterior", "warmup_sample_stats"}
	}
	head := &encoder{inf: &Inference{Dims: opt.Dims, Coords: opt.Coords}, fit: fileName, sizes: map[string]int64{}}
	for i, name := range siteVariables(sites, fileName) {
		s := sites[i]
		dims, err := head.dims(w.names[0], s.Name, name, s.Shape)
		if err != nil {
			return nil, err
		}
		w.vars = append(w.vars, &zarrVariable{w.names[0], w.names[0] + "/" + name, float, dims, s.Shape, s.Offset, s.Size})
	}
	for k, name := range statVariables(stats, fileName) {
		w.vars = append(w.vars, &zarrVariable{w.names[1], w.names[1] + "/" + name, statKind(name, nil), nil, nil, d.Dim() + k, 1})
	}
	return w, nil
}

// begin writes the groups without draws.
func (w *ZarrWriter) begin() error {
	z := w.z
	attrs := (&Inference{Attrs: w.opt.Attrs}).attrs()
	if err := z.put(zGroup, zarrGroup()); err != nil {
		return err
	}
	if z.meta[zAttrs] == nil {
		if err := z.put(zAttrs, attrs); err != nil {
			return err
		}
	}
	for _, name := range w.groups() {
		if err := z.putGroup(name, attrs); err != nil {
			return err
		}
		if err := z.putSmall(name+"/chain", "<i8", []int64{int64(len(w.lengths))}, []string{"chain"}, count(int64(len(w.lengths)))); err != nil {
			return err
		}
	}
	for _, v := range w.vars {
		if err := z.putCoords(v.group, v.dims, v.shape, w.opt.Coords); err != nil {
			return err
		}
	}
	return w.Flush()
}

// groups are the names of the groups that there are.
func (w *ZarrWriter) groups() []string {
	if len(w.stats) == 0 {
		return w.names[:1]
	}
	return w.names[:]
}

// Lengths are the numbers of draws of the chains, those that are not flushed among them.
func (w *ZarrWriter) Lengths() []int { return slices.Clone(w.lengths) }

// Append adds a draw to a chain: the flat vector and the statistics, which are copied. An [ErrLayout] says which length is
// wrong, an [ErrRange] that there is no such chain, or that a divergence is neither 0 nor 1, or a tree depth or a number
// of leapfrog steps not whole. An error of the disk stays: all further calls return it.
func (w *ZarrWriter) Append(chain int, x, stats []float64) error {
	switch {
	case w.err != nil:
		return w.err
	case chain < 0 || chain >= len(w.lengths):
		return failf(ErrRange, "append to %s: chain %d, want 0 to %d", w.z.dir, chain, len(w.lengths)-1)
	case len(x) != w.dim:
		return failf(ErrLayout, "append to %s: x has %d numbers, want %d", w.z.dir, len(x), w.dim)
	case len(stats) != len(w.stats):
		return failf(ErrLayout, "append to %s: stats has %d numbers, want %d", w.z.dir, len(stats), len(w.stats))
	}
	for _, v := range w.vars {
		if v.kind != float && !v.kind.holds(stats[v.from-w.dim]) {
			return failf(ErrRange, "append to %s: %s is %v, want %s", w.z.dir, w.stats[v.from-w.dim], stats[v.from-w.dim],
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

// Close flushes. After it, every call returns [ErrClosed].
func (w *ZarrWriter) Close() error {
	if w.err == ErrClosed {
		return nil
	}
	err := w.Flush()
	w.err = ErrClosed
	return err
}
