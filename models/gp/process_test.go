package gp_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// covariance is that of a formula, with more on its diagonal.
func covariance(l law, x [][]float64, noise float64) *mat.SymDense {
	out := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i + 1 {
			v := l(x[i], x[j])
			if i == j {
				v += noise * noise
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
		trace, err := ppl.TraceModel(ppl.Substitute(model, ppl.Values{"f_z": tensor(z)}), nil, 1)
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

// Lines through 0 over years that are not centred: the density is that of a linear regression,
//
//	log det = log(1 + s²x'x/h²) + n log h²,  y'(K + h²)⁻¹y = (y'y − (x'y)²/(x'x + h²/s²))/h²
//
// to the rounding of a variance of 1.6e9 beside one of 0.09. The jitter has no part in it.
func TestJitterLeavesTheNoise(t *testing.T) {
	const n, scale, noise = 50, 20.0, 0.3
	x, y := make([]float64, n), make([]float64, n)
	var xx, xy, yy float64
	for i := range x {
		x[i] = 1974 + float64(i)
		y[i] = 0.05*x[i] + 0.3*math.Cos(float64(7*i*i))
		xx, xy, yy = xx+x[i]*x[i], xy+x[i]*y[i], yy+y[i]*y[i]
	}
	h2 := noise * noise
	want := -(math.Log(1+scale*scale*xx/h2) + n*math.Log(2*math.Pi*h2) + (yy-xy*xy/(xx+h2/scale/scale))/h2) / 2
	do(t, func() {
		p := gp.Process{Kernel: gp.Linear{Scale: scale}, X: tensor(x)}
		assert.InDelta(t, want, p.Marginal(noise).LogProb(tensor(y)).Item(), 1e-2)
	})
}

// Two data at one input of a process of variance K = 1e6 with noise h² = 1e-4 leave the variance K h²/(2K + h²) there,
// which a jitter of 1e-9 K would make thirty times as large. Without noise the process is known at its data, and its
// draws at equal inputs are equal but for rounding.
func TestJitterInPredictions(t *testing.T) {
	do(t, func() {
		p := gp.Process{Kernel: gp.SquaredExponential{Scale: 1000}, X: tensor([]float64{0.5, 0.5})}
		d := p.Given(tensor([]float64{3, 5}), 0.01, tensor([]float64{0.5}), nil)
		assert.InEpsilon(t, 0.5e-4, d.Variance().At(0).Item(), 0.005)
		assert.InDelta(t, 4, d.Mean().At(0).Item(), 1e-6)
		known := p.Given(tensor([]float64{3, 3}), 0, tensor([]float64{0.5, 0.5, 0.7}), nil)
		assert.InDelta(t, 0, known.Variance().At(1).Item(), 1e-6)
		assert.InDelta(t, 3, known.Mean().At(1).Item(), 1e-6)
	})
}

// However close inputs are beside the lengths, and however far from the centre of a line, there is a factor, without
// noise too.
func TestFactorsExist(t *testing.T) {
	for _, n := range []int{2, 20, 150} {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Round(40*float64(i*i%n)/float64(n)) / 40 // some are equal
		}
		y, at := tensor(make([]float64, n)), tensor(append([]float64{-0.3, 1.7}, x...))
		for _, length := range []float64{0.01, 0.1, 0.4, 1, 10, 1000} {
			for name, k := range map[string]gp.Kernel{
				"exponential": gp.SquaredExponential{Length: length, Scale: 30},
				"Matern":      gp.Matern{Nu: 2.5, Length: length},
				"periodic":    gp.Periodic{Length: length, Period: 0.3},
				"lines":       gp.Product(gp.Linear{Scale: 10, Center: -1974 * length}, gp.SquaredExponential{Length: length}),
			} {
				do(t, func() {
					p := gp.Process{Kernel: k, X: tensor(x)}
					for _, v := range []torch.Tensor{p.Marginal(0).LogProb(y), p.Given(y, 0, at, nil).LogProb(
						torch.Zeros(n + 2))} {
						assert.False(t, math.IsNaN(v.Item()), "%s, %d inputs, length %v", name, n, length)
					}
				})
			}
		}
	}
}

// A run whose noise is below the jitter has a note with its size, and one of far inputs says to centre them.
func TestJitterNote(t *testing.T) {
	run := func(model ppl.Model, tier native.Tier) []draws.Note {
		p, err := ppl.Compile(model, nil)
		require.NoError(t, err)
		d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Chains: 1, Warmup: 20, Draws: 20,
			Native: tier, Observer: infer.Silent})
		require.NoError(t, err)
		return d.Notes()
	}
	years := tensor([]float64{1990, 1991, 1992, 1993})
	model := func(x torch.Tensor, kernel gp.Kernel, noise float64) ppl.Model {
		return func(c *ppl.Ctx) {
			level := c.Sample("level", dist.Normal(0, 1))
			p := gp.Process{Kernel: kernel, X: x, Mean: level}
			c.Observe("y", p.Marginal(noise), tensor([]float64{1, 1, 1, 1}))
		}
	}
	for _, tier := range []native.Tier{native.VM, native.Eager} {
		for _, n := range run(model(years, gp.Matern{Nu: 0.5}, 0.1), tier) {
			require.NotEqual(t, "gp_jitter", n.Kind)
		}
		notes := run(model(years, gp.Linear{Scale: 20}, 1e-5), tier)
		require.Len(t, notes, 1)
		require.Equal(t, "gp_jitter", notes[0].Kind)
		require.Contains(t, notes[0].Advice, "far from the Center")
		// 4·2⁻⁴⁹·400·1993² over 1e-10
		require.Contains(t, notes[0].Text, fmt.Sprintf("on average %.3g times", 4*0x1p-49*400*1993*1993/1e-10))
		notes = run(model(years, gp.Matern{Nu: 0.5}, 1e-8), tier)
		require.Len(t, notes, 1)
		require.Contains(t, notes[0].Advice, "Give the noise a prior")
	}
}
