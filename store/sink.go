package store

import (
	encoding "encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/store/internal/cmdstan"
	"github.com/kelvin-ppl/kelvin/store/internal/content"
	"github.com/kelvin-ppl/kelvin/store/internal/zarr"
)

// CSVSink writes a run's draws to CmdStan CSV files as they are made, base_1.csv, base_2.csv, ... A run that resumes
// from a checkpoint resumes its files; files of another run are refused, and so are files whose kept draws have changed
// since they were written. What the head says of the run is what Options say: set Warmup, Draws, Seed and MaxTreeDepth
// as for the run.
//
// While the run goes, base.digests beside the files holds what their draws were when they were last saved.
// [CSVSink.Close] removes it.
type CSVSink struct {
	Base    string // the path of the files up to the number of the chain
	Options CSVOptions
	writers []*cmdstan.Writer
	marks   [][]cmdstan.Mark // of the last two saves, for each chain
}

// Save appends a block of draws: draw 0 of chain c is the run's draw from[c]. Run identifies a run that may resume from
// a checkpoint. What its files have beyond from is then cut off, since it was written after that checkpoint. With an
// empty run the files must not be there.
func (s *CSVSink) Save(run string, from []int, block *draws.Draws) error {
	if s.writers == nil {
		if err := s.open(run, from, block); err != nil {
			_ = s.Close()
			return err
		}
	}
	for chain, w := range s.writers {
		if w.Rows() != from[chain] {
			return content.Failf(ErrRange,
				"%s_%d.csv has %d draws, and the block begins at draw %d: a sink is for one run; close it first",
				s.Base, chain+1, w.Rows(), from[chain])
		}
	}
	s.describe(block)
	block.AtEnd(s.end)
	for chain, w := range s.writers {
		if err := w.AppendAll(block, chain); err != nil {
			return err
		}
	}
	for _, w := range s.writers {
		if err := w.Sync(); err != nil {
			return err
		}
	}
	if run == "" {
		return nil
	}
	return s.mark()
}

func (s *CSVSink) describe(d *draws.Draws) {
	facts := content.FactsOf(d)
	for _, w := range s.writers {
		w.Describe(facts)
	}
}

// end writes what a run says of itself at its end.
func (s *CSVSink) end(run *draws.Draws) error {
	s.describe(run)
	for _, w := range s.writers {
		if err := w.Sync(); err != nil {
			return err
		}
	}
	return nil
}

func (s *CSVSink) digests() string { return s.Base + ".digests" }

// mark notes the digests, and those of the save before: a kill may come before the checkpoint of this one.
func (s *CSVSink) mark() error {
	if s.marks == nil {
		s.marks = make([][]cmdstan.Mark, len(s.writers))
	}
	for chain, w := range s.writers {
		old := s.marks[chain]
		s.marks[chain] = append(old[max(0, len(old)-1):], cmdstan.Mark{Rows: w.Rows(), Digest: w.Digest()})
	}
	text, err := encoding.Marshal(s.marks)
	if err != nil {
		return content.During("write CSV", err)
	}
	return content.During("write CSV", atomicfile.Replace(s.digests(), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}))
}

func (s *CSVSink) open(run string, from []int, block *draws.Draws) error {
	if text, err := os.ReadFile(s.digests()); err == nil && run != "" {
		// What is no JSON is as good as none: the files are checked by the digests at their ends then.
		if encoding.Unmarshal(text, &s.marks) != nil || len(s.marks) != len(from) {
			s.marks = nil
		}
	}
	for chain, keep := range from {
		o := s.Options.cmdstan(block)
		o.Chain, o.Run = chain+1, run
		step := adaptation(&o, block, chain)
		path := fmt.Sprintf("%s_%d.csv", s.Base, chain+1)
		_, err := os.Stat(path)
		there := err == nil
		var marks []cmdstan.Mark
		if s.marks != nil {
			marks = s.marks[chain]
		}
		var w *cmdstan.Writer
		switch {
		case there && run != "":
			w, err = cmdstan.Append(path, block.Sites(), block.Stats(), o, keep, marks...)
		case !there && keep > 0:
			return content.Failf(ErrRange,
				"%s is not there, and the run resumes from draw %d: it was begun without this sink", path, keep)
		default:
			w, err = cmdstan.Create(path, block.Sites(), block.Stats(), o)
		}
		if err != nil {
			return err
		}
		s.writers = append(s.writers, w)
		if step != nil && w.Rows() == 0 && !w.HasAdaptation() {
			if err := w.Adapted(*step); err != nil {
				return err
			}
		}
	}
	return nil
}

