package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// priors are schemes with gonum's log density of an element of each site.
func priors() map[string]struct {
	scheme nn.Scheme
	want   func(site string, x float64) float64
} {
	type c = struct {
		scheme nn.Scheme
		want   func(site string, x float64) float64
	}
	fan := map[string]float64{"0.weight": 3, "2.weight": 4}
	he := func(site string, x float64) float64 {
		if in, ok := fan[site]; ok {
			return distuv.Normal{Sigma: math.Sqrt(2 / in)}.LogProb(x)
		}
		return distuv.Normal{Sigma: 0.4}.LogProb(x)
	}
	return map[string]c{
		"normal": {
			nn.Same(nn.Normal(0.7)),
			func(_ string, x float64) float64 { return distuv.Normal{Sigma: 0.7}.LogProb(x) },
		},
		"He": {nn.HePrior(0.4), he},
		"Laplace": {
			nn.Same(nn.Laplace(1.3)),
			func(_ string, x float64) float64 { return distuv.Laplace{Scale: 1.3}.LogProb(x) },
		},
		"uniform": {
			nn.Same(nn.Uniform(9)),
			func(_ string, x float64) float64 { return distuv.Uniform{Min: -9, Max: 9}.LogProb(x) },
		},
		"of all families": {
			nn.PerSite(
				map[string]nn.Law{"0.weight": nn.Laplace(0.2), "0.bias": nn.Uniform(8), "2.bias": nn.Laplace(3)},
				nn.HePrior(0.4),
			),
			func(site string, x float64) float64 {
				switch site {
				case "0.weight":
					return distuv.Laplace{Scale: 0.2}.LogProb(x)
				case "0.bias":
					return distuv.Uniform{Min: -8, Max: 8}.LogProb(x)
				case "2.bias":
					return distuv.Laplace{Scale: 3}.LogProb(x)
				}
				return he(site, x)
			},
		},
	}
}

func TestPriorIsTheSumOfLogDensities(t *testing.T) {
	n, err := nn.MLP{Sizes: []int{3, 4, 2}}.Build()
	require.NoError(t, err)
	const k = 3
	for name, c := range priors() {
		prior, err := nn.NewPrior(n, c.scheme)
		require.NoError(t, err)
		prior32, err := prior.To(gotch.CPU, gotch.Float)
		require.NoError(t, err)
		do(t, func() {
			p := point(n, 1, 1, k)
			f := func(flat torch.Tensor) torch.Tensor {
				v := prior.LogDensity(infer.Params{Layout: n.Layout(), Flat: flat})
				// a flat prior has no gradient
				return v.Add(flat.Sum().Mul(0))
			}
			v, g, err := torch.VmapValueAndGrad(f, p.Flat)
			require.NoError(t, err)
			for i := range k {
				var want float64
				var slopes []float64
				for _, s := range n.Layout().Sites {
					for _, x := range must(row(p, i).Site(s.Name)) {
						want += c.want(s.Name, x)
						slopes = append(slopes, (c.want(s.Name, x+1e-6)-c.want(s.Name, x-1e-6))/2e-6)
						law := prior.Laws()[s.Name]
						assert.InDelta(t, c.want(s.Name, x), law.LogDensity(x), 1e-12)
					}
				}
				closeTo(t, []float64{want}, values(v.At(i).T()), 1e-13, name)
				closeTo(t, slopes, values(g.At(i).T()), 1e-7, name)
				single := prior.LogDensity(row(p, i))
				require.Empty(t, shape(single))
				closeTo(t, []float64{want}, values(single), 1e-13, name)
				for _, q := range []*nn.Prior{prior, prior32} {
					single = q.LogDensity(must(row(p, i).To(gotch.CPU, gotch.Float)))
					require.Equal(t, gotch.Float, single.T().DType())
					closeTo(t, []float64{want}, values(single), 1e-6, name)
				}
			}
		})
	}
}

