package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The features of the linear model are bumps exp(−(x − c)²/2) at c = 0.5, 1.8, 3.1, 4.4: each episode is
// about some of them.
func features(x float64) []float64 {
	phi := make([]float64, weights)
	for i := range phi {
		z := x - 0.5 - 1.3*float64(i)
		phi[i] = math.Exp(-0.5 * z * z)
	}
	return phi
}

const weights = 4

// linearModel is a regression on the features, whose posterior is normal.
func linearModel() model {
	design := func(b infer.Batch) torch.Tensor {
		centres := torch.New([]float64{0.5, 1.8, 3.1, 4.4})
		return b.Get("x").Sub(centres).Square().Mul(-0.5).Exp()
	}
	layout, err := infer.NewLayout(infer.Shapes{"w": {1, weights}})
	if err != nil {
		panic(err)
	}
	return model{
		layout: layout, priorSD: 1,
		forward: func(p infer.Params, b infer.Batch) torch.Tensor {
			return design(b).MatMul(p.Get("w").At(0))
		},
		network: func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			return linear("w", design(b)).Squeeze(1)
		},
		layers: []laplace.Layer{{Weight: "w"}},
	}
}

// batchPosterior is the posterior of all data at once, in plain Go: precision I + Σ φφᵀ/noise², and mean.
func batchPosterior(t *testing.T, data []series) (mean []float64, precision, covariance *mat.SymDense) {
	precision = mat.NewSymDense(weights, nil)
	pull := mat.NewVecDense(weights, nil)
	for i := range weights {
		precision.SetSym(i, i, 1)
	}
	for _, s := range data {
		for i, x := range s.x {
			phi := mat.NewVecDense(weights, features(x))
			precision.SymRankOne(precision, 1/(noise*noise), phi)
			pull.AddScaledVec(pull, s.y[i]/(noise*noise), phi)
		}
	}
	var chol mat.Cholesky
	require.True(t, chol.Factorize(precision))
	var m mat.VecDense
	require.NoError(t, chol.SolveVecTo(&m, pull))
	covariance = mat.NewSymDense(weights, nil)
	require.NoError(t, chol.InverseTo(covariance))
	return m.RawVector().Data, precision, covariance
}

func zeros(t *testing.T, m model) infer.Params {
	p, err := infer.Zeros(m.layout)
	require.NoError(t, err)
	return p
}

func learnAll(t *testing.T, l learner, data []series) {
	for _, s := range data {
		require.NoError(t, l.learn(context.Background(), s))
	}
}

// On a linear model five episodes of Laplace approximations are the posterior of all data at once, with a full matrix
// and with Kronecker factors, which are exact for one linear layer. The mean log posterior of an episode has curvatures
// up to about 100, so that momentum gradient ascent with a step of 0.01 gets to the mode.
func TestLaplaceIsBatchPosterior(t *testing.T) {
	m := linearModel()
	data, err := observe(3)
	require.NoError(t, err)
	mean, precision, _ := batchPosterior(t, data)
	climb := training{optimizer: optim.SGD{LR: infer.Constant(0.01), Momentum: 0.95}, epochs: 1200, batch: points}
	for name, method := range map[string]infer.Method{
		"dense": laplace.DenseGGN{Forward: m.forward, Outer: outer, PriorPrecision: laplace.Isotropic(1)},
		"kfac":  laplace.KFAC{Network: m.network, Layers: m.layers, Outer: outer, PriorPrecision: laplace.Isotropic(1)},
	} {
		t.Run(name, func(t *testing.T) {
			c := &carried{model: m, training: climb, at: zeros(t, m), weight: 1, curvature: method}
			learnAll(t, c, data)
			found, err := c.state.Position().Values()
			require.NoError(t, err)
			assert.InDeltaSlice(t, mean, found, 1e-8)
			p, err := c.state.(laplace.Posterior).Precision()
			require.NoError(t, err)
			flat, err := torch.ToSlice[float64](p)
			require.NoError(t, err)
			for i := range weights {
				for j := range weights {
					assert.InDelta(t, precision.At(i, j), flat[weights*i+j], 1e-8*precision.At(i, i), "%d %d", i, j)
				}
			}
		})
	}
	// Without the posterior of the episodes before, it is another.
	s := &sequential{model: m, training: climb, at: zeros(t, m)}
	learnAll(t, s, data)
	found, err := s.at.Values()
	require.NoError(t, err)
	assert.Greater(t, math.Abs(found[0]-mean[0]), 0.05)
	// Offline learning is the batch posterior's mode.
	o := &offline{model: m, training: training{optimizer: climb.optimizer, epochs: 1200, batch: points * episodes},
		start: zeros(t, m)}
	learnAll(t, o, data)
	found, err = o.at.Values()
	require.NoError(t, err)
	assert.InDeltaSlice(t, mean, found, 1e-8)
}

