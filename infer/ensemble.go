package infer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// EnsembleConfig says how [RunEnsemble] drives many chains.
type EnsembleConfig struct {
	// Group is how many chains run at once, as one batch; 0 is all of them. Memory grows with it, and so does speed until the
	// processor has enough to do.
	Group int
	// LastOnly takes one draw of each chain, its last state, whatever Run says of thinning and cycles.
	LastOnly bool
	// Run is the run of each chain. Its Chains are the chains of the ensemble; its FirstChain is the number of the first. With a
	// Checkpoint each group has a folder of its own in Dir, and an ensemble that was killed goes on with the group it was at.
	// Observers see a group at a time: Progress.FirstChain is the number of its first chain.
	Run RunConfig
	// GroupDone is called when a group has ended, with the number of chains that have; nil for none.
	GroupDone func(chains int)
}

// EnsembleResult is what an ensemble has when it ends, or when it was stopped.
type EnsembleResult struct {
	Draws    *draws.Draws // the chains of all groups that ended, in order
	Last     Params       // the last state of each of those chains, of shape [K, d]
	Average  *Average     // when Run.Average asks for it
	Chains   int          // chains that ended
	Diverged int64        // updates of single chains that were held
}

// RunEnsemble runs K chains and keeps the last state of each, or several: parallel stochastic-gradient MCMC, which at temperature 0
// is a deep ensemble (Lakshminarayanan et al. 2017; Duffield et al. 2025, section 4.2). Chains that start apart find modes apart, where
// one long chain would stay in the first.
//
// p holds where the chains start, of shape [K, d], or is a single point that Run.Chains chains start from. Chains run in groups
// of c.Group. Chain k has the random stream k whatever its group, and each group gets batches of its own from newBatches, which must
// give equal batches every time, so that the size of the groups changes results by rounding only.
//
// Momenta that a method is given must be of shape [d], for all chains alike. All chains of an ensemble see the same batches in the same order. Where the noise of the batches should be independent too,
// make ensembles of few chains with batches of other seeds, and merge their draws.
func RunEnsemble(ctx context.Context, t Transform, p Params, newBatches func() (Batches, error), c EnsembleConfig) (*EnsembleResult, error) {
	var groups []group
	err := c.run(ctx, t, p, newBatches, func(g group) { groups = append(groups, g) })
	r, joinErr := joined(groups)
	if err = errors.Join(err, joinErr); err != nil {
		return r, fmt.Errorf("infer.RunEnsemble: %w", err)
	}
	return r, nil
}

func (c EnsembleConfig) run(ctx context.Context, t Transform, p Params, newBatches func() (Batches, error), done func(group)) error {
	if newBatches == nil {
		return fmt.Errorf("newBatches is nil: it is needed: %w", ErrConfig)
	}
	if c.Group < 0 {
		return &FieldError{Type: "infer.EnsembleConfig", Field: "Group", Value: c.Group, Allowed: "it must be at least 0"}
	}
	rows, err := p.rows()
	if err != nil {
		return err
	}
	chains := max(int(rows), 1)
	if c.Run.Chains > 0 && c.Run.Chains != chains {
		if rows > 0 {
			return fmt.Errorf("Run.Chains is %d and the params have %d: %w", c.Run.Chains, chains, ErrLayout)
		}
		chains = c.Run.Chains
	}
	if c.LastOnly {
		c.Run.lastOnly, c.Run.Thin, c.Run.Cycles = true, 1, nil
	}
	if c.Run.Average && c.Run.Until != nil {
		return &FieldError{Type: "infer.EnsembleConfig", Field: "Run.Until", Value: "given", Allowed: "it must be nil when Run.Average is set: groups that " +
			"end at different times have averages of different weights"}
	}
	most := c.Group
	if most == 0 {
		most = chains
	}
	for from := 0; from < chains; from += most {
		size := min(most, chains-from)
		g, err := c.group(ctx, t, p, rows > 0, from, size, newBatches)
		if err != nil {
			return fmt.Errorf("chains %d to %d: %w", from, from+size-1, err)
		}
		done(g)
		if c.GroupDone != nil {
			c.GroupDone(from + size)
		}
	}
	return nil
}

