package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// CSVSink writes a run's draws to CmdStan CSV files as they are made, base_1.csv, base_2.csv, …: its Save is what hmc.Options.Save
// takes. A run that goes on from a checkpoint goes on with its files; files of another run are refused. What the head says of the run is
// what Options say: set Warmup, Draws, Seed and MaxTreeDepth as for the run.
type CSVSink struct {
	Base    string
	Options CSVOptions // Chain and Run are set by the sink
	writers []*CSVWriter
}

// Save appends a block of draws: draw 0 of chain c is the run's draw from[c]. Run identifies a run that may go on from a checkpoint; what its
// files have beyond from is then cut off, since it was written after that checkpoint. With an empty run the files must not be there.
func (s *CSVSink) Save(run string, from []int, block *draws.Draws) error {
	if s.writers == nil {
		if err := s.open(run, from, block); err != nil {
			_ = s.Close()
			return err
		}
	}
	for chain, w := range s.writers {
		if w.Rows() != from[chain] {
			return failf(ErrRange, "%s_%d.csv has %d draws, and the block begins at draw %d: a sink is for one run; close it first", s.Base, chain+1, w.Rows(), from[chain])
		}
	}
	if err := each(block, func(chain int, x, stats []float64) error { return s.writers[chain].Append(x, stats) }); err != nil {
		return err
	}
	for _, w := range s.writers {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (s *CSVSink) open(run string, from []int, block *draws.Draws) error {
	for chain, keep := range from {
		o := s.Options
		o.Chain, o.Run = chain+1, run
		path := fmt.Sprintf("%s_%d.csv", s.Base, chain+1)
		_, err := os.Stat(path)
		there := err == nil
		var w *CSVWriter
		switch {
		case there && run != "":
			w, err = AppendCSV(path, block.Sites(), block.Stats(), o, keep)
		case !there && keep > 0:
			return failf(ErrRange, "%s is not there, and the run goes on from draw %d: it was begun without this sink", path, keep)
		default:
			w, err = CreateCSV(path, block.Sites(), block.Stats(), o)
		}
		if err != nil {
			return err
		}
		s.writers = append(s.writers, w)
	}
	return nil
}

// each calls f for every draw, chain by chain.
func each(d *draws.Draws, f func(chain int, x, stats []float64) error) error {
	names := d.Stats()
	columns, stats := make([][]float64, len(names)), make([]float64, len(names))
	for chain := range d.Chains() {
		for j, name := range names {
			var err error
			if columns[j], err = d.Stat(name, chain); err != nil {
				return err
			}
		}
		for i := range d.Len(chain) {
			for j := range columns {
				stats[j] = columns[j][i]
			}
			if err := f(chain, d.Row(chain, i), stats); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close closes the files.
func (s *CSVSink) Close() error {
	var first error
	for _, w := range s.writers {
		if err := w.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.writers = nil
	return first
}

// ZarrSink writes a run's draws to a Zarr store as they are made: its Save is what hmc.Options.Save takes. See [CSVSink] for what it refuses.
type ZarrSink struct {
	Path    string
	Options ZarrOptions
	writer  *ZarrWriter
}

// Save appends a block of draws, like [CSVSink.Save]. All chains must be at the same draw, as they are at a run's checkpoints.
func (s *ZarrSink) Save(run string, from []int, block *draws.Draws) error {
	if s.writer == nil {
		if err := s.open(run, from, block); err != nil {
			return err
		}
	}
	for chain, n := range s.writer.Lengths() {
		if n != from[chain] {
			return failf(ErrRange, "%s has %d draws of chain %d, and the block begins at draw %d: a sink is for one run; close it first", s.Path, n, chain, from[chain])
		}
	}
	if err := each(block, s.writer.Append); err != nil {
		return err
	}
	return s.writer.Flush()
}

func (s *ZarrSink) open(run string, from []int, block *draws.Draws) (err error) {
	keep, o := slices.Min(from), s.Options
	if run != "" {
		attrs := map[string]any{runKey: run}
		for k, v := range o.Attrs {
			attrs[k] = v
		}
		o.Attrs = attrs
	}
	text, err := os.ReadFile(filepath.Join(s.Path, ".zattrs"))
	there := err == nil
	switch {
	case there && run != "":
		var attrs map[string]any
		if err := json.Unmarshal(text, &attrs); err != nil || attrs[runKey] != run {
			return failf(ErrExists, "%s is of another run, %v, and not of %q", s.Path, attrs[runKey], run)
		}
		s.writer, err = AppendZarr(s.Path, block.Sites(), block.Stats(), len(from), o, keep)
	case !there && keep > 0:
		return failf(ErrRange, "%s is not there, and the run goes on from draw %d: it was begun without this sink", s.Path, keep)
	default:
		s.writer, err = CreateZarr(s.Path, block.Sites(), block.Stats(), len(from), o)
	}
	return err
}

// Close closes the store.
func (s *ZarrSink) Close() error {
	if s.writer == nil {
		return nil
	}
	err := s.writer.Close()
	s.writer = nil
	return err
}
