package ppl_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// chain is x -> y -> z, with each the mean of the next.
func chain(c *ppl.Ctx) {
	x := c.Sample("x", dist.Normal(1, 2))
	y := c.Sample("y", dist.Normal(x, 3))
	c.Sample("z", dist.Normal(y, 4))
}

var chainValues = ppl.Values{"x": scalar(0.5), "y": scalar(-1), "z": scalar(2)}

func TestConditionHasTheValueAndCounts(t *testing.T) {
	m := ppl.Condition(chain, chainValues)
	want := normal(0.5, 1, 2) + normal(-1, 0.5, 3) + normal(2, -1, 4)
	require.InDelta(t, want, traced(t, m, nil), 1e-13)
	tr, err := ppl.TraceModel(m, nil, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y", "z"}, tr.Order)
	for name, v := range map[string]float64{"x": 0.5, "y": -1, "z": 2} {
		require.Equal(t, []float64{v}, floats(t, tr.Sites[name].Value))
		require.True(t, tr.Sites[name].Observed)
	}
	_, err = tr.Value("w")
	require.ErrorContains(t, err, `"w"`)
	require.ErrorContains(t, err, `["x" "y" "z"]`)
}

// An intervention on y cuts y's own term, and what depends on y sees the value.
func TestDoCutsThePrior(t *testing.T) {
	m := ppl.Do(ppl.Condition(chain, ppl.Values{"x": scalar(0.5), "z": scalar(2)}), ppl.Values{"y": scalar(7)})
	require.InDelta(t, normal(0.5, 1, 2)+normal(2, 7, 4), traced(t, m, nil), 1e-13)
	p, f := compiled(t, ppl.Do(chain, ppl.Values{"y": scalar(7)}), nil)
	require.Equal(t, "x[] z[]", p.Layout().String())
	require.InDelta(t, normal(0.5, 1, 2)+normal(2, 7, 4), f(nil, 0.5, 2), 1e-13)
}

// A substituted variable has its value and its prior, and is not inferred.
func TestSubstitute(t *testing.T) {
	p, f := compiled(t, ppl.Substitute(chain, ppl.Values{"y": scalar(-1)}), nil)
	require.Equal(t, "x[] z[]", p.Layout().String())
	require.InDelta(t, normal(0.5, 1, 2)+normal(-1, 0.5, 3)+normal(2, -1, 4), f(nil, 0.5, 2), 1e-13)
	_, err := ppl.Compile(ppl.Substitute(func(c *ppl.Ctx) {
		c.Sample("a", dist.Normal(0, 1))
		c.Sample("s", dist.Exponential(1))
	}, ppl.Values{"s": scalar(-1)}), nil)
	require.ErrorContains(t, err, "substituted value is outside the support")
}

func TestBlockHides(t *testing.T) {
	given := ppl.Substitute(chain, chainValues)
	tr, err := ppl.TraceModel(ppl.Block(given, "y"), nil, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"x", "z"}, tr.Order)
	require.InDelta(t, normal(0.5, 1, 2)+normal(2, -1, 4), traced(t, ppl.Block(given, "y"), nil), 1e-13)
	tr, err = ppl.TraceModel(ppl.Block(given), nil, 1)
	require.NoError(t, err)
	require.Empty(t, tr.Order)
	// What is outside a block does not reach in, and says so.
	_, err = ppl.TraceModel(ppl.Condition(ppl.Block(ppl.Seed(chain, 3)), chainValues), nil, 1)
	require.ErrorContains(t, err, "no such site")
}

// Replaying a trace gives its values and so its density, whatever the seed; observed values are not replaced.
func TestReplayReproduces(t *testing.T) {
	first, err := ppl.TraceModel(chain, nil, 5)
	require.NoError(t, err)
	want, err := first.LogProb()
	require.NoError(t, err)
	require.Equal(t, floats(t, want)[0], traced(t, ppl.Replay(chain, first), nil))
	observed, err := ppl.TraceModel(ppl.Replay(ppl.Condition(chain, ppl.Values{"z": scalar(9)}), first), nil, 6)
	require.NoError(t, err)
	require.Equal(t, floats(t, first.Sites["y"].Value), floats(t, observed.Sites["y"].Value))
	require.Equal(t, []float64{9}, floats(t, observed.Sites["z"].Value))
}

