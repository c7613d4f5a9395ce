package kernel

import (
	"context"
	"fmt"
)

// Advance makes n more transitions of each chain and stops, in the warm-up or after: a run in steps, in somebody else's loop.
// The snapshot is where the last step ended, nil before the first; the result's is where this one did. Until the options' draws are made
// the steps are those of [Run] together. Between steps the caller may change the points, step sizes and temperatures of the
// snapshot's chains; temperatures must be that of the options.
func Advance(ctx context.Context, density Density, options Options, snapshot *Snapshot, n int) (*Result, error) {
	if n < 1 {
		return nil, fmt.Errorf("kernel.Advance: %w", &FieldError{"kernel.Advance", "n", n, "it must be at least 1"})
	}
	r, err := newRunner("kernel.Options", density, options, nil)
	if err != nil {
		return nil, err
	}
	if snapshot != nil {
		if err := r.restore(snapshot); err != nil {
			return nil, err
		}
	}
	r.until = n
	for _, c := range r.chains {
		r.until = max(r.until, c.Done+n)
	}
	return r.run(ctx)
}
