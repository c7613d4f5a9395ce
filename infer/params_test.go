package infer_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The flat order is m (2 x 2), s (scalar), v (2): each site must give back the numbers put at its place, in its shape.
func TestParamsGet(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"v": {2}, "m": {2, 2}, "s": {}})
	for name, c := range map[string]struct {
		flat    []float64
		m, s, v []float64
		lead    []int
	}{
		"[d]": {flat: []float64{1, 2, 3, 4, 5, 6, 7}, m: []float64{1, 2, 3, 4}, s: []float64{5}, v: []float64{6, 7}},
		"[K, d]": {flat: []float64{1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15, 16, 17}, lead: []int{2},
			m: []float64{1, 2, 3, 4, 11, 12, 13, 14}, s: []float64{5, 15}, v: []float64{6, 7, 16, 17}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pointOf(t, l, c.flat...)
			for site, want := range map[string]struct {
				values []float64
				shape  []int
			}{"m": {c.m, []int{2, 2}}, "s": {c.s, nil}, "v": {c.v, []int{2}}} {
				got := p.Get(site).T()
				assert.Equal(t, want.values, floats(torch.Of(got)), site)
				assert.Equal(t, append(append([]int{}, c.lead...), want.shape...), shapeOf(torch.Of(got)), site)
				values, err := p.Site(site)
				require.NoError(t, err)
				assert.Equal(t, want.values, values, site)
			}
			assert.Equal(t, len(c.lead) == 1, p.Batched())
			assert.Equal(t, len(c.flat)/7, p.Chains())
		})
	}
}

// A view: what is written into it is written into the point. The three ways that Get goes: a part, all of a vector, and
// a part with another shape.
func TestParamsGetIsAView(t *testing.T) {
	for name, shapes := range map[string]infer.Shapes{"a part": {"a": {}, "w": {3}}, "all": {"w": {3}},
		"a matrix": {"w": {3, 1}}} {
		t.Run(name, func(t *testing.T) {
			l := layoutOf(t, shapes)
			p, err := infer.Zeros(l)
			require.NoError(t, err)
			require.NoError(t, torch.CopyFrom(p.Get("w"), []float64{7, 8, 9}))
			want := make([]float64, l.Dim())
			copy(want[l.Dim()-3:], []float64{7, 8, 9})
			assert.Equal(t, want, floats(p.Flat))
		})
	}
}

// The function Σ c_i θ_i, put together from the sites, has gradient c whatever the point: the gradient finds its way
// through Get to the right elements. In float32 the numbers are small integers, so they are exact as well.
func TestGradientsFlowThroughGet(t *testing.T) {
	for name, shapes := range map[string]infer.Shapes{
		"several sites": {"a": {}, "m": {2, 3}, "v": {4}, "z": nil},
		"one vector":    {"w": {5}},
		"one scalar":    {"w": {}},
		"one matrix":    {"w": {2, 2}},
	} {
		for _, k := range []int{1, 3} {
			for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
				l := layoutOf(t, shapes)
				d := l.Dim()
				c := make([]float64, d)
				for i := range c {
					c[i] = float64(i + 1)
				}
				p, err := pointOf(t, l, numbers(k*d, 3)...).To(torch.CPU, dtype)
				require.NoError(t, err)
				g, err := infer.NewGradient(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
					total := torch.Scalar(0).T().MustTotype(dtype, false)
					for _, s := range l.Sites {
						x := p.Get(s.Name).T()
						require.Equal(t, append([]int{}, s.Shape...), append([]int{}, shapeOf(torch.Of(x))...))
						total = total.MustAdd(sum(torch.Of(x.MustMul(vec(c[s.Offset:s.Offset+s.Size],
							append([]int{}, s.Shape...)...).T().MustTotype(dtype, false), false))).T(), false)
					}
					return torch.Of(total), nil
				}, 1))
				require.NoError(t, err)
				e, err := g.ValueAndGrad(p, nil, 0)
				require.NoError(t, err)
				var want []float64
				for range k {
					want = append(want, c...)
				}
				assert.Equal(t, want, floats(e.Grad), "%s, %d chains, %v", name, k, dtype)
				assert.Equal(t, dtype, e.Grad.T().DType())
				assert.Equal(t, shapeOf(p.Flat), shapeOf(e.Grad))
			}
		}
	}
}

