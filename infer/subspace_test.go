package infer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// network is a small net, tanh hidden units and a linear output, in which no site enters linearly alone: sites
// a [] (0), in [2,3] (1 to 6), out [2] (7, 8).
func network(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	hidden := b.Get("x").MatMul(p.Get("in").T().MustTranspose(0, 1, false)).Tanh().T()
	y := hidden.MustMv(p.Get("out").T(), false).MustAdd(p.Get("a").T(), false)
	r := y.MustSub(b.Get("y").T(), false)
	return scaled(torch.Of(r.MustMul(r, false).MustMean(r.DType(), false)), -0.5), infer.Aux{"y": torch.Of(y)}
}

func networkAt(t testing.TB) (infer.Params, infer.Batch) {
	l := layoutOf(t, infer.Shapes{"a": {}, "in": {2, 3}, "out": {2}})
	return pointOf(t, l, numbers(9, 4)...), infer.Batch{"x": vec(numbers(15, 1), 5, 3), "y": vec(numbers(5, 2))}
}

// For every subset of the sites: at its own start the restricted density is the full one; elsewhere it is the full
// density with the subset's elements put in place, and its gradient is that part of the full gradient. One chain and
// three. Both sides are the same operations on the same numbers, so they agree to the last bits.
func TestSubspace(t *testing.T) {
	full, b := networkAt(t)
	flat := floats(full.Flat)
	for _, c := range []struct {
		sites []string
		index []int // of the subset's elements in the full vector
	}{
		{[]string{"a"}, []int{0}},
		{[]string{"in"}, []int{1, 2, 3, 4, 5, 6}},
		{[]string{"out"}, []int{7, 8}},
		{[]string{"out", "a"}, []int{0, 7, 8}},
		{[]string{"out", "in"}, []int{1, 2, 3, 4, 5, 6, 7, 8}},
		{[]string{"a", "in", "out"}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{[]string{"out", "out"}, []int{7, 8}},
	} {
		restricted, start, embed, err := infer.Subspace(network, full, c.sites...)
		require.NoError(t, err)
		m := len(c.index)
		require.Equal(t, m, start.Layout.Dim())
		for i, j := range c.index {
			assert.Equal(t, flat[j], floats(start.Flat)[i])
		}
		assert.Equal(t, evaluate(t, network, full, b).Values, evaluate(t, restricted, start, b).Values)

		for _, k := range []int{1, 3} {
			sub := pointOf(t, start.Layout, numbers(k*m, 7)...)
			whole := make([]float64, 0, k*9)
			for row := range k {
				x := append([]float64(nil), flat...)
				for i, j := range c.index {
					x[j] = floats(sub.Flat)[row*m+i]
				}
				whole = append(whole, x...)
			}
			want := evaluate(t, network, pointOf(t, full.Layout, whole...), b)
			got := evaluate(t, restricted, sub, b)
			assert.InDeltaSlice(t, want.Values, got.Values, 1e-15)
			assert.InDeltaSlice(t, floats(want.Aux["y"]), floats(got.Aux["y"]), 1e-15)
			var part []float64
			for row := range k {
				for _, j := range c.index {
					part = append(part, floats(want.Grad)[row*9+j])
				}
			}
			assert.InDeltaSlice(t, part, floats(got.Grad), 1e-15)

			// The way back puts in the same elements.
			back, err := embed(sub)
			require.NoError(t, err)
			assert.Same(t, full.Layout, back.Layout)
			assert.Equal(t, shapeOf(pointOf(t, full.Layout, whole...).Flat), shapeOf(back.Flat))
			assert.Equal(t, whole, floats(back.Flat))
		}
	}
}

// The subspace has copies of what it holds: freeing or changing the full point changes nothing.
func TestSubspaceHoldsCopies(t *testing.T) {
	full, b := networkAt(t)
	restricted, start, embed, err := infer.Subspace(network, full, "out")
	require.NoError(t, err)
	want := evaluate(t, restricted, start, b)
	flat := floats(full.Flat)
	require.NoError(t, torch.CopyFrom(full.Flat, make([]float64, 9)))
	torch.Free(full.Flat)
	got := evaluate(t, restricted, start, b)
	sameBits(t, want.Values, got.Values, "densities")
	sameBits(t, floats(want.Grad), floats(got.Grad), "gradients")
	back, err := embed(start)
	require.NoError(t, err)
	assert.Equal(t, flat, floats(back.Flat))
}

// A subspace made in a scope, and used after it, holds what it needs; only its start belongs to the scope.
func TestSubspaceOutlivesItsScope(t *testing.T) {
	full, b := networkAt(t)
	var restricted infer.LogPosterior
	var l *infer.Layout
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		f, start, _, err := infer.Subspace(network, full, "out")
		restricted, l = f, start.Layout
		return err
	}))
	e := evaluate(t, restricted, pointOf(t, l, floats(full.Flat)[7:]...), b)
	assert.Equal(t, evaluate(t, network, full, b).Values, e.Values)
}

