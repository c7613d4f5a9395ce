package store

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// CSVSink writes a run's draws to CmdStan CSV files as they are made, base_1.csv, base_2.csv, …: its Save is what hmc.Options.Save
// takes. A run that goes on from a checkpoint goes on with the files.
type CSVSink struct {
	Base    string
	Options CSVOptions // Chain is set for each file
	writers []*CSVWriter
}

// Save appends a block of draws: draw 0 of chain c is the run's draw from[c]. What a file has beyond that is cut off first: it was written
// after the checkpoint that the run goes on from.
func (s *CSVSink) Save(from []int, block *draws.Draws) error {
	if s.writers == nil {
		for chain, keep := range from {
			o := s.Options
			o.Chain = chain + 1
			path := fmt.Sprintf("%s_%d.csv", s.Base, chain+1)
			open := func() (*CSVWriter, error) { return CreateCSV(path, block.Sites(), block.Stats(), o) }
			if keep > 0 {
				open = func() (*CSVWriter, error) { return AppendCSV(path, block.Sites(), block.Stats(), o, keep) }
			}
			w, err := open()
			if err != nil {
				return err
			}
			s.writers = append(s.writers, w)
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

// ZarrSink writes a run's draws to a Zarr store as they are made: its Save is what hmc.Options.Save takes.
type ZarrSink struct {
	Path    string
	Options ZarrOptions
	writer  *ZarrWriter
}

// Save appends a block of draws, like [CSVSink.Save]. All chains must be at the same draw, as they are at a run's checkpoints.
func (s *ZarrSink) Save(from []int, block *draws.Draws) (err error) {
	if s.writer == nil {
		keep := slices.Min(from)
		if keep > 0 {
			s.writer, err = AppendZarr(s.Path, block.Sites(), block.Stats(), len(from), s.Options, keep)
		} else {
			s.writer, err = CreateZarr(s.Path, block.Sites(), block.Stats(), len(from), s.Options)
		}
		if err != nil {
			return err
		}
	}
	if err := each(block, s.writer.Append); err != nil {
		return err
	}
	return s.writer.Flush()
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