// Outside a model, Get works on all chains at once, and gradients flow as well: of Σ v² it is 2v, and 0 elsewhere.
func TestGradientsFlowThroughGetOfChains(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"s": {}, "v": {2}})
	leaf, err := torch.Leaf(vec([]float64{1, 2, 3, 4, 5, 6}, 2, 3))
	require.NoError(t, err)
	v := infer.Params{Layout: l, Flat: leaf}.Get("v").T()
	grads, err := torch.Grad([]torch.Tensor{sum(torch.Of(v.MustMul(v, false)))}, []torch.Tensor{leaf}, nil)
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 4, 6, 0, 10, 12}, floats(grads[0]))
}

func TestParamsFromTensors(t *testing.T) {
	for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
		// not contiguous: 1 4 2 5 3 6
		m := vec([]float64{1, 2, 3, 4, 5, 6}, 2, 3).T().MustTotype(dtype, false).MustTranspose(0, 1, false)
		s := vec([]float64{7}).T().MustReshape([]int64{}, false).MustTotype(dtype, false)
		p, err := infer.FromTensors(map[string]torch.Tensor{"s": torch.Of(s), "m": torch.Of(m)})
		require.NoError(t, err)
		assert.Equal(t, "m[3 2] s[]", p.Layout.String())
		assert.Equal(t, []float64{1, 4, 2, 5, 3, 6, 7}, floats(p.Flat))
		assert.Equal(t, dtype, p.Flat.T().DType())
		assert.Equal(t, []int{3, 2}, shapeOf(p.Get("m")))
		assert.NoError(t, p.Check())

		// The point has memory of its own.
		require.NoError(t, torch.CopyFrom(torch.Of(s), []float64{70}))
		assert.Equal(t, []float64{7}, floats(p.Get("s")))
	}
}

func TestParamsRepeat(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"a": {}, "b": {2}})
	p := pointOf(t, l, 1, 2, 3)
	many, err := p.Repeat(3)
	require.NoError(t, err)
	assert.Equal(t, []int{3, 3}, shapeOf(many.Flat))
	assert.Equal(t, []float64{1, 2, 3, 1, 2, 3, 1, 2, 3}, floats(many.Flat))
	assert.Equal(t, 3, many.Chains())
	// One chain with a chain axis is not the same as none.
	one, err := p.Repeat(1)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 3}, shapeOf(one.Flat))
	assert.True(t, one.Batched())
	assert.False(t, p.Batched())
	assert.Equal(t, 1, p.Chains())
	// The chains have memory of their own.
	require.NoError(t, torch.CopyFrom(p.Flat, []float64{9, 9, 9}))
	assert.Equal(t, []float64{1, 2, 3, 1, 2, 3, 1, 2, 3}, floats(many.Flat))

	_, err = many.Repeat(2)
	assert.EqualError(t, err, "infer: cannot repeat params with 3 chains 2 times: layout does not fit")
	_, err = p.Repeat(0)
	assert.EqualError(t, err, "infer: cannot repeat params with 1 chains 0 times: layout does not fit")
	_, err = infer.Params{}.Repeat(2)
	assert.EqualError(t, err, "the params have no layout: layout does not fit")
}