func TestSeedFixesTheStream(t *testing.T) {
	at := func(m ppl.Model, seed uint64) []float64 {
		tr, err := ppl.TraceModel(m, nil, seed)
		require.NoError(t, err)
		return floats(t, tr.Sites["z"].Value)
	}
	require.Equal(t, at(ppl.Seed(chain, 7), 1), at(ppl.Seed(chain, 7), 2))
	require.Equal(t, at(chain, 7), at(ppl.Seed(chain, 7), 1))
	require.NotEqual(t, at(chain, 1), at(chain, 2))
}

func TestScaleMultiplies(t *testing.T) {
	given := ppl.Condition(chain, chainValues)
	full := traced(t, given, nil)
	require.InDelta(t, 3*full, traced(t, ppl.Scale(given, 3), nil), 1e-12)
	require.InDelta(t, 6*full, traced(t, ppl.Scale(ppl.Scale(given, 3), 2), nil), 1e-12)
	// A part of a model: only z is tempered.
	part := func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(1, 2))
		ppl.Scale(func(c *ppl.Ctx) { c.Observe("z", dist.Normal(x, 4), scalar(2)) }, 0.25)(c)
	}
	_, f := compiled(t, part, nil)
	require.InDelta(t, normal(0.5, 1, 2)+0.25*normal(2, 0.5, 4), f(nil, 0.5), 1e-13)
	require.ErrorContains(t, torch.Do(func(*torch.Scope) error { ppl.Scale(chain, -1); return nil }), "at least 0")
}

// A mask leaves out data. What is masked may be anything: its gradient is 0, not NaN.
func TestMaskLeavesOut(t *testing.T) {
	mask := vec(1, 0, 1, 1).T().MustGt(ts.FloatScalar(0.5), false)
	model := func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(1, 2))
		c.Plate("data", 8, func(c *ppl.Ctx) {
			ppl.Mask(func(c *ppl.Ctx) { c.Observe("y", dist.Normal(x, 4), c.Data("y")) }, torch.Of(mask))(c)
		}, ppl.Minibatch)
	}
	batch := infer.Batch{"y": vec(1, 1e300, 3, -4)}
	p, f := compiled(t, model, batch)
	require.InDelta(t, normal(0.5, 1, 2)+2*sumNormal([]float64{1, 3, -4}, 0.5, 4), f(batch, 0.5), 1e-12)
	_, grad := evaluate(t, p, whole(p), batch, 0.5)
	require.InDelta(t, -(0.5-1)/4.+2*(0.5+2.5-4.5)/16, grad[0], 1e-12)
	_, err := ppl.Compile(ppl.Mask(model, torch.Of(mask)), batch)
	require.ErrorContains(t, err, "mask has shape [4]")
	require.ErrorContains(t, err, `"x"`)
	// Two masks are both there.
	other := vec(1, 1, 0, 1).T().MustGt(ts.FloatScalar(0.5), false)
	twice := func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(1, 2))
		ppl.Mask(ppl.Mask(func(c *ppl.Ctx) { c.Observe("y", dist.Normal(x, 4), c.Data("y")) }, torch.Of(mask)),
			torch.Of(other))(c)
	}
	_, f = compiled(t, twice, batch)
	require.InDelta(t, normal(0.5, 1, 2)+sumNormal([]float64{1, -4}, 0.5, 4), f(batch, 0.5), 1e-12)
}

