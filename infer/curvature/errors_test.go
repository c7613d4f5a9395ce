package curvature_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// arguments are what a function can be given.
type arguments struct {
	forward  curvature.Forward
	outer    curvature.Outer
	density  curvature.PerDatum
	post     infer.LogPosterior
	p        infer.Params
	b        infer.Batch
	v        torch.Tensor
	variance torch.Tensor
	o        curvature.Options
}

type call struct {
	name                  string
	forward, density, vec bool // what it takes, besides a log posterior
	// f is its result, of several the one in θ.
	f func(a arguments) (torch.Tensor, error)
}

func (c call) err(a arguments) error {
	_, err := c.f(a)
	return err
}

// calls are all functions of the package but CG.
var calls = []call{
	{"Gradients", false, true, false, func(a arguments) (torch.Tensor, error) {
		_, g, err := curvature.Gradients(a.density, a.p, a.b, a.o)
		return g, err
	}},
	{"Fisher", false, true, false, func(a arguments) (torch.Tensor, error) {
		return curvature.Fisher(a.density, a.p, a.b, a.o)
	}},
	{"FisherDiag", false, true, false, func(a arguments) (torch.Tensor, error) {
		return curvature.FisherDiag(a.density, a.p, a.b, a.o)
	}},
	{"FVP", false, true, true, func(a arguments) (torch.Tensor, error) {
		return curvature.FVP(a.density, a.p, a.b, a.v, a.o)
	}},
	{"GGN", true, false, false, func(a arguments) (torch.Tensor, error) {
		return curvature.GGN(a.forward, a.outer, a.p, a.b, a.o)
	}},
	{"GGNDiag", true, false, false, func(a arguments) (torch.Tensor, error) {
		return curvature.GGNDiag(a.forward, a.outer, a.p, a.b, a.o)
	}},
	{"GGNVP", true, false, true, func(a arguments) (torch.Tensor, error) {
		return curvature.GGNVP(a.forward, a.outer, a.p, a.b, a.v, a.o)
	}},
	{"Hessian", false, false, false, func(a arguments) (torch.Tensor, error) {
		return curvature.Hessian(a.post, a.p, a.b, a.o)
	}},
	{"HessianDiag", false, false, false, func(a arguments) (torch.Tensor, error) {
		return curvature.HessianDiag(a.post, a.p, a.b, a.o)
	}},
	{"HVP", false, false, true, func(a arguments) (torch.Tensor, error) {
		_, hv, err := curvature.HVP(a.post, a.p, a.b, a.v)
		return hv, err
	}},
	{"Linearized", true, false, false, func(a arguments) (torch.Tensor, error) {
		_, cov, err := curvature.Linearized(a.forward, a.p, a.b, a.variance, curvature.LinearizedOptions{Memory: a.o.Memory})
		return cov, err
	}},
}

func ones(p infer.Params) torch.Tensor { return torch.Of(p.Flat.T().MustOnesLike(false)) }

// given are good arguments for a function, all in float64.
func given(t testing.TB, m network) arguments {
	return arguments{forward: m.forward, outer: m.outer, density: m.density(), post: m.logPosterior, p: m.point(t),
		b: m.batch(),
		v: vec(numbers(len(m.flat), 1)), variance: ones(m.point(t))}
}

// refused asserts that an error has the function's name and a text.
func refused(t testing.TB, err error, name, text string) {
	t.Helper()
	require.Error(t, err, name)
	assert.Contains(t, err.Error(), "curvature."+name+": ")
	assert.Contains(t, err.Error(), text, name)
}