// 0.1 is not a float32: it comes back as the nearest one, which differs from it by less than half a unit
// of the 24th bit.
func TestParamsFloat32(t *testing.T) {
	p := pointOf(t, layoutOf(t, infer.Shapes{"a": {}, "b": {2}}), 0.1, 2, 3)
	q := in32(t, p)
	values, err := q.Values()
	require.NoError(t, err)
	assert.Equal(t, []float64{float64(float32(0.1)), 2, 3}, values)
	b, err := q.Site("b")
	require.NoError(t, err)
	assert.Equal(t, []float64{2, 3}, b)
	assert.Equal(t, gotch.Float, q.Get("a").T().DType())
	assert.NoError(t, q.Check())
	assert.Equal(t, []float64{0.1, 2, 3}, floats(p.Flat), "the point that was converted is not changed")
	same, err := p.To(torch.CPU, gotch.Double)
	require.NoError(t, err)
	assert.Same(t, p.Flat.T(), same.Flat.T(), "where nothing is to be done, nothing is copied")

	// 1e39 is beyond float32.
	assert.ErrorIs(t, in32(t, pointOf(t, p.Layout, 1, 1e39, 1)).Check(), infer.ErrNonFinite)
}

func TestParamsErrors(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"b": {}, "w": {3}})
	for name, c := range map[string]struct {
		f    func() error
		want string
		kind error
	}{
		"too few values": {func() error { _, err := infer.NewParams(l, []float64{1, 2, 3}); return err },
			"infer.NewParams: 3 values for the layout b[] w[3], which has 4: layout does not fit", infer.ErrLayout},
		"no whole chains": {func() error { _, err := infer.NewParams(l, make([]float64, 9)); return err },
			"infer.NewParams: 9 values for the layout b[] w[3], which has 4: layout does not fit", infer.ErrLayout},
		"no values": {func() error { _, err := infer.NewParams(l, nil); return err },
			"infer.NewParams: 0 values for the layout b[] w[3], which has 4: layout does not fit", infer.ErrLayout},
		"nil layout": {func() error { _, err := infer.NewParams(nil, []float64{1}); return err },
			"infer.NewParams: 1 values for the layout <nil>, which has 0: layout does not fit", infer.ErrLayout},
		"zeros of nothing": {func() error { _, err := infer.Zeros(nil); return err },
			"infer.NewParams: 0 values for the layout <nil>, which has 0: layout does not fit", infer.ErrLayout},
		"no layout": {func() error { return infer.Params{Flat: vec([]float64{1})}.Check() },
			"the params have no layout: layout does not fit", infer.ErrLayout},
		"site without layout": {func() error { _, err := infer.Params{Flat: vec([]float64{1})}.Site("w"); return err },
			"the params have no layout: layout does not fit", infer.ErrLayout},
		"layout of another d": {func() error { return infer.Params{Layout: l, Flat: vec(make([]float64, 5))}.Check() },
			"params of shape [5] for the layout b[] w[3]: expected [4], or [K, 4] for K chains: layout does not fit",
			infer.ErrLayout},
		"chains of another d": {func() error {
			return infer.Params{Layout: l,
				Flat: vec(make([]float64, 10), 2, 5)}.Check()
		}, "params of shape [2 5] for the layout b[] w[3]: expected [4], or [K, 4] for K chains: layout does not fit",
			infer.ErrLayout},
		"a third dimension": {func() error {
			return infer.Params{Layout: l,
				Flat: vec(make([]float64, 4), 1, 1, 4)}.Check()
		}, "params of shape [1 1 4] for the layout b[] w[3]: expected [4], or [K, 4] for K chains: layout does not fit",
			infer.ErrLayout},
		"a scalar": {func() error { return infer.Params{Layout: l, Flat: torch.Scalar(1)}.Check() },
			"params of shape [] for the layout b[] w[3]: expected [4], or [K, 4] for K chains: layout does not fit",
			infer.ErrLayout},
		"no chains": {func() error { return infer.Params{Layout: l, Flat: vec(nil, 0, 4)}.Check() },
			"params of shape [0 4] for the layout b[] w[3]: expected [4], or [K, 4] for K chains: layout does not fit",
			infer.ErrLayout},
		"site of another d": {func() error {
			_, err := infer.Params{Layout: l,
				Flat: vec(make([]float64, 5))}.Site("w")
			return err
		}, "params of shape [5] for the layout b[] w[3]: expected [4], or [K, 4] for K chains: layout does not fit",
			infer.ErrLayout},
		"NaN at the start": {func() error { return pointOf(t, l, 0, 1, 2, 3, 0, 1, math.NaN(), 3).Check() },
			"w[1] of chain 1 is NaN at the start: not finite", infer.ErrNonFinite},
		"infinity, a scalar": {func() error { return pointOf(t, l, math.Inf(-1), 1, 2, 3).Check() },
			"b of chain 0 is -Inf at the start: not finite", infer.ErrNonFinite},
		"nothing to lay out": {func() error { _, err := infer.FromTensors(nil); return err },
			"infer.NewLayout: there are no sites: layout does not fit", infer.ErrLayout},
		"a tensor without any": {func() error {
			_, err := infer.FromTensors(map[string]torch.Tensor{"e": vec(nil,
				0)})
			return err
		}, `infer.NewLayout: site "e" has shape [0]: sizes must be positive: layout does not fit`, infer.ErrLayout},
		// libtorch would make all of them float64.
		"mixed types": {func() error {
			_, err := infer.FromTensors(map[string]torch.Tensor{"a": vec([]float64{1}),
				"b": torch.New([]float32{1})})
			return err
		}, `infer.FromTensors: site "b" is Float and site "a" is Double: they must be of one type: layout does not fit`,
			infer.ErrLayout},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.f()
			assert.EqualError(t, err, c.want)
			assert.ErrorIs(t, err, c.kind)
		})
	}
}