// A param has no prior, no Jacobian, and starts where it says; lifted it is a random variable like any other.
func TestParamAndLift(t *testing.T) {
	y := []float64{0.3, 1.2, 2.5}
	model := func(c *ppl.Ctx) {
		s := c.Param("s", scalar(1.5), support.Positive)
		m := c.Param("m", scalar(-1), support.Real)
		c.Plate("data", 3, func(c *ppl.Ctx) { c.Observe("y", dist.Exponential(s.Add(m.Exp())), c.Data("y")) })
	}
	batch := infer.Batch{"y": vec(y...)}
	likelihood := func(m, s float64) float64 { rate := s + math.Exp(m); return 3*math.Log(rate) - rate*4 }
	p, f := compiled(t, model, batch)
	require.InDelta(t, likelihood(0.2, 0.7), f(batch, 0.2, math.Log(0.7)), 1e-13)
	for _, how := range []ppl.Initial{ppl.FromUniform, ppl.FromPrior, ppl.FromMedian} {
		point, err := p.Init(batch, how, 2, 1)
		require.NoError(t, err)
		x, err := point.Values()
		require.NoError(t, err)
		require.InDeltaSlice(t, []float64{-1, math.Log(1.5), -1, math.Log(1.5)}, x, 1e-14)
	}
	lifted := ppl.Lift(model, map[string]dist.Distribution{"s": dist.Gamma(2, 3)})
	_, f = compiled(t, lifted, batch)
	gamma := 2*math.Log(3) + math.Log(0.7) - 3*0.7
	require.InDelta(t, likelihood(0.2, 0.7)+gamma+math.Log(0.7), f(batch, 0.2, math.Log(0.7)), 1e-12)
}

// A handler of one's own: it sees sites from the inside out.
func TestOwnHandler(t *testing.T) {
	var seen []string
	m := func(c *ppl.Ctx) { chain(c.With(&watcher{seen: &seen})) }
	_, err := ppl.TraceModel(m, nil, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"process x", "finish x", "process y", "finish y", "process z", "finish z"}, seen)
}

type watcher struct{ seen *[]string }

func (w *watcher) Process(s *ppl.Site) { *w.seen = append(*w.seen, "process "+s.Name) }
func (w *watcher) Finish(s *ppl.Site)  { *w.seen = append(*w.seen, "finish "+s.Name) }

// A name that is misspelt is an error of the handlers that would do nothing for it, and so is a value that is nil.
func TestHandlersRefuse(t *testing.T) {
	param := func(c *ppl.Ctx) { c.Param("w", vec(1, 2, 3), support.Real); c.Sample("x", dist.Normal(0, 1)) }
	free := ppl.Reparam(chain, map[string]ppl.Reparameterisation{"y": ppl.NonCentred})
	for name, c := range map[string]struct {
		model ppl.Model
		want  []string
	}{
		"Condition, name": {ppl.Condition(chain, ppl.Values{"X": scalar(1)}), []string{`"X"`, "Condition",
			`["x" "y" "z"]`}},
		"Do, name": {ppl.Do(chain, ppl.Values{"X": scalar(1)}), []string{`"X"`, "Do"}},
		"Lift, name": {ppl.Lift(param, map[string]dist.Distribution{"v": dist.Normal(0, 1)}), []string{`"v"`,
			"Lift"}},
		"Lift, not a param": {ppl.Lift(param, map[string]dist.Distribution{"x": dist.Normal(0, 1)}), []string{`"x"`,
			"Lift"}},
		"Lift, nil": {ppl.Lift(param, map[string]dist.Distribution{"w": nil}), []string{`"w"`, "prior nil"}},
		"Lift, shape": {ppl.Lift(param, map[string]dist.Distribution{"w": dist.Dirichlet(vec(1, 1, 1, 1))}),
			[]string{`"w"`, "[4]", "[3]"}},
		"Reparam, name": {ppl.Reparam(chain, map[string]ppl.Reparameterisation{"w": ppl.NonCentred}),
			[]string{`"w"`, "Reparam"}},
		"Condition, nil":      {ppl.Condition(chain, ppl.Values{"x": torch.Tensor{}}), []string{`"x"`, "no value"}},
		"Do, nil":             {ppl.Do(chain, ppl.Values{"x": torch.Tensor{}}), []string{`"x"`, "no value"}},
		"Substitute, nil":     {ppl.Substitute(chain, ppl.Values{"x": torch.Tensor{}}), []string{`"x"`, "no value"}},
		"Substitute, larger":  {ppl.Substitute(chain, ppl.Values{"x": vec(1, 2, 3)}), []string{`"x"`, "[3]"}},
		"Mask, nil":           {ppl.Mask(chain, torch.Tensor{}), []string{"mask is not set"}},
		"Replay, nil":         {ppl.Replay(chain, nil), []string{"trace"}},
		"Condition, model":    {ppl.Condition(nil, nil), []string{"model is nil"}},
		"Seed, model":         {ppl.Seed(nil, 1), []string{"model is nil"}},
		"Reparam, model":      {ppl.Reparam(nil, nil), []string{"model is nil"}},
		"plate, function":     {func(c *ppl.Ctx) { c.Plate("p", 3, nil) }, []string{"plate p", "function is nil"}},
		"deterministic":       {func(c *ppl.Ctx) { c.Deterministic("d", nil) }, []string{`"d"`, "value is nil"}},
		"reparameterised":     {ppl.Condition(free, ppl.Values{"y": scalar(1)}), []string{`"y"`, "inside Reparam"}},
		"reparameterised, do": {ppl.Do(free, ppl.Values{"y": scalar(1)}), []string{`"y"`, "inside Reparam"}},
	} {
		_, err := ppl.Compile(c.model, nil)
		require.Error(t, err, name)
		for _, w := range c.want {
			require.ErrorContains(t, err, w, name)
		}
	}
}

