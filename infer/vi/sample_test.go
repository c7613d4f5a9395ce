package vi_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The accessors against the distribution written out in plain Go, for one chain and for two.
func TestAccessors(t *testing.T) {
	const rank = 2
	l := layout(infer.Shapes{"a": {2, 2}, "b": {}})
	d := l.Dim()
	for what, method := range methods(adam, 1, 1, nil) {
		transform := build(t, method, correlated(d).logPosterior())
		for _, chains := range []int{0, 2} {
			s := begin(t, transform, params(l, make([]float64, max(chains, 1)*d), chains), 1)
			size := s.Variational().Layout.Dim()
			phi := spread(max(chains, 1) * size)
			place(t, s, phi)
			var means, sds, covs, factors []float64
			for k := range max(chains, 1) {
				mean, f := plain(what, phi[k*size:(k+1)*size], d, rank)
				var cov mat.Dense
				cov.Mul(f, f.T())
				means = append(means, mean...)
				covs = append(covs, cov.RawMatrix().Data...)
				factors = append(factors, f.RawMatrix().Data...)
				for i := range d {
					sds = append(sds, math.Sqrt(cov.At(i, i)))
				}
			}
			sd := must(s.SD())
			within(t, means, must(s.Position().Values()), 0, what+": mean")
			within(t, sds, must(sd.Values()), 1e-14, what+": SD")
			assert.Len(t, must(sd.Site("a")), 4*max(chains, 1))
			within(t, covs, values(must(s.Covariance()).T()), 1e-14, what+": covariance")
			within(t, factors, values(must(s.ScaleFactor()).T()), 1e-14, what+": scale factor")
			shape := []int{d, d}
			if chains > 0 {
				shape = append([]int{chains}, shape...)
			}
			assert.Equal(t, shape, must(s.Covariance()).Shape())
		}
	}
}

// Where the fits start: the standard deviations that were asked for, by default 0.1. For LowRank half of the variance
// is that of random factors, which differ from chain to chain: with W of variance c²/2r the mean of the variances is
// c².
func TestStarts(t *testing.T) {
	const d, chains = 9, 500
	n := correlated(d)
	start := params(n.layout(), spread(chains*d), chains)
	for what, k := range map[string]struct {
		method infer.Method
		sd     float64
	}{
		"Diag":             {vi.Diag{Optimizer: adam}, 0.1},
		"Diag with a sd":   {vi.Diag{Optimizer: adam, InitScale: 0.3}, 0.3},
		"Dense":            {vi.Dense{Optimizer: adam}, 0.1},
		"Dense with scale": {vi.Dense{Optimizer: adam, InitScale: 0.2}, 0.2},
	} {
		s := begin(t, build(t, k.method, n.logPosterior()), start, 1)
		identical(t, values(start.Flat.T()), values(s.Mean.Flat.T()), what+": mean")
		within(t, repeated([]float64{k.sd}, chains*d), values(must(s.SD()).Flat.T()), 1e-14, what)
		want := make([]float64, d*d)
		for i := range d {
			want[i*d+i] = k.sd * k.sd
		}
		within(t, repeated(want, chains), values(must(s.Covariance()).T()), 1e-14, what+": covariance")
	}
	for _, k := range []struct{ scale, c float64 }{{0, 0.1}, {0.2, 0.2}} {
		s := begin(t, build(t, vi.LowRank{Optimizer: adam, InitScale: k.scale}, n.logPosterior()), start, 1)
		factor := must(s.Variational().Site("factor"))
		require.Len(t, factor, chains*d*3, "the rank is √d by default")
		mean, se := moments(factor, 1)
		assert.InDelta(t, 0, mean[0], 4*se[0])
		var squares []float64
		for _, w := range factor {
			squares = append(squares, w*w)
		}
		mean, se = moments(squares, 1)
		assert.InDelta(t, k.c*k.c/6, mean[0], 4*se[0])
		assert.Less(t, se[0], 0.02*mean[0])
		var variances []float64
		for _, sd := range values(must(s.SD()).Flat.T()) {
			variances = append(variances, sd*sd)
		}
		mean, se = moments(variances, 1)
		assert.InDelta(t, k.c*k.c, mean[0], 4*se[0])
		for _, logSD := range must(s.Variational().Site("log_sd")) {
			assert.InDelta(t, math.Log(k.c)+0.5*math.Log(0.5), logSD, 1e-14)
		}
	}
}

// Draws have the mean and the covariance of the distribution, within 4 standard errors, with sites of any shape; with
// two chains every second draw is of the second. Any number of points can be drawn, with any number of streams, which
// move on.
func TestSample(t *testing.T) {
	const n, rank = 20000, 2
	l := layout(infer.Shapes{"a": {2, 2}, "b": {}, "c": {1, 3, 1}})
	d := l.Dim()
	for what, method := range methods(adam, 1, 1, nil) {
		transform := build(t, method, correlated(d).logPosterior())
		sampler := transform.(infer.Sampler)
		for _, chains := range []int{0, 2} {
			k := max(chains, 1)
			s := begin(t, transform, params(l, make([]float64, k*d), chains), 1)
			size := s.Variational().Layout.Dim()
			phi := spread(k * size)
			place(t, s, phi)
			streams := torch.NewStreams(7, 1)
			p, err := sampler.Sample(s, n*k, &streams)
			require.NoError(t, err)
			assert.Positive(t, streams.Offset)
			assert.Equal(t, []int{n * k, d}, p.Flat.Shape())
			assert.Equal(t, []int{n * k, 2, 2}, p.Get("a").Shape())
			assert.Equal(t, []int{n * k}, p.Get("b").Shape())
			assert.Equal(t, []int{n * k, 1, 3, 1}, p.Get("c").Shape())
			flat := must(p.Values())
			for chain := range k {
				mean, f := plain(what, phi[chain*size:(chain+1)*size], d, rank)
				var cov mat.Dense
				cov.Mul(f, f.T())
				var products []float64 // of the deviations, whose mean is the covariance
				for i := chain; i < n*k; i += k {
					row := flat[i*d : (i+1)*d]
					products = append(products, row...)
					for a := range d {
						for b := range d {
							products = append(products, (row[a]-mean[a])*(row[b]-mean[b]))
						}
					}
				}
				got, se := moments(products, d+d*d)
				for i, want := range append(append([]float64{}, mean...), cov.RawMatrix().Data...) {
					assert.InDelta(t, want, got[i], 4.5*se[i], "%s, %d chains, moment %d of chain %d", what, chains, i,
						chain)
				}
			}
			for _, count := range []int{1, 2, 3, 7} {
				for _, c := range []int{1, 2, 5} {
					own := torch.NewStreams(7, c)
					p, err := sampler.Sample(s, count, &own)
					require.NoError(t, err)
					assert.Equal(t, []int{count, d}, p.Flat.Shape())
					own = torch.NewStreams(7, c)
					again := must(sampler.Sample(s, count, &own))
					identical(t, values(p.Flat.T()), values(again.Flat.T()), "the same streams")
				}
			}
		}
		s := begin(t, transform, params(l, make([]float64, d), 0), 1)
		streams := torch.NewStreams(1, 1)
		_, err := sampler.Sample(s, 0, &streams)
		assert.ErrorContains(t, err, "at least 1")
		_, err = sampler.Sample(s, 1, nil)
		assert.ErrorIs(t, err, infer.ErrConfig)
		other, err := build(t, adam, line).Init(params(lineLayout(), spread(5), 0))
		require.NoError(t, err)
		_, err = sampler.Sample(other, 1, &streams)
		assert.ErrorContains(t, err, "made by another method")
	}
}