// The same with variational inference and a full covariance: means within 2 % of a standard deviation, standard
// deviations within 2 %. The predictions are those of the batch posterior, within four standard errors of the draws.
func TestVariationalIsBatchPosterior(t *testing.T) {
	m := linearModel()
	data, err := observe(3)
	require.NoError(t, err)
	mean, _, covariance := batchPosterior(t, data)
	const epochs = 1500
	v := &variational{model: m, at: zeros(t, m), draws: 4000,
		training: training{optimizer: optim.Adam{LR: infer.Linear(0.1, 0, 0, epochs)}, epochs: epochs, batch: points,
			seed: 1},
		method: func(o infer.Method, temperature infer.Schedule) infer.Method {
			return vi.Dense{Optimizer: o, Temperature: temperature, Samples: 4, Antithetic: true, InitScale: 0.3}
		}}
	learnAll(t, v, data)
	found, err := v.state.Position().Values()
	require.NoError(t, err)
	cov, err := v.state.(vi.State).Covariance()
	require.NoError(t, err)
	flat, err := torch.ToSlice[float64](cov)
	require.NoError(t, err)
	for i := range weights {
		sd := math.Sqrt(covariance.At(i, i))
		assert.InDelta(t, mean[i], found[i], 0.02*sd)
		assert.InEpsilon(t, sd, math.Sqrt(flat[(weights+1)*i]), 0.02)
	}
	s := exam(2)
	p, err := at(v, s)
	require.NoError(t, err)
	for i, x := range s.x {
		phi := mat.NewVecDense(weights, features(x))
		sd := math.Sqrt(mat.Inner(phi, covariance, phi))
		assert.InDelta(t, mat.Dot(phi, mat.NewVecDense(weights, mean)), p.mean[i], (4/math.Sqrt(4000)+0.05)*sd)
		assert.InEpsilon(t, sd, p.sd[i], 4/math.Sqrt(2*4000)+0.03)
	}
}

// The prior of an episode is q after the walk: its log density, up to a constant, against the matrix in plain Go.
func TestWalkWidensThePrior(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"w": {2}})
	require.NoError(t, err)
	start, err := infer.NewParams(layout, []float64{0.3, -0.2})
	require.NoError(t, err)
	target := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Flat.Dot(p.Flat).T().MustMulScalar(ts.FloatScalar(-0.5), false)), nil
	}
	for name, method := range map[string]infer.Method{
		"diag":  vi.Diag{Optimizer: optim.Adam{LR: infer.Constant(0.1)}, Samples: 1, InitScale: 0.5},
		"dense": vi.Dense{Optimizer: optim.Adam{LR: infer.Constant(0.1)}, Samples: 1, InitScale: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			transform, err := method.Build(infer.Sum(target, 1))
			require.NoError(t, err)
			state, err := transform.Init(start)
			require.NoError(t, err)
			for range 3 {
				state, _, err = transform.Update(state, infer.Batch{"y": torch.Of(ts.MustZeros([]int64{1}, gotch.Double,
					torch.CPU))})
				require.NoError(t, err)
			}
			prior, err := (&variational{state: state, walk: 0.7}).prior()
			require.NoError(t, err)
			cov, err := state.(vi.State).Covariance()
			require.NoError(t, err)
			flat, err := torch.ToSlice[float64](cov)
			require.NoError(t, err)
			c := mat.NewSymDense(2, flat)
			c.SetSym(0, 0, c.At(0, 0)+0.49)
			c.SetSym(1, 1, c.At(1, 1)+0.49)
			var chol mat.Cholesky
			require.True(t, chol.Factorize(c))
			mean, err := state.Position().Values()
			require.NoError(t, err)
			at, err := infer.NewParams(layout, []float64{1.5, 0.4})
			require.NoError(t, err)
			delta := mat.NewVecDense(2, []float64{1.5 - mean[0], 0.4 - mean[1]})
			var solved mat.VecDense
			require.NoError(t, chol.SolveVecTo(&solved, delta))
			assert.InDelta(t, -0.5*mat.Dot(delta, &solved), prior(at).Item(), 1e-12)
		})
	}
}