func TestSubspaceFloat32(t *testing.T) {
	full, b := networkAt(t)
	for name, x := range b {
		b[name] = torch.Of(x.T().MustTotype(gotch.Float, false))
	}
	full = in32(t, full)
	restricted, start, embed, err := infer.Subspace(network, full, "out", "a")
	require.NoError(t, err)
	assert.Equal(t, gotch.Float, start.Flat.T().DType())
	e := evaluate(t, restricted, start, b)
	assert.Equal(t, evaluate(t, network, full, b).Values, e.Values)
	assert.Equal(t, gotch.Float, e.Grad.T().DType())
	back, err := embed(start)
	require.NoError(t, err)
	assert.Equal(t, gotch.Float, back.Flat.T().DType())
	assert.Equal(t, floats(full.Flat), floats(back.Flat))
}

// Run works on a subspace as on any model, and the sites held fixed stay as they are to the bit.
func TestRunInASubspace(t *testing.T) {
	full, b := networkAt(t)
	restricted, start, embed, err := infer.Subspace(network, full, "out")
	require.NoError(t, err)
	r := ran(t, build(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}, restricted), start, infer.Full(b),
		infer.Options{Warmup: infer.None, Draws: 5, Chains: 3})
	back, err := embed(r.State.Position())
	require.NoError(t, err)
	values, flat, last := floats(back.Flat), floats(full.Flat), floats(r.State.Position().Flat)
	for k := range 3 {
		assert.Equal(t, flat[:7], values[9*k:9*k+7])
		assert.Equal(t, last[2*k:2*k+2], values[9*k+7:9*k+9])
		assert.NotEqual(t, flat[7:], values[9*k+7:9*k+9])
	}
}

func TestSubspaceErrors(t *testing.T) {
	full, b := networkAt(t)
	many, err := full.Repeat(2)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		f     infer.LogPosterior
		full  infer.Params
		sites []string
		want  string
	}{
		"nil model": {nil, full, []string{"out"}, "infer.Subspace: the log posterior is nil: invalid configuration"},
		"unknown site": {network, full, []string{"out", "b"},
			`infer.Subspace: the model asked for site "b", which does not exist; there are: ["a" "in" "out"]`},
		"no sites": {network, full, nil, "infer.Subspace: infer.NewLayout: there are no sites: layout does not fit"},
		"chains": {network, many, []string{"out"},
			"infer.Subspace: the full params have 2 chains, expected a single point: layout does not fit"},
		"no layout": {network, infer.Params{Flat: full.Flat}, []string{"out"},
			"infer.Subspace: the params have no layout: layout does not fit"},
		"wrong layout": {network, infer.Params{Layout: layoutOf(t, infer.Shapes{"w": {3}}), Flat: full.Flat}, []string{"w"},
			"infer.Subspace: params of shape [9] for the layout w[3]: expected [3], or [K, 3] for K chains: " +
				"layout does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := infer.Subspace(c.f, c.full, c.sites...)
			assert.EqualError(t, err, c.want)
		})
	}

	// A point of another subspace, even one of the same length, is refused by the density and by the way back.
	restricted, _, embed, err := infer.Subspace(network, full, "out")
	require.NoError(t, err)
	other := pointOf(t, layoutOf(t, infer.Shapes{"b": {2}}), 1, 2)
	const want = "infer.Subspace: params with layout b[2], expected out[2]: layout does not fit"
	_, err = embed(other)
	assert.EqualError(t, err, want)
	g, err := infer.NewGradient(infer.Sum(restricted, 1))
	require.NoError(t, err)
	_, err = g.ValueAndGrad(other, b, 0)
	assert.EqualError(t, err, "log posterior: "+want)
	_, err = embed(infer.Params{Flat: other.Flat})
	assert.EqualError(t, err, "the params have no layout: layout does not fit")
}
