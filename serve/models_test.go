//go:build cgo

package serve_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// pima is a logistic regression of the size and the form of the one on the Pima data, on made-up data.
func pima(t testing.TB) models.Model {
	const n, d = 768, 8
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([][]float64, n), make([]float64, n)
	for i := range x {
		x[i] = make([]float64, d)
		for j := range x[i] {
			x[i][j] = rng.NormFloat64()
		}
		y[i] = float64(rng.IntN(2))
	}
	m, err := models.LogisticRegression{X: x, Y: y}.Build()
	require.NoError(t, err)
	m.Name = "pima"
	return m
}

// counts is a model of whole numbers that it calculates with and looks up by, with constrained variables of many kinds.
func counts(t testing.TB) models.Model {
	batch := infer.Batch{}
	for name, v := range map[string][]int64{"group": {0, 1, 2, 1, 0, 2, 2}, "y": {3, 1, 4, 1, 5, 9, 2}} {
		tensor, err := torch.FromSlice(v)
		require.NoError(t, err)
		torch.Detach(tensor)
		batch[name] = tensor
	}
	return models.Model{Name: "counts", Batch: batch, Model: func(c *ppl.Ctx) {
		p := c.Sample("p", dist.Dirichlet(torch.New([]float64{1, 2, 3})))
		l := c.Sample("l", dist.LKJCholesky(3, 2))
		phi := c.Sample("phi", dist.Beta(2, 2))
		rate := c.Deterministic("rate", p.Mul(5).Add(phi))
		c.Deterministic("corr", l.MatMul(l.Transpose()))
		c.Plate("data", 7, func(c *ppl.Ctx) {
			c.Observe("y", dist.Poisson(rate.IndexSelect(0, c.Data("group"))), c.Data("y"))
		})
	}}
}

func all(t testing.TB) []models.Model {
	out, err := models.All()
	require.NoError(t, err)
	return append(append(out, pima(t), counts(t)), tutorials(t)...)
}

// tutorials are the models of docs/tutorials, on made-up data; that of the schools is among models.All.
func tutorials(t testing.TB) []models.Model {
	const n = 30
	rng := rand.New(rand.NewPCG(8, 2))
	batch := infer.Batch{}
	put := func(name string, values func(i int) float64, shape ...int) {
		v := make([]float64, n)
		if len(shape) > 1 {
			v = make([]float64, n*shape[1])
		}
		for i := range v {
			v[i] = values(i)
		}
		tensor, err := torch.FromSlice(v, shape...)
		require.NoError(t, err)
		torch.Detach(tensor)
		batch[name] = tensor
	}
	put("x", func(int) float64 { return rng.NormFloat64() }, n, 3)
	put("yes", func(i int) float64 { return float64(i % 2) })
	put("real", func(int) float64 { return 3 + rng.NormFloat64() })
	put("deaths", func(i int) float64 { return float64(i % 6) })
	put("dose", func(i int) float64 { return rng.NormFloat64() / 5 })
	index := make([]int64, n)
	for i := range index {
		index[i] = int64(i % 6)
	}
	batches, err := torch.FromSlice(index)
	require.NoError(t, err)
	torch.Detach(batches)
	batch["batch"] = batches
	rows := func(c *ppl.Ctx, name string, d func(c *ppl.Ctx) dist.Distribution, y string) {
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe(name, d(c), c.Data(y)) })
	}
	all := map[string]ppl.Model{
		"tutorial_1": func(c *ppl.Ctx) {
			intercept, w := c.Sample("intercept", dist.Normal(0, 1.5)), c.Sample("w", dist.Normal(0, 2.5).Expand(3))
			rows(c, "y", func(c *ppl.Ctx) dist.Distribution { return dist.BernoulliLogitGLM(c.Data("x"), w, intercept) }, "yes")
		},
		"tutorial_2": func(c *ppl.Ctx) {
			mu, between, within := c.Sample("mu", dist.Normal(0, 5)), c.Sample("between", dist.HalfNormal(2)),
				c.Sample("within", dist.HalfNormal(2))
			var yield torch.Tensor
			c.Plate("batches", 6, func(c *ppl.Ctx) { yield = c.Sample("batch", dist.Normal(mu, between)) })
			rows(c, "yield", func(c *ppl.Ctx) dist.Distribution {
				return dist.Normal(yield.Take(c.Data("batch")), within)
			}, "real")
		},
		"tutorial_3": func(c *ppl.Ctx) {
			level, slope := c.Sample("level", dist.Normal(0, 2)), c.Sample("slope", dist.Normal(10, 10))
			rows(c, "deaths", func(c *ppl.Ctx) dist.Distribution {
				return dist.BinomialLogits(5, level.Add(slope.Mul(c.Data("dose"))))
			}, "deaths")
		},
		"tutorial_4": func(c *ppl.Ctx) {
			w := c.Sample("w", dist.Normal(0, 1).Expand(3))
			rows(c, "y", func(c *ppl.Ctx) dist.Distribution { return dist.BernoulliLogitGLM(c.Data("x"), w, 0) }, "yes")
		},
		"tutorial_7": func(c *ppl.Ctx) {
			alpha, beta := c.Sample("alpha", dist.Normal(0, 10)), c.Sample("beta", dist.Normal(0, 10))
			sigma := c.Sample("sigma", dist.Exponential(1))
			rows(c, "y", func(c *ppl.Ctx) dist.Distribution {
				return dist.Normal(alpha.Add(beta.Mul(c.Data("dose"))), sigma)
			}, "real")
		},
	}
	var out []models.Model
	for name, m := range all {
		out = append(out, models.Model{Name: name, Batch: batch, Model: m})
	}
	return out
}

