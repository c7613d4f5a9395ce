package hmc

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// saving hands out the draws that were made since the last time.
type saving struct {
	run  *run
	id   string
	from []int // draws of each chain that were handed out
}

func newSaving(r *run) *saving {
	s := &saving{run: r, id: r.identity(), from: make([]int, r.saved())}
	for chain, rows := range r.rows[:r.saved()] { // of a checkpoint: handed out before it was written
		s.from[chain] = len(rows) / (r.layout.Dim() + len(statNames))
	}
	return s
}

// save hands out what is new, if anything is.
func (s *saving) save() error {
	r := s.run
	width := r.layout.Dim() + len(statNames)
	rows, from, n := make([][]float64, r.saved()), append([]int(nil), s.from...), 0
	for chain := range rows {
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
	return r.options.Save(s.id, from, named)
}

// saved is how many chains are handed out: all, but of replica exchange the one at the temperature of interest.
func (r *run) saved() int {
	if r.ladder != nil {
		return 1
	}
	return len(r.rows)
}

// identity names a run that can go on: by all that its draws depend on.
func (r *run) identity() string {
	o := r.options
	if o.Checkpoint == nil {
		return ""
	}
	data, err := infer.Full(r.batch).Fingerprint()
	if err != nil {
		data = err.Error()
	}
	var start []float64
	if o.Init.Flat != nil {
		if start, err = o.Init.Values(); err != nil {
			data += err.Error()
		}
	}
	var metric kernel.MetricState
	if o.InitialMetric != nil {
		metric = *o.InitialMetric
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %v %q %d %d %d %d %T%+v %v %v %+v %v %v %d %v %+v", o.Checkpoint.Model, r.layout, data, o.Seed, o.Chains, o.Warmup, o.Thin,
		o.Kernel, o.Kernel, o.Metric, o.StepSize, o.Adapt, o.Temperature, r.ladder, r.every, start, metric))
	return hex.EncodeToString(sum[:8])
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
