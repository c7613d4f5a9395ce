package diag

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// goldenKSD are 30 draws of dimension 3, uniform on (-2, 2), with the gradients of a normal log density of precisions
// 1, 1/2 and 2.
func goldenKSD() (x, s []float64) {
	seed := lcg(21)
	for range 30 {
		for k := range 3 {
			v := seed.Next()*4 - 2
			x, s = append(x, v), append(s, -v*[]float64{1, 0.5, 2}[k])
		}
	}
	return x, s
}

// The same sums in NumPy, by whole arrays: V and U.
func TestKSDGolden(t *testing.T) {
	x, s := goldenKSD()
	for _, c := range []struct {
		kernel Kernel
		v, u   float64
	}{
		{nil, 0.4833660622504571, 0.14871891047544852},
		{IMQ{}, 0.4833660622504571, 0.14871891047544852},
		{IMQ{C: 1, Beta: -0.5000000000000001}, 0.4833660622504571, 0.14871891047544852}, // by the power
		{IMQ{C: 2, Beta: -0.3}, 0.17032557999974604, 0.0024302977768884543},
		{Gaussian{}, 0.6035581318797311, 0.27305553422986983},
		{Gaussian{Length: 1}, 0.6035581318797311, 0.27305553422986983},
	} {
		r, err := KSD(x, s, 3, c.kernel)
		require.NoError(t, err)
		near(t, "V", r.V, c.v, 1e-14)
		near(t, "U", r.U, c.u, 1e-14)
		near(t, "KSD", r.KSD, math.Sqrt(c.v), 1e-14)
	}
}

// k0 against its definition with central differences, in two dimensions.
func TestSteinKernelByDifferences(t *testing.T) {
	x, y := []float64{0.3, -0.7}, []float64{1.1, 0.4}
	sx, sy := []float64{-0.2, 0.9}, []float64{1.5, -0.4}
	const h = 1e-4
	for _, kernel := range []Kernel{IMQ{}, IMQ{C: 0.7, Beta: -0.8}, Gaussian{}, Gaussian{Length: 2}} {
		k := func(dx, dy []float64) float64 {
			r2 := 0.0
			for i := range x {
				u := x[i] + dx[i] - y[i] - dy[i]
				r2 += u * u
			}
			v, _, _ := kernel.radial(r2)
			return v
		}
		zero := []float64{0, 0}
		unit := func(i int, size float64) []float64 {
			e := []float64{0, 0}
			e[i] = size
			return e
		}
		want := k(zero, zero) * (sx[0]*sy[0] + sx[1]*sy[1])
		for i := range 2 {
			dkdx := (k(unit(i, h), zero) - k(unit(i, -h), zero)) / (2 * h)
			dkdy := (k(zero, unit(i, h)) - k(zero, unit(i, -h))) / (2 * h)
			up, down := unit(i, h), unit(i, -h)
			mixed := (k(up, up) - k(up, down) - k(down, up) + k(down, down)) / (4 * h * h)
			want += mixed + sx[i]*dkdy + sy[i]*dkdx
		}
		require.InDelta(t, want, steinKernel(kernel, x, y, sx, sy), 1e-6)
	}
}

// Under the target U has mean 0, and V is positive; draws that are shifted, too narrow or too wide score higher. All of
// it over repetitions, since U of one sample scatters.
func TestKSDUnderTarget(t *testing.T) {
	rng := source(10)
	const n, dim, repetitions = 200, 2, 60
	u := func(shift, scale float64) (all []float64) {
		for range repetitions {
			x, s := make([]float64, n*dim), make([]float64, n*dim)
			for i := range x {
				x[i] = shift + scale*rng.NormFloat64()
				s[i] = -x[i]
			}
			r, err := KSD(x, s, dim, nil)
			require.NoError(t, err)
			require.Greater(t, r.V, 0.0)
			all = append(all, r.U)
		}
		return all
	}
	mean, se := meanSE(u(0, 1))
	require.InDelta(t, 0, mean, 4*se)
	for _, c := range []struct{ shift, scale float64 }{{0.3, 1}, {0, 0.7}, {0, 1.5}} {
		mean, se = meanSE(u(c.shift, c.scale))
		require.Greater(t, mean, 4*se)
	}
}

// Whole blocks, part blocks and one processor give the same to the last bit.
func TestKSDBlocks(t *testing.T) {
	rng := source(11)
	x := normals(rng, 1, 150*2)[0]
	s := sample.Mapped([][]float64{x}, func(v float64) float64 { return -v })[0]
	a, err := KSD(x, s, 2, nil)
	require.NoError(t, err)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b, err := KSD(x, s, 2, nil)
	require.NoError(t, err)
	require.Equal(t, a, b)

	sum := 0.0
	for i := range 150 {
		for j := range 150 {
			sum += steinKernel(IMQ{}, x[2*i:2*i+2], x[2*j:2*j+2], s[2*i:2*i+2], s[2*j:2*j+2])
		}
	}
	require.InDelta(t, sum/150/150, a.V, 1e-13)
	one, err := KSD(x[:2], s[:2], 2, nil)
	require.NoError(t, err)
	require.True(t, math.IsNaN(one.U))
}

func TestKSDErrors(t *testing.T) {
	x := []float64{1, 2, 3, 4}
	for name, f := range map[string]func() error{
		"dim":   func() error { _, err := KSD(x, x, 0, nil); return err },
		"c":     func() error { _, err := KSD(x, x, 2, IMQ{C: -1}); return err },
		"beta":  func() error { _, err := KSD(x, x, 2, IMQ{Beta: -1}); return err },
		"beta0": func() error { _, err := KSD(x, x, 2, IMQ{Beta: 0.5}); return err },
		"ell":   func() error { _, err := KSD(x, x, 2, Gaussian{Length: nan}); return err },
	} {
		require.ErrorIs(t, f(), draws.ErrRange, name)
	}
	_, err := KSD(nil, nil, 2, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = KSD(x, x, 3, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = KSD(x, x[:2], 2, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = KSD(x, []float64{1, 2, inf, 0}, 2, nil)
	require.EqualError(t, err, "diag: ksd: draw 1: x is 3 and s is +Inf at element 0")
	require.ErrorIs(t, err, ErrNotFinite)
}

func BenchmarkKSD(b *testing.B) {
	x := normals(source(14), 1, 2000*10)[0]
	for b.Loop() {
		if _, err := KSD(x, x, 10, nil); err != nil {
			b.Fatal(err)
		}
	}
}