func TestPointsAndBatchesAreChecked(t *testing.T) {
	m := newNetwork(t, kinds[1])
	for _, c := range calls {
		a := given(t, m)
		require.NoError(t, c.err(a), c.name)

		chains, err := a.p.Repeat(4)
		require.NoError(t, err)
		a.p = chains
		refused(t, c.err(a), c.name,
			"the params have shape [4 21], a chain axis: curvature is at a single point of shape [21]")
		a.p = infer.Params{Layout: m.layout, Flat: vec(make([]float64, 5))}
		refused(t, c.err(a), c.name, "the params have shape [5] for the layout")
		assert.ErrorIs(t, c.err(a), infer.ErrLayout)
		a.p = infer.Params{Flat: vec(m.flat)}
		refused(t, c.err(a), c.name, "the params have no layout")
		a.p = infer.Params{Layout: m.layout}
		require.Error(t, c.err(a), c.name)
		a.p = infer.Params{Layout: m.layout, Flat: torch.Of(m.point(t).Flat.T().MustTotype(gotch.Int64, false))}
		refused(t, c.err(a), c.name, "the params are Int64, expected float64 or float32")

		a = given(t, m)
		a.b = infer.Batch{}
		if c.forward || c.density {
			refused(t, c.err(a), c.name, "the batch is empty")
		}
		a.b = infer.Batch{"x": torch.Of(m.batch()["x"].T().MustNarrow(0, 0, 0, false)),
			"y": torch.Of(m.batch()["y"].T().MustNarrow(0, 0, 0, false))}
		refused(t, c.err(a), c.name, "the batch is empty")
		a.b = infer.Batch{"x": m.batch()["x"], "y": torch.Of(m.batch()["y"].T().MustNarrow(0, 0, 3, false))}
		if c.forward || c.density {
			refused(t, c.err(a), c.name, "has 3 data, others 7")
		} else {
			require.Error(t, c.err(a), c.name, "the log posterior pairs the data of two tensors")
		}
		a.b = infer.Batch{"x": m.batch()["x"], "y": torch.Tensor{}}
		require.Error(t, c.err(a), c.name)
		a.b = in32(m.batch())
		require.Error(t, c.err(a), c.name, "data in float32 and params in float64")

		if c.name != "HVP" {
			a = given(t, m)
			a.o.Memory = -1
			refused(t, c.err(a), c.name, "curvature.Options: Memory is -1: at least 0 bytes")
		}
		if c.vec {
			a = given(t, m)
			for text, v := range map[string]torch.Tensor{
				"v has shape [3], expected [21]":                                 vec(m.flat[:3]),
				"v has shape [21 1], expected [21]":                              vec(m.flat, 21, 1),
				"v is nil, expected shape [21]":                                  torch.Tensor{},
				"v is Float and the params are Double: they must be of one type": torch.Must(torch.To(a.v, torch.CPU, gotch.Float)),
			} {
				a.v = v
				refused(t, c.err(a), c.name, text)
			}
		}
	}
}

// A call leaves its results in the scope of the caller and nothing else, and nothing where it fails.
func TestCallsLeaveTheirResultsAlone(t *testing.T) {
	m := newNetwork(t, kinds[1])
	good, bad := given(t, m), given(t, m)
	bad.o.Memory = 1
	bad.b = infer.Batch{"x": good.b["x"]}
	require.NoError(t, torch.Do(func(s *torch.Scope) error {
		for _, c := range calls {
			results := 1
			if c.name == "Gradients" || c.name == "HVP" || c.name == "Linearized" {
				results = 2
			}
			before := s.Owned()
			require.NoError(t, c.err(good), c.name)
			assert.Equal(t, before+results, s.Owned(), c.name)
			if c.name != "Linearized" { // it needs no y
				require.Error(t, c.err(bad), c.name)
				assert.Equal(t, before+results, s.Owned(), "%s that fails", c.name)
			}
		}
		before := s.Owned()
		_, err := curvature.CG(product(spd(3, 10)), torch.Of(good.v.T().MustNarrow(0, 0, 3, false)), curvature.CGOptions{})
		assert.Equal(t, before+2, s.Owned(), "CG, with the vector that it was given")
		return err
	}))
}

