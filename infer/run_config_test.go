package infer_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// Every mistake in the arguments is an error before the first update, that names the field, its value and what is
// allowed; there is no result.
func TestRunConfigErrors(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"b": {}, "w": {2}})
	p := pointOf(t, l, 1, 2, 3)
	two := pointOf(t, l, 1, 2, 3, 4, 5, 6)
	full := infer.Full(nil)
	for name, c := range map[string]struct {
		t    infer.Transform
		p    infer.Params
		b    infer.Batches
		c    infer.Options
		want string
		kind error
	}{
		"other chains": {counter{}, two, full, infer.Options{Warmup: infer.None, Draws: 4, Chains: 3},
			"infer.Run: infer.Options: Start is of 2 chains: it must be one point, or one for each of 3 chains",
			infer.ErrConfig},
		"fewer chains": {counter{}, two, full, infer.Options{Warmup: infer.None, Draws: 4, Chains: 1},
			"infer.Run: infer.Options: Start is of 2 chains: it must be one point, or one for each of 1 chains",
			infer.ErrConfig},
		"no params": {counter{}, infer.Params{}, full, infer.Options{Warmup: infer.None, Draws: 4},
			"infer.Run: the program has no layout: invalid configuration", infer.ErrConfig},
		"another layout": {counter{}, infer.Params{Layout: layoutOf(t, infer.Shapes{"w": {2}}), Flat: p.Flat}, full,
			infer.Options{Warmup: infer.None, Draws: 4},
			"infer.Run: params of shape [3] for the layout w[2]: expected [2], or [K, 2] for K " +
				"chains: layout does not fit", infer.ErrLayout},
		"NaN at the start": {counter{}, pointOf(t, l, 1, 2, 3, 4, math.NaN(), 6), full,
			infer.Options{Warmup: infer.None, Draws: 4},
			"infer.Run: w[0] of chain 1 is NaN at the start: not finite", infer.ErrNonFinite},
		"Inf at the start": {build(t, sgmcmc.SGLD{LR: infer.Constant(1)}, newLogistic(2, 2).logPosterior),
			pointOf(t, l, math.Inf(1), 2, 3), full, infer.Options{Warmup: infer.None, Draws: 4},
			"infer.Run: b of chain 0 is +Inf at the start: not finite", infer.ErrNonFinite},
		// A layout put together by hand, which sites cannot be found in, or draws not be recorded with.
		"unsorted sites": {counter{}, infer.Params{Layout: &infer.Layout{Sites: []infer.Site{{Name: "w", Shape: []int{2},
			Size: 2}, {Name: "b", Offset: 2, Size: 1}}}, Flat: p.Flat}, full, infer.Options{Warmup: infer.None, Draws: 4},
			`infer.Run: the sites ["w" "b"] are not sorted by name; make the layout with NewLayout: layout does not fit`,
			infer.ErrLayout},
		"a gap between sites": {counter{}, infer.Params{Layout: &infer.Layout{Sites: []infer.Site{{Name: "a", Size: 1},
			{Name: "b", Offset: 2, Size: 1}}}, Flat: p.Flat}, full, infer.Options{Warmup: infer.None, Draws: 4},
			`infer.Run: draws: site 1 ("b"): offset is 2, want 1, the end of the sites before it: layout does not fit`,
			infer.ErrLayout},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := infertest.Run(context.Background(), c.t, c.p, c.b, c.c)
			assert.Nil(t, r)
			assert.EqualError(t, err, c.want)
			assert.ErrorIs(t, err, c.kind)
		})
	}
}
