package models_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The forward algorithm is the sum over all paths of states: 3⁶ of them for six numbers and three states.
func TestForwardIsTheSumOverAllPaths(t *testing.T) {
	const states, times = 3, 6
	y := []float64{-1.2, 0.4, 3.1, 2.2, -0.3, 0.9}
	m, err := models.HiddenMarkov{
		Y:             y,
		States:        states,
		LocScale:      2,
		Concentration: 1.5,
		SpreadScale:   0.5,
		LocMean:       1,
	}.Build()
	require.NoError(t, err)
	p := compile(t, m)
	require.Equal(t, "loc[3] scale[3] transition[3,2]", layout(p))
	for seed := range uint64(5) {
		row := spread(1, p.Layout().Dim(), seed)
		at, err := infer.NewParams(p.Layout(), row)
		require.NoError(t, err)
		value, _ := evaluate(t, whole(p), at, m.Batch)
		want, _ := handAt(func(at point, _ data) dual {
			loc, prior := increasing(at["loc"])
			prior = prior.add(orderedNormal(loc, 1, 2))
			var scale []dual
			var transition [][]dual
			for s := range states {
				x, j := positive(at["scale"][s])
				scale, prior = append(scale, x), sum(prior, j, logNormal(x, 0, 0.5))
				r, j := simplex(at["transition"][2*s : 2*s+2])
				transition, prior = append(transition, r), sum(prior, j, dirichlet(r, 1.5))
			}
			total := 0.0
			for path := range int(math.Pow(states, times)) {
				probability, before := 1.0/states, -1
				for t, rest := 0, path; t < times; t, rest = t+1, rest/states {
					s := rest % states
					if t > 0 {
						probability *= transition[before][s].v
					}
					probability *= math.Exp(normal(con(y[t]), loc[s], scale[s]).v)
					before = s
				}
				total += probability
			}
			return prior.plus(math.Log(total))
		}, p.Layout(), row, m.Batch)
		assert.LessOrEqual(t, off(want, value[0]), 1e-10)
	}
}

// layout writes a layout without spaces inside of shapes.
func layout(p *ppl.Program) string {
	out := ""
	for i, s := range p.Layout().Sites {
		if i > 0 {
			out += " "
		}
		out += s.Name + "["
		for j, n := range s.Shape {
			if j > 0 {
				out += ","
			}
			out += fmt.Sprint(n)
		}
		out += "]"
	}
	return out
}

// The mean of the log posterior over the minibatches of an epoch is that of all data, for the models whose data are
// independent given the latent variables; the counties go along as integers.
func TestMinibatches(t *testing.T) {
	radon, err := models.RadonSimulated()
	require.NoError(t, err)
	mixture, err := models.MixtureSimulated()
	require.NoError(t, err)
	lynx, err := models.Lynx()
	require.NoError(t, err)
	beetles, err := models.Beetles()
	require.NoError(t, err)
	for _, c := range []struct {
		m    models.Model
		n    int
		size int
	}{{radon, 60, 12}, {mixture, 40, 8}, {lynx, 112, 16}, {beetles, 481, 37}} {
		t.Run(c.m.Name, func(t *testing.T) {
			p := compile(t, c.m)
			require.Equal(t, c.n, p.Data())
			at, err := infer.NewParams(p.Layout(), spread(2, p.Layout().Dim(), 6))
			require.NoError(t, err)
			all, slopes := evaluate(t, whole(p), at, c.m.Batch)
			batches, err := infer.Minibatches(c.m.Batch, infer.MinibatchOptions{Size: c.size, Seed: 9})
			require.NoError(t, err)
			mean, grad := make([]float64, len(all)), make([]float64, len(slopes))
			parts := c.n / c.size
			for range parts {
				b, err := batches.Next()
				require.NoError(t, err)
				v, g := evaluate(t, whole(p), at, b)
				for k := range v {
					mean[k] += v[k] / float64(parts)
				}
				for i := range g {
					grad[i] += g[i] / float64(parts)
				}
			}
			for k := range mean {
				assert.LessOrEqual(t, off(all[k], mean[k]), 1e-12)
			}
			for i := range grad {
				assert.LessOrEqual(t, off(slopes[i], grad[i]), 1e-11)
			}
		})
	}
}

