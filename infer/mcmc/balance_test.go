package mcmc_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// One update leaves the banana as it is, at two temperatures: 20000 chains start at exact draws, and after an update
// their moments are still within four standard errors. Most of the chains have moved.
func TestOneUpdateLeavesTheLaw(t *testing.T) {
	const n = 20000
	l := laws()["banana"]
	for _, temperature := range []float64{1, 2} {
		for what, m := range samplers(l, infer.Constant(temperature)) {
			rng := rand.New(rand.NewPCG(5, uint64(temperature)))
			// The names of the plain density sort y before x, those of the tensors do not.
			first, second := 1, 0
			if what == "Barker" {
				first, second = 0, 1
			}
			before := make([]float64, 2*n)
			for k := range n {
				x := math.Sqrt(temperature) * rng.NormFloat64()
				before[2*k+first] = x
				before[2*k+second] = x*x + math.Sqrt(temperature)/2*rng.NormFloat64()
			}
			program := l.program(t, what)
			transform, err := m.Build(program.Target())
			require.NoError(t, err)
			state, err := infer.Init(transform, infertest.Params(program.Layout(), before, n), 8)
			require.NoError(t, err)
			next, _, err := transform.Update(state, nil)
			require.NoError(t, err, what)
			after, err := next.Position().Values()
			require.NoError(t, err)
			moved := 0
			var sum, square [5]float64
			for k := range n {
				if after[2*k] != before[2*k] {
					moved++
				}
				x := after[2*k+first] / math.Sqrt(temperature)
				e := (after[2*k+second] - after[2*k+first]*after[2*k+first]) / math.Sqrt(temperature) * 2
				for i, v := range []float64{x, x * x, e, e * e, x * e} {
					sum[i] += v / n
					square[i] += v * v / n
				}
			}
			for i, want := range []float64{0, 1, 0, 1, 0} {
				se := math.Sqrt((square[i] - sum[i]*sum[i]) / n)
				assert.Less(t, math.Abs(sum[i]-want)/se, 4., "%s at T = %v, moment %d: %v", what, temperature, i, sum[i])
			}
			assert.Greater(t, moved, n/10, what)
		}
	}
}

// So it does two modes of different widths, of the first of four dimensions.
func TestOneUpdateLeavesModes(t *testing.T) {
	const n, d, narrow = 40000, 4, 0.3
	f := func(x []float64) float64 {
		u := (x[0] + 1) / narrow
		sum := math.Log(math.Exp(-(x[0]-3)*(x[0]-3)/2) + math.Exp(-u*u/2)/narrow)
		for _, v := range x[1:] {
			sum -= v * v / 2
		}
		return sum
	}
	cov := make([]float64, d*d)
	for i := range d {
		cov[i*d+i] = 2
	}
	program := infer.Plain(f, []string{"a", "b", "c", "d"}, make([]float64, d))
	for what, m := range samplers(law{mean: make([]float64, d), cov: cov}, nil) {
		if what == "Barker" {
			continue
		}
		rng := rand.New(rand.NewPCG(6, 0))
		before := make([]float64, n*d)
		for i := range before {
			if before[i] = rng.NormFloat64(); i%d != 0 {
				continue
			}
			if rng.IntN(2) == 0 {
				before[i] += 3
			} else {
				before[i] = narrow*before[i] - 1
			}
		}
		transform, err := m.Build(program.Target())
		require.NoError(t, err)
		state, err := infer.Init(transform, infertest.Params(program.Layout(), before, n), 9)
		require.NoError(t, err)
		for range 2 {
			state, _, err = transform.Update(state, nil)
			require.NoError(t, err, what)
		}
		after, err := state.Position().Values()
		require.NoError(t, err)
		var sum, square [4]float64
		for k := range n {
			x := after[k*d : (k+1)*d]
			r := x[1]*x[1] + x[2]*x[2] + x[3]*x[3]
			for i, v := range []float64{x[0], x[0] * x[0], r, r * r} {
				sum[i] += v / n
				square[i] += v * v / n
			}
		}
		for i, want := range []float64{1, 5 + (1+narrow*narrow)/2, 3, 15} {
			se := math.Sqrt((square[i] - sum[i]*sum[i]) / n)
			assert.Less(t, math.Abs(sum[i]-want)/se, 4., "%s, moment %d: %v", what, i, sum[i])
		}
	}
}
