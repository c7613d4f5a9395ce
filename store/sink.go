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
	writers []*csvWriter
	marks   [][]csvMark // of the last two saves, for each chain
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
			return failf(ErrRange,
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
	facts := factsOf(d)
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
		s.marks = make([][]csvMark, len(s.writers))
	}
	for chain, w := range s.writers {
		old := s.marks[chain]
		s.marks[chain] = append(old[max(0, len(old)-1):], csvMark{Rows: w.Rows(), Digest: w.Digest()})
	}
	text, err := encoding.Marshal(s.marks)
	if err != nil {
		return during("write CSV", err)
	}
	return during("write CSV", atomicfile.Replace(s.digests(), func(w io.Writer) error {
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
		o := s.Options.head(block)
		o.Chain, o.Run = chain+1, run
		path := fmt.Sprintf("%s_%d.csv", s.Base, chain+1)
		_, err := os.Stat(path)
		there := err == nil
		var marks []csvMark
		if s.marks != nil {
			marks = s.marks[chain]
		}
		var w *csvWriter
		switch {
		case there && run != "":
			w, err = appendCSV(path, block.Sites(), block.Stats(), o, keep, marks...)
		case !there && keep > 0:
			return failf(ErrRange,
				"%s is not there, and the run resumes from draw %d: it was begun without this sink", path, keep)
		default:
			w, err = createCSV(path, block.Sites(), block.Stats(), o)
		}
		if err != nil {
			return err
		}
		s.writers = append(s.writers, w)
		if w.head.HMC && w.rows == 0 && w.adapted == "" {
			if err := w.Adapted(firstStep(block, chain)); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstStep is the step size of the first draw, 1 where there is none.
func firstStep(block *draws.Draws, chain int) float64 {
	name, _ := block.StatName(draws.StatStepSize)
	if trace, err := block.Stat(name, chain); err == nil && len(trace) > 0 {
		return trace[0]
	}
	return 1
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
			first = during("write CSV", err)
		}
	}
	s.writers, s.marks = nil, nil
	return first
}

// ZarrSink writes a run's draws to a Zarr store as they are made. See [CSVSink] for what it refuses.
type ZarrSink struct {
	Path    string      // of the store, a folder
	Options ZarrOptions // what the store says of the run
	writer  *zarrWriter
}

// Save appends a block of draws, like [CSVSink.Save]. All chains must be at the same draw, as they are
// at a run's checkpoints.
func (s *ZarrSink) Save(run string, from []int, block *draws.Draws) error {
	if s.writer == nil {
		if err := s.open(run, from, block); err != nil {
			return err
		}
	}
	for chain, n := range s.writer.Lengths() {
		if n != from[chain] {
			return failf(ErrRange,
				"%s has %d draws of chain %d, and the block begins at draw %d: a sink is for one run; close it first",
				s.Path, n, chain, from[chain])
		}
	}
	s.writer.Describe(factsOf(block))
	block.AtEnd(s.end)
	for chain := range block.Chains() {
		for i := range block.Len(chain) {
			if err := s.writer.Append(chain, block.Row(chain, i), block.StatRow(chain, i)); err != nil {
				return err
			}
		}
	}
	return s.writer.Flush()
}

// end writes what a run says of itself at its end.
func (s *ZarrSink) end(run *draws.Draws) error {
	if s.writer == nil {
		return nil
	}
	s.writer.Describe(factsOf(run))
	return s.writer.Flush()
}

func (s *ZarrSink) open(run string, from []int, block *draws.Draws) (err error) {
	keep, o := slices.Min(from), s.Options
	o.Attrs = (&Inference{Attrs: o.Attrs}).attrs()
	if run != "" {
		o.Attrs[runKey] = run
	}
	switch there := isZarr(s.Path); {
	case there && run != "":
		s.writer, err = appendZarr(s.Path, block.Sites(), block.Stats(), len(from), o, keep, run)
	case !there && keep > 0:
		return failf(ErrRange,
			"%s is not there, and the run resumes from draw %d: it was begun without this sink", s.Path, keep)
	default:
		s.writer, err = createZarr(s.Path, block.Sites(), block.Stats(), len(from), o)
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