// A lifted param keeps its shape and counts once, also inside a plate.
func TestLiftInAPlate(t *testing.T) {
	model := func(c *ppl.Ctx) {
		c.Plate("data", 3, func(c *ppl.Ctx) {
			m := c.Param("m", scalar(0.5), support.Real)
			c.Observe("y", dist.Normal(m, 1), c.Data("y"))
		})
	}
	batch := infer.Batch{"y": vec(1, 2, 3)}
	p, f := compiled(t, ppl.Lift(model, map[string]dist.Distribution{"m": dist.Normal(0, 2)}), batch)
	require.Equal(t, "m[]", p.Layout().String())
	require.InDelta(t, normal(0.3, 0, 2)+sumNormal([]float64{1, 2, 3}, 0.3, 1), f(batch, 0.3), 1e-13)
}

// Data that are missing are NaN under a mask: neither value nor gradient sees them.
func TestMaskedDataMayBeNaN(t *testing.T) {
	mask := vec(1, 0, 1).T().MustGt(ts.FloatScalar(0.5), false)
	for name, c := range map[string]struct {
		of   func(a torch.Tensor) dist.Distribution
		y    []float64
		want func(a float64) float64
	}{
		"normal": {
			func(a torch.Tensor) dist.Distribution { return dist.Normal(a, 1) },
			[]float64{1, math.NaN(), 3},
			func(a float64) float64 { return sumNormal([]float64{1, 3}, a, 1) },
		},
		"exponential": {
			func(a torch.Tensor) dist.Distribution { return dist.Exponential(a.Exp()) },
			[]float64{1, -7, 3},
			func(a float64) float64 { return 2*a - 4*math.Exp(a) },
		},
		"counts": {
			func(a torch.Tensor) dist.Distribution { return dist.PoissonLog(a) },
			[]float64{1, math.NaN(), 2},
			func(a float64) float64 { return 3*a - 2*math.Exp(a) - math.Ln2 },
		},
	} {
		full := func(cc *ppl.Ctx) {
			a := cc.Sample("a", dist.Normal(0, 1))
			ppl.Mask(func(cc *ppl.Ctx) {
				cc.Plate("data", 3, func(cc *ppl.Ctx) { cc.Observe("y", c.of(a), cc.Data("y")) })
			}, torch.Of(mask))(cc)
		}
		batch := infer.Batch{"y": vec(c.y...)}
		p, f := compiled(t, full, batch)
		require.InDelta(t, normal(0.4, 0, 1)+c.want(0.4), f(batch, 0.4), 1e-12, name)
		_, grad := evaluate(t, p, whole(p), batch, 0.4)
		const h = 1e-6
		require.InDelta(t, -0.4+(c.want(0.4+h)-c.want(0.4-h))/(2*h), grad[0], 1e-8, name)
	}
}

