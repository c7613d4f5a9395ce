package sbc

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Case is one replication.
type Case struct {
	// Truth are the values of quantities that the data were simulated with: parameters, drawn from the prior, or
	// functions of parameters and data.
	Truth map[string]float64
	// Draws are draws of the same quantities from the posterior given the data. Those of Markov chains should be
	// thinned, or many more than Options.Draws: dependent ones have ranks that are not uniform.
	Draws map[string][]float64
}

// Options are the options of [Run]. The zero value has the defaults.
type Options struct {
	// Replications is how many data sets are simulated; 0 is 200.
	Replications int
	// Draws is L: ranks are among so many draws of each posterior, taken at equal distances; 0 is 99.
	Draws int
	Seed  uint64
	// File keeps the ranks of finished replications, so that a run that ended goes on with the next one. "" keeps none.
	// Its folder must be there. A file of something else is an error, and so is a symbolic link.
	File string
}

// most is how many replications and draws there may be.
const most = 1 << 24

// Run makes the replications, one after another, and ranks the truth of each quantity among its draws; ties are broken
// at random. Replication i has a seed that is a function of Options.Seed and i alone, so that a run that goes on has
// the ranks of one that never ended. At the end of ctx, and where simulate fails, Run returns an error, and the file
// has what was finished.
//
// Other quantities than those of the first replication, less than L draws, and values that are not finite are errors
// that name the replication and the quantity; so are options that are negative, and a file of a run with another seed,
// another L or other quantities.
func Run(ctx context.Context, simulate func(ctx context.Context, seed uint64) (Case, error), o Options) (
	result *Result, err error) {
	switch {
	case ctx == nil || simulate == nil:
		return nil, fmt.Errorf("sbc.Run: it needs a context and a function that simulates: %w", draws.ErrRange)
	case o.Replications < 0 || o.Draws < 0 || o.Replications > most || o.Draws > most:
		return nil, fmt.Errorf("sbc.Run: Replications is %d and Draws %d: they must be from 0, the default, to %d: %w",
			o.Replications, o.Draws, most, draws.ErrRange)
	}
	if o.Replications == 0 {
		o.Replications = 200
	}
	if o.Draws == 0 {
		o.Draws = 99
	}
	r := &Result{Draws: o.Draws, Ranks: map[string][]int{}}
	var log *journal
	if o.File != "" {
		if log, err = open(o, r); err != nil {
			return nil, fmt.Errorf("sbc.Run: %s: %w", o.File, err)
		}
		defer func() {
			if e := log.close(); err == nil && e != nil {
				result, err = nil, fmt.Errorf("sbc.Run: %s: %w", o.File, e)
			}
		}()
	}
	for i := r.Replications(); i < o.Replications; i++ {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("sbc.Run: after %d replications: %w", i, err)
		}
		random := rand.New(rand.NewPCG(o.Seed, uint64(i)))
		c, err := simulate(ctx, random.Uint64())
		if err != nil {
			return nil, fmt.Errorf("sbc.Run: replication %d: %w", i, err)
		}
		ranks, err := c.ranks(o.Draws, random)
		if err == nil && i > 0 && !slices.Equal(names(ranks), names(r.Ranks)) {
			err = fmt.Errorf("the quantities are %q, before they were %q: %w", names(ranks), names(r.Ranks), draws.ErrLayout)
		}
		if err != nil {
			return nil, fmt.Errorf("sbc.Run: replication %d: %w", i, err)
		}
		if err := log.add(ranks); err != nil {
			return nil, fmt.Errorf("sbc.Run: %s: %w", o.File, err)
		}
		r.add(ranks)
	}
	return r.first(o.Replications), nil
}

// ranks counts the draws below the truth, of l at equal distances.
func (c Case) ranks(l int, random *rand.Rand) (map[string]int, error) {
	if len(c.Truth) == 0 {
		return nil, fmt.Errorf("Case.Truth has no quantities: %w", draws.ErrSize)
	}
	out := map[string]int{}
	for _, name := range names(c.Truth) { // in order, so that ties are broken alike
		truth, x := c.Truth[name], c.Draws[name]
		if len(x) < l {
			return nil, fmt.Errorf("%q has %d draws, fewer than Options.Draws, %d: %w", name, len(x), l, draws.ErrSize)
		}
		below, ties := 0, 0
		for k := range l {
			v := x[k*len(x)/l]
			if math.IsNaN(v) || math.IsInf(v, 0) || math.IsNaN(truth) || math.IsInf(truth, 0) {
				return nil, fmt.Errorf("%q has the truth %v and the draw %v: %w", name, truth, v, diag.ErrNotFinite)
			}
			if v < truth {
				below++
			} else if v == truth {
				ties++
			}
		}
		out[name] = below + random.IntN(ties+1)
	}
	return out, nil
}

func names[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
