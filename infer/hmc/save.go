package hmc

import (
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// saving hands out the draws that were made since the last time.
type saving struct {
	run  *run
	from []int // draws of each chain that were handed out
}

func newSaving(r *run) *saving {
	s := &saving{run: r, from: make([]int, len(r.rows))}
	for chain, rows := range r.rows { // of a checkpoint: handed out before it was written
		s.from[chain] = len(rows) / (r.layout.Dim() + len(statNames))
	}
	return s
}

// save hands out what is new, if anything is.
func (s *saving) save() error {
	r := s.run
	width := r.layout.Dim() + len(statNames)
	rows, from, n := make([][]float64, len(r.rows)), append([]int(nil), s.from...), 0
	for chain := range r.rows {
		rows[chain] = r.rows[chain][s.from[chain]*width:]
		s.from[chain] = len(r.rows[chain]) / width
		n += len(rows[chain])
	}
	if n == 0 {
		return nil
	}
	block, err := r.unconstrained(rows)
	if err != nil {
		return err
	}
	var named *draws.Draws
	if named, err = r.program.Draws(block, r.batch); err != nil {
		return err
	}
	return r.options.Save(from, named)
}

// hook is the kernel's checkpoint hook: draws first, so that what is stored covers what the checkpoint says.
func (r *run) hook(save *saving, checkpoint *saver) func(*kernel.Snapshot) error {
	return func(snapshot *kernel.Snapshot) error {
		if save != nil {
			if err := save.save(); err != nil {
				return err
			}
		}
		if checkpoint != nil {
			return checkpoint.save(snapshot)
		}
		return nil
	}
}