// group is what is kept of a group that ended: of its state the position alone.
type group struct {
	last     Params
	draws    *draws.Draws
	average  *Average
	diverged int64
}

// group runs the chains from, from+1, ... and returns their result.
func (c EnsembleConfig) group(ctx context.Context, t Transform, p Params, batched bool, from, size int, newBatches func() (Batches, error)) (group, error) {
	batches, err := newBatches()
	if err != nil {
		return group{}, fmt.Errorf("batches: %w", err)
	}
	run := c.Run
	run.FirstChain += uint64(from)
	if run.Chains = size; batched {
		if p, err = p.with(p.Flat.Narrow(0, int64(from), int64(size), false)); err != nil {
			return group{}, err
		}
	}
	if run.Checkpoint != nil {
		own := *run.Checkpoint
		own.Dir = filepath.Join(own.Dir, fmt.Sprintf("chains-%06d", from))
		run.Checkpoint = &own
	}
	result, err := Run(ctx, t, p, batches, run)
	if err != nil {
		return group{}, err
	}
	defer Free(result.State)
	last, err := result.State.Position().copy()
	return group{last: last, draws: result.Draws, average: result.Average, diverged: result.Diverged}, err
}

// joined puts the chains of groups side by side.
func joined(groups []group) (*EnsembleResult, error) {
	r := &EnsembleResult{}
	var last, means, variances []*ts.Tensor
	var more []*draws.Draws
	for _, g := range groups {
		r.Last.Layout = g.last.Layout
		last = append(last, g.last.Flat)
		r.Chains += g.last.Chains()
		r.Diverged += g.diverged
		if g.average != nil {
			r.Average = g.average
			means, variances = append(means, g.average.Mean.Flat), append(variances, g.average.Variance.Flat)
		}
		if r.Draws == nil {
			r.Draws = g.draws
		} else {
			more = append(more, g.draws)
		}
	}
	if len(groups) == 0 {
		return r, nil
	}
	d := r.Last.Layout.Dim()
	var err error
	if r.Last.Flat, err = stacked(last, d); err != nil {
		return r, err
	}
	if r.Average != nil {
		a := Average{Mean: Params{Layout: r.Last.Layout}, Variance: Params{Layout: r.Last.Layout}, Weight: r.Average.Weight}
		if a.Mean.Flat, err = stacked(means, d); err != nil {
			return r, err
		}
		if a.Variance.Flat, err = stacked(variances, d); err != nil {
			return r, err
		}
		r.Average = &a
	}
	if len(more) > 0 {
		r.Draws, err = r.Draws.Merge(more...)
	}
	return r, err
}

// stacked puts points of shape [d] or [K, d] below each other.
func stacked(points []*ts.Tensor, d int) (out *ts.Tensor, err error) {
	err = torch.Do(func(s *torch.Scope) error {
		rows := make([]*ts.Tensor, len(points))
		for i, p := range points {
			if rows[i], err = p.Reshape([]int64{-1, int64(d)}, false); err != nil {
				return err
			}
		}
		out, err = ts.Cat(rows, 0)
		s.Keep(out)
		return err
	})
	return out, err
}

// Bootstrap draws n ensembles of the given size from K chains, for the spread of what an ensemble of that size shows. An
// ensemble has no chain twice; different ensembles may share chains. The choice depends on the seed alone (PCG, Fisher-Yates).
func Bootstrap(chains, size, n int, seed uint64) ([][]int, error) {
	switch {
	case size < 1 || size > chains:
		return nil, &FieldError{Type: "infer.Bootstrap", Field: "size", Value: size, Allowed: fmt.Sprintf("it must be from 1 to the %d chains", chains)}
	case n < 1:
		return nil, &FieldError{Type: "infer.Bootstrap", Field: "n", Value: n, Allowed: "it must be at least 1"}
	}
	out := make([][]int, n)
	for i := range out {
		out[i] = rand.New(rand.NewPCG(seed, uint64(i))).Perm(chains)[:size:size]
	}
	return out, nil
}