func TestUniformPriorEnds(t *testing.T) {
	n, err := nn.MLP{Sizes: []int{3, 4, 2}}.Build()
	require.NoError(t, err)
	for name, scheme := range map[string]nn.Scheme{"alone": nn.Same(nn.Uniform(2)),
		"with others": nn.PerSite(map[string]nn.Law{"0.weight": nn.Uniform(2)}, nn.HePrior(1))} {
		prior, err := nn.NewPrior(n, scheme)
		require.NoError(t, err)
		site, _ := n.Layout().Site("0.weight")
		flat := make([]float64, n.NumParams())
		do(t, func() {
			for x, finite := range map[float64]bool{2: true, -2: true, 2.001: false, -3: false, math.NaN(): false} {
				flat[site.Offset+3] = x
				v := values(prior.LogDensity(must(infer.NewParams(n.Layout(), flat))))[0]
				if finite {
					assert.False(t, math.IsInf(v, 0) || math.IsNaN(v), "%s: %v at %v", name, v, x)
				} else if !math.IsNaN(x) || name == "alone" {
					assert.Equal(t, math.Inf(-1), v, "%s at %v", name, x)
				}
			}
		})
	}
}

// The uniform prior of Baldock & Marzari (2019, Bayesian neural networks at finite temperature): |w| < 50/√k, with k
// the fan-in and the bias. Its log density within is −Σ log(100/√k), which they give for two networks.
func TestPriorOfBaldockAndMarzari(t *testing.T) {
	for want, sizes := range map[float64][]int{28960.4: {256, 40, 40, 40, 10}, 19945.7: {256, 40, 10}} {
		n, err := nn.MLP{Sizes: sizes, Activation: nn.Sigmoid{}}.Build()
		require.NoError(t, err)
		prior, err := nn.NewPrior(
			n,
			nn.EachSite(func(s nn.Site) nn.Law { return nn.Uniform(50 / math.Sqrt(float64(s.FanIn+1))) }),
		)
		require.NoError(t, err)
		do(t, func() {
			assert.InDelta(t, -want, values(prior.LogDensity(must(infer.Zeros(n.Layout()))))[0], 0.06)
		})
	}
}

// Drawn points have the laws' moments.
func TestPriorDraws(t *testing.T) {
	n := wide(t)
	prior, err := nn.NewPrior(
		n,
		nn.PerSite(map[string]nn.Law{"0.weight": nn.Laplace(0.2), "0.bias": nn.Uniform(2)}, nn.HePrior(0.3)),
	)
	require.NoError(t, err)
	streams := torch.NewStreams(8, 20)
	p, err := prior.Draw(&streams)
	require.NoError(t, err)
	for site, kurtosis := range map[string]float64{"0.weight": 6, "0.bias": 1.8, "2.weight": 3, "2.bias": 3} {
		assertMoments(t, must(p.Site(site)), prior.Laws()[site].SD(), kurtosis, site)
	}
	assert.InDelta(t, 0.2*math.Sqrt2, prior.Laws()["0.weight"].SD(), 1e-15)
	assert.InDelta(t, 2/math.Sqrt(3), prior.Laws()["0.bias"].SD(), 1e-15)
	assert.Equal(t, "Laplace(0.2)", prior.Laws()["0.weight"].String())
	assert.Zero(t, nn.Constant(2).SD())
	assert.True(t, math.IsNaN(nn.Constant(2).LogDensity(2)))

	err = failing(t, func() { prior.LogDensity(p) })
	require.ErrorContains(t, err, "expected one point")
	require.ErrorIs(t, err, infer.ErrLayout)
}

// A prior lives on after the scope that it was made in, as it is and moved.
func TestPriorOutlivesScopes(t *testing.T) {
	n := wide(t)
	var priors []*nn.Prior
	do(t, func() {
		prior := must(nn.NewPrior(n, nn.HePrior(1)))
		priors = append(priors, prior, must(prior.To(gotch.CPU, gotch.Float)))
	})
	for _, prior := range priors {
		do(t, func() { require.Len(t, values(prior.LogDensity(must(infer.Zeros(n.Layout())))), 1) })
	}
	err := failing(t, func() { priors[0].LogDensity(infer.Params{}) })
	require.Error(t, err)
}
