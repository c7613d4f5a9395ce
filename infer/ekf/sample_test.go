package ekf_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Draws have the mean and the covariance of the state, within four standard errors: of a mean √(P_ii/n), of a
// covariance √((P_ii P_jj + P_ij²)/n).
func TestSampleHasTheStatesLaw(t *testing.T) {
	const d, n = 7, 20000
	l := layout(infer.Shapes{"a": {}, "m": {2, 3}})
	cov, mu := spd(1, d), normals(2, d)
	sds := []float64{0.5, 1, 2, 0.1, 3, 1, 1}
	for name, c := range map[string]struct {
		m    infer.Method
		want []float64
	}{
		"Diag": {ekf.Diag{LR: infer.Constant(1), InitSDs: torch.Of(vector(sds))},
			entries(diagonal(0.25, 1, 4, 0.01, 9, 1, 1))},
		"Dense": {ekf.Dense{LR: infer.Constant(1), InitCov: torch.Of(vector(entries(cov), d, d))}, entries(cov)},
	} {
		transform := build(t, c.m, logistic)
		s := begin(t, transform, params(l, mu, 0))
		streams := torch.NewStreams(3, 1)
		p, err := transform.(infer.Sampler).Sample(s, n, &streams)
		require.NoError(t, err)
		x := values(p.Flat.T())
		mean := make([]float64, d)
		for i, v := range x {
			mean[i%d] += v / n
		}
		for i := range d {
			assert.InDelta(t, mu[i], mean[i], 4*math.Sqrt(c.want[i*d+i]/n), name)
			for j := range d {
				sum := 0.0
				for r := range n {
					sum += (x[r*d+i] - mu[i]) * (x[r*d+j] - mu[j]) / n
				}
				se := math.Sqrt((c.want[i*d+i]*c.want[j*d+j] + c.want[i*d+j]*c.want[i*d+j]) / n)
				assert.InDelta(t, c.want[i*d+j], sum, 4*se, "%s: covariance of %s and %s", name, l.At(i), l.At(j))
			}
		}
	}
}

// Any number of draws works with sites of any shape; the streams move on, and the same streams give the same draws.
func TestSampleShapes(t *testing.T) {
	l := layout(infer.Shapes{"a": {}, "m": {2, 3}})
	for name, m := range map[string]infer.Method{"Diag": ekf.Diag{LR: infer.Constant(1)},
		"Dense": ekf.Dense{LR: infer.Constant(1)}} {
		transform := build(t, m, logistic)
		for _, k := range []int{0, 1, 3} {
			s := begin(t, transform, params(l, normals(1, 7*max(k, 1)), k))
			for _, n := range []int{1, 3, 10} {
				streams := torch.NewStreams(9, 1)
				first, err := transform.(infer.Sampler).Sample(s, n, &streams)
				require.NoError(t, err)
				assert.Equal(t, []int{n, 7}, first.Flat.Shape(), name)
				assert.Equal(t, []int{n, 2, 3}, first.Get("m").Shape(), name)
				assert.NotZero(t, streams.Offset)
				again := torch.NewStreams(9, 1)
				assert.Equal(t, values(first.Flat.T()), values(must(transform.(infer.Sampler).Sample(s, n, &again)).Flat.T()))
				assert.NotEqual(t, values(first.Flat.T()), values(must(transform.(infer.Sampler).Sample(s, n, &again)).Flat.T()))
				each := torch.NewStreams(9, n)
				assert.Equal(t, n, must(transform.(infer.Sampler).Sample(s, n, &each)).Chains())
			}
		}
	}
}

// With K chains draw i is of chain i mod K: with means far apart and small variances the draws tell which one they are
// of.
func TestSampleTakesChainsInTurn(t *testing.T) {
	l := layout(infer.Shapes{"w": {1}})
	for name, m := range map[string]infer.Method{
		"Diag":  ekf.Diag{LR: infer.Constant(1), InitSDs: torch.Of(vector([]float64{1e-3, 1, 1e-3}, 3, 1))},
		"Dense": ekf.Dense{LR: infer.Constant(1), InitSDs: torch.Of(vector([]float64{1e-3, 1, 1e-3}, 3, 1))},
	} {
		transform := build(t, m, logistic)
		s := begin(t, transform, params(l, []float64{100, 200, 300}, 3))
		streams := torch.NewStreams(9, 1)
		x := values(must(transform.(infer.Sampler).Sample(s, 8, &streams)).Flat.T())
		wide := 0.0
		for i, v := range x {
			if i%3 == 1 {
				assert.InDelta(t, 200, v, 6, name)
				wide = max(wide, math.Abs(v-200))
				continue
			}
			assert.InDelta(t, float64(i%3+1)*100, v, 0.006, name)
		}
		assert.Greater(t, wide, 0.01, name)
	}
}