// adaptation is the block that readers of CmdStan's files expect of hmc, if it is known: the step size of the first
// draw, with the unit metric.
func adaptation(o *cmdstan.Options, block *draws.Draws, chain int) *cmdstan.Adaptation {
	name, ok := block.StatName(draws.StatStepSize)
	if !ok || o.Metric != "" || o.Algorithm != "" && o.Algorithm != "hmc" {
		return nil
	}
	o.Metric = "unit_e"
	trace, err := block.Stat(name, chain)
	if err != nil || len(trace) == 0 {
		return &cmdstan.Adaptation{StepSize: 1}
	}
	return &cmdstan.Adaptation{StepSize: trace[0]}
}

// Close closes the files.
func (s *CSVSink) Close() error {
	var first error
	for _, w := range s.writers {
		if err := w.Close(); err != nil && first == nil {
			first = err
		}
	}
	if s.writers != nil && s.marks != nil && first == nil { // from here on the digests at the ends of the files serve
		if err := os.Remove(s.digests()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			first = content.During("write CSV", err)
		}
	}
	s.writers, s.marks = nil, nil
	return first
}

// ZarrSink writes a run's draws to a Zarr store as they are made. See [CSVSink] for what it refuses.
type ZarrSink struct {
	Path    string      // of the store, a folder
	Options ZarrOptions // what the store says of the run
	writer  *zarr.Writer
}

// Save appends a block of draws, like [CSVSink.Save]. All chains must be at the same draw, as they are
// at a run's checkpoints.
func (s *ZarrSink) Save(run string, from []int, block *draws.Draws) error {
	if s.writer == nil {
		if err := s.open(run, from, block); err != nil {
			return public(err)
		}
	}
	for chain, n := range s.writer.Lengths() {
		if n != from[chain] {
			return content.Failf(ErrRange,
				"%s has %d draws of chain %d, and the block begins at draw %d: a sink is for one run; close it first",
				s.Path, n, chain, from[chain])
		}
	}
	s.writer.Describe(content.FactsOf(block))
	block.AtEnd(s.end)
	if err := each(block, s.writer.Append); err != nil {
		return err
	}
	return s.writer.Flush()
}

// end writes what a run says of itself at its end.
func (s *ZarrSink) end(run *draws.Draws) error {
	if s.writer == nil {
		return nil
	}
	s.writer.Describe(content.FactsOf(run))
	return s.writer.Flush()
}

func (s *ZarrSink) open(run string, from []int, block *draws.Draws) (err error) {
	keep, o := slices.Min(from), s.Options
	o.Attrs = (&Inference{Attrs: o.Attrs}).attrs()
	if run != "" {
		o.Attrs[content.RunKey] = run
	}
	switch there := zarr.Is(s.Path); {
	case there && run != "":
		s.writer, err = zarr.Append(s.Path, block.Sites(), block.Stats(), len(from), zarr.Options(o), keep, run)
	case !there && keep > 0:
		return content.Failf(ErrRange,
			"%s is not there, and the run resumes from draw %d: it was begun without this sink", s.Path, keep)
	default:
		s.writer, err = zarr.Create(s.Path, block.Sites(), block.Stats(), len(from), zarr.Options(o))
	}
	return err
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

// Close closes the store.
func (s *ZarrSink) Close() error {
	if s.writer == nil {
		return nil
	}
	err := s.writer.Close()
	s.writer = nil
	return err
}
