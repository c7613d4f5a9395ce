package kernel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// gaussian is N(0, diag(variance)).
func gaussian(variance ...float64) Density {
	return Func(len(variance), func(x, grad []float64) float64 {
		lp := 0.0
		for i, v := range variance {
			grad[i] = -x[i] / v
			lp += 0.5 * x[i] * grad[i]
		}
		return lp
	})
}

// precision is N(0, A⁻¹), A of d rows of d numbers.
func precision(d int, a []float64) Density {
	return Func(d, func(x, grad []float64) float64 {
		lp := 0.0
		for i := range d {
			grad[i] = -dot(a[i*d:(i+1)*d], x)
			lp += 0.5 * x[i] * grad[i]
		}
		return lp
	})
}

// pair is a Gaussian with unit variances and correlation rho.
func pair(rho float64) Density {
	f := 1 / (1 - rho*rho)
	return precision(2, []float64{f, -rho * f, -rho * f, f})
}

// banana is x₀ ~ N(0, 1), x₁ | x₀ ~ N(x₀², 1/4). Its moments: E x₁ = 1, var x₁ = var(x₀²) + 1/4 = 2.25, cov(x₀, x₁) =
// 0, E x₀²x₁ = E x₀⁴ = 3.
var banana = Func(2, func(x, grad []float64) float64 {
	r := (x[1] - x[0]*x[0]) / 0.25
	grad[0] = -x[0] + 2*x[0]*r
	grad[1] = -r
	return -0.5*x[0]*x[0] - 0.5*r*r*0.25
})

// check compares the mean of f over all chains with want: |mean - want| <= 4 se, the standard error from the
// autocorrelation of f over the chains. The chains are independent, so the variance of the mean of all is the mean of
// their variances over their number.
func check(t *testing.T, r *sampled, name string, want float64, f func(x []float64) float64) {
	t.Helper()
	var all [][]float64
	for k := range r.Chains {
		c := &r.Chains[k]
		v := make([]float64, c.Len())
		for i := range v {
			v[i] = f(c.Draw(i))
		}
		all = append(all, v)
	}
	mean, se := estimate(all)
	if math.Abs(mean-want) > 4*se {
		t.Errorf("%s: %.5g, want %.5g, se %.2g: %.1f standard errors", name, mean, want, se, (mean-want)/se)
	}
	t.Logf("%s: %.5g, want %.5g: %.1f se (ESS %.0f)", name, mean, want, (mean-want)/se, variance(all, mean)/(se*se))
}

func variance(all [][]float64, mean float64) float64 {
	s, n := 0.0, 0
	for _, v := range all {
		for _, e := range v {
			s += (e - mean) * (e - mean)
			n++
		}
	}
	return s / float64(n)
}

// estimate is the mean of chains and its standard error: autocovariances around the common mean, averaged over chains
// and summed by Geyer's (1992) initial positive sequence.
func estimate(all [][]float64) (mean, se float64) {
	n, total := len(all[0]), 0.0
	for _, v := range all {
		for _, e := range v {
			total += e
		}
	}
	m := float64(n * len(all))
	mean = total / m
	auto := func(lag int) float64 {
		s := 0.0
		for _, v := range all {
			for i := lag; i < n; i++ {
				s += (v[i] - mean) * (v[i-lag] - mean)
			}
		}
		return s / m
	}
	g0 := auto(0)
	sum, last := -g0, math.Inf(1)
	for lag := 0; lag+1 < n; lag += 2 {
		p := auto(lag) + auto(lag+1)
		if p <= 0 {
			break
		}
		last = math.Min(last, p)
		sum += 2 * last
	}
	// An antithetic chain has a sum below g0; with fewer than about n/10 pairs the sum is well determined.
	return mean, math.Sqrt(math.Max(sum, g0/math.Log(m)) / m)
}

// checkMoments checks E xᵢ = 0 and E xᵢ² = variance.
func checkMoments(t *testing.T, r *sampled, variance ...float64) {
	t.Helper()
	for i, v := range variance {
		check(t, r, "mean", 0, func(x []float64) float64 { return x[i] })
		check(t, r, "variance", v, func(x []float64) float64 { return x[i] * x[i] })
	}
}

func run(t *testing.T, d Density, o Options) *sampled {
	t.Helper()
	r, err := sample(context.Background(), d, o)
	require.NoError(t, err)
	return r
}

func metric(t testing.TB, s Metric) massMatrix {
	t.Helper()
	m, err := s.build()
	require.NoError(t, err)
	return m
}

