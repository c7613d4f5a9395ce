package gp_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"

	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

const jitter = 1e-9 // the default of Process

// covariance is that of a formula, with more on its diagonal.
func covariance(l law, x [][]float64, noise float64) *mat.SymDense {
	out := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i + 1 {
			v := l(x[i], x[j])
			if i == j {
				v += jitter*v + noise*noise
			}
			out.SetSym(i, j, v)
		}
	}
	return out
}

func numbers(n int) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = math.Cos(float64(3*i)) + 0.4
	}
	return y
}

func repeat(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// The marginal is the dense normal distribution of the kernel's formula.
func TestMarginal(t *testing.T) {
	x, y := points(9, 2, 0), numbers(9)
	for name := range kernels() {
		t.Run(name, func(t *testing.T) {
			do(t, func() {
				c := kernels()[name]
				want, ok := distmv.NewNormal(repeat(0.3, 9), covariance(c.law, x, 0.6), nil)
				require.True(t, ok)
				p := gp.Process{Kernel: c.kernel, X: stacked(x), Mean: 0.3}
				assert.InDelta(t, want.LogProb(y), p.Marginal(0.6).LogProb(tensor(y)).Item(), 1e-9)
				p.Mean = tensor(repeat(0.3, 9))
				assert.InDelta(t, want.LogProb(y), p.Marginal(tensor(repeat(0.6, 9))).LogProb(tensor(y)).Item(), 1e-9)
			})
		})
	}
}

// Predictions are the conditional distribution of the joint normal one, with noise and without.
func TestGiven(t *testing.T) {
	x, at, y := points(7, 2, 0), points(4, 2, 2.5), numbers(7)
	for _, name := range []string{"Matern 3/2", "sum", "product of sums"} {
		for _, noise := range []float64{0.5, 0} {
			do(t, func() {
				c := kernels()[name]
				var gain, less mat.Dense
				across := mat.NewDense(7, 4, nil)
				for i := range x {
					for j := range at {
						across.Set(i, j, c.law(x[i], at[j]))
					}
				}
				require.NoError(t, gain.Solve(covariance(c.law, x, noise), across))
				var mean mat.VecDense
				off := mat.NewVecDense(7, nil)
				for i := range y {
					off.SetVec(i, y[i]-0.3)
				}
				mean.MulVec(gain.T(), off)
				less.Mul(across.T(), &gain)
				p := gp.Process{Kernel: c.kernel, X: stacked(x), Mean: 0.3}
				d := p.Given(tensor(y), noise, stacked(at), nil)
				cov := d.(interface{ Covariance() torch.Tensor }).Covariance()
				full := covariance(c.law, at, 0)
				for i := range at {
					assert.InDelta(t, mean.AtVec(i)+0.3, d.Mean().At(i).Item(), 1e-8)
					for j := range at {
						assert.InDelta(t, full.At(i, j)-less.At(i, j), cov.At(i, j).Item(), 1e-8)
					}
				}
				// Without noise the process goes through its data.
				if noise == 0 {
					same := p.Given(tensor(y), 0, stacked(x), nil)
					assert.InDeltaSlice(t, y, same.Mean().Values(), 1e-5)
				}
			})
		}
	}
}

// rowsOf are the values of f for each unit vector of its standard normal numbers: the columns of a root of its
// covariance.
func rowsOf(t *testing.T, model ppl.Model, m int) *mat.Dense {
	t.Helper()
	var out *mat.Dense
	for i := range m {
		z := make([]float64, m)
		z[i] = 1
		trace, err := ppl.TraceModel(ppl.Substitute(model, ppl.Values{"f_z": tensor(z).T()}), nil, 1)
		require.NoError(t, err)
		f, err := trace.Value("f")
		require.NoError(t, err)
		v, err := torch.ToSlice[float64](f)
		require.NoError(t, err)
		if out == nil {
			out = mat.NewDense(m, len(v), nil)
		}
		out.SetRow(i, v)
	}
	return out
}

// A latent process has the covariance of its kernel.
func TestLatent(t *testing.T) {
	x := points(6, 2, 0)
	root := rowsOf(t, func(c *ppl.Ctx) {
		gp.Process{Kernel: kernels()["sum"].kernel, X: stacked(x)}.Latent(c, "f")
	}, 6)
	var got mat.Dense
	got.Mul(root.T(), root)
	want := covariance(kernels()["sum"].law, x, 0)
	assert.True(t, mat.EqualApprox(&got, want, 1e-10))
}
