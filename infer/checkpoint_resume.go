package infer

import (
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
)

// resumeDriven puts the run where the checkpoint says, and returns the snapshot to go on from.
func (f *checkpointer) resumeDriven(r *driven) ([]byte, error) {
	if f.old == nil {
		return nil, nil
	}
	h := f.old
	r.done, r.divergent, r.ended, r.group.resumed = h.Steps, h.Held, h.Ended, h.Steps
	for c, n := range h.Counts {
		if n > 0 {
			r.draws(c)
		}
	}
	return h.Extra, nil
}

// resumeUpdates puts the run where the checkpoint says.
func (f *checkpointer) resumeUpdates(r *updater) error {
	h := f.old
	if h == nil {
		return nil
	}
	point, err := describe("params", r.state.Position().Flat)
	if err != nil {
		return err
	}
	// What does not name its position "params" is not compared.
	i := slices.IndexFunc(h.Tensors, func(i savedTensorInfo) bool { return i.Name == "params" })
	if i >= 0 && h.Tensors[i].String() != point.String() {
		return fmt.Errorf("it is of another run: its point is %v, this run's %v: %w", h.Tensors[i], point, ErrCheckpoint)
	}
	tensors := map[string]torch.Tensor{}
	before := r.state.Save().Tensors
	for i, info := range h.Tensors {
		like := before[info.Name]
		if like == (torch.Tensor{}) {
			like = r.state.Position().Flat
		}
		t, err := restoreTensor(info, f.blobs[i], like)
		if err != nil {
			return fmt.Errorf("restoring %s: %w", info.Name, err)
		}
		tensors[info.Name] = t
	}
	if r.average != nil {
		r.average.restore(h.Weight, tensors)
	}
	saved := Saved{Steps: h.State, Streams: h.Streams, Tensors: tensors, Extra: h.Extra}
	state, err := r.transform.(Restorer).Restore(r.layout, saved)
	if err != nil {
		return err
	}
	Free(r.state)
	r.state = state
	if err := r.batches.Seek(h.Position); err != nil {
		return err
	}
	r.stuck = h.Stuck
	r.steps, r.held, r.ended, r.group.resumed = h.Steps, h.Held, h.Ended, h.Steps
	r.session.updates = max(r.session.updates, r.steps)
	if len(h.Stats) >= len(updateStats) {
		r.extra = h.Stats[len(updateStats):]
	}
	return nil
}

// restoreDraws reads the draws that the checkpoint covers, and cuts off what was written after it.
func (f *checkpointer) restoreDraws() error {
	if f.old == nil {
		return f.draws.Truncate(0)
	}
	h, g := f.old, f.g
	if len(h.Counts) != g.size {
		return fmt.Errorf("it has draws of %d chains, expected %d: %w", len(h.Counts), g.size, ErrCheckpoint)
	}
	d, w := g.layout.Dim(), 1+g.layout.Dim()+len(h.Stats)
	info, err := f.draws.Stat()
	if err != nil {
		return err
	}
	total := 0
	for c, n := range h.Counts {
		if n < 0 || n > maxUpdates {
			return fmt.Errorf("it has %d draws of chain %d: %w", n, c, ErrCheckpoint)
		}
		total += n
	}
	path := filepath.Join(f.dir, drawsName)
	if total > int(info.Size())/(8*w) {
		return fmt.Errorf("%s is cut off: the checkpoint covers %d draws of %d bytes, the file has %d bytes: %w", path, total,
			8*w, info.Size(), ErrCheckpoint)
	}
	raw := make([]byte, total*(8*w))
	if _, err := f.draws.ReadAt(raw, 0); err != nil && err != io.EOF {
		return fmt.Errorf("reading draws: %w", err)
	}
	if crc64.Checksum(raw, crcTable) != h.DrawsCRC {
		return fmt.Errorf("%s is damaged: its checksum is not that of the checkpoint: %w", path, ErrCheckpoint)
	}
	if err := f.draws.Truncate(int64(len(raw))); err != nil {
		return err
	}
	f.bytes, f.crc = len(raw), h.DrawsCRC
	if len(h.Stats) == 0 && total == 0 {
		return nil
	}
	if err := g.rows.begin(h.Stats); err != nil {
		return err
	}
	if !slices.Equal(g.rows.stats, h.Stats) {
		return fmt.Errorf("its statistics are %q, this run's %q: %w", h.Stats, g.rows.stats, ErrCheckpoint)
	}
	for ; len(raw) > 0; raw = raw[8*w:] {
		chain := binary.LittleEndian.Uint64(raw)
		if chain >= uint64(g.size) {
			return fmt.Errorf("%s has a draw of chain %d of %d: %w", path, chain, g.size, ErrCheckpoint)
		}
		row := float64Values(raw[8 : 8*w])
		if err := g.rows.add(g.from+int(chain), row[:d], row[d:]); err != nil {
			return err
		}
		f.counts[chain]++
	}
	if !slices.Equal(f.counts, h.Counts) {
		return fmt.Errorf("%s has %d draws of the chains, the checkpoint says %d: %w", path, f.counts, h.Counts,
			ErrCheckpoint)
	}
	g.rows.restored(g.from, g.size)
	return nil
}