// metrics are one of each kind in three dimensions, with M⁻¹ in full.
func metrics() (states []Metric, inverse [][]float64) {
	s := math.Sqrt(0.5)
	dense := []float64{2, 0.5, 0.1, 0.5, 1, -0.3, 0.1, -0.3, 0.7}
	low := lowRankMetric([]float64{4, 1, 0.25}, []float64{s, s, 0, 0, 0, 1}, []float64{3, 0.5})
	// D^½(I + 2uuᵀ - ½wwᵀ)D^½ with u = (s, s, 0), w = e₃, D^½ = (2, 1, ½)
	full := []float64{8, 2, 0, 2, 2, 0, 0, 0, 0.125}
	return []Metric{unitMetric(3), diagonalMetric([]float64{2, 0.5, 3}), denseMetric(3, dense), low},
		[][]float64{{1, 0, 0, 0, 1, 0, 0, 0, 1}, {2, 0, 0, 0, 0.5, 0, 0, 0, 3}, dense, full}
}

func sameDraws(t *testing.T, want, got *sampled) {
	t.Helper()
	require.Equal(t, len(want.Chains), len(got.Chains))
	for k := range want.Chains {
		a, b := want.Chains[k], got.Chains[k]
		require.Equal(t, a.Len(), b.Len())
		require.True(t, slices.Equal(a.Draws, b.Draws), "chain %d", k)
		require.Equal(t, a.LogP, b.LogP)
		require.Equal(t, a.Energy, b.Energy)
		require.Equal(t, a.Leapfrogs, b.Leapfrogs)
		require.Equal(t, a.Gradients, b.Gradients)
		require.Equal(t, a.Metric, b.Metric)
	}
}

// newState evaluates a gradient at x, which is copied. A point that is not finite is an ErrNonFinite.
func newState(x []float64, g gradient) (position, error) {
	s := position{X: append([]float64(nil), x...), Grad: make([]float64, len(x))}
	var err error
	if s.LogP, err = point(g, s.X, s.Grad); err != nil {
		return position{}, err
	}
	if math.IsNaN(s.LogP) || !allFinite(x) {
		return position{}, fmt.Errorf("log density or gradient at the start: %w", ErrNonFinite)
	}
	return s, nil
}

// gradientOf evaluates a density at one point at a time.
func gradientOf(d Density) gradient {
	logp, t := make([]float64, 1), []float64{1}
	return func(x, grad []float64) (float64, error) {
		err := evaluate(d, x, t, logp, grad)
		return logp[0], err
	}
}

// sampled is a result with the draws that were recorded.
type sampled struct {
	*Result
	Dim    int
	Chains []drawn
}

// drawn are the draws of one chain and their statistics, one number for each draw.
type drawn struct {
	First                          int       // number of the first draw
	Draws                          []float64 // [draws, Dim]
	LogP, Accept, StepSize, Energy []float64
	Depth, Leapfrogs               []int
	Divergent, MaxDepth            []bool
	Gradients                      int
	Metric                         Metric
}

func (c *drawn) Len() int { return len(c.LogP) }

func (c *drawn) Draw(i int) []float64 {
	d := len(c.Draws) / len(c.LogP)
	return c.Draws[i*d : (i+1)*d : (i+1)*d]
}

// sample is Run with the draws kept.
func sample(ctx context.Context, d Density, o Options) (*sampled, error) {
	s, next := &sampled{}, o.Record
	if d != nil {
		s.Dim = d.Dim()
	}
	n := o.Chains
	if n == 0 {
		n = 4
	}
	s.Chains = make([]drawn, max(0, n*o.replicas()))
	if o.Resume != nil {
		for k, c := range o.Resume.Chains {
			if k < len(s.Chains) {
				s.Chains[k].First = max(0, c.Done-max(0, o.Warmup)) / max(1, o.Thin)
			}
		}
	}
	o.Record = func(chain, draw int, x []float64, info Info) error {
		if !info.Warmup {
			c := &s.Chains[chain]
			c.Draws = append(c.Draws, x...)
			c.LogP = append(c.LogP, info.LogP)
			c.Accept = append(c.Accept, info.Accept)
			c.StepSize = append(c.StepSize, info.StepSize)
			c.Energy = append(c.Energy, info.Energy)
			c.Depth = append(c.Depth, info.Depth)
			c.Leapfrogs = append(c.Leapfrogs, info.Leapfrogs)
			c.Divergent = append(c.Divergent, info.Divergent)
			c.MaxDepth = append(c.MaxDepth, info.MaxDepth)
		}
		if next != nil {
			return next(chain, draw, x, info)
		}
		return nil
	}
	r, err := Run(ctx, d, o)
	if r == nil {
		return nil, err
	}
	s.Result = r
	for k := range s.Chains {
		s.Chains[k].Gradients, s.Chains[k].Metric = r.Gradients[k], r.Metrics[k]
	}
	return s, err
}

// resume goes on from a snapshot.
func resume(d Density, o Options, s *Snapshot) (*sampled, error) {
	o.Resume = s
	return sample(context.Background(), d, o)
}

// geometric are n temperatures from low to high with a constant ratio.
func geometric(low, high float64, n int) []float64 {
	t := make([]float64, n)
	for i := range t {
		t[i] = low * math.Pow(high/low, float64(i)/float64(n-1))
	}
	return t
}

// cold is the temperature 1.
var cold = 1.0

// logAddExp is log(e^a + e^b).
func logAddExp(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