// Condition and Do refuse a value of more numbers than the variable has, as Substitute does: the model would have one
// variable per datum.
func TestHandlersRefuseValuesThatAreTooLarge(t *testing.T) {
	line := func(c *ppl.Ctx) {
		a := c.Sample("a", dist.Normal(0, 1))
		b := c.Sample("b", dist.Normal(0, 1).Expand(2))
		v := c.Sample("v", dist.Independent(dist.Normal(0, 1).Expand(2), 1))
		c.Plate("data", 3, func(c *ppl.Ctx) {
			z := c.Sample("z", dist.Normal(0, 1))
			c.Observe("y", dist.Normal(a.Add(z).Add(b.Sum()).Add(v.Sum()), 1), c.Data("y"))
		})
	}
	batch := infer.Batch{"y": vec(1, 2, 3)}
	for name, handler := range map[string]func(ppl.Model, ppl.Values) ppl.Model{
		"Condition": ppl.Condition, "Do": ppl.Do, "Substitute": ppl.Substitute,
	} {
		for _, c := range []struct {
			site, want string
			value      torch.Tensor
		}{
			{"a", "a value of shape [3]", vec(1, 2, 3)},
			{"a", "a value of shape [1]", vec(1)},
			{"a", "a value of shape [1 1]", matrix(1, 1, 1)},
			{"b", "a value of shape [2 2]", matrix(2, 2, 1, 2, 3, 4)},
			{"v", "a value of shape [1 2]", matrix(1, 2, 1, 2)},
		} {
			_, err := ppl.Compile(handler(line, ppl.Values{c.site: c.value}), batch)
			require.ErrorContains(t, err, c.want, name)
			require.ErrorContains(t, err, "has more dimensions or elements than batch shape", name)
			if name != "Substitute" && c.site == "a" {
				require.ErrorContains(t, err, "is in a plate: c.Plate(name, 0, ...)", name)
			}
			require.ErrorContains(t, err, "site \""+c.site+"\"", name)
			if name != "Substitute" {
				require.ErrorContains(t, err, name+" gives it a value", name)
			}
		}
		for site, value := range map[string]torch.Tensor{"a": scalar(1), "b": vec(1, 2), "v": vec(1, 2), "z": vec(1, 2, 3)} {
			_, err := ppl.Compile(handler(line, ppl.Values{site: value}), batch)
			require.NoError(t, err, "%s of %s", name, site)
			_, err = torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
				var sum torch.Tensor
				handler(line, ppl.Values{site: in[0]}).Run(batch, torch.NewSource(1, 0), nil, finished(func(s *ppl.Site) {
					if s.Name == "y" {
						sum = s.LogProb()
					}
				}))
				return []torch.Tensor{sum}, nil
			}, []torch.Tensor{torch.Stack(0, value, value)}, nil)
			require.NoError(t, err, "%s of %s, mapped", name, site)
		}
	}
	_, err := ppl.Compile(ppl.Condition(line, ppl.Values{"y": vec(4, 5, 6)}), batch)
	require.NoError(t, err)
}

// finished is a handler that looks at what is done.
type finished func(s *ppl.Site)

func (finished) Process(*ppl.Site)    {}
func (f finished) Finish(s *ppl.Site) { f(s) }

// A variable that Do has set takes no other value from outside, which would drop its density without a word. Do outside
// of Condition intervenes.
func TestConditionOfAnIntervention(t *testing.T) {
	model := func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Sample("y", dist.Normal(x, 1))
	}
	one, two := ppl.Values{"x": torch.Of(1)}, ppl.Values{"x": torch.Of(2)}
	for _, m := range []ppl.Model{ppl.Condition(ppl.Do(model, one), two), ppl.Do(ppl.Do(model, one), two)} {
		_, err := ppl.TraceModel(m, nil, 1)
		require.ErrorContains(t, err, "Do has set it")
	}
	trace, err := ppl.TraceModel(ppl.Do(ppl.Condition(model, one), two), nil, 1)
	require.NoError(t, err)
	x, err := trace.Value("x")
	require.NoError(t, err)
	require.Equal(t, 2.0, x.Item())
}