// The prior of ordered locations: draws from the prior predictive increase, and have the means of normal order
// statistics, ∓3/(2√π), 0 for three numbers.
func TestOrderedLocations(t *testing.T) {
	const n, scale = 4000, 2.0
	m, err := models.NormalMixture{Y: []float64{0}, Components: 3, LocMean: 1, LocScale: scale}.Build()
	require.NoError(t, err)
	prior, err := ppl.Predictive{Model: m.Model, Batch: m.Batch, Seed: 3}.Prior(n)
	require.NoError(t, err)
	loc := floats(prior["loc"])
	mean, square := make([]float64, 3), make([]float64, 3)
	for i := range n {
		row := loc[3*i : 3*i+3]
		require.True(t, row[0] < row[1] && row[1] < row[2])
		for j, v := range row {
			mean[j] += v / n
			square[j] += v * v / n
		}
	}
	far := 3 / (2 * math.Sqrt(math.Pi)) * scale
	for j, want := range []float64{1 - far, 1, 1 + far} {
		se := math.Sqrt((square[j] - mean[j]*mean[j]) / n)
		assert.InDelta(t, want, mean[j], 4*se)
	}
	// The same means, and the variances that go with them, from the distribution itself.
	trace, err := ppl.TraceModel(m.Model, m.Batch, 1)
	require.NoError(t, err)
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		d := trace.Sites["loc"].Dist
		assert.InDeltaSlice(t, []float64{1 - far, 1, 1 + far}, floats(d.Mean()), 1e-10)
		// Var of the middle of three is 1 − √3/π; of the others 1 + √3/(2π) − 9/(4π).
		outer := 1 + math.Sqrt(3)/(2*math.Pi) - 9/(4*math.Pi)
		assert.InDeltaSlice(
			t,
			[]float64{4 * outer, 4 * (1 - math.Sqrt(3)/math.Pi), 4 * outer},
			floats(d.Variance()),
			1e-10,
		)
		return nil
	}))
}

// Every model draws from its prior: finite numbers of the shapes of the sites.
func TestPriorPredictive(t *testing.T) {
	for _, m := range all(t) {
		values, err := ppl.Predictive{Model: m.Model, Batch: m.Batch, Seed: 1}.Prior(3)
		require.NoError(t, err, m.Name)
		for _, name := range compile(t, m).Latents() {
			require.Contains(t, values, name, m.Name)
			for _, v := range floats(values[name]) {
				require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s %s", m.Name, name)
			}
		}
	}
}

// Every model goes from draws on unconstrained space to its variables, to predictions, and to a graph: the tools of the
// language work on all of them.
func TestDrawsPredictionsAndGraphs(t *testing.T) {
	for _, m := range all(t) {
		t.Run(m.Name, func(t *testing.T) {
			p := compile(t, m)
			const n = 5
			free, err := draws.New(p.Layout().Sites, nil, 1)
			require.NoError(t, err)
			flat := spread(n, p.Layout().Dim(), 4)
			for i := range n {
				require.NoError(t, free.Append(flat[i*p.Layout().Dim():(i+1)*p.Layout().Dim()], nil))
			}
			posterior, err := p.Draws(free, m.Batch)
			require.NoError(t, err)
			predicted, err := ppl.Predictive{Model: m.Model, Batch: m.Batch, Seed: 2}.Posterior(posterior)
			require.NoError(t, err)
			for _, name := range p.Latents() {
				values, err := posterior.Values(name)
				require.NoError(t, err)
				var want []float64
				for _, row := range values[0] {
					want = append(want, row...)
				}
				require.Equal(t, want, floats(predicted[name]), "a prediction keeps the draw of %s", name)
			}
			if y, ok := predicted["y"]; ok { // the states of a hidden Markov chain are summed out in a factor
				shape, err := torch.Shape(m.Batch["y"])
				require.NoError(t, err)
				got, err := torch.Shape(y)
				require.NoError(t, err)
				require.Equal(t, append([]int{n}, shape...), got)
				for _, v := range floats(y) {
					require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
				}
			}
			graph, err := ppl.Render(m.Model, m.Batch)
			require.NoError(t, err)
			for _, name := range p.Latents() {
				require.Contains(t, graph, fmt.Sprintf("%q [", name))
			}
		})
	}
}

// Predictions at new features, of which there may be more or fewer than data: with hardly any noise they are the line.
func TestPredictionsAtNewFeatures(t *testing.T) {
	m, err := models.Anscombe()
	require.NoError(t, err)
	p := compile(t, m)
	free, err := draws.New(p.Layout().Sites, nil, 1)
	require.NoError(t, err)
	require.NoError(t, free.Append([]float64{3, -20, 0.5}, nil)) // intercept, log sigma, w
	posterior, err := p.Draws(free, m.Batch)
	require.NoError(t, err)
	for _, x := range [][]float64{{4, -2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}} {
		batch := infer.Batch{"x": torch.New(x, len(x), 1)}
		predicted, err := ppl.Predictive{Model: m.Model, Batch: batch, Seed: 1}.Posterior(posterior)
		require.NoError(t, err)
		var want []float64
		for _, v := range x {
			want = append(want, 3+0.5*v)
		}
		assert.InDeltaSlice(t, want, floats(predicted["y"]), 1e-7) // sigma is 2e-9
	}
}

// A model made inside a scope outlives it.
func TestModelsOutliveAScope(t *testing.T) {
	var list []models.Model
	require.NoError(t, torch.Do(func(*torch.Scope) (err error) {
		list, err = models.All()
		return err
	}))
	for _, m := range list {
		p := compile(t, m)
		at, err := infer.Zeros(p.Layout())
		require.NoError(t, err)
		values, _ := evaluate(t, whole(p), at, m.Batch)
		require.False(t, math.IsNaN(values[0]), m.Name)
	}
}
