package infer

import (
	"cmp"
	"fmt"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"path/filepath"
	"time"
)

// run runs the groups one after the other, after the search for a mode where the method needs one.
func (s *session) run(method Method) error {
	start, err := s.start()
	if err != nil {
		return err
	}
	if err := s.convert(start); err != nil {
		return err
	}
	if s.layout.Dim() <= endlessDim {
		if s.origin, err = start.copy(); err != nil {
			return err
		}
	}
	if err := s.checkAdditive(start); err != nil {
		return err
	}
	if finder, ok := s.transform.(ModeFinder); ok {
		if start, err = s.climb(finder, start); err != nil {
			return fmt.Errorf("looking for the mode: %w", err)
		}
	}
	for from := 0; from < s.o.Chains; from += s.o.Group {
		g := group{session: s, from: from, size: min(s.o.Group, s.o.Chains-from)}
		if g.start, err = part(start, from, g.size); err != nil {
			return err
		}
		if s.o.Checkpoint != nil {
			own := *s.o.Checkpoint
			if g.checkpoint = &own; s.o.Group < s.o.Chains {
				own.Dir = filepath.Join(own.Dir, fmt.Sprintf("chains-%06d", from))
			}
		}
		if err := s.batches.Seek(s.from); err != nil {
			return err
		}
		if driver, ok := s.transform.(Driver); ok {
			err = g.drive(driver)
		} else {
			err = g.update()
		}
		if err != nil {
			if s.o.Group < s.o.Chains {
				err = fmt.Errorf("chains %d to %d: %w", from, from+g.size-1, err)
			}
			return err
		}
	}
	return s.tooManyHeld()
}

// part is some of the chains of a point.
func part(p Params, from, size int) (Params, error) {
	if !p.Batched() || size == p.Chains() {
		return p.copy()
	}
	view, err := p.with(raw.Of(p.Flat.T().Narrow(0, int64(from), int64(size), false)))
	if err != nil {
		return p, err
	}
	return view.copy()
}

// tooManyHeld is the error of a run that mostly stood still.
func (s *session) tooManyHeld() error {
	if all := s.updates * s.o.Chains; s.held*2 > all {
		held := fmt.Sprintf("%.3g %% of the updates were held because the log posterior or its gradient was not finite",
			100*float64(s.held)/float64(all))
		if n, _ := s.undefined(); n > 0 {
			return s.because(fmt.Errorf("%s: %w", held, ErrNonFinite))
		}
		return fmt.Errorf("%s: lower the step size of %s, or start elsewhere: %w", held, s.name, ErrNonFinite)
	}
	return nil
}

// group are the chains that run at once.
type group struct {
	*session
	from, size int // chains from, from+1, ...
	start      Params
	checkpoint *Checkpoint
	file       *checkpointer
	resumed    int
}

// progress is what all observers are told.
func (g *group) progress() Progress {
	return Progress{Method: g.name, Chains: g.size, FirstChain: g.first(), Transform: g.transform,
		Elapsed: time.Since(g.began),
		Resumed: g.resumed, Draws: g.rows.least(g.from, g.size), Gradients: g.gradients}
}

// first is the number of the group's first chain among all streams.
func (g *group) first() uint64 { return g.o.FirstChain + uint64(g.from) }

// every is after how many updates, or transitions of each chain, a checkpoint or a block of draws is due.
func (g *group) every(def int) int {
	switch {
	case g.checkpoint != nil:
		return cmp.Or(g.checkpoint.Every, def)
	case g.o.Save != nil:
		return g.o.SaveEvery
	}
	return 0
}