func TestFunctionsAreChecked(t *testing.T) {
	m := newNetwork(t, kinds[1])
	mean := func(x torch.Tensor) torch.Tensor { return x.Mean() }
	float := func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustTotype(gotch.Float, false)) }
	apart := func(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustDetach(false)) }
	for _, c := range calls {
		for _, bad := range []struct {
			change         func(x torch.Tensor) torch.Tensor
			forward, outer string // what the error says where the forward function or a density is changed
		}{
			{mean, "the forward function returned shape [] for a batch of", " returned shape [] for a batch of"},
			{float, "what the forward function returned is Float and the params are Double: they must be of one type",
				" returned is Float and the params are Double"},
			{func(torch.Tensor) torch.Tensor { return torch.Of(0) }, "the forward function returned shape [] for a batch of",
				" returned shape [] for a batch of"},
			{apart, "what the forward function returned does not depend on the inputs (the params)",
				" does not depend on the inputs (the params)"},
			{func(x torch.Tensor) torch.Tensor { return x.MatMul(x) }, "libtorch", "libtorch"},
		} {
			a := given(t, m)
			switch {
			case c.forward:
				a.forward = func(p infer.Params, b infer.Batch) torch.Tensor { return bad.change(m.forward(p, b)) }
				refused(t, c.err(a), c.name, bad.forward)
				if c.name == "Linearized" {
					continue
				}
				a = given(t, m)
				a.outer = func(z torch.Tensor, b infer.Batch) torch.Tensor { return bad.change(m.outer(z, b)) }
			case c.density:
				a.density = func(p infer.Params, b infer.Batch) torch.Tensor { return bad.change(m.density()(p, b)) }
			default:
				continue
			}
			err := c.err(a)
			require.Error(t, err, c.name)
			want := bad.outer
			if c.forward && want == " does not depend on the inputs (the params)" {
				want = "what the outer density returned does not depend on the inputs (the outputs)"
			}
			if want != "libtorch" { // a vector times itself is a number
				refused(t, err, c.name, want)
			}
		}
		a := given(t, m)
		a.outer = func(z torch.Tensor, b infer.Batch) torch.Tensor { return z }
		if c.forward && c.name != "Linearized" {
			refused(t, c.err(a), c.name, "the outer density returned shape [7 3] for a batch of 7 data, expected [7]")
		}
		a = given(t, m)
		a.forward, a.outer, a.density, a.post = nil, nil, nil, nil
		refused(t, c.err(a), c.name, "is nil")
		assert.ErrorIs(t, c.err(a), infer.ErrConfig, c.name)

		// An unknown site is an error of the function that called the model.
		a = given(t, m)
		a.forward = func(p infer.Params, b infer.Batch) torch.Tensor { return p.Get("nowhere") }
		a.density = curvature.PerDatum(a.forward)
		a.post = func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return p.Get("nowhere"), nil
		}
		var unknown *infer.ModelError
		assert.True(t, errors.As(c.err(a), &unknown), c.name)
	}
}

func TestLogPosteriorsAreChecked(t *testing.T) {
	m := newNetwork(t, kinds[1])
	for _, c := range calls {
		if c.forward || c.density {
			continue
		}
		for text, change := range map[string]func(x torch.Tensor) torch.Tensor{
			"the log posterior returned shape [1], expected []": func(x torch.Tensor) torch.Tensor {
				return x.Unsqueeze(0)
			},
			"a *ts.Tensor that is nil is no operand": func(torch.Tensor) torch.Tensor { return torch.Tensor{} },
			"what the log posterior returned does not depend": func(x torch.Tensor) torch.Tensor {
				return torch.Of(x.T().MustDetach(false))
			},
			"what the log posterior returned is Float": func(x torch.Tensor) torch.Tensor {
				return torch.Of(x.T().MustTotype(gotch.Float,
					false))
			},
		} {
			a := given(t, m)
			a.post = func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
				l, _ := m.logPosterior(p, b)
				return change(l), nil
			}
			refused(t, c.err(a), c.name, text)
		}
	}
	// A log posterior of single data, too.
	a := given(t, m)
	a.density = curvature.PerSample(func(p infer.Params, b infer.Batch) (torch.Tensor,
		infer.Aux) {
		return m.density()(p, b), nil
	})
	refused(t, calls[0].err(a), "Gradients", "the log posterior returned shape [1] for a datum, expected []")
	a.density = curvature.PerSample(nil)
	refused(t, calls[0].err(a), "Gradients", "PerSample: the log posterior is nil")
	a.density = curvature.Likelihood(nil, nil)
	refused(t, calls[0].err(a), "Gradients", "Likelihood: the forward function or the outer density is nil")
}