// An unknown site is a typed error that names what there is, from Site and, through a panic, from Get.
func TestParamsUnknownSite(t *testing.T) {
	p := pointOf(t, layoutOf(t, infer.Shapes{"b": {}, "w": {3}}), 0, 1, 2, 3)
	const want = `the model asked for site "v", which does not exist; there are: ["b" "w"]`
	_, err := p.Site("v")
	var e *infer.ModelError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, &infer.ModelError{Name: "v", What: "site", Have: []string{"b", "w"}}, e)
	assert.EqualError(t, err, want)
	err = torch.Do(func(*torch.Scope) error { p.Get("v").T(); return nil })
	assert.ErrorContains(t, err, want)
}

// Get of a point that is not one panics with an error that torch.Do returns, not with one that ends the program.
func TestParamsGetOfABadPoint(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {3}})
	for want, p := range map[string]infer.Params{
		"the params have no layout: layout does not fit": {Flat: vec([]float64{1})},
		"params of shape [5] for the layout w[3]: expected [3], or [K, 3] for K chains: layout does not fit": {Layout: l,
			Flat: vec(make([]float64, 5))},
		"params of shape [3 1] for the layout w[3]: expected [3], or [K, 3] for K chains: layout does not fit": {Layout: l,
			Flat: vec(make([]float64, 3), 3, 1)},
		"params of shape [0 3] for the layout w[3]: expected [3], or [K, 3] for K chains: layout does not fit": {Layout: l,
			Flat: vec(nil, 0, 3)},
		"params of shape [1 1 3] for the layout w[3]: expected [3], or [K, 3] for K chains: layout does not fit": {Layout: l,
			Flat: vec(make([]float64, 3), 1, 1, 3)},
	} {
		err := torch.Do(func(*torch.Scope) error { p.Get("w").T(); return nil })
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, infer.ErrLayout)
	}
}

