package statespace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Filtered and smoothed states are those of the joint normal distribution of states and observations.
func TestStates(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			do(t, func() {
				s := e.series()
				y := e.value(s)
				j := jointOf(e.system(), e.noise)
				mean, cov := s.Smoothed(y)
				filtered, filteredCov := s.Filtered(y)
				assert.Equal(t, []int{j.steps, j.m, j.m}, cov.Shape())
				for at := range j.steps {
					places := span(at*j.m, (at+1)*j.m)
					near(t, j, e.y, places, mean.At(at), cov.At(at))
					until := append([]float64{}, e.y...)
					for i := (at + 1) * j.p; i < len(until); i++ {
						until[i] = math.NaN()
					}
					near(t, j, until, places, filtered.At(at), filteredCov.At(at))
				}
			})
		})
	}
}

// law is what knows the states given numbers.
type law interface {
	given(y []float64, of []int) (mean []float64, cov *mat.Dense)
}

func near(t *testing.T, j law, y []float64, places []int, mean, cov torch.Tensor) {
	t.Helper()
	wantMean, wantCov := j.given(y, places)
	for i, v := range mean.Values() {
		assert.InDelta(t, wantMean[i], v, 1e-9)
	}
	for i, v := range cov.Values() {
		assert.InDelta(t, wantCov.At(i/len(places), i%len(places)), v, 1e-9)
	}
}

// Draws of states given a series have the mean and the covariance of the joint distribution, within 4.5 standard
// errors of 20,000 draws, over all times together.
func TestSampleStates(t *testing.T) {
	const n = 20000
	for _, e := range []example{examples()[4], examples()[10]} {
		t.Run(e.name, func(t *testing.T) {
			do(t, func() {
				s := e.series()
				j := jointOf(e.system(), e.noise)
				x := s.SampleStates(torch.NewSource(5, 0), e.value(s), n).Values()
				k := j.steps * j.m
				mean, cov := j.given(e.y, span(0, k))
				for a := range k {
					for _, b := range []int{a, max(a-1, 0), max(a-j.m, 0), 0} {
						sum, product := 0.0, 0.0
						for i := range n {
							u, v := x[i*k+a]-mean[a], x[i*k+b]-mean[b]
							sum, product = sum+u, product+u*v
						}
						// Where a state is known, its variance is 0 to rounding.
						va, vb, c := max(cov.At(a, a), 0), max(cov.At(b, b), 0), cov.At(a, b)
						assert.InDelta(t, c, product/n, 4.5*math.Sqrt((va*vb+c*c)/n)+1e-12, "%d %d", a, b)
						assert.InDelta(t, 0, sum/n, 4.5*math.Sqrt(va/n)+1e-9, "%d", a)
					}
				}
			})
		})
	}
}

// Forecasts have the law of the last numbers of a longer series given the first: means and variances, and the log
// density of the path, which is the difference of two.
func TestForecast(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			do(t, func() {
				const n = 3
				s := e.series()
				j := jointOf(e.system(), e.noise)
				past := (j.steps - n) * j.p
				y := e.value(s)
				f := s.Forecast(y.Slice(0, 0, j.steps-n), n)
				first := append([]float64{}, e.y...)
				for i := past; i < len(first); i++ {
					first[i] = math.NaN()
				}
				mean, cov := j.given(first, span(j.steps*j.m+past, j.steps*(j.m+j.p)))
				means, variances := f.Mean().Values(), f.Variance().Values()
				for i := range mean {
					assert.InDelta(t, mean[i], means[i], 1e-9)
					assert.InDelta(t, cov.At(i, i), variances[i], 1e-9)
				}
				future := y.Slice(0, j.steps-n, j.steps)
				assert.InDelta(t, j.logp(e.y)-j.logp(first), f.LogProb(future).Item(), 1e-9)
			})
		})
	}
}