// A million parameters have a matrix of 8 TB, which is refused before it is made and before the model runs.
func TestDenseMatricesOfManyParametersAreRefused(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {1_000_000}})
	p := pointOf(t, l, make([]float64, 1_000_000)...)
	never := func(infer.Params, infer.Batch) torch.Tensor { panic("the model was run") }
	a := arguments{forward: never, outer: bernoulli.outer, density: never, p: p,
		b:    infer.Batch{"x": vec(make([]float64, 3))},
		post: func(infer.Params, infer.Batch) (torch.Tensor, infer.Aux) { panic("the model was run") }}
	for _, c := range calls {
		if c.name != "Fisher" && c.name != "GGN" && c.name != "Hessian" {
			continue
		}
		err := c.err(a)
		refused(t, err, c.name,
			"a matrix of shape [1000000, 1000000] takes 8 TB, and curvature.Options.Memory allows 1.07 GB: use "+c.name+
				"Diag for the diagonal, or the last layer alone by infer.Subspace, or raise it")
		var e *infer.MemoryError
		require.True(t, errors.As(err, &e))
		assert.Equal(t, int(8e12), e.Bytes)
		assert.Equal(t, int(1<<30), e.Allowed)
		assert.ErrorIs(t, err, infer.ErrConfig)
	}
	a.b = infer.Batch{"x": vec(make([]float64, 200))}
	refused(t, calls[0].err(a), "Gradients", "gradients of shape [200, 1000000] takes 1.6 GB")
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	m := newNetwork(t, kinds[5])
	a := given(t, m)
	// 36 second derivatives of 8 bytes.
	a.o.Memory = 8*36 - 1
	_, err := curvature.GGNDiag(a.forward, a.outer, a.p, a.b, a.o)
	refused(t, err, "GGNDiag", "the second derivative in the 6 outputs of a datum, [6, 6], takes 288 bytes, and "+
		"curvature.Options.Memory allows 287 bytes: use FisherDiag or GGNVP")
	a.o.Memory++
	_, err = curvature.GGNDiag(a.forward, a.outer, a.p, a.b, a.o)
	require.NoError(t, err)
	d := len(m.flat)
	need := 8 * (7*6*(1+6) + 4*d + 6*2*d)
	_, _, err = curvature.Linearized(a.forward, a.p, a.b, ones(a.p),
		curvature.LinearizedOptions{Memory: need - 1})
	refused(t, err, "Linearized", "covariances of shape [7, 6, 6] with the Jacobian of a datum, [6, 33], takes")
	_, _, err = curvature.Linearized(a.forward, a.p, a.b, ones(a.p), curvature.LinearizedOptions{Memory: need})
	require.NoError(t, err)
}

func TestNumbersThatAreNotFinite(t *testing.T) {
	m := newNetwork(t, kinds[1])
	m.x[3] = math.NaN()
	a := given(t, m)
	for _, c := range calls {
		if c.name == "Gradients" || c.name == "HVP" || c.name == "Linearized" {
			require.NoError(t, c.err(a), c.name)
			continue
		}
		err := c.err(a)
		require.Error(t, err, c.name)
		assert.ErrorIs(t, err, infer.ErrNonFinite, c.name)
	}
	// Only the gradient of that datum is affected.
	v, g, err := curvature.Gradients(a.density, a.p, a.b, a.o)
	require.NoError(t, err)
	for i, row := range rows(floats(g), len(m.flat)) {
		sum := floats(v)[i]
		for _, x := range row {
			sum += x
		}
		assert.Equal(t, i == 1, math.IsNaN(sum), "datum %d", i)
	}
}

func TestLinearizedArgumentsAreChecked(t *testing.T) {
	m := newNetwork(t, kinds[1])
	a, d := given(t, m), len(m.flat)
	negative := ones(a.p)
	negative.T().MustNarrow(0, 2, 1, false).MustFill_(ts.FloatScalar(-1))
	for text, variance := range map[string]torch.Tensor{
		"the covariance is nil, expected shape [21] or [21, 21]": torch.Tensor{},
		"the variance has shape [3], expected [21]":              vec(m.flat[:3]),
		"the smallest variance is -1: it must be finite":         negative,
		"the variance is Float and the params are Double:":       torch.Must(torch.To(ones(a.p), torch.CPU, gotch.Float)),
	} {
		_, _, err := curvature.Linearized(a.forward, a.p, a.b, variance, curvature.LinearizedOptions{})
		refused(t, err, "Linearized", text)
	}
	_, _, err := curvature.Linearized(a.forward, a.p, a.b, ones(a.p), curvature.LinearizedOptions{NoiseSD: -1})
	refused(t, err, "Linearized", "curvature.LinearizedOptions: NoiseSD is -1")
	_, _, err = curvature.Linearized(a.forward, a.p, a.b, vec(m.flat, 3, 7), curvature.LinearizedOptions{})
	refused(t, err, "Linearized", "the covariance has shape [3 7], expected [21 21]")
	for text, factor := range map[string]torch.Tensor{
		"the factor of the covariance is nil":                            torch.Tensor{},
		"the factor of the covariance has shape [21], expected [21, m]":  ones(a.p),
		"the factor of the covariance has shape [3 7], expected [21, m]": vec(m.flat, 3, 7),
		"the factor of the covariance is Float": torch.Must(torch.To(vec(m.flat, d, 1), torch.CPU,
			gotch.Float)),
	} {
		_, _, err := curvature.LinearizedFactor(a.forward, a.p, a.b, factor, curvature.LinearizedOptions{})
		refused(t, err, "LinearizedFactor", text)
	}
}