// A tensor whose scope is closed is an error that says so; one that was not set has the wrong shape.
func TestParamsFreed(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {3}})
	freed := vec([]float64{1, 2, 3})
	torch.Free(freed)
	assert.ErrorIs(t, infer.Params{Layout: l}.Check(), infer.ErrLayout)
	for name, c := range map[string]struct {
		flat torch.Tensor
		want string
	}{"freed": {freed, "a tensor was used after it was freed"}} {
		p := infer.Params{Layout: l, Flat: c.flat}
		_, siteErr := p.Site("w")
		_, valuesErr := p.Values()
		_, repeatErr := p.Repeat(2)
		_, fromErr := infer.FromTensors(map[string]torch.Tensor{"w": c.flat})
		for _, err := range []error{p.Check(), siteErr, valuesErr, repeatErr, fromErr} {
			var e *torch.Error
			require.ErrorAs(t, err, &e, name)
			assert.True(t, e.Freed, name)
			assert.Contains(t, err.Error(), c.want, name)
		}
		assert.ErrorContains(t, fromErr, `infer.FromTensors: site "w": `)
		assert.Equal(t, 1, p.Chains())
		assert.False(t, p.Batched())
	}
}

// A split point has the same sites, and the same gradients through them; one whose tensor or layout was replaced, or
// whose parts were freed, is read from its tensor.
func TestSplitChangesNothing(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"a": {}, "b": {2, 3}, "c": {4}})
	p := pointOf(t, l, numbers(11, 0)...)
	q, err := p.Split()
	require.NoError(t, err)
	for _, site := range l.Names() {
		require.Equal(t, floats(p.Get(site)), floats(q.Get(site)))
		require.Equal(t, shapeOf(p.Get(site)), shapeOf(q.Get(site)))
	}
	again, err := q.Split()
	require.NoError(t, err)
	require.Equal(t, q, again, "split already")
	moved := q
	moved.Flat = vec(numbers(11, 5))
	require.Equal(t, floats(moved.Flat)[7:], floats(moved.Get("c")), "another tensor")
	renamed := q
	renamed.Layout = layoutOf(t, infer.Shapes{"x": {4}, "y": {2, 3}, "z": {}})
	require.Equal(t, floats(p.Flat)[:4], floats(renamed.Get("x")), "another layout")
	renamed, err = renamed.Split()
	require.NoError(t, err)
	require.Equal(t, floats(p.Flat)[10:], floats(renamed.Get("z")), "another layout, split")
	torch.Free(q.Get("c"))
	require.Equal(t, floats(p.Flat)[7:], floats(q.Get("c")), "freed")

	f := func(p infer.Params) torch.Tensor { // Σ a·b² + c³: every site in a way of its own
		a := p.Get("a").Mul(sum(p.Get("b").Square())).T()
		return torch.Of(a.MustAdd(sum(torch.Of(p.Get("c").T().MustPowTensorScalar(ts.IntScalar(3), false))).T(), false))
	}
	for _, points := range []torch.Tensor{vec(numbers(11, 0)), vec(numbers(33, 1), 3, 11)} {
		var got [2][]float64
		for i, split := range []bool{false, true} {
			model := func(flat torch.Tensor) torch.Tensor {
				p := infer.Params{Layout: l, Flat: flat}
				if split {
					p = torch.Must(p.Split())
				}
				return f(p)
			}
			var grad torch.Tensor
			if len(shapeOf(points)) == 2 {
				_, grad, err = torch.VmapValueAndGrad(model, points)
			} else {
				_, grad, err = torch.ValueAndGrad(model, points)
			}
			require.NoError(t, err)
			got[i] = floats(grad)
		}
		sameBits(t, got[0], got[1], "gradients")
	}
	_, err = infer.Params{Layout: l, Flat: vec(numbers(121, 0), 11, 11)}.Split() // as many chains as elements
	require.EqualError(t, err, "infer: Split of params with 11 chains, expected a single point: layout does not fit")
	one := pointOf(t, layoutOf(t, infer.Shapes{"a": {2}}), 1, 2)
	same, err := one.Split()
	require.NoError(t, err)
	require.Equal(t, one, same)
}