// exported is a model that was exported and loaded, with its program and the bytes of the file.
func exported(t testing.TB, m models.Model) (*ppl.Program, *serve.Model, []byte) {
	p, err := m.Compile()
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, p.Export(&file))
	loaded, err := serve.Load(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	return p, loaded, file.Bytes()
}

// A loaded model has the log density, the gradient, the values, the log likelihoods and the predictions of the program.
func TestModels(t *testing.T) {
	free := map[string]bool{}
	for _, m := range all(t) {
		t.Run(m.Name, func(t *testing.T) {
			p, err := m.Compile()
			require.NoError(t, err)
			named, unconstrained := infertest.PosteriorAt(t, p, 20)
			loaded, file := infertest.Exported(t, p, named)
			free[m.Name] = loaded.FreeRows()
			d := infertest.Compare(t, loaded, p, named, unconstrained)
			t.Logf("%d bytes; differences up to %.1e", len(file), d)
			require.Less(t, d.Density, 1e-12)
			require.Less(t, d.Values, 1e-13)
			require.Less(t, d.LogLikelihood, 1e-10)
			require.Less(t, d.Predictions, 1e-12)
			_, err = loaded.LogLikelihood(unconstrained.Rows()[0])
			if m.Name == "hidden_markov" { // a Factor
				require.ErrorContains(t, err, "observes nothing")
			} else {
				require.NoError(t, err)
			}
		})
	}
	require.Equal(t, map[string]bool{"beetles": true, "anscombe": true, "eight_schools": false,
		"eight_schools_centred": false, "salmonella": false, "radon": true, "mixture": true, "lynx": true,
		"hidden_markov": false, "wave_gp": false, "pima": true, "counts": true,
		"tutorial_1": true, "tutorial_2": true, "tutorial_3": true, "tutorial_4": true, "tutorial_7": true}, free)
}

// A model on other data, whole numbers and indices among them, is the program on those.
func TestOtherData(t *testing.T) {
	m := counts(t)
	_, loaded, _ := exported(t, m)
	data := map[string][]float64{}
	m.Batch = infer.Batch{}
	for name, v := range map[string][]int64{"group": {2, 2, 1, 0, 0, 1, 0}, "y": {0, 7, 4, 3, 5, 1, 11}} {
		tensor, err := torch.FromSlice(v)
		require.NoError(t, err)
		torch.Detach(tensor)
		m.Batch[name] = tensor
		for _, k := range v {
			data[name] = append(data[name], float64(k))
		}
	}
	_, want, _ := exported(t, m)
	got, err := loaded.With(data)
	require.NoError(t, err)
	for _, x := range infertest.Points(5, want.Dim()) {
		grad, other := make([]float64, len(x)), make([]float64, len(x))
		require.Equal(t, want.LogDensity(x, grad), got.LogDensity(x, other))
		require.Equal(t, grad, other)
		require.Equal(t, want.Constrain(x), got.Constrain(x))
	}
	for _, bad := range []float64{-1, 3, 0.5, math.NaN()} {
		_, err := loaded.With(map[string][]float64{"group": {2, 2, 1, bad, 0, 1, 0}})
		require.ErrorContains(t, err, "serve.With", bad)
	}
}

// What cannot be exported is refused with its name.
func TestRefuse(t *testing.T) {
	refused := func(m ppl.Model, words ...string) {
		p, err := ppl.Compile(m, infer.Batch{})
		require.NoError(t, err)
		var file bytes.Buffer
		err = p.Export(&file)
		for _, w := range append(words, "ppl.Export") {
			require.ErrorContains(t, err, w)
		}
		require.Zero(t, file.Len())
	}
	refused(func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Density("solver", func(x, grad [][]float64) float64 { grad[0][0] = -x[0][0]; return -x[0][0] * x[0][0] / 2 }, x)
	}, `"solver"`, "Go function")
	refused(func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 1))
		c.Factor("odd", torch.Of(x.T().MustSinc(false)))
	}, "sinc", `"x"`)
	m, err := models.Influenza()
	require.NoError(t, err)
	p, err := m.Compile()
	require.NoError(t, err)
	require.ErrorContains(t, p.Export(&bytes.Buffer{}), "function in C")
	require.ErrorContains(t, (&ppl.Program{}).Export(&bytes.Buffer{}), "has not made")
}