// The network has the parameters that the tables speak of, and its two forms are one function.
func TestPerceptron(t *testing.T) {
	m, err := perceptron(1, 200, 200)
	require.NoError(t, err)
	require.Equal(t, 40801, m.layout.Dim())
	p, err := m.begin(1)
	require.NoError(t, err)
	b, err := exam(1).batch()
	require.NoError(t, err)
	one, two := m.forward(p, b).Values(), m.network.Forward(m.layers...)(p, b).Values()
	require.Len(t, one, tests)
	assert.InDeltaSlice(t, one, two, 1e-12)
	// log N(y; z, noise²), and a normal prior up to its constant.
	log := outer(m.forward(p, b), b).Values()
	r := (exam(1).y[7] - one[7]) / 0.2
	assert.InDelta(t, -0.5*r*r-0.5*math.Log(2*math.Pi)-math.Log(0.2), log[7], 1e-10)
}

// Scores and the measure of forgetting by hand.
func TestScores(t *testing.T) {
	loss, nlpd := scores(prediction{mean: []float64{1, 2}, sd: []float64{0, 1}},
		series{x: []float64{0, 0}, y: []float64{1, 4}})
	assert.InDelta(t, 2, loss, 1e-15)
	first := 0.5*math.Log(2*math.Pi*0.04) + 0.5
	second := 0.5*math.Log(2*math.Pi*1.04) + 4.04/2.08
	assert.InDelta(t, (first+second)/2, nlpd, 1e-15)

	losses := [episodes][episodes]float64{{1, 9}, {2, 4}}
	e := excess(losses, [episodes]float64{0.5, 1})
	assert.InDelta(t, 0.5, e[0], 1e-15)
	assert.InDelta(t, (1.5+3)/2, e[1], 1e-15)
	mean := over([]float64{1, 2, 3})
	assert.InDelta(t, 2, mean.Mean, 1e-15)
	assert.InDelta(t, math.Sqrt(1.0/3), mean.SE, 1e-15)
}

// The data lie on their intervals, with the noise that they should have, within four standard errors.
func TestData(t *testing.T) {
	var square float64
	for seed := range uint64(5) {
		data, err := observe(seed)
		require.NoError(t, err)
		require.Len(t, data, episodes)
		for j, s := range data {
			for i, x := range s.x {
				require.True(t, float64(j) <= x && x <= float64(j+1))
				square += math.Pow((s.y[i]-truth(x))/0.2, 2)
			}
		}
	}
	const n = 5 * episodes * points
	assert.InDelta(t, 1, square/n, 4*math.Sqrt(2.0/n))
}

// A short run of everything: the files, each method by its name, and sequential learning forgets even here.
func TestShortRun(t *testing.T) {
	for _, settings := range []string{tuned, plain, published} {
		t.Run(settings, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep")
			o := options{json: settings == tuned, quick: true, settings: settings, out: dir, seed: 1, seeds: 2}
			require.NoError(t, run(context.Background(), io.Discard, o))
			text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
			require.NoError(t, err)
			var s summaryJSON
			require.NoError(t, json.Unmarshal(text, &s))
			names := []string{"map", "laplace_diag", "laplace_kfac", "vi", "offline"}
			if settings == published {
				names = []string{"map", "laplace_diag", "vi", "offline"}
			}
			require.Len(t, s.Methods, len(names))
			for i, m := range s.Methods {
				require.Equal(t, names[i], m.Name)
			}
			require.Equal(t, 2, s.Seeds)
			assert.Zero(t, s.Methods[0].Excess[0].Mean) // the first episode of all
			forgets := s.Methods[0].Loss
			assert.Greater(t, forgets[4][0].Mean, forgets[0][0].Mean)
			if settings == tuned { // Kronecker factors remember already where the small network of this run has few updates
				assert.Less(t, s.Methods[2].Excess[4].Mean, s.Methods[0].Excess[4].Mean/3)
			}
			assert.FileExists(t, filepath.Join(dir, "fits.png"))
			assert.FileExists(t, filepath.Join(dir, "excess.png"))
		})
	}
}

func TestOptions(t *testing.T) {
	err := run(context.Background(), io.Discard, options{settings: "other", seeds: 1, out: t.TempDir()})
	require.ErrorContains(t, err, `"other"`)
	require.ErrorContains(t, err, published)
	require.ErrorContains(t, run(context.Background(), io.Discard, options{settings: tuned, out: t.TempDir()}),
		"seeds is 0")
}
